//! P1: a point read by key, one thread, against a plain hash map.
use crate::contest::Contest;
use crate::ours::Ours;
use crate::peers::kube::Kube;
use crate::peers::{FLOOR, KUBE, MODEL, client_go_model::Model, floor};
use crate::pod::World;
use crate::queries::{Keys, Queries};
use crate::row::{NANOS, OURS, Row};
use crate::run::Run;
use crate::store::Store;
use std::hint::black_box;
use std::time::Instant;

/// Look-ups in one sample.
const QUERIES: usize = 1 << 17;

pub(crate) fn run(run: &mut Run) {
    let sizes = [10_000, 50_000, 200_000, 1_000_000];
    for &n in run.sizes(&sizes, &sizes[..3]) {
        let world = World::new(n);
        let ours = Ours::load(&world);
        let floor = floor::load(&world);
        for keys in [Keys::Uniform, Keys::Hot] {
            borrowed(run, &world, &ours, &floor, keys);
        }
        owned(run, &world, &ours, &floor);
        if n == 50_000 {
            apart(run, &world, &ours);
        }
    }
}

/// Nanoseconds for each call of `read`, which is called once with every position below `count`.
pub(crate) fn nanos_each(count: usize, mut read: impl FnMut(usize) -> u64) -> f64 {
    let began = Instant::now();
    let mut sum = 0_u64;
    for at in 0..count {
        sum = sum.wrapping_add(read(at));
    }
    black_box(sum);
    began.elapsed().as_nanos() as f64 / count as f64
}

fn borrowed(run: &mut Run, world: &World, ours: &Ours, floor: &floor::Floor, keys: Keys) {
    let n = world.len();
    let queries = Queries::new(world, keys, QUERIES, 1);
    let texts = queries.texts();
    let snapshot = ours.indexer.snapshot();

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
    let held = contest.run(run.rounds());

    let mut contest = Contest::new();
    contest.arm(OURS, || {
        [nanos_each(texts.len(), |at| {
            ours.indexer
                .load()
                .get(texts[at])
                .map_or(0, |pod| pod.version)
        })]
    });
    contest.arm(FLOOR, || {
        [nanos_each(texts.len(), |at| {
            floor.get(texts[at]).map_or(0, |pod| pod.version)
        })]
    });
    let guarded = contest.run(run.rounds());

    let (name, limit) = match keys {
        Keys::Uniform if n == 50_000 => ("uniform keys", Some(1.4)),
        Keys::Uniform => ("uniform keys", Some(1.15)),
        Keys::Hot => ("64 hot keys", None),
    };
    let row = Row::of(
        format!("{name}: held snapshot, borrowed"),
        n,
        &held,
        0,
        NANOS,
    );
    run.add(match limit {
        Some(limit) => row.within(limit, FLOOR),
        None => row,
    });
    run.add(Row::of(
        format!("{name}: load() per read, borrowed"),
        n,
        &guarded,
        0,
        NANOS,
    ));
}

fn owned(run: &mut Run, world: &World, ours: &Ours, floor: &floor::Floor) {
    let n = world.len();
    let queries = Queries::new(world, Keys::Uniform, QUERIES, 2);
    let texts = queries.texts();
    let snapshot = ours.indexer.snapshot();
    let model = Model::load(world);
    let kube = Kube::load(world).map(|kube| kube.reader());

    let mut contest = Contest::new();
    contest.arm(OURS, || {
        [nanos_each(texts.len(), |at| {
            snapshot
                .get(texts[at])
                .cloned()
                .map_or(0, |pod| pod.version)
        })]
    });
    contest.arm(FLOOR, || {
        [nanos_each(texts.len(), |at| {
            floor.get(texts[at]).cloned().map_or(0, |pod| pod.version)
        })]
    });
    contest.arm(MODEL, || {
        [nanos_each(texts.len(), |at| {
            model.get(texts[at]).map_or(0, |pod| pod.version)
        })]
    });
    contest.arm_of(KUBE, kube.as_ref(), |kube| {
        let queries = &queries;
        Box::new(move || {
            [nanos_each(queries.len(), |at| {
                let (namespace, name) = queries.parts(at);
                kube.get(namespace, name).map_or(0, |pod| pod.version)
            })]
        })
    });
    let standing = contest.run(run.rounds());
    let row = Row::of("uniform keys: held snapshot, owned", n, &standing, 0, NANOS);
    run.add(
        row.with_note(
            "kube-runtime's caller builds an ObjectRef for each read, as its API demands",
        ),
    );
}

/// A caller that has namespace and name apart, against one that has the joined key.
fn apart(run: &mut Run, world: &World, ours: &Ours) {
    let queries = Queries::new(world, Keys::Uniform, QUERIES, 1);
    let texts = queries.texts();
    let parts: Vec<_> = (0..queries.len()).map(|at| queries.parts(at)).collect();
    let snapshot = ours.indexer.snapshot();
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        [nanos_each(parts.len(), |at| {
            snapshot.get(parts[at]).map_or(0, |pod| pod.version)
        })]
    });
    contest.arm("ours, joined key", || {
        [nanos_each(texts.len(), |at| {
            snapshot.get(texts[at]).map_or(0, |pod| pod.version)
        })]
    });
    let standing = contest.run(run.rounds());
    let name = "uniform keys, namespace and name apart: held snapshot, borrowed";
    run.add(Row::of(name, world.len(), &standing, 0, NANOS));
}
