//! P9: live bytes that a store needs over the objects themselves.
use crate::allocator::{Count, Live};
use crate::ours::{Ours, cached, update, updates};
use crate::peers::client_go::ClientGo;
use crate::peers::client_go_model::Model;
use crate::peers::kube::Kube;
use crate::peers::{CLIENT_GO, FLOOR, KUBE, MODEL, floor};
use crate::pod::{Pod, World};
use crate::row::{ALLOCATIONS, BYTES, Row};
use crate::run::Run;
use crate::spread::Spread;
use crate::store::Store;
use std::mem::size_of;

pub(crate) fn run(run: &mut Run) {
    let sizes = [50_000, 200_000];
    for &n in run.sizes(&sizes, &sizes[..1]) {
        at_size(run, n);
    }
}

/// Bytes an object, over the object: `build` gives the store, which is measured while it lives.
fn overhead<S>(count: &Count, n: usize, build: impl FnOnce() -> S) -> (S, Live) {
    let before = count.read();
    let store = build();
    (store, per_object(count.read().since(before), n))
}

/// The texts of a pod are shared with the world, so the object itself is only its struct.
fn per_object(total: Live, n: usize) -> Live {
    Live {
        requested: total.requested / n as i64 - size_of::<Pod>() as i64,
        chunked: total.chunked / n as i64 - size_of::<Pod>() as i64,
        allocations: total.allocations,
    }
}

fn at_size(run: &mut Run, n: usize) {
    let count = Count::start();
    let mut world = World::new(n);
    let (floor, floor_bytes) = overhead(&count, n, || floor::load(&world));
    drop(floor);
    let (model, model_bytes) = overhead(&count, n, || Model::load(&world));
    drop(model);
    let (kube, kube_bytes) = overhead(&count, n, || Kube::load(&world));
    let kube_bytes = kube.map(|_| kube_bytes);
    let go_bytes = ClientGo::start(n).map(|mut go| go.figure("memory"));

    let before = count.read();
    let mut ours = Ours::load(&world);
    let fresh = per_object(count.read().since(before), n);
    let churn = count.read();
    let mut rng = fastrand::Rng::with_seed(9);
    for _ in 0..n {
        ours.writer.apply(update(world.modify(&mut rng)));
    }
    let allocations = count.read().since(churn).allocations as f64 / n as f64;
    for _ in 0..n / 64 {
        let mut pods: Vec<_> = (0..64).map(|_| world.modify(&mut rng)).collect();
        pods.sort_unstable_by(|a, b| a.name.cmp(&b.name).then(b.version.cmp(&a.version)));
        pods.dedup_by(|a, b| a.name == b.name);
        ours.writer
            .apply(updates(pods.into_iter().map(cached).collect()));
    }
    let steady = per_object(count.read().since(before), n);
    while !ours.writer.maintain() {}
    let maintained = per_object(count.read().since(before), n);
    drop(count);

    let with_peers = |name: &str, ours: i64, of: fn(&Live) -> i64| {
        let mut row = Row::alone(name, n, Spread::exact(ours as f64), BYTES);
        row.rounds = 1;
        row.peer(FLOOR, Spread::exact(of(&floor_bytes) as f64), BYTES);
        row.peer(MODEL, Spread::exact(of(&model_bytes) as f64), BYTES);
        match &kube_bytes {
            Ok(bytes) => row.peer(KUBE, Spread::exact(of(bytes) as f64), BYTES),
            Err(reason) => row.skip(KUBE, reason),
        }
        row
    };
    let row = with_peers("an object, steady state", steady.requested, |live| {
        live.requested
    });
    run.add(
        row.at_most(192.0, "stretch 160")
            .within(1.0, KUBE)
            .with_note("requested bytes; after 2n modifications in batches of 1 and 64, logs and spare versions included"),
    );
    let mut row = with_peers(
        "an object, steady state, as malloc rounds",
        steady.chunked,
        |live| live.chunked,
    );
    match go_bytes {
        Ok(bytes) => row.peer(CLIENT_GO, Spread::exact(bytes), BYTES),
        Err(reason) => row.skip(CLIENT_GO, &reason),
    }
    run.add(row.within(0.5, CLIENT_GO).with_note(
        "Go's HeapAlloc has its size classes in it, so ours is rounded as glibc rounds",
    ));
    for (name, live) in [
        ("an object, after the first list", fresh),
        ("an object, after maintain", maintained),
    ] {
        run.add(with_peers(name, live.requested, |live| live.requested));
    }
    let mut row = Row::alone(
        "allocations for a modification",
        n,
        Spread::exact(allocations),
        ALLOCATIONS,
    );
    row.rounds = 1;
    run.add(row.with_note("all of them: the object, the batch, the tables"));
}
