//! P4: four threads that list everything, over and over, beside one writer.
use crate::beside::{Layout, Pace};
use crate::contest::Contest;
use crate::ours::Ours;
use crate::peers::client_go::ClientGo;
use crate::peers::client_go_model::Model;
use crate::peers::kube::Kube;
use crate::peers::{CLIENT_GO, KUBE, MODEL};
use crate::row::{LISTS, OURS, Row, WRITES};
use crate::run::Run;
use crate::store::{Churn, Store};
use std::hint::black_box;

const READERS: usize = 4;
const OBJECTS: usize = 50_000;

/// A full list of each store.
type List<S> = fn(&<S as Store>::Reader);

const COLLECTED: List<Ours> = |indexer| drop(black_box(indexer.list()));
const VISITED: List<Ours> = |indexer| {
    let snapshot = indexer.snapshot();
    let sum = snapshot
        .iter()
        .fold(0, |sum: u64, pod| sum.wrapping_add(pod.version));
    black_box(sum);
};
const OF_MODEL: List<Model> = |model| drop(black_box(model.list()));
const OF_KUBE: List<Kube> = |store| drop(black_box(store.state()));

pub(crate) fn run(run: &mut Run) {
    let layout = Layout {
        readers: READERS,
        pace: Pace::Flat,
        span: run.span(),
        clocked: false,
    };
    let mut go = ClientGo::start(OBJECTS);
    for (what, list) in [
        ("collect owned", COLLECTED),
        ("snapshot, visit each", VISITED),
    ] {
        let mut contest = Contest::new();
        enter::<Ours>(&mut contest, OURS, layout, list);
        enter::<Model>(&mut contest, MODEL, layout, OF_MODEL);
        enter::<Kube>(&mut contest, KUBE, layout, OF_KUBE);
        contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
            let command = format!("beside list {READERS} 0 {}", layout.span.as_millis());
            Box::new(move || {
                let figures = go.figures(&command);
                [figures[0], figures[1]]
            })
        });
        let standing = contest.run(run.rounds());
        let row = |kind: &str, k, unit| {
            let name = format!("4 listing, 1 writing, {what}: {kind}");
            Row::of(name, OBJECTS, &standing, k, unit)
        };
        run.add(row("lists", 0, LISTS).at_least(4.0, CLIENT_GO));
        let writes = row("writes", 1, WRITES);
        run.add(writes.at_least(5.0, CLIENT_GO).at_least(10.0, MODEL));
    }
}

fn enter<'a, S: Store + 'a>(
    contest: &mut Contest<'a, 2>,
    name: &'static str,
    layout: Layout,
    list: List<S>,
) {
    contest.arm_of(name, Churn::<S>::new(OBJECTS), |mut churn| {
        Box::new(move || {
            let outcome = churn.beside(layout, |reader, _| list(reader));
            [outcome.reads_per_second, outcome.writes_per_second]
        })
    });
}
