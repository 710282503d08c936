//! Writes: modifications in batches, without readers; and the worst publish while snapshots rotate.
use crate::contest::Contest;
use crate::histogram::Histogram;
use crate::ours::{Ours, cached, update, updates};
use crate::peers::{FLOOR, MODEL, client_go_model::Model};
use crate::pod::{Pod, World};
use crate::row::{MICROS, NANOS, OURS, Row};
use crate::run::Run;
use informant::delta::Batch;
use std::collections::HashSet;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Modifications in one sample.
const CHANGES: usize = 1 << 15;
/// Modifications that are made ready at a time.
const PORTION: usize = 1_024;
/// A snapshot is taken, and the one before dropped, every so many modifications.
const ROTATION: usize = 100;

/// Makes the next changed pod.
type Next = fn(&mut World, &mut fastrand::Rng) -> Pod;

pub(crate) fn run(run: &mut Run) {
    let n = 50_000;
    for (what, next) in [
        ("modify", World::modify as Next),
        ("change of node", World::reschedule as Next),
    ] {
        for (batch, limit) in [(1, 1.3), (64, 1.1), (1_024, 1.1)] {
            let row = batches(run, n, what, next, batch);
            run.add(if what == "modify" {
                row.within(limit, MODEL)
            } else {
                row
            });
        }
    }
    rotating(run, n);
}

fn batches(run: &Run, n: usize, what: &str, next: Next, batch: usize) -> Row {
    let (mut our_world, mut their_world) = (World::new(n), World::new(n));
    let mut ours = Ours::load(&our_world);
    let model = Model::load(&their_world);
    let (mut our_rng, mut their_rng) = (rng(), rng());
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        in_portions(batch, |count| {
            let batches: Vec<_> = (0..count)
                .map(|_| distinct(&mut our_world, &mut our_rng, next, batch))
                .map(|pods| updates(pods.into_iter().map(cached).collect()))
                .collect();
            let began = Instant::now();
            for batch in batches {
                black_box(ours.writer.apply(batch));
            }
            began.elapsed()
        })
    });
    contest.arm(MODEL, || {
        in_portions(batch, |count| {
            let mut batches: Vec<(Vec<_>, Vec<_>)> = (0..count)
                .map(|_| distinct(&mut their_world, &mut their_rng, next, batch))
                .map(|pods| {
                    pods.into_iter()
                        .map(|pod| (pod.key(), Arc::new(pod)))
                        .unzip()
                })
                .collect();
            let began = Instant::now();
            for (keys, objects) in &mut batches {
                model.update(keys, objects);
                objects.clear();
            }
            began.elapsed()
        })
    });
    let standing = contest.run(run.rounds());
    Row::of(
        format!("{what}, batches of {batch}"),
        n,
        &standing,
        0,
        NANOS,
    )
}

/// Nanoseconds for each modification. `apply` makes so many batches, untimed, and applies them: a
/// portion at a time, since a pipeline's next batch is warm in the cache.
fn in_portions(batch: usize, mut apply: impl FnMut(usize) -> Duration) -> [f64; 1] {
    let took: Duration = (0..CHANGES / PORTION).map(|_| apply(PORTION / batch)).sum();
    [took.as_nanos() as f64 / CHANGES as f64]
}

fn rng() -> fastrand::Rng {
    fastrand::Rng::with_seed(5)
}

/// Changed pods, each of another key, as a batch must be.
fn distinct(world: &mut World, rng: &mut fastrand::Rng, next: Next, count: usize) -> Vec<Pod> {
    let mut names = HashSet::with_capacity(count);
    let mut pods = Vec::with_capacity(count);
    while pods.len() < count {
        let pod = next(world, rng);
        if names.insert(pod.name.clone()) {
            pods.push(pod);
        }
    }
    pods
}

/// Single modifications, each timed, while a snapshot is held that is renewed now and then.
fn rotating(run: &mut Run, n: usize) {
    let (mut idle_world, mut busy_world) = (World::new(n), World::new(n));
    let mut floor_world = World::new(n);
    let mut idle = Ours::load(&idle_world);
    let mut busy = Ours::load(&busy_world);
    let mut held = busy.indexer.snapshot();
    let changes = if run.quick() { CHANGES } else { 4 * CHANGES };

    let mut contest = Contest::new();
    contest.arm(OURS, || {
        clocked(changes, &mut busy_world, |at, batch| {
            if at % ROTATION == 0 {
                held = busy.indexer.snapshot();
            }
            black_box(busy.writer.apply(batch));
        })
    });
    contest.arm("ours, no snapshots", || {
        clocked(changes, &mut idle_world, |_, batch| {
            black_box(idle.writer.apply(batch));
        })
    });
    contest.arm(FLOOR, || {
        clocked(changes, &mut floor_world, |_, batch| {
            black_box(&batch);
        })
    });
    let standing = contest.run(run.rounds());
    let row = |name: &str, k, unit| {
        Row::of(
            format!("snapshots rotating every {ROTATION}: {name}"),
            n,
            &standing,
            k,
            unit,
        )
    };
    run.add(row("mean publish", 0, NANOS));
    run.add(row("p99.9 publish", 1, MICROS));
    let floor = standing.figure(FLOOR, 2).map_or(0.0, |floor| floor.median);
    run.add(row("worst publish", 2, MICROS).at_most(floor + 2_000.0, "2 ms above the floor's gap"));
}

/// Mean in nanoseconds, p99.9 and maximum in microseconds of `apply`; making the batch is not timed.
fn clocked(
    changes: usize,
    world: &mut World,
    mut apply: impl FnMut(usize, Batch<Pod>),
) -> [f64; 3] {
    let mut rng = rng();
    let mut nanos = Histogram::new();
    let mut total = 0;
    for at in 0..changes {
        let batch = update(world.modify(&mut rng));
        let began = Instant::now();
        apply(at, batch);
        let took = began.elapsed().as_nanos() as u64;
        nanos.record(took);
        total += took;
    }
    [
        total as f64 / changes as f64,
        nanos.quantile(0.999) / 1e3,
        nanos.max() / 1e3,
    ]
}
