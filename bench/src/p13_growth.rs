//! P13: what growing costs: reads, lists, snapshots and the queue from a thousand objects to a
//! million, and the longest publish on the way there.
use crate::contest::Contest;
use crate::histogram::Histogram;
use crate::ours::{Ours, cached, updates};
use crate::p01_point_read::nanos_each;
use crate::peers::{FLOOR, MODEL, client_go_model::Model, floor};
use crate::pod::{Pod, World};
use crate::queries::{Keys, Queries};
use crate::row::{MICROS, NANOS, OURS, Row};
use crate::run::Run;
use crate::spread::Spread;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

const QUERIES: usize = 1 << 16;
/// Objects that one publish adds while growing.
const BATCH: usize = 64;

pub(crate) fn run(run: &mut Run) {
    let mut per_unit = BTreeMap::new();
    for &n in run.sizes(
        &[1_000, 10_000, 50_000, 200_000, 1_000_000],
        &[1_000, 50_000, 200_000],
    ) {
        let world = World::new(n);
        let ours = Ours::load(&world);
        point_reads(run, &world, &ours);
        let lists = lists(run, &world, &ours);
        let snapshots = snapshots(run, n, &ours);
        per_unit.insert(n, [lists, snapshots]);
    }
    flat(run, &per_unit);
    growing(run);
}

fn point_reads(run: &mut Run, world: &World, ours: &Ours) {
    let queries = Queries::new(world, Keys::Uniform, QUERIES, 13);
    let texts = queries.texts();
    let snapshot = ours.indexer.snapshot();
    let floor = floor::load(world);
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        [nanos_each(texts.len(), |at| {
            snapshot.get(texts[at]).map_or(0, |pod| pod.version)
        })]
    });
    contest.arm(FLOOR, || {
        [nanos_each(texts.len(), |at| {
            floor.get(texts[at]).map_or(0, |pod| pod.version)
        })]
    });
    let standing = contest.run(run.rounds());
    let row = Row::of(
        "point read, held snapshot",
        world.len(),
        &standing,
        0,
        NANOS,
    );
    run.add(row.within(1.4, FLOOR));
}

/// Nanoseconds for each object that is visited through the namespace index.
fn lists(run: &mut Run, world: &World, ours: &Ours) -> Spread {
    let model = Model::load(world);
    let rounds = 1 + 50_000 / world.len();
    let visited = (rounds * world.len()) as f64;
    let visit = |mut one: Box<dyn FnMut(&str) -> u64 + '_>| {
        let began = Instant::now();
        let mut sum = 0_u64;
        for _ in 0..rounds {
            for namespace in &world.namespaces {
                sum = sum.wrapping_add(one(namespace));
            }
        }
        black_box(sum);
        [began.elapsed().as_nanos() as f64 / visited]
    };
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        visit(Box::new(|namespace| {
            let view = ours.indexer.load();
            let pods = view.by_index(&ours.namespace, namespace);
            pods.expect("the handle is of this indexer")
                .fold(0, |sum, pod| pod.version.wrapping_add(sum))
        }))
    });
    contest.arm(MODEL, || {
        visit(Box::new(|namespace| {
            let pods = model.by_index(crate::peers::client_go_model::By::Namespace, namespace);
            pods.iter()
                .fold(0, |sum, pod| pod.version.wrapping_add(sum))
        }))
    });
    let standing = contest.run(run.rounds());
    let row = Row::of(
        "visit a namespace, per object",
        world.len(),
        &standing,
        0,
        NANOS,
    );
    let ours = row.ours.spread;
    run.add(row);
    ours
}

fn snapshots(run: &mut Run, n: usize, ours: &Ours) -> Spread {
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        [nanos_each(QUERIES, |_| {
            black_box(ours.indexer.snapshot()).len() as u64
        })]
    });
    let standing = contest.run(run.rounds());
    let row = Row::of("snapshot taken and dropped", n, &standing, 0, NANOS);
    let ours = row.ours.spread;
    run.add(row);
    ours
}

/// From 50k to a million, nothing may cost more than three times as much per unit.
fn flat(run: &mut Run, per_unit: &BTreeMap<usize, [Spread; 2]>) {
    let (Some(small), Some(large)) = (per_unit.get(&50_000), per_unit.get(&1_000_000)) else {
        return;
    };
    for (at, what) in [
        "visit a namespace, per object",
        "snapshot taken and dropped",
    ]
    .into_iter()
    .enumerate()
    {
        let mut row = Row::alone(
            format!("{what}: a million against 50k"),
            1_000_000,
            large[at],
            NANOS,
        );
        row.peer("ours at 50k", small[at], NANOS);
        run.add(row.within(3.0, "ours at 50k"));
    }
}

/// Growing to the full size in batches, each publish timed.
fn growing(run: &mut Run) {
    let n = if run.quick() { 100_000 } else { 1_000_000 };
    let pods = World::new(n).pods;
    // Each round makes a million objects: seven say enough.
    let rounds = 7;
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        let mut ours = Ours::empty();
        grown(&pods, |batch| {
            black_box(ours.writer.apply(updates(batch)));
        })
    });
    contest.arm(FLOOR, || grown(&pods, |batch| drop(black_box(batch))));
    let standing = contest.run(rounds);
    let name = |kind: &str| format!("growing from empty in batches of {BATCH}: {kind}");
    let gap = standing
        .figure(FLOOR, 2)
        .map_or(0.0, |figure| figure.median);
    let mut mean = Row::of(name("per object"), n, &standing, 0, NANOS);
    let mut tail = Row::of(name("p99.9 publish"), n, &standing, 1, MICROS);
    let mut worst = Row::of(name("worst publish"), n, &standing, 2, MICROS)
        .at_most(gap + 2_000.0, "2 ms above the floor's gap");
    for row in [&mut mean, &mut tail, &mut worst] {
        row.rounds = rounds;
    }
    run.add(mean);
    run.add(tail);
    run.add(worst);
}

/// Nanoseconds an object, p99.9 and maximum of a publish in microseconds.
fn grown(pods: &[Pod], mut apply: impl FnMut(Vec<informant::Cached<Pod>>)) -> [f64; 3] {
    let mut nanos = Histogram::new();
    let mut total = 0;
    for pods in pods.chunks(BATCH) {
        let batch = pods.iter().cloned().map(cached).collect();
        let began = Instant::now();
        apply(batch);
        let took = began.elapsed().as_nanos() as u64;
        nanos.record(took);
        total += took;
    }
    [
        total as f64 / pods.len() as f64,
        nanos.quantile(0.999) / 1e3,
        nanos.max() / 1e3,
    ]
}
