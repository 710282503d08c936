//! Waiting for work: who is woken, for what, and how often.
use super::super::{OnPanic, ShutDown, WorkQueue, WorkQueueConfig};
use super::{Getter, ms, queue, queue_of, secs, take, take_all};
use crate::clock::{StdClock, SystemClock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn c102_each_new_item_wakes_one_waiting_worker() {
    let (queue, _) = queue();
    let mut workers = [
        Getter::waiting(&queue),
        Getter::waiting(&queue),
        Getter::waiting(&queue),
    ];
    for (index, key) in ["x", "y", "z"].into_iter().enumerate() {
        queue.add(key);
        let woken = workers.iter().map(Getter::wake_ups).collect::<Vec<_>>();
        let expected: Vec<_> = (0..3).map(|other| usize::from(other == index)).collect();
        assert_eq!(woken, expected, "the one that waits longest, and no other");
    }
    let keys = workers.each_mut().map(Getter::key);
    assert_eq!(keys, [Some("x"), Some("y"), Some("z")]);
}

/// C102 on real threads: no item waits while a worker is idle.
#[test]
fn c102_workers_on_threads_get_every_item() {
    const ITEMS: usize = 10_000;
    let queue = WorkQueue::<usize>::new(WorkQueueConfig::new(Arc::new(StdClock::new())));
    let (sender, received) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (queue, sender) = (queue.clone(), sender.clone());
            scope.spawn(move || {
                while let Ok(item) = queue.get_blocking() {
                    sender.send(*item).unwrap();
                }
            });
        }
        for key in 0..ITEMS {
            queue.add(key);
            // One in flight at a time: a lost wake-up would hang here.
            if key % 16 == 0 {
                std::thread::yield_now();
            }
        }
        for _ in 0..ITEMS {
            received.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        queue.shut_down();
    });
    assert!(queue.is_empty());
}

/// I-W5: a wake-up that is not used goes to another waiter.
#[test]
fn a_dropped_get_passes_its_wake_up_on() {
    let (queue, _) = queue();
    let first = Getter::waiting(&queue);
    let mut second = Getter::waiting(&queue);
    queue.add("a");
    assert_eq!((first.wake_ups(), second.wake_ups()), (1, 0));
    drop(first);
    assert_eq!(second.wake_ups(), 1);
    assert_eq!(second.key(), Some("a"));
    assert_eq!(queue.metrics().waiting_workers, 0);
}

#[test]
fn a_woken_get_that_finds_nothing_waits_again() {
    let (queue, _) = queue();
    let mut getter = Getter::waiting(&queue);
    queue.add("a");
    assert_eq!(take_all(&queue), ["a"]);
    assert_eq!(getter.key(), None);
    queue.add("b");
    assert_eq!(getter.wake_ups(), 2);
    assert_eq!(getter.key(), Some("b"));
}

/// One waiting get keeps the time; a jump of the clock wakes it, and as many others as there are
/// entries more.
#[test]
fn a_jump_of_the_clock_wakes_as_many_as_have_something_to_do() {
    let (queue, clock) = queue();
    let mut getters: Vec<_> = (0..6).map(|_| Getter::waiting(&queue)).collect();
    queue.add_after("b", ms(20));
    queue.add_after("a", ms(10));
    queue.add_after("far", secs(60));
    let wake_ups =
        |getters: &[Getter<'_, _>]| -> usize { getters.iter().map(Getter::wake_ups).sum() };
    assert!(
        wake_ups(&getters) <= 2,
        "one becomes the timekeeper, once more for the earlier time"
    );
    for getter in &mut getters {
        assert_eq!(getter.key(), None);
    }
    clock.advance(ms(20));
    assert_eq!(wake_ups(&getters), 1, "the timekeeper");
    let mut found = Vec::new();
    let mut polls = 0;
    loop {
        // Poll those that were woken, as an executor does.
        let keys: Vec<_> = getters.iter_mut().filter_map(Getter::key).collect();
        polls += 1;
        found.extend(keys);
        getters.retain(|getter| getter.wake_ups() == 0 || polls > 10);
        if found.len() == 2 || polls > 10 {
            break;
        }
    }
    assert_eq!(found, ["a", "b"], "in the order of their times");
}

/// The timekeeper goes, and another takes its place: the delay is not lost.
#[test]
fn the_timekeeper_appoints_another_when_it_leaves() {
    let (queue, clock) = queue();
    let keeper = Getter::waiting(&queue);
    let mut keeper = keeper;
    queue.add_after("a", secs(1));
    assert_eq!(keeper.key(), None);
    let mut other = Getter::waiting(&queue);
    drop(keeper);
    assert_eq!(other.wake_ups(), 1, "to take over");
    assert_eq!(other.key(), None);
    clock.advance(secs(1));
    assert_eq!(other.wake_ups(), 1);
    assert_eq!(other.key(), Some("a"));
}

/// An entry wakes the timekeeper only when there is nobody else.
#[test]
fn the_timekeeper_is_woken_last() {
    let (queue, _) = queue();
    queue.add_after("later", secs(1));
    let mut keeper = Getter::waiting(&queue);
    let mut other = Getter::waiting(&queue);
    queue.add("a");
    assert_eq!((keeper.wake_ups(), other.wake_ups()), (0, 1));
    assert_eq!(other.key(), Some("a"));
    queue.add("b");
    assert_eq!(keeper.wake_ups(), 1);
    assert_eq!(keeper.key(), Some("b"));
}

#[test]
fn batches_take_what_is_ready_up_to_a_limit() {
    let (queue, _) = queue();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let batch = crate::sync::block_on(queue.get_batch(2)).unwrap();
    assert_eq!(
        batch.iter().map(|item| **item).collect::<Vec<_>>(),
        ["a", "b"]
    );
    queue.add("a");
    assert_eq!(queue.len(), 1);
    drop(batch);
    assert_eq!(take_all(&queue), ["c", "a"]);
    assert!(queue.try_get_batch(2).unwrap().is_empty());
    queue.shut_down();
    assert_eq!(
        crate::sync::block_on(queue.get_batch(2)).unwrap_err(),
        ShutDown
    );
    assert_eq!(queue.try_get_batch(2).unwrap_err(), ShutDown);
}

/// Without a runtime a thread waits for delays by itself.
#[test]
fn a_blocking_get_waits_for_delays() {
    for clock in [Arc::new(StdClock::new()), SystemClock::shared()] {
        let queue = WorkQueue::new(WorkQueueConfig::new(clock.clone()));
        queue.add_after("b", ms(10));
        queue.add_after("a", ms(5));
        assert_eq!(*queue.get_blocking().unwrap(), "a");
        assert_eq!(*queue.get_blocking().unwrap(), "b");
        assert!(clock.now().since_origin() >= ms(10));
    }
}

#[tokio::test(start_paused = true)]
async fn on_a_runtime_delays_come_in_its_time() {
    let queue = WorkQueue::new(WorkQueueConfig::new(SystemClock::shared()));
    queue.add_after("a", secs(3600));
    assert_eq!(*queue.get().await.unwrap(), "a");
    let waiting = tokio::time::timeout(secs(1), queue.get()).await;
    assert!(waiting.is_err());
    assert_eq!(queue.metrics().waiting_workers, 0);
}

/// Runs `work` on an item that a panic drops.
fn panic_with(queue: &super::Queue) {
    let item = take(queue);
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _item = item;
        std::panic::resume_unwind(Box::new("a bug in the worker"));
    }));
    assert!(caught.is_err());
}

#[test]
fn an_item_that_a_panic_drops_is_retried() {
    let (queue, clock) = queue();
    queue.add("a");
    panic_with(&queue);
    assert!(queue.is_empty());
    assert_eq!(queue.retries(&"a"), 1);
    assert_eq!(queue.metrics().panics, 1);
    clock.advance(ms(5));
    assert_eq!(take_all(&queue), ["a"]);
}

#[test]
fn or_it_is_only_done() {
    let (queue, _) = queue_of(|config| config.on_panic(OnPanic::Forget));
    queue.add("a");
    panic_with(&queue);
    assert_eq!(queue.retries(&"a"), 0);
    assert!(queue.delayed().is_empty() && queue.is_empty());
    assert_eq!(queue.metrics().in_flight, 0);
}

#[test]
fn times_are_measured_when_asked_for() {
    let (queue, clock) = queue_of(|config| config.timings(true));
    queue.add("a");
    clock.advance(secs(1));
    queue.add("a");
    queue.add("b");
    clock.advance(secs(1));
    let a = take(&queue);
    assert_eq!(a.waited(), Some(secs(2)), "from the first add (I-W14)");
    clock.advance(secs(5));
    let b = take(&queue);
    clock.advance(secs(1));
    let metrics = queue.metrics();
    assert_eq!(metrics.queue_latency.max, secs(6));
    assert_eq!(metrics.queue_latency.mean(), secs(4));
    assert_eq!(metrics.unfinished, secs(7));
    assert_eq!(metrics.longest_running, secs(6));
    let stuck = queue.stuck(secs(2));
    assert_eq!(stuck.len(), 1);
    assert_eq!((stuck[0].key, stuck[0].running_for), ("a", secs(6)));
    drop((a, b));
    assert_eq!(queue.metrics().work_duration.total, secs(7));
    assert!(queue.stuck(secs(0)).is_empty());
}
