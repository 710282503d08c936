//! P11: a label selector of two labels in a namespace: the same 500 matches among 50,000 objects and
//! among a million.
use crate::allocator::Count;
use crate::contest::Contest;
use crate::ours::{cached, replace, text_index};
use crate::peers::client_go::ClientGo;
use crate::peers::client_go_model::{By, Model};
use crate::peers::{CLIENT_GO, MODEL};
use crate::pod::{Pod, World};
use crate::row::{BYTES, MICROS, OURS, Row};
use crate::run::Run;
use crate::spread::Spread;
use informant::indexer::{IndexDeclaration, IndexWriter, Indexer, Query};
use informant::{Cached, LabelSelector};
use std::cell::RefCell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Pods of the namespace that is asked for; every other one of them matches.
const NEAR: usize = 1_000;
/// Of the other pods, one in so many has either label.
const STRAY: usize = 100;
const QUERIES: usize = 20;

const BY_NAMESPACE: &str = "client-go, by namespace";

pub(crate) fn run(run: &mut Run) {
    let mut small: Option<Spread> = None;
    for &n in run.sizes(&[50_000, 1_000_000], &[50_000, 200_000]) {
        let world = labelled(n);
        let row = selected(run, &world);
        let ours = row.ours.spread;
        run.add(match small {
            None => row,
            Some(small) => row.at_most(2.0 * small.median, "2x the time at 50k"),
        });
        small = small.or(Some(ours));
        bytes(run, &world);
    }
}

fn labelled(n: usize) -> World {
    let mut world = World::new(n);
    let wanted: Arc<str> = "wanted".into();
    for (at, pod) in world.pods.iter_mut().enumerate() {
        if at < NEAR {
            pod.namespace.clone_from(&wanted);
        }
        let matches = at < NEAR && at % 2 == 0;
        if matches || at >= NEAR && at % STRAY == 0 {
            pod.app.clone_from(&wanted);
        }
        if matches || at >= NEAR && at % STRAY == 1 {
            pod.node.clone_from(&wanted);
        }
    }
    world
}

/// The cache of this scenario: one index of namespaces, and one of the two labels if asked.
fn loaded(world: &World, labels: bool) -> (Indexer<Pod>, IndexWriter<Pod>) {
    let mut builder =
        Indexer::builder().declare(text_index("namespace", |pod: &Pod| &pod.namespace));
    if labels {
        builder = builder.declare(IndexDeclaration::labels(
            "labels",
            |pod: &Cached<Pod>, label| {
                label("app", &pod.app);
                label("node", &pod.node);
            },
        ));
    }
    let (indexer, mut writer) = builder.build();
    let items = world.pods.iter().cloned().map(cached).collect();
    writer.apply(replace(world.version, items));
    while !writer.maintain() {}
    (indexer, writer)
}

fn selected(run: &Run, world: &World) -> Row {
    let n = world.len();
    let (indexer, _writer) = loaded(world, true);
    let model = Model::load(world);
    // Two arms share one driver, which answers one command at a time.
    let go = ClientGo::start(n).map(RefCell::new);
    let selector: LabelSelector = "app=wanted,node=wanted".parse().expect("a good selector");
    let index = |name| indexer.index::<String>(name).expect("declared above");
    let query = Query::has(&index("namespace"), "wanted".to_owned())
        .and(Query::labels(&index("labels"), &selector));

    let mut contest = Contest::new();
    contest.arm(OURS, || {
        micros_each(|| {
            let snapshot = indexer.snapshot();
            let found = snapshot.select(&query).expect("the indexes are there");
            black_box(found.cloned().collect::<Vec<_>>()).len()
        })
    });
    contest.arm(MODEL, || {
        micros_each(|| {
            let mut found = model.by_index(By::Namespace, "wanted");
            found.retain(|pod| &*pod.app == "wanted" && &*pod.node == "wanted");
            black_box(found).len()
        })
    });
    match &go {
        Ok(go) => {
            contest.arm(CLIENT_GO, || [go.borrow_mut().figure("select all 2")]);
            contest.arm(BY_NAMESPACE, || {
                let command = format!("select namespace {QUERIES}");
                [go.borrow_mut().figure(&command)]
            });
        }
        Err(reason) => {
            contest.skip(CLIENT_GO, reason);
            contest.skip(BY_NAMESPACE, reason);
        }
    }
    let standing = contest.run(run.rounds());
    let row = Row::of(
        "namespace and two labels, 500 matches",
        n,
        &standing,
        0,
        MICROS,
    );
    row.at_least(50.0, CLIENT_GO)
        .at_least(10.0, BY_NAMESPACE)
        .with_note(
            "collected, owned; client-go by ListAll, and by its namespace index and a filter",
        )
}

fn micros_each(select: impl Fn() -> usize) -> [f64; 1] {
    let began = Instant::now();
    for _ in 0..QUERIES {
        assert_eq!(select(), NEAR / 2, "the selector found others");
    }
    [began.elapsed().as_nanos() as f64 / 1e3 / QUERIES as f64]
}

/// What the label index weighs.
fn bytes(run: &mut Run, world: &World) {
    let count = Count::start();
    let live = |labels| {
        let before = count.read().requested;
        let cache = loaded(world, labels);
        let live = count.read().requested - before;
        drop(cache);
        live as f64 / world.len() as f64
    };
    let (without, with) = (live(false), live(true));
    drop(count);
    let spread = Spread::exact(with - without);
    let mut row = Row::alone("the label index, an object", world.len(), spread, BYTES);
    row.rounds = 1;
    run.add(row);
}
