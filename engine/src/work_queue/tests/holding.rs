//! Keys that wait for a condition.
use super::super::{Delayed, Drained, Hold, ShutDown};
use super::{Getter, Queue, queue, queue_of, secs, take, take_all};
use crate::clock::ManualClock;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use tokio::sync::watch;

/// A condition that a test fulfils.
struct Condition(watch::Sender<bool>);

impl Condition {
    fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    fn fulfil(&self) {
        self.0.send_replace(true);
    }

    fn hold(&self) -> Hold {
        let mut seen = self.0.subscribe();
        Hold::new("the cache lags", async move {
            seen.wait_for(|fulfilled| *fulfilled).await.ok();
        })
    }
}

/// A queue whose gate holds `key` once the condition is not fulfilled.
fn gated(key: &'static str) -> (Queue, ManualClock, Arc<Condition>) {
    let condition = Arc::new(Condition::new());
    let asked = condition.clone();
    let gate =
        move |other: &&'static str| (*other == key && !*asked.0.borrow()).then(|| asked.hold());
    let (queue, clock) = queue_of(|config| config.gate(gate));
    (queue, clock, condition)
}

#[test]
fn a_held_key_waits_visibly_and_others_pass() {
    let (queue, clock, condition) = gated("a");
    queue.add("a");
    queue.add("b");
    clock.advance(secs(1));
    let mut worker = Getter::new(&queue);
    assert_eq!(worker.key(), Some("b"));
    let held = queue.held();
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].key, &*held[0].reason), ("a", "the cache lags"));
    assert_eq!(held[0].since.since_origin(), secs(1));
    let metrics = queue.metrics();
    assert_eq!((metrics.held, metrics.ready, metrics.in_flight), (1, 0, 0));
    assert_eq!((metrics.depth, metrics.gets), (1, 1));

    let mut worker = Getter::waiting(&queue);
    queue.add("a");
    assert_eq!(queue.metrics().collapsed, 1, "it is one entry (I-W1)");
    assert_eq!(worker.wake_ups(), 0);
    condition.fulfil();
    assert_eq!(worker.wake_ups(), 1, "one worker, to poll the condition");
    assert_eq!(worker.key(), Some("a"));
    assert!(queue.held().is_empty());
    assert!(queue.try_get().unwrap().is_none());
}

#[test]
fn without_a_waiting_worker_the_next_get_looks() {
    let (queue, _, condition) = gated("a");
    queue.add("a");
    assert!(queue.try_get().unwrap().is_none());
    condition.fulfil();
    queue.add("b");
    assert_eq!(take_all(&queue), ["b", "a"], "at the tail");
}

#[test]
fn a_batch_holds_what_must_wait() {
    let (queue, _, condition) = gated("b");
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let batch = queue.try_get_batch(3).unwrap();
    assert_eq!(
        batch.iter().map(|item| **item).collect::<Vec<_>>(),
        ["a", "c"]
    );
    condition.fulfil();
    assert_eq!(*take(&queue), "b");
}

/// A gate that says no again would hold the key for ever.
#[test]
fn the_gate_is_asked_once_for_an_entry() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let gate = move |_: &&'static str| {
        count.fetch_add(1, Ordering::SeqCst);
        Some(Hold::new("always", async {}))
    };
    let (queue, _) = queue_of(|config| config.gate(gate));
    queue.add("a");
    assert_eq!(take_all(&queue), ["a"]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    queue.add("a");
    let a = take(&queue);
    queue.add("a");
    a.done();
    assert_eq!(take_all(&queue), ["a"]);
    assert_eq!(asked.load(Ordering::SeqCst), 3, "but for each entry");
}

#[test]
fn a_worker_may_hold_what_it_has() {
    let (queue, clock) = queue();
    let condition = Condition::new();
    queue.add("a");
    let a = take(&queue);
    queue.add("a");
    a.hold(condition.hold());
    assert!(queue.try_get().unwrap().is_none(), "both adds are held");
    assert_eq!(queue.metrics().depth, 1);
    // A delay of a held key collapses too.
    queue.add_after("a", secs(1));
    clock.advance(secs(1));
    assert!(queue.try_get().unwrap().is_none());
    condition.fulfil();
    assert_eq!(take_all(&queue), ["a"]);
    assert_eq!(queue.metrics().in_flight, 0);
}

/// A condition that wakes itself while it is polled is polled again, and does not stop the rest.
#[test]
fn restless_conditions_starve_nobody() {
    let (queue, _) = queue();
    queue.add("a");
    let mut polls = 0;
    take(&queue).hold(Hold::new(
        "restless",
        poll_fn(move |context| {
            context.waker().wake_by_ref();
            polls += 1;
            if polls == 5 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }),
    ));
    queue.add("b");
    assert_eq!(*take(&queue), "b");
    let mut worker = Getter::new(&queue);
    for _ in 0..5 {
        if let Some(key) = worker.key() {
            assert_eq!(key, "a");
            return;
        }
        assert_eq!(worker.wake_ups(), 1, "to come back soon");
    }
    panic!("never handed out");
}

#[test]
fn what_panics_lets_the_key_through() {
    let gate = |_: &&'static str| -> Option<Hold> {
        std::panic::resume_unwind(Box::new("a bug in the gate"))
    };
    let (queue, _) = queue_of(|config| config.gate(gate));
    queue.add("a");
    let a = take(&queue);
    a.hold(Hold::new("broken", async {
        std::panic::resume_unwind(Box::new("a bug in the condition"))
    }));
    assert_eq!(take_all(&queue), ["a"]);
}

/// I-W7: a drain waits for what is held; the workers do too.
#[test]
fn a_drain_waits_for_what_is_held() {
    let (queue, _, condition) = gated("a");
    queue.add("a");
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut keys = 0;
                    while queue.get_blocking().is_ok() {
                        keys += 1;
                    }
                    keys
                })
            })
            .collect();
        let drain = scope.spawn(|| queue.shut_down_with_drain_blocking(Delayed::Drop));
        while queue.metrics().held == 0 || !queue.is_shutting_down() {
            std::thread::yield_now();
        }
        condition.fulfil();
        assert_eq!(drain.join().unwrap(), Drained::Complete);
        let keys = workers.into_iter().map(|worker| worker.join().unwrap());
        assert_eq!(keys.sum::<u32>(), 1);
    });
}

/// A plain shutdown waits for no condition: the key is dropped, and what waits for it too.
#[test]
fn a_shutdown_drops_what_is_held() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (queue, _, condition) = gated("gated");
    let dropped = Arc::new(AtomicBool::new(false));
    let guard = Dropped(dropped.clone());
    queue.add("a");
    take(&queue).hold(Hold::new("for ever", async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    }));
    queue.add("gated");
    queue.shut_down();
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(queue.try_get().unwrap_err(), ShutDown, "its gate is closed");
    condition.fulfil();
    assert_eq!(queue.metrics().depth, 0);
    assert_eq!(queue.shared().state.lock().slots.len(), 0);
    let metrics = queue.metrics();
    assert_eq!((metrics.gets, metrics.done, metrics.in_flight), (1, 0, 0));
}
