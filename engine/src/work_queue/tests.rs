//! Fault reports, by id, and the invariants I-W1 to I-W14.
use super::{
    Delayed, FastSlow, ItemExponential, MaxOf, RateLimiter, ShutDown, TokenBucket, WithMaxWait,
    WorkQueue, WorkQueueConfig,
};
use crate::clock::{Clock, ManualClock, Timestamp};
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn queue<K: Hash + Eq + Clone + Send + 'static>() -> (WorkQueue<K>, ManualClock) {
    let clock = ManualClock::new();
    (
        WorkQueue::new(WorkQueueConfig::new(Arc::new(clock.clone()))),
        clock,
    )
}

/// Take everything that is ready, and be done with it.
fn all<K: Hash + Eq + Clone>(queue: &WorkQueue<K>) -> Vec<K> {
    let mut taken = Vec::new();
    while let Ok(Some(item)) = queue.try_get() {
        taken.push((*item).clone());
    }
    taken
}

#[test]
fn c087_added_while_being_processed_once_more_afterwards() {
    let (queue, _) = queue();
    queue.add("a");
    let item = queue.try_get().unwrap().unwrap();
    (0..3).for_each(|_| queue.add("a"));
    assert_eq!(queue.len(), 0);
    assert!(
        queue.try_get().unwrap().is_none(),
        "never two workers on one key"
    );
    item.done();
    assert_eq!(queue.len(), 1);
    assert_eq!(all(&queue), ["a"]);
}

#[test]
fn c088_done_for_something_that_is_not_being_processed() {
    let (queue, _) = queue();
    queue.add("a");
    for key in ["a", "a", "zzz"] {
        queue.done(&key);
    }
    assert_eq!(queue.len(), 1);
    assert_eq!(*queue.try_get().unwrap().unwrap(), "a");
    assert!(queue.try_get().unwrap().is_none());
}

#[test]
fn c089_plain_shutdown_hands_out_what_is_left_and_refuses_the_rest() {
    let (queue, _) = queue();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let a = queue.try_get().unwrap().unwrap();
    let blocked = {
        let (queue, _) = self::queue::<&str>();
        let waiting = queue.clone();
        let thread = std::thread::spawn(move || waiting.get_blocking().is_err());
        queue.shut_down();
        thread
    };
    queue.shut_down();
    queue.add("d");
    assert_eq!(*queue.try_get().unwrap().unwrap(), "b");
    assert_eq!(*queue.try_get().unwrap().unwrap(), "c");
    assert_eq!(queue.try_get().unwrap_err(), ShutDown);
    assert_eq!((queue.len(), *a), (0, "a"));
    assert!(blocked.join().unwrap());
}

#[test]
fn c090_drain_includes_items_marked_again_while_running() {
    let (queue, _) = queue();
    queue.add("a");
    let first = queue.try_get().unwrap().unwrap();
    queue.add("a");
    let drain = {
        let queue = queue.clone();
        std::thread::spawn(move || queue.shut_down_with_drain_blocking(Delayed::Drop))
    };
    while !queue.is_shutting_down() {
        std::thread::yield_now();
    }
    first.done();
    let second = queue.get_blocking().unwrap();
    queue.add("a");
    assert!(!drain.is_finished());
    second.done();
    drain.join().unwrap();
    assert_eq!(queue.get_blocking().unwrap_err(), ShutDown);
}

#[test]
fn a_drain_waits_for_queued_held_dirty_and_asked_for_delayed_keys() {
    for delayed in [Delayed::Drop, Delayed::Deliver] {
        let (queue, clock) = queue();
        queue.add("dirty");
        queue.add("held");
        let dirty = queue.try_get().unwrap().unwrap();
        let held = queue.try_get().unwrap().unwrap();
        queue.add("dirty");
        queue.add("queued");
        queue.add_after("delayed", secs(5));
        let drain = {
            let queue = queue.clone();
            std::thread::spawn(move || queue.shut_down_with_drain_blocking(delayed))
        };
        while !queue.is_shutting_down() {
            std::thread::yield_now();
        }
        dirty.done();
        held.done();
        let mut got = all(&queue);
        if delayed == Delayed::Deliver {
            assert!(!drain.is_finished(), "the delayed key is still to come");
            clock.advance(secs(5));
            got.extend(all(&queue));
        }
        drain.join().unwrap();
        got.sort_unstable();
        match delayed {
            Delayed::Drop => assert_eq!(got, ["dirty", "queued"]),
            Delayed::Deliver => assert_eq!(got, ["delayed", "dirty", "queued"]),
        }
        assert_eq!(queue.try_get().unwrap_err(), ShutDown);
    }
}

#[test]
fn c091_of_delayed_adds_of_one_item_the_earliest_wins() {
    let (queue, clock) = queue();
    for delay in [5, 3, 8] {
        queue.add_after("a", secs(delay));
    }
    assert_eq!(queue.delayed().len(), 1);
    for second in 1..=10 {
        clock.advance(secs(1));
        assert_eq!(all(&queue).len(), usize::from(second == 3), "at {second} s");
        if second == 3 {
            queue.add_after("b", secs(1));
        } else if second == 4 {
            assert!(queue.delayed().is_empty());
        }
        if second == 3 {
            assert!(queue.cancel_delayed(&"b") && !queue.cancel_delayed(&"b"));
        }
    }
    queue.add_after("a", secs(1));
    clock.advance(secs(1));
    assert_eq!(all(&queue), ["a"]);
}

#[test]
fn c092_immediate_add_while_a_delayed_add_waits() {
    let (queue, clock) = queue();
    queue.add_after("a", secs(5 * 3600));
    queue.add("a");
    assert_eq!(all(&queue), ["a"]);
    assert_eq!(queue.delayed().len(), 1);
    clock.advance(secs(5 * 3600));
    assert_eq!(
        all(&queue),
        ["a"],
        "the delayed add stands beside the plain one"
    );
}

#[test]
fn c093_shutdown_twice_and_delayed_items_do_not_hold_it_up() {
    let (queue, clock) = queue();
    queue.add_after("a", secs(3600));
    queue.shut_down();
    queue.shut_down();
    queue.shut_down_with_drain_blocking(Delayed::Deliver);
    queue.add_after("b", secs(1));
    clock.advance(secs(7200));
    assert_eq!(queue.try_get().unwrap_err(), ShutDown);
    assert!(queue.delayed().is_empty());
}

#[test]
fn c094_delays_are_in_order_of_due_time_and_zero_means_now() {
    let script = |queue: &WorkQueue<&'static str>| {
        for (key, delay) in [
            ("x", 30),
            ("y", 10),
            ("z", 20),
            ("w", 20),
            ("n", 0),
            ("m", 0),
        ] {
            queue.add_after(key, ms(delay));
        }
        assert_eq!(all(queue), ["n", "m"]);
    };
    let (stepped, clock) = queue();
    script(&stepped);
    for expected in [vec!["y"], vec!["z", "w"], vec!["x"]] {
        clock.advance(ms(10));
        assert_eq!(all(&stepped), expected);
    }
    let (jumped, clock) = queue();
    script(&jumped);
    clock.advance(secs(1));
    assert_eq!(all(&jumped), ["y", "z", "w", "x"]);
}

#[test]
fn c095_exponential_delays_exact_sequence_cap_no_overflow() {
    let limiter = ItemExponential::<&str>::default();
    let now = Timestamp::default();
    for call in 0..1_020_u32 {
        let expected = if call < 18 {
            ms(5 << call)
        } else {
            secs(1_000)
        };
        assert_eq!(limiter.when(&"a", now), expected, "call {call}");
    }
    assert_eq!(limiter.when(&"b", now), ms(5));
    assert_eq!((limiter.retries(&"a"), limiter.retries(&"b")), (1_020, 1));
    limiter.forget(&"a");
    assert_eq!((limiter.retries(&"a"), limiter.when(&"a", now)), (0, ms(5)));
}

#[test]
fn c096_forget_clears_the_history_not_the_queue() {
    let (queue, clock) = queue();
    queue.add_rate_limited("a");
    queue.forget(&"a");
    clock.advance(ms(10));
    let item = queue.try_get().unwrap().unwrap();
    queue.forget(&"a");
    queue.add("a");
    assert!(queue.try_get().unwrap().is_none(), "forget is not done");
    item.done();
    assert_eq!(all(&queue), ["a"]);
    let both = MaxOf::<&str>(vec![
        Arc::new(ItemExponential::default()),
        Arc::new(TokenBucket::new(10.0, 1)),
    ]);
    let now = clock.now();
    assert_eq!(
        (both.when(&"a", now), both.when(&"a", now)),
        (ms(5), ms(100))
    );
    both.forget(&"a");
    both.forget(&"unknown");
    assert_eq!(
        (both.retries(&"a"), both.when(&"a", now)),
        (0, ms(200)),
        "the bucket is shared"
    );
}

#[test]
fn c097_handed_out_items_are_not_kept_alive_by_the_queue() {
    let (queue, _) = queue();
    let key = Arc::new("a".to_owned());
    let weak = Arc::downgrade(&key);
    queue.add(key);
    queue.try_get().unwrap().unwrap().done();
    assert!(weak.upgrade().is_none());
    assert_eq!(queue.metrics().gets, 1);
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
fn c099_length_counts_ready_items_only() {
    let (queue, clock) = queue();
    let check = |expected| {
        assert_eq!((queue.len(), queue.metrics().depth), (expected, expected));
    };
    queue.add_after("a", secs(3600));
    check(0);
    queue.add("a");
    check(1);
    let item = queue.try_get().unwrap().unwrap();
    check(0);
    item.done();
    clock.advance(secs(3600));
    check(1);
    assert_eq!(queue.metrics().adds, 2);
}

#[test]
fn c100_requeue_from_inside_the_worker_does_not_block() {
    let (queue, clock) = queue();
    (0..20_000).for_each(|key| queue.add(key));
    while let Ok(Some(item)) = queue.try_get() {
        item.requeue_after(secs(1));
    }
    assert_eq!(queue.metrics().delayed, 20_000);
    clock.advance(secs(1));
    let again = all(&queue);
    assert_eq!(
        (again.len(), again.iter().collect::<HashSet<_>>().len()),
        (20_000, 20_000)
    );
}

#[test]
fn c101_equal_keys_are_one_item_by_value() {
    let (queue, clock) = queue();
    let key = || ("ns1".to_owned(), "x".to_owned());
    queue.add(key());
    queue.add(key());
    assert_eq!(queue.len(), 1);
    all(&queue);
    queue.add_rate_limited(key());
    queue.add_rate_limited(key());
    assert_eq!(queue.retries(&key()), 2);
    clock.advance(secs(1));
    assert_eq!(all(&queue).len(), 1);
}

#[test]
fn c102_a_new_item_wakes_a_waiting_worker_at_once() {
    let (queue, _) = queue();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            std::thread::spawn(move || {
                let item = queue.get_blocking().unwrap();
                let key = *item;
                std::mem::forget(item); // Held for good, so each worker needs one of its own.
                key
            })
        })
        .collect();
    (0..3).for_each(|key| queue.add(key));
    let mut got: Vec<i32> = workers.into_iter().map(|w| w.join().unwrap()).collect();
    got.sort_unstable();
    assert_eq!(got, [0, 1, 2]);
}

#[test]
fn c103_shutdown_leaves_no_background_task() {
    // There is none to leave: delays are driven by whoever waits. The queue itself is freed.
    for _ in 0..1_000 {
        let (queue, _) = queue();
        let key = Arc::new(());
        let weak = Arc::downgrade(&key);
        queue.add_after(key, secs(1));
        queue.shut_down();
        drop(queue);
        assert!(weak.upgrade().is_none());
    }
}

#[test]
fn c104_adds_of_every_sort_after_shutdown_are_quietly_ignored() {
    let (queue, clock) = queue();
    queue.shut_down();
    queue.add("a");
    queue.add_after("b", Duration::ZERO);
    queue.add_after("c", secs(1));
    queue.add_rate_limited("d");
    queue.forget(&"d");
    queue.done(&"a");
    clock.advance(secs(10));
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.try_get().unwrap_err(), ShutDown);
}

#[test]
fn i_w11_fast_slow_max_of_and_with_max_wait() {
    let now = Timestamp::default();
    let fast_slow = FastSlow::new(ms(1), secs(1), 3);
    let delays: Vec<_> = (0..5).map(|_| fast_slow.when(&"a", now)).collect();
    assert_eq!(delays, [ms(1), ms(1), ms(1), secs(1), secs(1)]);
    let capped = WithMaxWait {
        limiter: Arc::new(ItemExponential::default()),
        max: ms(12),
    };
    let delays: Vec<_> = (0..4).map(|_| capped.when(&"a", now)).collect();
    assert_eq!(delays, [ms(5), ms(10), ms(12), ms(12)]);
}

#[test]
fn i_w12_a_bucket_gives_its_burst_at_once_and_then_its_rate() {
    let bucket = TokenBucket::new(10.0, 100);
    let at = |millis| Timestamp::new(ms(millis));
    for _ in 0..100 {
        assert_eq!(bucket.when(&"a", at(0)), Duration::ZERO);
    }
    assert_eq!(bucket.when(&"a", at(0)), ms(100));
    assert_eq!(bucket.when(&"b", at(0)), ms(200));
    assert_eq!(
        bucket.when(&"b", at(300)),
        Duration::ZERO,
        "three tokens came back, two were owed"
    );
    assert_eq!(bucket.when(&"b", at(300)), ms(100));
}

#[test]
fn a_panicking_worker_gives_its_key_back_and_it_comes_again() {
    let (queue, clock) = queue();
    queue.add("a");
    let worker = queue.clone();
    let result = std::thread::spawn(move || {
        let _item = worker.try_get().unwrap().unwrap();
        std::panic::resume_unwind(Box::new("the worker's fault"));
    })
    .join();
    assert!(result.is_err());
    assert_eq!(queue.metrics().in_flight, 0);
    clock.advance(ms(5));
    assert_eq!(all(&queue), ["a"]);
}

#[test]
fn a_worker_that_waits_sees_an_earlier_delay_that_is_added_meanwhile() {
    let (queue, clock) = queue();
    queue.add_after("late", secs(100));
    let worker = {
        let queue = queue.clone();
        std::thread::spawn(move || *queue.get_blocking().unwrap())
    };
    queue.add_after("early", secs(1));
    while clock.next_deadline() != Some(Timestamp::new(secs(1))) {
        std::thread::yield_now();
    }
    clock.advance(secs(1));
    assert_eq!(worker.join().unwrap(), "early");
}

mod model {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    #[derive(Clone, Debug)]
    enum Verb {
        Add(u8),
        AddAfter(u8, u64),
        Cancel(u8),
        Take,
        Done(usize),
        Advance(u64),
    }

    fn verb() -> impl Strategy<Value = Verb> {
        prop_oneof![
            4 => (0..6u8).prop_map(Verb::Add),
            3 => (0..6u8, 0..40u64).prop_map(|(key, delay)| Verb::AddAfter(key, delay)),
            1 => (0..6u8).prop_map(Verb::Cancel),
            5 => Just(Verb::Take),
            4 => (0..4usize).prop_map(Verb::Done),
            2 => (1..30u64).prop_map(Verb::Advance),
        ]
    }

    /// What the queue must do, by lists and loops.
    #[derive(Default)]
    struct Oracle {
        now: u64,
        ready: VecDeque<u8>,
        held: Vec<(u8, bool)>,
        delayed: BTreeMap<u8, (u64, usize)>,
        asked: usize,
    }

    impl Oracle {
        fn add(&mut self, key: u8) {
            if let Some((_, again)) = self.held.iter_mut().find(|(held, _)| *held == key) {
                *again = true;
            } else if !self.ready.contains(&key) {
                self.ready.push_back(key);
            }
        }

        fn add_after(&mut self, key: u8, delay: u64) {
            if delay == 0 {
                return self.add(key);
            }
            let at = self.now + delay;
            if self.delayed.get(&key).is_none_or(|(known, _)| at < *known) {
                self.asked += 1;
                self.delayed.insert(key, (at, self.asked));
            }
        }

        fn promote(&mut self) {
            let mut due: Vec<_> = self
                .delayed
                .iter()
                .map(|(k, d)| (*d, *k))
                .filter(|((at, _), _)| *at <= self.now)
                .collect();
            due.sort_unstable();
            for (_, key) in due {
                self.delayed.remove(&key);
                self.add(key);
            }
        }
    }

    proptest! {
        /// I-W1 to I-W9, I-W14.
        #[test]
        fn random_scripts_equal_the_oracle(script in prop::collection::vec(verb(), 1..300)) {
            let (queue, clock) = queue::<u8>();
            let mut oracle = Oracle::default();
            let mut items = Vec::new();
            for verb in script {
                match verb {
                    Verb::Add(key) => { queue.add(key); oracle.add(key); }
                    Verb::AddAfter(key, delay) => { queue.add_after(key, ms(delay)); oracle.add_after(key, delay); }
                    Verb::Cancel(key) => {
                        prop_assert_eq!(queue.cancel_delayed(&key), oracle.delayed.remove(&key).is_some());
                    }
                    Verb::Take => {
                        oracle.promote();
                        let item = queue.try_get().unwrap();
                        let expected = oracle.ready.pop_front();
                        prop_assert_eq!(item.as_deref().copied(), expected);
                        if let (Some(item), Some(key)) = (item, expected) {
                            prop_assert!(!oracle.held.iter().any(|(held, _)| *held == key));
                            oracle.held.push((key, false));
                            items.push(item);
                        }
                    }
                    Verb::Done(at) if !items.is_empty() => {
                        let at = at % items.len();
                        items.remove(at).done();
                        let (key, again) = oracle.held.remove(at);
                        if again {
                            oracle.ready.push_back(key);
                        }
                    }
                    Verb::Done(_) => (),
                    Verb::Advance(by) => { clock.advance(ms(by)); oracle.now += by; }
                }
                // Both are brought up to the present at the same points.
                oracle.promote();
                prop_assert_eq!(queue.len(), oracle.ready.len());
                let metrics = queue.metrics();
                prop_assert_eq!((metrics.in_flight, metrics.delayed), (items.len(), oracle.delayed.len()));
            }
        }
    }
}
