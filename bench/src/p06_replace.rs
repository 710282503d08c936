//! P6: a relist: one per cent changed, or everything new; readers meanwhile; memory meanwhile.
use crate::allocator::Count;
use crate::beside::{Layout, Pace};
use crate::contest::Contest;
use crate::ours::{Ours, cached};
use crate::p02_read_beside_writer::{BORROWED, FROM_KUBE, FROM_MODEL, FROM_NOTHING, Read};
use crate::peers::client_go::ClientGo;
use crate::peers::client_go_model::Model;
use crate::peers::kube::Kube;
use crate::peers::{CLIENT_GO, FLOOR, KUBE, MODEL};
use crate::pod::World;
use crate::queries::{Keys, Queries};
use crate::row::{BYTES, MILLIS, NANOS, OURS, Row};
use crate::run::Run;
use crate::spread::Spread;
use crate::store::{Churn, Nothing, Store};
use std::hint::black_box;
use std::time::Instant;

const OBJECTS: usize = 50_000;
/// One per cent.
const CHANGED: usize = OBJECTS / 100;

pub(crate) fn run(run: &mut Run) {
    duration(run);
    first_list(run);
    readers(run);
    memory(run);
}

/// Milliseconds from the decoded list in hand until it is published and what it superseded is freed.
fn timed<'a, S: Store + 'a>(contest: &mut Contest<'a, 1>, name: &'static str, changed: usize) {
    contest.arm_of(name, Churn::<S>::new(OBJECTS), |mut churn| {
        Box::new(move || {
            let list = churn.next_list(changed);
            let began = Instant::now();
            churn.store.relist(list);
            [began.elapsed().as_nanos() as f64 / 1e6]
        })
    });
}

fn duration(run: &mut Run) {
    let mut go = ClientGo::start(OBJECTS);
    let mut contest = Contest::new();
    timed::<Ours>(&mut contest, OURS, CHANGED);
    timed::<Model>(&mut contest, MODEL, CHANGED);
    timed::<Kube>(&mut contest, KUBE, CHANGED);
    contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
        Box::new(move || [go.figure(&format!("replace {CHANGED}"))])
    });
    let standing = contest.run(run.rounds());
    let row = Row::of("relist, 1 % changed", OBJECTS, &standing, 0, MILLIS);
    run.add(
        row.at_least(5.0, CLIENT_GO)
            .at_least(3.0, KUBE)
            .with_note("kube-runtime keeps no index"),
    );
}

/// The first list, into an empty store; freeing the store is not timed.
fn filled<'a, S: Store + 'a>(
    contest: &mut Contest<'a, 1>,
    name: &'static str,
    empty: &'a World,
    world: &'a World,
) {
    contest.arm_of(name, S::load(empty), |first| {
        drop(first);
        Box::new(move || {
            let mut store = S::load(empty)
                .unwrap_or_else(|reason| panic!("{name} was there a moment ago: {reason}"));
            let list = S::decoded(&world.pods);
            let began = Instant::now();
            store.relist(list);
            [began.elapsed().as_nanos() as f64 / 1e6]
        })
    });
}

fn first_list(run: &mut Run) {
    let (empty, world) = (World::new(0), World::new(OBJECTS));
    let mut contest = Contest::new();
    filled::<Ours>(&mut contest, OURS, &empty, &world);
    filled::<Model>(&mut contest, MODEL, &empty, &world);
    filled::<Kube>(&mut contest, KUBE, &empty, &world);
    let standing = contest.run(run.rounds());
    run.add(Row::of(
        "first list, into an empty store",
        OBJECTS,
        &standing,
        0,
        MILLIS,
    ));
}

/// The tail of a reader's point reads, beside a writer that relists over and over.
fn tail<'a, S: Store + 'a>(
    contest: &mut Contest<'a, 3>,
    name: &'static str,
    (queries, layout): (&'a Queries, Layout),
    read: Read<S>,
) {
    contest.arm_of(name, Churn::<S>::new(OBJECTS), |mut churn| {
        Box::new(move || {
            let outcome = churn.beside_relists(layout, CHANGED, |reader, at| {
                black_box(read(queries, reader, at));
            });
            [0.5, 0.999, 1.0].map(|q| outcome.read_nanos.quantile(q))
        })
    });
}

fn readers(run: &mut Run) {
    let queries = Queries::new(&World::new(OBJECTS), Keys::Uniform, 1 << 16, 6);
    let layout = |pace| Layout {
        readers: 1,
        pace,
        span: run.span(),
        clocked: true,
    };
    let (on, idle) = (
        (&queries, layout(Pace::Flat)),
        (&queries, layout(Pace::Idle)),
    );
    let mut contest = Contest::new();
    tail::<Ours>(&mut contest, OURS, on, BORROWED);
    tail::<Ours>(&mut contest, "ours, no relists", idle, BORROWED);
    tail::<Nothing>(&mut contest, FLOOR, on, FROM_NOTHING);
    tail::<Model>(&mut contest, MODEL, on, FROM_MODEL);
    tail::<Kube>(&mut contest, KUBE, on, FROM_KUBE);
    let standing = contest.run(run.rounds());
    let at = |name, k| standing.figure(name, k).map_or(0.0, |figure| figure.median);
    for (k, quantile) in ["p50", "p99.9", "longest"].into_iter().enumerate() {
        let name = format!("a read beside relists without end: {quantile}");
        let row = Row::of(name, OBJECTS, &standing, k, NANOS);
        run.add(if quantile == "p99.9" {
            let limit = at(FLOOR, k) + 2.0 * at("ours, no relists", k);
            row.at_most(limit, "the floor's p99.9 and 2x ours without relists")
        } else {
            row
        });
    }
}

/// Live bytes at the peak of a relist, over what was live with the decoded list in hand.
fn extra<S: Store>(count: &Count) -> Result<f64, String> {
    let mut churn = Churn::<S>::new(OBJECTS)?;
    let list = churn.next_list(CHANGED);
    count.reset_peak();
    let before = count.read().requested;
    churn.store.relist(list);
    Ok((count.peak() - before) as f64)
}

fn memory(run: &mut Run) {
    let count = Count::start();
    let ours = extra::<Ours>(&count).unwrap_or_default();
    let peers = [
        (MODEL, extra::<Model>(&count)),
        (KUBE, extra::<Kube>(&count)),
    ];
    let world = World::new(CHANGED);
    let before = count.read().requested;
    let changed: Vec<_> = world.pods.iter().cloned().map(cached).collect();
    let part = (count.read().requested - before) as f64;
    drop((changed, count));
    let mut row = Row::alone(
        "relist, 1 % changed: extra live bytes at the peak",
        OBJECTS,
        Spread::exact(ours),
        BYTES,
    );
    row.rounds = 1;
    for (name, bytes) in peers {
        match bytes {
            Ok(bytes) => row.peer(name, Spread::exact(bytes), BYTES),
            Err(reason) => row.skip(name, &reason),
        }
    }
    let limit = 1.3 * part + 16.0 * OBJECTS as f64;
    run.add(row.at_most(limit, "1.3x the changed part and 16 an object"));
}
