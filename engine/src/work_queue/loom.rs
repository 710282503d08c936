//! Loom models of the work queue.
//!
//! Modelled: adds against workers that wait, done against adds of the same key, drains and
//! shutdowns against both, a worker that gives up waiting. Left out: delays, which have no thread
//! of their own, and rate limiters, which run outside the lock.
//!
//! Mutants that these models kill: `add_wakes_nobody`, `keep_the_baton`, `done_wakes_nobody`,
//! `drain_forgets_workers`.
use super::{Delayed, WorkQueue, WorkQueueConfig};
use crate::clock::ManualClock;
use crate::sync::block_on;
use loom::thread;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

fn queue() -> WorkQueue<u8> {
    WorkQueue::new(WorkQueueConfig::new(Arc::new(ManualClock::new())))
}

/// Explore with at most two preemptions: the faults of such protocols need one or two, and three
/// threads with blocking waits have too many schedules for more.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(run);
}

#[test]
fn no_key_is_lost_between_an_add_and_a_worker_that_waits() {
    model(|| {
        let queue = queue();
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || *queue.get_blocking().unwrap())
            })
            .collect();
        queue.add(1);
        queue.add(2);
        let mut got: Vec<u8> = workers.into_iter().map(|w| w.join().unwrap()).collect();
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
    });
}

#[test]
fn a_key_is_never_with_two_workers_and_comes_again_after_an_add_meanwhile() {
    model(|| {
        let queue = queue();
        let inside = Arc::new(AtomicUsize::new(0));
        let added = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, inside, added) = (queue.clone(), inside.clone(), added.clone());
                thread::spawn(move || {
                    let mut seen = 0;
                    while let Ok(item) = queue.get_blocking() {
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        seen = added.load(Ordering::Relaxed);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::Relaxed);
                        item.done();
                    }
                    seen
                })
            })
            .collect();
        for number in 1..=2 {
            added.store(number, Ordering::Relaxed);
            queue.add(1);
        }
        queue.shut_down();
        let seen = workers.into_iter().map(|worker| worker.join().unwrap());
        assert_eq!(seen.max(), Some(2), "some worker began after the last add");
    });
}

#[test]
fn a_worker_that_gives_up_passes_its_wake_up_on() {
    model(|| {
        let queue = queue();
        let steady = thread::spawn({
            let queue = queue.clone();
            move || *queue.get_blocking().unwrap()
        });
        let fickle = thread::spawn({
            let queue = queue.clone();
            move || {
                let mut wait = Box::pin(queue.get());
                let mut context = Context::from_waker(Waker::noop());
                if let Poll::Ready(item) = wait.as_mut().poll(&mut context) {
                    // It was served after all: put the key back.
                    let key = *item.unwrap();
                    queue.add(key);
                }
            }
        });
        queue.add(7);
        assert_eq!(steady.join().unwrap(), 7);
        fickle.join().unwrap();
    });
}

#[test]
fn a_drain_ends_when_everything_was_handed_out_and_is_done() {
    model(|| {
        let queue = queue();
        queue.add(1);
        let worker = thread::spawn({
            let queue = queue.clone();
            move || {
                let mut done = 0;
                while let Ok(item) = queue.get_blocking() {
                    done += 1;
                    item.done();
                }
                done
            }
        });
        block_on(queue.shut_down_with_drain(Delayed::Drop));
        assert!(queue.is_empty());
        assert_eq!(worker.join().unwrap(), 1);
    });
}

#[test]
fn a_shutdown_ends_waits_and_drains() {
    model(|| {
        let queue = queue();
        queue.add(1);
        let held = queue.try_get().unwrap().unwrap();
        let drain = thread::spawn({
            let queue = queue.clone();
            move || block_on(queue.shut_down_with_drain(Delayed::Drop))
        });
        let worker = thread::spawn({
            let queue = queue.clone();
            move || queue.get_blocking().is_err()
        });
        queue.shut_down();
        drain.join().unwrap();
        assert!(worker.join().unwrap());
        drop(held);
    });
}
