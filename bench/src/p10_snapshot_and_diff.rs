//! P10: a snapshot taken and dropped; the difference of two versions a hundred changes apart.
use crate::beside::{Layout, Pace, beside};
use crate::contest::Contest;
use crate::ours::{Ours, update};
use crate::pod::World;
use crate::row::{MICROS, NANOS, OURS, Row};
use crate::run::Run;
use std::hint::black_box;
use std::time::Instant;

const SNAPSHOTS: usize = 1 << 18;
/// Changes between the two versions that are compared.
const APART: usize = 100;
const DIFFS: usize = 50;

pub(crate) fn run(run: &mut Run) {
    snapshots(run, 50_000);
    let near = diffs(run, 50_000);
    run.add(near.clone());
    let far = diffs(run, 1_000_000);
    let limit = 2.0 * near.ours.spread.median;
    run.add(far.at_most(150.0, "").at_most(limit, "2x the time at 50k"));
}

fn snapshots(run: &mut Run, n: usize) {
    let world = World::new(n);
    let ours = Ours::load(&world);
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        let began = Instant::now();
        for _ in 0..SNAPSHOTS {
            black_box(ours.indexer.snapshot());
        }
        let owned = began.elapsed();
        let began = Instant::now();
        for _ in 0..SNAPSHOTS {
            black_box(ours.indexer.load());
        }
        let guard = began.elapsed();
        let layout = Layout {
            readers: 2,
            pace: Pace::Idle,
            span: run.span() / 4,
            clocked: false,
        };
        let two = beside(
            layout,
            |_| || drop(black_box(ours.indexer.snapshot())),
            || (),
        );
        [
            owned.as_nanos() as f64 / SNAPSHOTS as f64,
            guard.as_nanos() as f64 / SNAPSHOTS as f64,
            2e9 / two.reads_per_second,
        ]
    });
    let standing = contest.run(run.rounds());
    run.add(Row::of("snapshot(), taken and dropped", n, &standing, 0, NANOS).at_most(50.0, ""));
    run.add(Row::of("load(), taken and dropped", n, &standing, 1, NANOS));
    run.add(Row::of(
        "snapshot(), two threads at once, each",
        n,
        &standing,
        2,
        NANOS,
    ));
}

fn diffs(run: &Run, n: usize) -> Row {
    let mut world = World::new(n);
    let mut ours = Ours::load(&world);
    let mut rng = fastrand::Rng::with_seed(10);
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        let older = ours.indexer.snapshot();
        for _ in 0..APART {
            ours.writer.apply(update(world.modify(&mut rng)));
        }
        let newer = ours.indexer.snapshot();
        let began = Instant::now();
        for _ in 0..DIFFS {
            let diff = newer.diff(&older).expect("both are of one indexer");
            assert!(diff.len() <= APART && diff.len() > APART / 2);
        }
        [began.elapsed().as_nanos() as f64 / 1e3 / DIFFS as f64]
    });
    let standing = contest.run(run.rounds());
    Row::of(
        format!("diff of two versions {APART} changes apart"),
        n,
        &standing,
        0,
        MICROS,
    )
}
