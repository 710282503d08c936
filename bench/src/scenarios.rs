//! All scenarios, in the order in which they are listed.
use crate::row::Row;
use crate::run::{Run, Show};

/// One scenario: what it measures, and how.
pub(crate) struct Scenario {
    pub(crate) id: &'static str,
    pub(crate) about: &'static str,
    measure: fn(&mut Run),
}

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        id: "P1",
        about: "point read by key, one thread, 10k to 1M objects",
        measure: crate::p01_point_read::run,
    },
    Scenario {
        id: "P2",
        about: "point reads beside a writer: throughput and tails",
        measure: crate::p02_read_beside_writer::run,
    },
    Scenario {
        id: "P3",
        about: "list a namespace or a node through an index",
        measure: crate::p03_list_by_index::run,
    },
    Scenario {
        id: "P4",
        about: "four threads list everything beside one writer",
        measure: crate::p04_list_beside_writer::run,
    },
    Scenario {
        id: "P5",
        about: "client-go's own informer benchmark: a grid of pods and readers",
        measure: crate::p05_informer_grid::run,
    },
    Scenario {
        id: "P6",
        about: "a relist: time, readers meanwhile, memory meanwhile",
        measure: crate::p06_replace::run,
    },
    Scenario {
        id: "P7",
        about: "the delta queue, from one thread to another",
        measure: crate::p07_delta_queue::run,
    },
    Scenario {
        id: "P8",
        about: "from the source to ten handlers: events a second, and latency",
        measure: crate::p08_end_to_end::run,
    },
    Scenario {
        id: "P9",
        about: "live bytes over the objects themselves",
        measure: crate::p09_memory::run,
    },
    Scenario {
        id: "P10",
        about: "snapshot taken and dropped; diff of two versions",
        measure: crate::p10_snapshot_and_diff::run,
    },
    Scenario {
        id: "P11",
        about: "a label selector in a namespace, among 50k and a million",
        measure: crate::p11_selector::run,
    },
    Scenario {
        id: "P12",
        about: "the work queue: add, get, done",
        measure: crate::p12_work_queue::run,
    },
    Scenario {
        id: "P13",
        about: "growth from a thousand objects to a million",
        measure: crate::p13_growth::run,
    },
    Scenario {
        id: "P14",
        about: "a hundred handlers, one of them blocked for ever",
        measure: crate::p14_blocked_handler::run,
    },
    Scenario {
        id: "P15",
        about: "what realistic pods weigh: typed, schemaless, projected",
        measure: crate::p15_pod_memory::run,
    },
    Scenario {
        id: "P16",
        about: "the outage: full reads in a loop starve the one writer; a relist meanwhile",
        measure: crate::p16_outage::run,
    },
    Scenario {
        id: "writes",
        about: "modifications in batches of 1, 64 and 1024; publishes while snapshots rotate",
        measure: crate::writes::run,
    },
];

/// The scenarios with these ids, whatever their case.
pub(crate) fn named(ids: &[String]) -> Result<Vec<&'static Scenario>, String> {
    ids.iter()
        .map(|id| {
            ALL.iter()
                .find(|scenario| scenario.id.eq_ignore_ascii_case(id))
                .ok_or_else(|| format!("there is no scenario {id:?}; `list` names them"))
        })
        .collect()
}

impl Scenario {
    pub(crate) fn run(&self, quick: bool, show: Show) -> Vec<Row> {
        let mut run = Run::new(self.id, quick, show);
        (self.measure)(&mut run);
        run.into_rows()
    }
}
