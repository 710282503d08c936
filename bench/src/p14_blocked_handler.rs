//! P14: a hundred handlers, one of which is blocked for ever: what the others lose, and what piles up.
use crate::allocator::Count;
use crate::contest::Contest;
use crate::p08_end_to_end::{Calls, Counting};
use crate::peers::CLIENT_GO;
use crate::peers::client_go::ClientGo;
use crate::pipeline::{Pipeline, wait_until};
use crate::pod::{Pod, World};
use crate::row::{BYTES, EVENTS, OURS, Row};
use crate::run::Run;
use crate::spread::Spread;
use informant::Cached;
use informant::informer::{Handler, HandlerOptions, PastLimit, Policy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const OBJECTS: usize = 10_000;
const HANDLERS: usize = 100;

pub(crate) fn run(run: &mut Run) {
    let events = if run.quick() { 5_000 } else { 1_000_000 };
    for (what, policy) in [
        ("coalescing", Policy::Coalesce),
        (
            "lossless past its limit",
            Policy::lossless(1_000, PastLimit::Coalesce),
        ),
    ] {
        throughput(run, what, policy, events);
    }
    memory(run, events);
}

/// Blocks its thread in its first call until the pipeline goes.
struct Blocked(Arc<AtomicBool>);

impl Handler<Pod> for Blocked {
    fn on_update(&mut self, _: &Cached<Pod>, _: &Cached<Pod>) {
        while !self.0.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A pipeline with a hundred handlers, one of them perhaps blocked, and the calls of the others.
struct Crowd {
    calls: Vec<Arc<Calls>>,
    released: Arc<AtomicBool>,
    pipeline: Pipeline,
}

impl Crowd {
    fn new(world: &World, blocked: Option<Policy>) -> Self {
        let mut pipeline = Pipeline::start(world);
        let others = HANDLERS - usize::from(blocked.is_some());
        let calls: Vec<Arc<Calls>> = (0..others).map(|_| Arc::default()).collect();
        let options = HandlerOptions::default().policy(Policy::Unbounded);
        for calls in &calls {
            pipeline.handle(&options, Counting(calls.clone()));
        }
        let released = Arc::new(AtomicBool::new(false));
        if let Some(policy) = blocked {
            let options = HandlerOptions::named("blocked").policy(policy);
            pipeline.handle_blocked(&options.dedicated_thread(), Blocked(released.clone()));
        }
        Self {
            calls,
            released,
            pipeline,
        }
    }

    /// Handler calls that were made, for each of the handlers that are not blocked.
    fn pass(&mut self, events: usize) -> f64 {
        let total = |calls: &[Arc<Calls>]| calls.iter().map(|calls| calls.count()).sum::<u64>();
        let expected = total(&self.calls) + (events * self.calls.len()) as u64;
        let began = Instant::now();
        self.pipeline.send(events);
        wait_until(|| total(&self.calls) >= expected);
        events as f64 / began.elapsed().as_secs_f64()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.released.store(true, Ordering::Relaxed);
    }
}

fn throughput(run: &mut Run, what: &str, policy: Policy, events: usize) {
    let world = World::new(OBJECTS);
    let mut go = ClientGo::start(OBJECTS);
    let mut with = Crowd::new(&world, Some(policy));
    let mut without = Crowd::new(&world, None);
    let mut contest = Contest::new();
    contest.arm(OURS, || [with.pass(events)]);
    contest.arm("ours, none blocked", || [without.pass(events)]);
    contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
        let command = format!("informer-blocked {HANDLERS} {events}");
        Box::new(move || [go.figure(&command)])
    });
    let rounds = run.rounds().max(9);
    let standing = contest.run(rounds);
    let name = format!("{events} events to {HANDLERS} handlers, one blocked ({what})");
    let mut row = Row::of(name, OBJECTS, &standing, 0, EVENTS);
    row.rounds = rounds;
    run.add(row.at_least(0.9, "ours, none blocked"));
}

/// Live bytes after the events, with one blocked and without.
fn memory(run: &mut Run, events: usize) {
    let world = World::new(OBJECTS);
    let count = Count::start();
    let live = |blocked| {
        let before = count.read().requested;
        let mut crowd = Crowd::new(&world, blocked);
        crowd.pass(events);
        // Spare versions catch up on the informer's timer.
        std::thread::sleep(Duration::from_millis(300));
        (count.read().requested - before) as f64
    };
    let without = live(None);
    let with = live(Some(Policy::Coalesce));
    drop(count);
    let entry = 128.0;
    let mut row = Row::alone(
        format!("live bytes after {events} events, one blocked (coalescing)"),
        OBJECTS,
        Spread::exact(with),
        BYTES,
    );
    row.rounds = 1;
    row.peer("ours, none blocked", Spread::exact(without), BYTES);
    let limit = 1.1 * without + entry * events.min(OBJECTS) as f64;
    run.add(row.at_most(
        limit,
        "1.1x without, and an entry of 128 bytes per changed key",
    ));
}
