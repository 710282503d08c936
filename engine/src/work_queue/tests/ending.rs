//! Shutdown and drain.
use super::super::{Delayed, Drained, ShutDown, WorkQueue, WorkQueueConfig};
use super::{Getter, ms, queue, secs, take, take_all};
use crate::clock::{Clock, ManualClock, SystemClock};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

/// A drain whose wait is polled by hand.
struct Draining<'q>(Pin<Box<dyn Future<Output = Drained> + 'q>>);

impl<'q> Draining<'q> {
    fn begin<K>(queue: &'q WorkQueue<K>, delayed: Delayed) -> Self {
        Self(Box::pin(queue.shut_down_with_drain(delayed)))
    }

    /// How it stands now.
    fn ended(&mut self) -> Option<Drained> {
        let mut context = Context::from_waker(Waker::noop());
        match self.0.as_mut().poll(&mut context) {
            Poll::Ready(drained) => Some(drained),
            Poll::Pending => None,
        }
    }
}

/// I-W6
#[test]
fn c089_plain_shutdown_hands_out_what_is_left() {
    let (queue, _) = queue();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let a = take(&queue);
    queue.shut_down();
    assert!(queue.is_shutting_down());
    queue.add("d");
    assert_eq!(queue.len(), 2);
    assert_eq!(*queue.get_blocking().unwrap(), "b");
    assert_eq!(*queue.get_blocking().unwrap(), "c");
    assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
    assert_eq!(queue.try_get().unwrap_err(), ShutDown);
    assert_eq!(queue.len(), 0);
    a.done();
    assert_eq!(queue.metrics().refused, 1);
}

/// I-W6: waiting gets end, and what was added again while in work still comes.
#[test]
fn c089_waiting_gets_end_with_the_shutdown() {
    let (queue, _) = queue();
    queue.add("a");
    let a = take(&queue);
    queue.add("a");
    let mut getters = [Getter::waiting(&queue), Getter::waiting(&queue)];
    queue.shut_down();
    for getter in &mut getters {
        assert_eq!(getter.wake_ups(), 1);
        assert!(matches!(getter.poll(), Poll::Ready(Err(ShutDown))));
    }
    a.done();
    assert_eq!(take_all(&queue), ["a"]);
    assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
}

/// I-W7
#[test]
fn c090_a_drain_includes_what_was_added_again_while_in_work() {
    let (queue, _) = queue();
    queue.add("a");
    let a = take(&queue);
    queue.add("a");
    let mut waiting = Getter::waiting(&queue);
    let mut drain = Draining::begin(&queue, Delayed::Drop);
    queue.add("b");
    assert!(waiting.poll().is_pending(), "a is to come");
    a.done();
    assert_eq!(drain.ended(), None);
    let again = waiting.key();
    assert_eq!(again, Some("a"));
    assert_eq!(drain.ended(), Some(Drained::Complete));

    queue.add("a");
    assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
}

#[test]
fn c090_adds_during_the_drain_have_no_effect() {
    let (queue, _) = queue();
    queue.add("a");
    let a = take(&queue);
    let mut drain = Draining::begin(&queue, Delayed::Drop);
    queue.add("a");
    assert_eq!(drain.ended(), None, "a is in work");
    a.done();
    assert_eq!(drain.ended(), Some(Drained::Complete));
    assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
}

/// W-W2: a drain waits for what is queued, in work, added again, and (if asked) delayed.
#[test]
fn a_drain_waits_for_all_there_is() {
    for delayed in [Delayed::Drop, Delayed::Deliver] {
        let (queue, clock) = queue();
        queue.add("running");
        queue.add("dirty");
        let (running, dirty) = (take(&queue), take(&queue));
        queue.add("dirty");
        queue.add("queued");
        queue.add_after("later", secs(3600));
        queue.add_after("sooner", secs(60));
        let mut drain = Draining::begin(&queue, delayed);
        assert_eq!(drain.ended(), None);
        assert_eq!(take_all(&queue), ["queued"]);
        running.done();
        dirty.done();
        assert_eq!(drain.ended(), None);
        let dirty = queue.get_blocking().unwrap();
        assert_eq!(drain.ended(), None, "until its work has ended");
        dirty.done();
        if delayed == Delayed::Deliver {
            let mut worker = Getter::waiting(&queue);
            assert_eq!(drain.ended(), None);
            clock.advance(secs(60));
            assert_eq!(worker.key(), Some("sooner"));
            clock.advance(secs(3540));
            assert_eq!(take_all(&queue), ["later"]);
        }
        assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
        assert_eq!(drain.ended(), Some(Drained::Complete));
    }
}

/// The last thing that a drain waits for may be taken back.
#[test]
fn cancelling_a_delay_can_end_a_drain() {
    let (queue, _) = queue();
    queue.add_after("a", secs(3600));
    let mut drain = Draining::begin(&queue, Delayed::Deliver);
    let mut worker = Getter::waiting(&queue);
    assert_eq!(drain.ended(), None);
    assert!(queue.cancel_delayed(&"a"));
    assert_eq!(worker.wake_ups(), 1);
    assert!(matches!(worker.poll(), Poll::Ready(Err(ShutDown))));
    assert_eq!(drain.ended(), Some(Drained::Complete));
}

#[test]
fn failures_during_a_drain_are_not_retried() {
    let (queue, _) = queue();
    queue.add("a");
    let mut drain = Draining::begin(&queue, Delayed::Drop);
    queue.get_blocking().unwrap().retry();
    assert_eq!(drain.ended(), Some(Drained::Complete));
    assert!(queue.delayed().is_empty());
}

/// The last work ends: everyone who waits is woken, getters and drains.
#[test]
fn the_end_of_a_drain_wakes_everyone() {
    let (queue, _) = queue();
    queue.add("a");
    queue.add("b");
    std::thread::scope(|scope| {
        let drain = || queue.shut_down_with_drain_blocking(Delayed::Drop);
        let waits: Vec<_> = (0..3).map(|_| scope.spawn(drain)).collect();
        for _ in 0..3 {
            scope.spawn(|| while queue.get_blocking().is_ok() {});
        }
        for wait in waits {
            assert_eq!(wait.join().unwrap(), Drained::Complete);
        }
    });
}

#[test]
fn a_shutdown_cuts_a_drain_short() {
    let (queue, _) = queue();
    queue.add("a");
    let a = take(&queue);
    let mut drain = Draining::begin(&queue, Delayed::Drop);
    assert_eq!(drain.ended(), None);
    queue.shut_down();
    assert_eq!(drain.ended(), Some(Drained::CutShort));
    a.done();
}

#[test]
fn c093_shutdown_twice_and_delays_do_not_hold_it_up() {
    let (queue, clock) = queue();
    queue.add_after("a", secs(3600));
    queue.shut_down();
    queue.shut_down();
    let drained = queue.shut_down_with_drain_blocking(Delayed::Deliver);
    assert_eq!(drained, Drained::Complete);
    queue.add_after("b", secs(1));
    clock.advance(secs(7200));
    assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
    assert!(queue.delayed().is_empty());
    assert_eq!(
        clock.next_deadline(),
        None,
        "nobody keeps the time any more"
    );
    assert_eq!(queue.metrics().delays_dropped, 1);
}

#[test]
fn c098_get_after_shutdown_never_blocks() {
    let (queue, _) = queue();
    queue.add("a");
    queue.shut_down();
    assert_eq!(*queue.get_blocking().unwrap(), "a");
    for _ in 0..3 {
        assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
    }
}

#[test]
fn c103_shutdown_leaves_nothing_behind() {
    let clock = ManualClock::new();
    let shared: Vec<Weak<_>> = (0..1000)
        .map(|_| {
            let config = WorkQueueConfig::new(Arc::new(clock.clone()));
            let queue = WorkQueue::new(config.timings(true));
            queue.add_after("a", secs(1));
            queue.add("b");
            assert_eq!(take_all(&queue), ["b"]);
            let _waits = Getter::waiting(&queue);
            queue.shut_down();
            Arc::downgrade(queue.shared())
        })
        .collect();
    assert!(shared.iter().all(|shared| shared.upgrade().is_none()));
    assert_eq!(clock.next_deadline(), None);
}

/// No task is ever started: a runtime sees none.
#[tokio::test(start_paused = true)]
async fn c103_no_task_is_started() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let queue = WorkQueue::new(WorkQueueConfig::new(SystemClock::shared()).timings(true));
    queue.add_after("a", ms(5));
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert_eq!(tasks(), before);
    assert_eq!(
        queue.shut_down_with_drain(Delayed::Drop).await,
        Drained::Complete
    );
    assert_eq!(tasks(), before);
}

#[test]
fn c104_adds_of_every_sort_after_shutdown_are_ignored() {
    let (queue, clock) = queue();
    queue.shut_down();
    queue.add("a");
    queue.add_ref(&"a");
    queue.add_after("b", secs(0));
    queue.add_after("c", secs(1));
    queue.add_rate_limited("d");
    queue.replace_delayed("e", secs(1));
    queue.forget(&"d");
    queue.done(&"a");
    assert!(!queue.cancel_delayed(&"c"));
    clock.advance(secs(7200));
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
    assert!(queue.delayed().is_empty());
    assert!(clock.now().since_origin() > secs(1));
}

#[test]
fn an_item_may_outlive_its_queue() {
    let (queue, _) = queue();
    queue.add("a");
    let item = take(&queue);
    drop(queue);
    assert_eq!(*item, "a");
    item.requeue_after(secs(1));
}
