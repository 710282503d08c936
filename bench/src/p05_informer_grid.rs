//! P5: client-go's `BenchmarkSharedIndexInformer`: pods in one namespace, readers that list it in a
//! loop, and single modifications that each go from the watch to a handler.
use crate::contest::Contest;
use crate::p08_end_to_end::Calls;
use crate::peers::CLIENT_GO;
use crate::peers::client_go::{Cell, ClientGo, own_benchmark};
use crate::pipeline::Pipeline;
use crate::pod::{Pod, World};
use crate::row::{LISTS, OURS, Row, Unit, WRITES};
use crate::run::Run;
use crate::spread::Spread;
use informant::Cached;
use informant::informer::{Handler, HandlerOptions, Policy};
use informant::source::WatchEvent;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// client-go's own benchmark, unmodified.
const OWN: &str = "client-go, its benchmark";

/// Modifications that may be under way, as in the benchmark that this follows.
const UNDER_WAY: usize = 10;

pub(crate) fn run(run: &mut Run) {
    let pods = run.sizes(
        &[10_000, 20_000, 40_000, 80_000, 160_000],
        &[10_000, 40_000],
    );
    let readers = run.sizes(&[0, 1, 10, 20, 40, 80], &[0, 1, 20]);
    let own = own_benchmark(pods, readers, if run.quick() { 1 } else { 5 });
    for &pods in pods {
        let mut go = ClientGo::start(pods);
        for &readers in readers {
            cell(run, &mut go, &own, pods, readers);
        }
    }
}

/// All pods in one namespace.
fn crowded(pods: usize) -> World {
    let mut world = World::new(pods);
    let namespace: Arc<str> = "default".into();
    for Pod { namespace: of, .. } in &mut world.pods {
        of.clone_from(&namespace);
    }
    world
}

fn cell(
    run: &mut Run,
    go: &mut Result<ClientGo, String>,
    own: &Result<Vec<Cell>, String>,
    pods: usize,
    readers: usize,
) {
    let world = crowded(pods);
    let mut pipeline = Pipeline::start(&world);
    let calls: Arc<Calls> = Arc::default();
    let room = Arc::new(Semaphore::new(UNDER_WAY));
    let options = HandlerOptions::default().policy(Policy::Unbounded);
    let arrived = Arrived {
        calls: calls.clone(),
        room: room.clone(),
    };
    pipeline.handle(&options, arrived);
    let span = if run.quick() {
        run.span() / 2
    } else {
        run.span()
    };
    let mut contest = Contest::new();
    contest.arm(OURS, || measured(&pipeline, &calls, &room, readers, span));
    contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
        let command = format!("informer-grid {readers} {}", span.as_millis());
        Box::new(move || {
            let figures = go.figures(&command);
            [figures[0], figures[1]]
        })
    });
    let standing = contest.run(7);
    let rows = [("writes", 1, WRITES), ("lists", 0, LISTS)];
    for (kind, k, unit) in rows {
        if readers == 0 && kind == "lists" {
            continue;
        }
        let name = format!("{readers} readers of the namespace: {kind}");
        let mut row = Row::of(name, pods, &standing, k, unit);
        row.rounds = 7;
        add_own(&mut row, own, (pods, readers), kind == "lists", unit);
        let factor = match (kind, readers) {
            ("writes", 0) => 2.0,
            ("writes", 1..=20) => 5.0,
            ("lists", 1..=20) => 10.0,
            _ => {
                run.add(row);
                continue;
            }
        };
        run.add(row.at_least(factor, CLIENT_GO).at_least(factor, OWN));
    }
}

/// What client-go's own benchmark came to, run before and by itself.
fn add_own(
    row: &mut Row,
    own: &Result<Vec<Cell>, String>,
    (pods, readers): (usize, usize),
    lists: bool,
    unit: Unit,
) {
    let cells = match own {
        Ok(cells) => cells,
        Err(reason) => return row.skip(OWN, reason),
    };
    let figures: Vec<f64> = cells
        .iter()
        .filter(|cell| (cell.pods, cell.readers) == (pods, readers))
        .map(|cell| {
            if lists {
                cell.lists_per_second
            } else {
                cell.writes_per_second
            }
        })
        .collect();
    if figures.is_empty() {
        row.skip(OWN, "go test said nothing of it");
    } else {
        row.peer(OWN, Spread::of(&figures), unit);
    }
}

/// Counts its calls, and lets the sender go on.
struct Arrived {
    calls: Arc<Calls>,
    room: Arc<Semaphore>,
}

impl Handler<Pod> for Arrived {
    fn on_update(&mut self, _: &Cached<Pod>, _: &Cached<Pod>) {
        self.calls.add();
        self.room.add_permits(1);
    }
}

/// Lists a second and modifications a second. Readers and the sender are tasks on the runtime's
/// threads, as they are goroutines on the other side; between two lists a reader lets others run.
fn measured(
    pipeline: &Pipeline,
    calls: &Calls,
    room: &Arc<Semaphore>,
    readers: usize,
    span: Duration,
) -> [f64; 2] {
    let stop = Arc::new(AtomicBool::new(false));
    let lists = Arc::new(AtomicU64::new(0));
    let lister = pipeline.informer.lister();
    let namespace = lister
        .index::<String>("namespace")
        .expect("it was declared");
    let mut tasks = Vec::new();
    for _ in 0..readers {
        let (stop, lists) = (stop.clone(), lists.clone());
        let (lister, namespace) = (lister.clone(), namespace.clone());
        tasks.push(pipeline.runtime.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                {
                    let snapshot = lister.snapshot();
                    let pods = snapshot.by_index(&namespace, "default");
                    let pods = pods.expect("the handle is of this indexer");
                    // The peer's caller is handed each object in turn.
                    black_box(pods.fold(0, |sum: u64, pod| sum.wrapping_add(pod.version)));
                }
                lists.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }));
    }
    let first = calls.count();
    let began = Instant::now();
    let (frames, changes) = (pipeline.frames.clone(), pipeline.changes.clone());
    let (room, stopped) = (room.clone(), stop.clone());
    tasks.push(pipeline.runtime.spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            room.acquire()
                .await
                .expect("the room is never closed")
                .forget();
            let frame = Ok(WatchEvent::Modified(changes.lock().next()));
            frames.send(frame).await.expect("the watch is open");
        }
    }));
    std::thread::sleep(span);
    let seconds = began.elapsed().as_secs_f64();
    let (lists, writes) = (lists.load(Ordering::Relaxed), calls.count() - first);
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        let joined = pipeline.runtime.block_on(task);
        joined.expect("neither readers nor sender panic");
    }
    [lists as f64 / seconds, writes as f64 / seconds]
}
