//! P8: from the source to ten lossless handlers, 50,000 objects, three indexes.
use crate::contest::Contest;
use crate::histogram::Histogram;
use crate::peers::client_go::ClientGo;
use crate::peers::kube_shared::Shared;
use crate::peers::{CLIENT_GO, FLOOR, KUBE};
use crate::pipeline::{AHEAD, Pipeline, wait_until};
use crate::pod::{Pod, World};
use crate::row::{EVENTS, MICROS, OURS, Row};
use crate::run::Run;
use informant::Cached;
use informant::informer::{Handler, HandlerOptions, Policy};
use informant::source::WatchEvent;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const OBJECTS: usize = 50_000;
const HANDLERS: usize = 10;
/// Events a second while latencies are taken.
const PACE: u32 = 20_000;

/// Counts its calls; a count of its own, so that handlers share no cache line that they write.
pub(crate) struct Counting(pub(crate) Arc<Calls>);

#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Calls(AtomicU64);

impl Calls {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Handler<Pod> for Counting {
    fn on_update(&mut self, _: &Cached<Pod>, _: &Cached<Pod>) {
        self.0.add();
    }
}

pub(crate) fn run(run: &mut Run) {
    let events = if run.quick() { 20_000 } else { 1_000_000 };
    let world = World::new(OBJECTS);
    let mut go = ClientGo::start(OBJECTS);
    throughput(run, &world, &mut go, events);
    latency(run, &world, &mut go);
}

fn throughput(run: &mut Run, world: &World, go: &mut Result<ClientGo, String>, events: usize) {
    for (what, policy) in [
        ("lossless", Policy::Unbounded),
        ("coalescing", Policy::Coalesce),
    ] {
        let mut pipeline = Pipeline::start(world);
        let calls: Vec<Arc<Calls>> = (0..HANDLERS).map(|_| Arc::default()).collect();
        for calls in &calls {
            let options = HandlerOptions::default().policy(policy);
            pipeline.handle(&options, Counting(calls.clone()));
        }
        let total = || calls.iter().map(|calls| calls.count()).sum::<u64>();
        let mut contest = Contest::new();
        contest.arm(OURS, || {
            let before = total();
            let expected = (events * HANDLERS) as u64;
            let began = Instant::now();
            pipeline.send(events);
            if policy == Policy::Coalesce {
                settle(&pipeline);
            } else {
                wait_until(|| total() - before >= expected);
            }
            let rate = events as f64 / began.elapsed().as_secs_f64();
            let made = total() - before;
            assert!(
                policy == Policy::Coalesce || made == expected,
                "a call too many"
            );
            [rate, made as f64]
        });
        contest.arm_of(KUBE, Shared::start(world, HANDLERS), |mut shared| {
            Box::new(move || shared.pass(events))
        });
        contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
            let command = format!("informer {HANDLERS} {events}");
            Box::new(move || {
                let figures = go.figures(&command);
                [figures[0], figures[1]]
            })
        });
        let standing = contest.run(run.rounds());
        let name = format!("{events} events to {HANDLERS} {what} handlers");
        let calls = |name| standing.figure(name, 1).map_or(0.0, |figure| figure.median);
        let row = Row::of(name, OBJECTS, &standing, 0, EVENTS).with_note(format!(
            "handler calls in a round: ours {}, client-go {}, kube-runtime {}",
            calls(OURS),
            calls(CLIENT_GO),
            calls(KUBE)
        ));
        run.add(if policy == Policy::Coalesce {
            row
        } else {
            row.at_least(5.0, CLIENT_GO).at_least(5.0, KUBE)
        });
    }
}

/// Wait until the last version is stored and no handler has anything waiting.
fn settle(pipeline: &Pipeline) {
    let newest = pipeline.changes.lock().version();
    wait_until(|| {
        let status = pipeline.informer.status();
        pipeline.informer.snapshot().resource_version() == newest
            && status.handlers.iter().all(|handler| handler.waiting == 0)
    });
}

/// Takes the time since an object was sent, which is its version in nanoseconds.
struct Timing {
    began: Instant,
    nanos: Arc<Mutex<Histogram>>,
}

impl Handler<Pod> for Timing {
    fn on_update(&mut self, _: &Cached<Pod>, new: &Cached<Pod>) {
        let now = self.began.elapsed().as_nanos() as u64;
        self.nanos
            .lock()
            .record(now.saturating_sub(new.version - SENT_BASE));
    }
}

/// Above all versions of a world, so that times of sending are rising versions.
const SENT_BASE: u64 = 1 << 40;

fn latency(run: &mut Run, world: &World, go: &mut Result<ClientGo, String>) {
    let events = if run.quick() { 5_000 } else { 60_000 };
    let began = Instant::now();
    let nanos = Arc::new(Mutex::new(Histogram::new()));
    let mut pipeline = Pipeline::start(world);
    let calls: Vec<Arc<Calls>> = (1..HANDLERS).map(|_| Arc::default()).collect();
    let options = HandlerOptions::default().policy(Policy::Unbounded);
    for calls in &calls {
        pipeline.handle(&options, Counting(calls.clone()));
    }
    let timing = Timing {
        began,
        nanos: nanos.clone(),
    };
    pipeline.handle(&options, timing);
    let mut at = 0;
    let mut contest = Contest::new();
    contest.arm(OURS, || {
        *nanos.lock() = Histogram::new();
        let Pipeline {
            runtime,
            frames,
            changes,
            ..
        } = &pipeline;
        runtime.block_on(paced(events, async || {
            at = (at + 7_919) % OBJECTS;
            let sent = SENT_BASE + began.elapsed().as_nanos() as u64;
            let frame = Ok(WatchEvent::Modified(changes.lock().next_at(at, sent)));
            frames.send(frame).await.expect("the watch is open");
        }));
        wait_until(|| nanos.lock().count() == events as u64);
        micros(&nanos.lock())
    });
    contest.arm(FLOOR, || channel_hop(events));
    contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
        let command = format!("informer-latency {HANDLERS} {events} {PACE}");
        Box::new(move || {
            let figures = go.figures(&command);
            [figures[0], figures[1], figures[2]]
        })
    });
    let standing = contest.run(run.rounds());
    let floor = standing
        .figure(FLOOR, 1)
        .map_or(0.0, |figure| figure.median);
    for (k, quantile) in ["p50", "p99", "longest"].into_iter().enumerate() {
        let name = format!("{}k events/s, event to handler: {quantile}", PACE / 1_000);
        let row = Row::of(name, OBJECTS, &standing, k, MICROS);
        run.add(if quantile == "p99" {
            let limit = (3.0 * floor).max(1_000.0);
            row.at_most(limit, "1 ms, or 3x a bare channel hop")
        } else {
            row
        });
    }
}

fn micros(nanos: &Histogram) -> [f64; 3] {
    [0.5, 0.99, 1.0].map(|q| nanos.quantile(q) / 1e3)
}

/// Call `emit` so many times at the pace, by the millisecond.
async fn paced(events: usize, mut emit: impl AsyncFnMut()) {
    let began = Instant::now();
    let mut sent = 0;
    while sent < events {
        let due = (began.elapsed().as_secs_f64() * f64::from(PACE)) as usize;
        while sent < due.min(events) {
            emit().await;
            sent += 1;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The same pace through one channel of the runtime.
fn channel_hop(events: usize) -> [f64; 3] {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        let began = Instant::now();
        let (sender, mut receiver) = mpsc::channel::<u64>(AHEAD);
        let receiving = tokio::spawn(async move {
            let mut nanos = Histogram::new();
            while let Some(sent) = receiver.recv().await {
                nanos.record((began.elapsed().as_nanos() as u64).saturating_sub(sent));
            }
            nanos
        });
        paced(events, async || {
            let sent = began.elapsed().as_nanos() as u64;
            sender.send(sent).await.expect("the receiver is there");
        })
        .await;
        drop(sender);
        micros(&receiving.await.expect("the receiver does not panic"))
    })
}
