//! P16: the outage of kubernetes/kubernetes#130767. Four threads loop over filtered full reads of
//! 100,000 objects; how many updates does the one writer get through? And how long does a relist
//! keep a reader waiting?
use crate::beside::{Layout, Pace};
use crate::contest::Contest;
use crate::ours::Ours;
use crate::p02_read_beside_writer::{BORROWED, FROM_KUBE, FROM_MODEL, FROM_NOTHING, Read};
use crate::peers::kube::Kube;
use crate::peers::{FLOOR, KUBE, MODEL, client_go_model::Model};
use crate::pod::{Pod, World};
use crate::queries::{Keys, Queries};
use crate::row::{LISTS, MICROS, OURS, Row, WRITES};
use crate::run::Run;
use crate::store::{Churn, Nothing, Store};
use std::hint::black_box;

const OBJECTS: usize = 100_000;

/// A filtered full read of each store.
type Scan<S> = fn(&<S as Store>::Reader);

/// One node's pods, found by looking at all: what the readers of the outage did.
fn wanted(pod: &Pod) -> bool {
    pod.node.ends_with("42.example")
}

const OURS_SCAN: Scan<Ours> = |indexer| {
    let snapshot = indexer.snapshot();
    let found: Vec<_> = snapshot.iter().filter(|pod| wanted(pod)).cloned().collect();
    black_box(found);
};
const MODEL_SCAN: Scan<Model> = |model| {
    let mut found = model.list();
    found.retain(|pod| wanted(pod));
    black_box(found);
};
const KUBE_SCAN: Scan<Kube> = |store| drop(black_box(store.state_filter(wanted)));

pub(crate) fn run(run: &mut Run) {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    one_by_one(run);
    updates(run, 4, None);
    updates(run, cores.saturating_sub(1).max(1), Some(2.0));
    relist(run);
}

fn updates(run: &mut Run, readers: usize, within_idle: Option<f64>) {
    let layout = Layout {
        readers,
        pace: Pace::Flat,
        span: run.span(),
        clocked: true,
    };
    let idle = Layout {
        readers: 0,
        ..layout
    };
    let mut contest = Contest::new();
    enter::<Ours>(&mut contest, OURS, layout, OURS_SCAN);
    enter::<Ours>(&mut contest, "ours, no readers", idle, OURS_SCAN);
    enter::<Model>(&mut contest, MODEL, layout, MODEL_SCAN);
    enter::<Kube>(&mut contest, KUBE, layout, KUBE_SCAN);
    enter::<Kube>(&mut contest, "kube-runtime, no readers", idle, KUBE_SCAN);
    let standing = contest.run(run.rounds());
    let row = |kind: &str, k, unit| {
        let name = format!("{readers} scanning, 1 updating: {kind}");
        Row::of(name, OBJECTS, &standing, k, unit)
    };
    let updates = row("updates", 0, WRITES);
    run.add(if readers == 4 {
        updates.at_least(1_000.0, KUBE)
    } else {
        updates
    });
    let scans = row("scans", 1, LISTS);
    run.add(
        scans
            .without("ours, no readers")
            .without("kube-runtime, no readers"),
    );
    let median = row("p50 of an update", 2, MICROS);
    run.add(match within_idle {
        Some(factor) => median.within(factor, "ours, no readers"),
        None => median,
    });
    run.add(row("p99 of an update", 3, MICROS));
}

/// How long one update takes that arrives by itself, as from a watch: a writer that loops without a
/// pause gets the lock many times in a row before the woken readers have it, and so hides what an
/// update waits for.
fn one_by_one(run: &mut Run) {
    let layout = Layout {
        readers: 4,
        pace: Pace::Spaced,
        span: 2 * run.span(),
        clocked: true,
    };
    let mut contest = Contest::new();
    enter::<Ours>(&mut contest, OURS, layout, OURS_SCAN);
    enter::<Model>(&mut contest, MODEL, layout, MODEL_SCAN);
    enter::<Kube>(&mut contest, KUBE, layout, KUBE_SCAN);
    let standing = contest.run(run.rounds());
    let row = |kind: &str, k, unit| {
        let name = format!("4 scanning, single updates with pauses: {kind}");
        Row::of(name, OBJECTS, &standing, k, unit)
    };
    run.add(
        row("p50 of an update", 2, MICROS).with_note(
            "the reciprocal is what a stream of updates gets through, one after the other",
        ),
    );
    run.add(row("p99 of an update", 3, MICROS));
    run.add(row("updates", 0, WRITES));
    run.add(row("scans", 1, LISTS));
}

fn enter<'a, S: Store + 'a>(
    contest: &mut Contest<'a, 4>,
    name: &'static str,
    layout: Layout,
    scan: Scan<S>,
) {
    contest.arm_of(name, Churn::<S>::new(OBJECTS), |mut churn| {
        Box::new(move || {
            let outcome = churn.beside(layout, |reader, _| scan(reader));
            [
                outcome.writes_per_second,
                outcome.reads_per_second,
                outcome.write_nanos.quantile(0.5) / 1e3,
                outcome.write_nanos.quantile(0.99) / 1e3,
            ]
        })
    });
}

/// One reader's longest `get` while the writer relists, one per cent changed each time.
fn relist(run: &mut Run) {
    let queries = Queries::new(&World::new(OBJECTS), Keys::Uniform, 1 << 16, 16);
    let layout = Layout {
        readers: 1,
        pace: Pace::Flat,
        span: 2 * run.span(),
        clocked: true,
    };
    let on = (&queries, layout);
    let mut contest = Contest::new();
    longest::<Ours>(&mut contest, OURS, on, BORROWED);
    longest::<Nothing>(&mut contest, FLOOR, on, FROM_NOTHING);
    longest::<Model>(&mut contest, MODEL, on, FROM_MODEL);
    longest::<Kube>(&mut contest, KUBE, on, FROM_KUBE);
    let standing = contest.run(run.rounds());
    let gap = standing
        .figure(FLOOR, 1)
        .map_or(0.0, |figure| figure.median);
    let row = |kind: &str, k| {
        let name = format!("a get beside relists without end: {kind}");
        Row::of(name, OBJECTS, &standing, k, MICROS)
    };
    run.add(row("p99.99", 0));
    let limit = (3.0 * gap).max(100.0);
    run.add(row("longest", 1).at_most(limit, "100 us, or 3x the floor's longest gap"));
}

fn longest<'a, S: Store + 'a>(
    contest: &mut Contest<'a, 2>,
    name: &'static str,
    (queries, layout): (&'a Queries, Layout),
    read: Read<S>,
) {
    contest.arm_of(name, Churn::<S>::new(OBJECTS), |mut churn| {
        Box::new(move || {
            let outcome = churn.beside_relists(layout, OBJECTS / 100, |reader, at| {
                black_box(read(queries, reader, at));
            });
            let nanos = &outcome.read_nanos;
            [nanos.quantile(0.9999) / 1e3, nanos.max() / 1e3]
        })
    });
}
