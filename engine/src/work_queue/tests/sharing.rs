//! Who gets how much: priorities and tenants.
use super::super::{Priority, PriorityConfig, WorkQueue};
use super::{queue, queue_of, secs, take, take_all};
use std::collections::HashMap;
use std::time::Duration;

#[test]
fn the_urgent_go_first_and_a_waiting_key_keeps_the_higher_priority() {
    let (queue, _) = queue();
    queue.add_with("low", Priority::Low);
    queue.add("normal");
    queue.add_with("high", Priority::High);
    queue.add_with("raised", Priority::Low);
    queue.add_with("raised", Priority::High);
    queue.add_with("high", Priority::Low);
    assert_eq!(take_all(&queue), ["high", "raised", "normal", "low"]);
}

/// User demand 38: the priority survives a requeue of every sort.
#[test]
fn what_is_put_back_keeps_its_priority() {
    let (queue, clock) = queue();
    queue.add_with("a", Priority::High);
    take(&queue).requeue_after(secs(1));
    clock.advance(secs(1));
    queue.add("b");
    let a = take(&queue);
    assert_eq!((*a, a.priority()), ("a", Priority::High));
    a.retry();
    clock.advance(secs(1));
    let a = take(&queue);
    assert_eq!(a.priority(), Priority::High);
    a.requeue();
    assert_eq!(take_all(&queue), ["a", "b"]);
    // Added again while in work: the priority of that add.
    queue.add_with("a", Priority::High);
    let a = take(&queue);
    queue.add_with("a", Priority::Low);
    a.done();
    assert_eq!(take(&queue).priority(), Priority::Low);
}

/// User demand 39: initial items of low priority do not starve while urgent work never ends.
#[test]
fn the_less_urgent_have_a_guaranteed_share() {
    let share = PriorityConfig {
        share: 10,
        age_after: Duration::MAX,
        ..PriorityConfig::default()
    };
    let (queue, _) = queue_of::<u32>(|config| config.priorities(share));
    for key in 0..100 {
        queue.add_with(key, Priority::Low);
        queue.add_with(1000 + key, Priority::Normal);
    }
    let mut taken = HashMap::<Priority, u32>::new();
    for key in 0..500 {
        queue.add_with(10_000 + key, Priority::High);
        *taken.entry(take(&queue).priority()).or_default() += 1;
    }
    assert_eq!(taken[&Priority::Low], 50);
    // Its turn comes one later, as two levels are owed one at once.
    assert_eq!(taken[&Priority::Normal], 49);
    assert_eq!(taken[&Priority::High], 401);
}

#[test]
fn what_has_waited_long_has_a_larger_share() {
    let config = PriorityConfig {
        share: 10,
        age_after: secs(30),
        aged_share: 3,
    };
    let (queue, clock) = queue_of::<u32>(|settings| settings.priorities(config));
    for key in 0..1000 {
        queue.add_with(key, Priority::Low);
        queue.add_with(1000 + key, Priority::High);
    }
    let lows = |queue: &WorkQueue<u32>, of: usize| {
        let taken = (0..of).map(|_| take(queue).priority());
        taken.filter(|priority| *priority == Priority::Low).count()
    };
    assert_eq!(lows(&queue, 300), 30);
    clock.advance(secs(30));
    assert_eq!(lows(&queue, 300), 100);
}

/// Work of one priority is as it was: first come, first served.
#[test]
fn senseless_shares_are_brought_into_range() {
    let config = PriorityConfig {
        share: 0,
        aged_share: 0,
        age_after: Duration::ZERO,
    };
    let (queue, _) = queue_of::<u32>(|settings| settings.priorities(config));
    for key in 0..4 {
        queue.add_with(key, Priority::High);
        queue.add_with(10 + key, Priority::Low);
    }
    assert_eq!(take_all(&queue), [0, 10, 1, 11, 2, 12, 3, 13]);
}

fn namespace<'k>(key: &'k &'static str) -> &'k str {
    key.split_once('/').map_or("", |(namespace, _)| namespace)
}

/// User demand 40: a tenant with many keys delays another by one entry, not by all of its own.
#[test]
fn tenants_take_turns() {
    let (queue, _) = queue_of(|config| config.tenants(namespace));
    for key in ["a/1", "a/2", "a/3", "a/4", "b/1", "b/2", "c/1"] {
        queue.add(key);
    }
    assert_eq!(
        take_all(&queue),
        ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3", "a/4"]
    );
    // Within a tenant in the order of the first adds, and priorities go before turns.
    queue.add("a/2");
    queue.add("a/1");
    queue.add("b/1");
    queue.add_with("a/3", Priority::High);
    queue.add_with("b/1", Priority::High);
    assert_eq!(take_all(&queue), ["a/3", "b/1", "a/2", "a/1"]);
    assert!(queue.is_empty());
}
