//! P12: the work queue: add, get, done of string keys of 40 bytes, nothing delayed.
use crate::contest::Contest;
use crate::peers::CLIENT_GO;
use crate::peers::client_go::ClientGo;
use crate::row::{ITEMS, NANOS, OURS, Row};
use crate::run::Run;
use informant::SystemClock;
use informant::work_queue::{WorkQueue, WorkQueueConfig};
use std::hint::black_box;
use std::thread;
use std::time::Instant;

const KEYS: usize = 10_000;

pub(crate) fn run(run: &mut Run) {
    let items = if run.quick() { 100_000 } else { 400_000 };
    let mut go = ClientGo::start(0);
    let mut contest = Contest::new();
    contest.arm(OURS, || [cycles(items)]);
    contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
        let command = format!("queue-cycle {KEYS} {items}");
        Box::new(move || [go.figure(&command)])
    });
    let standing = contest.run(run.rounds());
    let row = Row::of("one thread: add, get, done", KEYS, &standing, 0, NANOS);
    run.add(row.at_least(3.0, CLIENT_GO));

    for (workers, factor) in [(1, 3.0), (8, 2.0)] {
        let mut contest = Contest::new();
        contest.arm(OURS, || [worked(items, workers)]);
        contest.arm_of(CLIENT_GO, go.as_mut(), |go| {
            let command = format!("queue-workers {KEYS} {items} {workers}");
            Box::new(move || [go.figure(&command)])
        });
        let standing = contest.run(run.rounds());
        let name = format!("one thread adds, {workers} worker(s) get and are done");
        let row = Row::of(name, KEYS, &standing, 0, ITEMS);
        run.add(row.at_least(factor, CLIENT_GO));
    }
}

fn queue() -> WorkQueue<String> {
    WorkQueue::new(WorkQueueConfig::new(SystemClock::shared()))
}

/// Keys, each an allocation of its own, as many as there are items.
fn keys(items: usize) -> Vec<String> {
    (0..items)
        .map(|at| {
            format!(
                "namespace-{:03}/app-{:03}-{:020}",
                at % 100,
                at % 300,
                at % KEYS
            )
        })
        .collect()
}

/// Nanoseconds of a cycle.
fn cycles(items: usize) -> f64 {
    let (queue, keys) = (queue(), keys(items));
    let began = Instant::now();
    for key in keys {
        queue.add(key);
        let item = queue.try_get().expect("the queue is open");
        item.expect("a key was added").done();
    }
    began.elapsed().as_nanos() as f64 / items as f64
}

/// Items a second that workers are done with. Keys that wait already are not added twice, so what
/// counts is what was added.
fn worked(items: usize, workers: usize) -> f64 {
    let (queue, keys) = (queue(), keys(items));
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Ok(item) = queue.get_blocking() {
                    black_box(&item);
                    item.done();
                }
            });
        }
        for key in keys {
            queue.add(key);
        }
        queue.shut_down();
    });
    items as f64 / began.elapsed().as_secs_f64()
}
