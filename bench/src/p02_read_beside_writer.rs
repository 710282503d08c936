//! P2: point reads beside a writer: throughput at equal offered rates and flat out, and tails.
use crate::beside::{Layout, Outcome, Pace};
use crate::contest::Contest;
use crate::ours::Ours;
use crate::peers::kube::Kube;
use crate::peers::{FLOOR, KUBE, MODEL, client_go_model::Model};
use crate::pod::World;
use crate::queries::{Keys, Queries};
use crate::row::{NANOS, OURS, READS, Row, WRITES};
use crate::run::Run;
use crate::store::{Churn, Nothing, Store};
use std::hint::black_box;
use std::time::Duration;

const QUERIES: usize = 1 << 16;
const OBJECTS: usize = 50_000;
const PACES: [Pace; 3] = [Pace::Offered(10_000), Pace::Offered(100_000), Pace::Flat];

pub(crate) fn run(run: &mut Run) {
    let queries = Queries::new(&World::new(OBJECTS), Keys::Uniform, QUERIES, 2);
    for readers in [1, 2] {
        for pace in PACES {
            throughput(run, &queries, readers, pace);
        }
    }
    for pace in PACES {
        tails(run, &queries, pace);
    }
}

/// How the writer of a row is called.
pub(crate) fn pace_name(pace: Pace) -> String {
    match pace {
        Pace::Flat => "writer flat out".to_owned(),
        Pace::Offered(rate) => format!("{}k applies/s offered", rate / 1_000),
        Pace::Spaced => "one apply a millisecond".to_owned(),
        Pace::Idle => "no writer".to_owned(),
    }
}

/// The point read of each store, of the query `at`, as its callers do it.
pub(crate) type Read<S> = fn(&Queries, &<S as Store>::Reader, usize) -> u64;

pub(crate) const BORROWED: Read<Ours> = |queries, indexer, at| {
    let view = indexer.load();
    view.get(queries.text(at)).map_or(0, |pod| pod.version)
};
const OWNED: Read<Ours> =
    |queries, indexer, at| indexer.get(queries.text(at)).map_or(0, |pod| pod.version);
pub(crate) const FROM_MODEL: Read<Model> =
    |queries, model, at| model.get(queries.text(at)).map_or(0, |pod| pod.version);
pub(crate) const FROM_KUBE: Read<Kube> = |queries, store, at| {
    let (namespace, name) = queries.parts(at);
    store.get(namespace, name).map_or(0, |pod| pod.version)
};
pub(crate) const FROM_NOTHING: Read<Nothing> = |queries, (), at| queries.text(at).len() as u64;

fn layout(run: &Run, readers: usize, pace: Pace, clocked: bool) -> Layout {
    Layout {
        readers,
        pace,
        // Dozens of arms share the forty seconds of a quick run.
        span: if run.quick() {
            Duration::from_millis(60)
        } else {
            run.span()
        },
        clocked,
    }
}

/// Enter a store, with figures taken of each of its runs.
fn enter<'a, S: Store + 'a, const K: usize>(
    contest: &mut Contest<'a, K>,
    name: &'static str,
    (queries, layout): (&'a Queries, Layout),
    read: Read<S>,
    figures: fn(&Outcome) -> [f64; K],
) {
    contest.arm_of(name, Churn::<S>::new(OBJECTS), |mut churn| {
        Box::new(move || {
            figures(&churn.beside(layout, |reader, at| {
                black_box(read(queries, reader, at));
            }))
        })
    });
}

fn throughput(run: &mut Run, queries: &Queries, readers: usize, pace: Pace) {
    let on = (queries, layout(run, readers, pace, false));
    let rates = |outcome: &Outcome| [outcome.reads_per_second, outcome.writes_per_second];
    let mut contest = Contest::new();
    enter::<Ours, _>(&mut contest, OURS, on, BORROWED, rates);
    enter::<Ours, _>(&mut contest, "ours, owned", on, OWNED, rates);
    enter::<Model, _>(&mut contest, MODEL, on, FROM_MODEL, rates);
    enter::<Kube, _>(&mut contest, KUBE, on, FROM_KUBE, rates);
    let standing = contest.run(run.rounds());
    let name = format!("{readers} + 1 threads, {}", pace_name(pace));
    run.add(Row::of(format!("{name}: reads"), OBJECTS, &standing, 0, READS).at_least(3.0, KUBE));
    let writes = Row::of(format!("{name}: writes"), OBJECTS, &standing, 1, WRITES);
    run.add(match pace {
        Pace::Flat => writes.at_least(0.8, KUBE),
        _ => writes.with_note("writes achieved; what is short of the offer was overrun"),
    });
}

fn tails(run: &mut Run, queries: &Queries, pace: Pace) {
    let on = (queries, layout(run, 1, pace, true));
    let idle = (queries, layout(run, 1, Pace::Idle, true));
    let tail = |outcome: &Outcome| {
        let nanos = &outcome.read_nanos;
        [0.5, 0.99, 0.999, 1.0].map(|q| nanos.quantile(q))
    };
    let mut contest = Contest::new();
    enter::<Ours, _>(&mut contest, OURS, on, BORROWED, tail);
    enter::<Ours, _>(&mut contest, "ours, no writer", idle, BORROWED, tail);
    enter::<Nothing, _>(&mut contest, FLOOR, on, FROM_NOTHING, tail);
    enter::<Model, _>(&mut contest, MODEL, on, FROM_MODEL, tail);
    enter::<Kube, _>(&mut contest, KUBE, on, FROM_KUBE, tail);
    let standing = contest.run(run.rounds());
    let at = |name, k| standing.figure(name, k).map_or(0.0, |figure| figure.median);
    for (k, quantile) in ["p50", "p99", "p99.9", "longest"].into_iter().enumerate() {
        let name = format!("1 + 1 threads, {}: {quantile} of a read", pace_name(pace));
        let row = Row::of(name, OBJECTS, &standing, k, NANOS);
        run.add(if quantile == "p99.9" {
            let limit = at(FLOOR, k) + 3.0 * at("ours, no writer", k);
            row.at_most(limit, "the floor's p99.9 and 3x ours without a writer")
        } else {
            row
        });
    }
}
