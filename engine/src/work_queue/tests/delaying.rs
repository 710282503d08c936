//! Delays: when, in which order, and how often.
use super::{Getter, ms, queue, queue_of, secs, take, take_all};
use crate::clock::{Clock, Timestamp};

/// I-W8
#[test]
fn c091_the_earliest_of_several_delays_wins_for_one_delivery() {
    let (queue, clock) = queue();
    for delay in [5, 3, 8] {
        queue.add_after("a", secs(delay));
    }
    let delivered: Vec<_> = (1..=10)
        .filter(|_| {
            clock.advance(secs(1));
            !take_all(&queue).is_empty()
        })
        .collect();
    assert_eq!(delivered, [3]);
    queue.add_after("a", secs(1));
    clock.advance(secs(1));
    assert_eq!(take_all(&queue), ["a"]);
}

/// I-W8: an immediate add is served at once, and the delay comes too, once.
#[test]
fn c092_immediate_add_while_a_delay_is_pending() {
    let (queue, clock) = queue();
    queue.add_after("a", secs(5 * 3600));
    queue.add("a");
    let a = take(&queue);
    assert_eq!((queue.len(), queue.delayed().len()), (0, 1));
    a.done();
    clock.advance(secs(5 * 3600));
    assert_eq!(take_all(&queue), ["a"]);
    clock.advance(secs(5 * 3600));
    assert_eq!(take_all(&queue), Vec::<&str>::new());
}

/// I-W9
#[test]
fn c094_delays_in_order_of_due_time() {
    for jump in [false, true] {
        let (queue, clock) = queue();
        clock.advance(secs(10));
        queue.add_after("x", ms(30));
        queue.add_after("y", ms(10));
        queue.add_after("z", ms(20));
        queue.add_after("n", ms(0));
        // Five seconds ago: what a negative delay means.
        queue.add_at("m", Timestamp::new(secs(5)));
        assert_eq!(take_all(&queue), ["n", "m"]);
        if jump {
            clock.advance(secs(1));
            assert_eq!(take_all(&queue), ["y", "z", "x"]);
            continue;
        }
        for (at, key) in [(10, "y"), (20, "z"), (30, "x")] {
            clock.advance_to(Timestamp::new(secs(10) + ms(at - 1)));
            assert!(queue.is_empty());
            clock.advance(ms(1));
            assert_eq!(take_all(&queue), [key]);
        }
    }
}

#[test]
fn c094_equal_due_times_arrive_both_in_the_order_of_asking() {
    let (queue, clock) = queue();
    queue.add_after("b", ms(10));
    queue.add_after("a", ms(10));
    clock.advance(ms(10));
    assert_eq!(take_all(&queue), ["b", "a"]);
}

/// What became due before an add goes before it, whoever looks at the clock first.
#[test]
fn a_due_key_goes_before_a_later_add() {
    let (queue, clock) = queue();
    queue.add_after("due", ms(10));
    clock.advance(ms(20));
    queue.add("later");
    assert_eq!(take_all(&queue), ["due", "later"]);
}

#[test]
fn a_delay_of_a_waiting_key_collapses_when_due() {
    let (queue, clock) = queue();
    queue.add("a");
    queue.add_after("a", ms(10));
    clock.advance(ms(10));
    assert_eq!(take_all(&queue), ["a"]);
    assert!(queue.delayed().is_empty());
}

#[test]
fn a_delay_that_ends_while_the_key_is_in_work_counts_as_an_add() {
    let (queue, clock) = queue();
    queue.add("a");
    let a = take(&queue);
    queue.add_after("a", ms(10));
    clock.advance(ms(10));
    assert!(queue.is_empty());
    a.done();
    assert_eq!(take_all(&queue), ["a"]);
}

/// W-W4: delays can be listed, cancelled and replaced.
#[test]
fn delays_are_listed_cancelled_and_replaced() {
    let (queue, clock) = queue();
    queue.add_after("a", secs(3));
    queue.add_after("b", secs(1));
    queue.add_rate_limited("c");
    let listed: Vec<_> = queue
        .delayed()
        .into_iter()
        .map(|delayed| {
            (
                delayed.key,
                delayed.due - Timestamp::default(),
                delayed.backing_off,
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("c", ms(5), true),
            ("b", secs(1), false),
            ("a", secs(3), false)
        ]
    );
    assert!(queue.cancel_delayed(&"b"));
    assert!(!queue.cancel_delayed(&"b"));
    queue.replace_delayed("a", secs(10));
    queue.replace_delayed("d", secs(2));
    queue.replace_delayed("c", secs(0));
    assert_eq!(take_all(&queue), ["c"]);
    assert_eq!(queue.delayed().len(), 2);
    clock.advance(secs(9));
    assert_eq!(take_all(&queue), ["d"]);
    clock.advance(secs(1));
    assert_eq!(take_all(&queue), ["a"]);
}

#[test]
fn endless_delays_do_not_overflow() {
    let (queue, clock) = queue();
    clock.advance(secs(1));
    queue.add_after("never", std::time::Duration::MAX);
    assert!(Getter::new(&queue).poll().is_pending());
    clock.advance(secs(3600));
    assert!(queue.is_empty());
}

#[test]
fn c100_putting_back_from_inside_the_worker_never_blocks() {
    const ITEMS: u32 = 20_000;
    let (queue, clock) = queue_of::<u32>(|config| config);
    (0..ITEMS).for_each(|key| queue.add(key));
    for _ in 0..ITEMS {
        let item = take(&queue);
        queue.add_after(*item, secs(1));
        item.done();
    }
    assert!(queue.is_empty());
    assert_eq!(queue.metrics().delayed, ITEMS as usize);
    clock.advance(secs(1));
    assert_eq!(take_all(&queue), (0..ITEMS).collect::<Vec<_>>());
}

/// A million pending delays, in a random order, come in the exact order.
#[test]
fn many_delays_come_in_order() {
    const DELAYS: u64 = 100_000;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (queue, clock) = queue_of::<u64>(|config| config);
    let mut expected: Vec<_> = (0..DELAYS).map(|key| (random.u64(1..1000), key)).collect();
    for (delay, key) in &expected {
        queue.add_after(*key, ms(*delay));
    }
    let cancelled = random.u64(..DELAYS);
    queue.cancel_delayed(&cancelled);
    expected.retain(|(_, key)| *key != cancelled);
    expected.sort_by_key(|(delay, _)| *delay);
    clock.advance(secs(1));
    let keys: Vec<_> = expected.into_iter().map(|(_, key)| key).collect();
    assert!(
        take_all(&queue) == keys,
        "in the order of due times, then of asking"
    );
}

/// What a worker puts back waits, and an add meanwhile is served at once (client-go's rule).
#[test]
fn an_add_is_served_although_the_key_backs_off() {
    let (queue, clock) = queue();
    queue.add("a");
    assert_eq!(take(&queue).retry(), ms(5));
    queue.add("a");
    assert_eq!(take_all(&queue), ["a"]);
    clock.advance(ms(5));
    assert_eq!(take_all(&queue), ["a"]);
}

/// User demand 37: or it waits for the end of the backoff, and does not count as a failure.
#[test]
fn or_adds_wait_for_the_end_of_the_backoff() {
    let (queue, clock) = queue_of(|config| config.backoff_holds(true));
    queue.add("a");
    let a = take(&queue);
    queue.add("a");
    a.retry();
    assert!(queue.is_empty(), "added while in work, then it failed");
    (0..10).for_each(|_| queue.add("a"));
    assert!(queue.is_empty(), "added while it backs off");
    assert_eq!(queue.retries(&"a"), 1);
    clock.advance(ms(5));
    assert_eq!(take_all(&queue), ["a"]);
    assert!(queue.delayed().is_empty());
    // A plain delay holds nothing up, and neither does an ended backoff.
    queue.add_after("a", secs(1));
    queue.add("a");
    assert_eq!(take_all(&queue), ["a"]);
    assert!(clock.now() < Timestamp::new(secs(1)));
}

#[test]
fn a_requeue_keeps_its_place_in_time() {
    let (queue, clock) = queue();
    queue.add("a");
    queue.add("b");
    take(&queue).requeue();
    assert_eq!(take_all(&queue), ["b", "a"]);
    queue.add("a");
    take(&queue).requeue_after(secs(1));
    assert!(queue.is_empty());
    clock.advance(secs(1));
    assert_eq!(take_all(&queue), ["a"]);
    assert_eq!(queue.retries(&"a"), 0);
}
