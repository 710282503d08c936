//! Models of adding, waiting and ending, with the real queue.
//!
//! Modelled: the queue's lock, the waiting gets and their timekeeper, the waits for a drain, and the
//! manual clock. Left out: real time, and the runtime (`block_on` parks on a modelled parking spot).
//!
//! Mutants: `queue_add_wakes_nobody`, `queue_hands_out_twice`, `done_loses_the_dirty`,
//! `dropped_get_keeps_its_wake_up`, `timekeeper_leaves_nobody`, `drain_forgets_the_queued`,
//! `drain_ends_in_silence`, `shutdown_wakes_one`, `hold_forgets_a_wake_up`.
use super::{Delayed, Drained, Hold, WorkQueue, WorkQueueConfig};
use crate::clock::ManualClock;
use crate::stop::StopToken;
use crate::sync::{AtomicUsize, Ordering};
use loom::thread;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Three preemptions find every fault planted here, and keep the run short.
fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

fn queue() -> (WorkQueue<u8>, ManualClock) {
    let clock = ManualClock::new();
    let config = WorkQueueConfig::new(Arc::new(clock.clone()));
    (WorkQueue::new(config), clock)
}

fn spawn<R: 'static>(
    queue: &WorkQueue<u8>,
    work: impl FnOnce(&WorkQueue<u8>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let queue = queue.clone();
    thread::spawn(move || work(&queue))
}

/// Polls a `get` once and gives it up; a key that it got is put back.
fn give_up(queue: &WorkQueue<u8>) {
    let mut get = queue.get();
    let mut context = Context::from_waker(Waker::noop());
    if let Poll::Ready(Ok(item)) = Pin::new(&mut get).poll(&mut context) {
        item.requeue();
    }
}

/// I-W5: every add wakes a waiting get.
#[test]
fn every_added_key_reaches_a_waiting_worker() {
    model(|| {
        let (queue, _) = queue();
        let workers = [(), ()].map(|()| spawn(&queue, |queue| *queue.get_blocking().unwrap()));
        queue.add(1);
        queue.add(2);
        let mut keys = workers.map(|worker| worker.join().unwrap());
        keys.sort_unstable();
        assert_eq!(keys, [1, 2]);
    });
}

/// I-W2, I-W5
#[test]
fn a_key_is_with_one_worker_and_comes_again_after_an_add_meanwhile() {
    model(|| {
        let (queue, _) = queue();
        let inside = Arc::new(AtomicUsize::new(0));
        let added = Arc::new(AtomicUsize::new(0));
        let workers = [(), ()].map(|()| {
            let (inside, added) = (inside.clone(), added.clone());
            spawn(&queue, move |queue| {
                let mut seen = 0;
                while let Ok(item) = queue.get_blocking() {
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                    seen = added.load(Ordering::Relaxed);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    item.done();
                }
                seen
            })
        });
        for number in 1..=2 {
            added.store(number, Ordering::Relaxed);
            queue.add(1);
        }
        queue.shut_down();
        let seen = workers.map(|worker| worker.join().unwrap());
        assert!(seen.contains(&2), "some worker began after the last add");
    });
}

/// I-W5: a wake-up goes to another when the woken one does not look.
#[test]
fn a_worker_that_gives_up_passes_its_wake_up_on() {
    model(|| {
        let (queue, _) = queue();
        let steady = spawn(&queue, |queue| *queue.get_blocking().unwrap());
        let fickle = spawn(&queue, give_up);
        queue.add(7);
        assert_eq!(steady.join().unwrap(), 7);
        fickle.join().unwrap();
    });
}

/// I-W8: a delayed key reaches a worker when its time comes, whoever kept the time.
#[test]
fn a_delayed_key_is_not_lost_with_the_timekeeper() {
    model(|| {
        let (queue, clock) = queue();
        queue.add_after(1, SECOND);
        let steady = spawn(&queue, |queue| *queue.get_blocking().unwrap());
        let fickle = spawn(&queue, give_up);
        clock.advance(SECOND);
        assert_eq!(steady.join().unwrap(), 1);
        fickle.join().unwrap();
    });
}

/// I-W8: the timekeeper takes an entry and leaves; the other worker gets the delayed key.
#[test]
fn the_timekeeper_leaves_and_the_time_is_kept() {
    model(|| {
        let (queue, clock) = queue();
        let workers = [(), ()].map(|()| spawn(&queue, |queue| *queue.get_blocking().unwrap()));
        queue.add_after(2, SECOND);
        queue.add(1);
        clock.advance(SECOND);
        let mut keys = workers.map(|worker| worker.join().unwrap());
        keys.sort_unstable();
        assert_eq!(keys, [1, 2]);
    });
}

/// I-W7: a drain ends, and not before everything is done; the worker is told.
#[test]
fn a_drain_ends_when_everything_is_done() {
    model(|| {
        let (queue, _) = queue();
        queue.add(1);
        let worker = spawn(&queue, |queue| {
            let mut done = 0;
            while let Ok(item) = queue.get_blocking() {
                done += 1;
                item.done();
            }
            done
        });
        let drained = queue.shut_down_with_drain_blocking(Delayed::Drop);
        assert_eq!(drained, Drained::Complete);
        let metrics = queue.metrics();
        assert_eq!((metrics.depth, metrics.in_flight), (0, 0));
        assert_eq!(worker.join().unwrap(), 1);
    });
}

/// I-W7: a key that was added again while in work is handed out before the workers are told.
#[test]
fn a_drain_hands_out_what_was_added_again() {
    model(|| {
        let (queue, _) = queue();
        queue.add(1);
        let item = queue.get_blocking().unwrap();
        queue.add(1);
        let drain = spawn(&queue, |queue| {
            queue.shut_down_with_drain_blocking(Delayed::Drop)
        });
        let worker = spawn(&queue, |queue| {
            let mut keys = 0;
            while let Ok(item) = queue.get_blocking() {
                keys += 1;
                item.done();
            }
            keys
        });
        item.done();
        assert_eq!(drain.join().unwrap(), Drained::Complete);
        assert_eq!(worker.join().unwrap(), 1);
    });
}

/// I-W6, I-W7
#[test]
fn a_shutdown_ends_waits_and_drains() {
    model(|| {
        let (queue, _) = queue();
        queue.add(1);
        let held = queue.get_blocking().unwrap();
        let drain = spawn(&queue, |queue| {
            queue.shut_down_with_drain_blocking(Delayed::Drop)
        });
        let worker = spawn(&queue, |queue| queue.get_blocking().is_err());
        // Until the drain has begun, a shutdown would end before it.
        while !queue.is_shutting_down() {
            thread::yield_now();
        }
        queue.shut_down();
        assert_eq!(drain.join().unwrap(), Drained::CutShort);
        assert!(worker.join().unwrap());
        drop(held);
    });
}

/// Both waiting workers are told of the shutdown.
#[test]
fn a_shutdown_reaches_every_worker() {
    model(|| {
        let (queue, _) = queue();
        queue.add_after(1, SECOND);
        let workers = [(), ()].map(|()| spawn(&queue, |queue| queue.get_blocking().is_err()));
        queue.shut_down();
        for worker in workers {
            assert!(worker.join().unwrap());
        }
    });
}

/// A held key reaches a worker when its condition is fulfilled, at whatever moment that is.
#[test]
fn a_held_key_is_not_lost() {
    model(|| {
        let fulfilled = StopToken::new();
        let asked = fulfilled.clone();
        let config = WorkQueueConfig::new(Arc::new(ManualClock::new()));
        let queue = WorkQueue::new(config.gate(move |_| {
            let fulfilled = asked.clone();
            let wait = async move { fulfilled.stopped().await };
            (!asked.is_stopped()).then(|| Hold::new("a model", wait))
        }));
        queue.add(1);
        let worker = spawn(&queue, |queue| *queue.get_blocking().unwrap());
        fulfilled.stop();
        assert_eq!(worker.join().unwrap(), 1);
    });
}
