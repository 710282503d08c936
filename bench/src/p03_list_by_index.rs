//! P3: list what an index names: a namespace (500 of 50k) and a node (50 of 50k).
use crate::contest::Contest;
use crate::ours::Ours;
use crate::peers::client_go::ClientGo;
use crate::peers::client_go_model::{By, Model};
use crate::peers::kube::{Kube, Reader};
use crate::peers::{CLIENT_GO, KUBE, MODEL};
use crate::pod::{Pod, World};
use crate::row::{NANOS, OURS, Row};
use crate::run::Run;
use crate::store::Store;
use informant::indexer::Index;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Lists in one sample.
const LISTS: usize = 400;
/// Scans of everything are four orders slower.
const SCANS: usize = 8;

/// What is done with the objects of a list.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    Collect,
    Visit,
    Count,
}

impl Use {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Collect => "collect",
            Self::Visit => "visit",
            Self::Count => "count",
        }
    }
}

pub(crate) fn run(run: &mut Run) {
    let n = 50_000;
    let world = World::new(n);
    let ours = Ours::load(&world);
    let model = Model::load(&world);
    let kube = Kube::load(&world).map(|kube| kube.reader());
    let mut go = ClientGo::start(n);
    for (by, index, values) in [
        (By::Namespace, &ours.namespace, &world.namespaces),
        (By::Node, &ours.node, &world.nodes),
    ] {
        let index_name = match by {
            By::Namespace => "namespace",
            _ => "node",
        };
        let values = shuffled(values);
        for what in [Use::Collect, Use::Visit, Use::Count] {
            let mut contest = Contest::new();
            contest.arm(OURS, || [ours_each(&ours, index, &values, what)]);
            contest.arm(MODEL, || [model_each(&model, by, &values, what)]);
            contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
                let command = format!("by-index {index_name} {} {LISTS}", what.word());
                Box::new(move || [go.figure(&command)])
            });
            contest.arm_of(KUBE, kube.as_ref(), |kube| {
                let values = &values;
                Box::new(move || [filter_each(kube, by, values, what)])
            });
            let standing = contest.run(run.rounds());
            let name = match what {
                Use::Collect => format!("{index_name}: collect owned"),
                Use::Visit => format!("{index_name}: visit, read a field"),
                Use::Count => format!("{index_name}: count"),
            };
            let factor = match what {
                Use::Count => 10.0,
                _ => 5.0,
            };
            let row = Row::of(name, n, &standing, 0, NANOS);
            run.add(row.at_least(factor, CLIENT_GO).at_least(100.0, KUBE));
        }
    }
}

pub(crate) fn shuffled(values: &[Arc<str>]) -> Vec<Arc<str>> {
    let mut values = values.to_vec();
    fastrand::Rng::with_seed(3).shuffle(&mut values);
    values
}

/// Nanoseconds for each list, each of the next value.
fn nanos_each(lists: usize, values: &[Arc<str>], mut list: impl FnMut(&str) -> u64) -> f64 {
    let began = Instant::now();
    let mut sum = 0_u64;
    for at in 0..lists {
        sum = sum.wrapping_add(list(&values[at % values.len()]));
    }
    black_box(sum);
    began.elapsed().as_nanos() as f64 / lists as f64
}

/// Ours, from the live cache: each list is of the version that is current then.
pub(crate) fn ours_each(
    ours: &Ours,
    index: &Index<Pod, String>,
    values: &[Arc<str>],
    what: Use,
) -> f64 {
    nanos_each(LISTS, values, |value| {
        let view = ours.indexer.load();
        let objects = view
            .by_index(index, value)
            .expect("the handle is of this indexer");
        match what {
            Use::Collect => black_box(objects.cloned().collect::<Vec<_>>()).len() as u64,
            Use::Visit => objects.fold(0, |sum, pod| pod.version.wrapping_add(sum)),
            Use::Count => objects.len() as u64,
        }
    })
}

pub(crate) fn model_each(model: &Model, by: By, values: &[Arc<str>], what: Use) -> f64 {
    nanos_each(LISTS, values, |value| {
        used(&black_box(model.by_index(by, value)), what)
    })
}

fn filter_each(kube: &Reader, by: By, values: &[Arc<str>], what: Use) -> f64 {
    nanos_each(SCANS, values, |value| {
        used(
            &black_box(kube.state_filter(|pod| &**by.value(pod) == value)),
            what,
        )
    })
}

fn used(pods: &[Arc<Pod>], what: Use) -> u64 {
    match what {
        Use::Visit => pods
            .iter()
            .fold(0, |sum, pod| pod.version.wrapping_add(sum)),
        Use::Collect | Use::Count => pods.len() as u64,
    }
}
