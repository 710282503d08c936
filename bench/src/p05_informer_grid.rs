//! P5: client-go's `BenchmarkSharedIndexInformer`: pods in one namespace, readers that list it in a
//! loop, and single modifications that each go from the watch to a handler.
use crate::contest::Contest;
use crate::p08_end_to_end::{Calls, Counting};
use crate::peers::CLIENT_GO;
use crate::peers::client_go::ClientGo;
use crate::pipeline::Pipeline;
use crate::pod::{Pod, World};
use crate::row::{LISTS, OURS, Row, WRITES};
use crate::run::Run;
use informant::informer::{HandlerOptions, Policy};
use informant::source::WatchEvent;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Modifications that may be under way, as in the benchmark that this follows.
const UNDER_WAY: u64 = 10;

pub(crate) fn run(run: &mut Run) {
    let pods = run.sizes(
        &[10_000, 20_000, 40_000, 80_000, 160_000],
        &[10_000, 40_000],
    );
    let readers = run.sizes(&[0, 1, 10, 20, 40, 80], &[0, 1, 20]);
    for &pods in pods {
        let mut go = ClientGo::start(pods);
        for &readers in readers {
            cell(run, &mut go, pods, readers);
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

fn cell(run: &mut Run, go: &mut Result<ClientGo, String>, pods: usize, readers: usize) {
    let world = crowded(pods);
    let mut pipeline = Pipeline::start(&world);
    let calls: Arc<Calls> = Arc::default();
    let options = HandlerOptions::default().policy(Policy::Unbounded);
    pipeline.handle(&options, Counting(calls.clone()));
    let span = run.span();
    let mut contest = Contest::new();
    contest.arm(OURS, || measured(&mut pipeline, &calls, readers, span));
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
        run.add(match (kind, readers) {
            ("writes", 0) => row.at_least(2.0, CLIENT_GO),
            ("writes", 1..=20) => row.at_least(5.0, CLIENT_GO),
            ("lists", 1..=20) => row.at_least(10.0, CLIENT_GO),
            _ => row,
        });
    }
}

/// Lists a second and modifications a second. Readers are tasks on the runtime's threads, as
/// goroutines are; between two lists each lets others run.
fn measured(pipeline: &mut Pipeline, calls: &Calls, readers: usize, span: Duration) -> [f64; 2] {
    let stop = Arc::new(AtomicBool::new(false));
    let lists = Arc::new(AtomicU64::new(0));
    let namespace = pipeline
        .informer
        .lister()
        .index::<String>("namespace")
        .expect("the index was declared");
    let Pipeline {
        runtime,
        informer,
        frames,
        changes,
        ..
    } = pipeline;
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..readers {
            let (stop, lists, namespace) = (stop.clone(), lists.clone(), namespace.clone());
            let lister = informer.lister();
            tasks.push(tokio::spawn(async move {
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
        let mut sent = 0;
        while began.elapsed() < span {
            if sent - (calls.count() - first) < UNDER_WAY {
                let frame = Ok(WatchEvent::Modified(changes.next()));
                frames.send(frame).await.expect("the watch is open");
                sent += 1;
            } else {
                tokio::task::yield_now().await;
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let (lists, writes) = (lists.load(Ordering::Relaxed), calls.count() - first);
        stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.expect("a reader does not panic");
        }
        while calls.count() - first < sent {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        [lists as f64 / seconds, writes as f64 / seconds]
    })
}
