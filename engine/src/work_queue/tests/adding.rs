//! Adding and being handed out: collapse, order, one worker a key.
use super::{Getter, queue, queue_of, take, take_all};
use std::sync::{Arc, Weak};

/// I-W1, I-W3, I-W4: adds of a waiting key collapse, in the order of the first adds.
#[test]
fn i_w3_adds_between_two_gets_are_one_hand_out_in_the_order_of_the_first() {
    let (queue, _) = queue();
    for key in ["a", "b", "a", "c", "b", "a"] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 3);
    assert_eq!(take_all(&queue), ["a", "b", "c"]);
    assert!(queue.try_get().unwrap().is_none());
    let metrics = queue.metrics();
    assert_eq!((metrics.adds, metrics.collapsed), (3, 3));
}

/// I-W4: what was added again while in work goes to the tail when that is done.
#[test]
fn i_w4_re_added_while_in_work_goes_to_the_tail() {
    let (queue, _) = queue();
    queue.add("a");
    let a = take(&queue);
    queue.add("a");
    queue.add("b");
    a.done();
    queue.add("c");
    assert_eq!(take_all(&queue), ["b", "a", "c"]);
}

/// I-W2
#[test]
fn c087_added_while_in_work_once_more_afterwards() {
    let (queue, _) = queue();
    queue.add("a");
    let first = take(&queue);
    (0..3).for_each(|_| queue.add("a"));
    let mut second = Getter::waiting(&queue);
    assert_eq!(queue.len(), 0, "not while it is in work");
    assert_eq!(queue.metrics().depth, 1, "but it is to be done (I-W14)");
    assert_eq!(second.wake_ups(), 0);
    first.done();
    assert_eq!(queue.len(), 1);
    assert_eq!(second.wake_ups(), 1);
    assert_eq!(second.key(), Some("a"));
    assert!(queue.try_get().unwrap().is_none());
}

#[test]
fn c088_done_for_what_is_not_in_work() {
    let (queue, _) = queue();
    queue.add("a");
    for key in ["a", "a", "zzz"] {
        queue.done(&key);
    }
    assert_eq!(queue.len(), 1);
    let a = take(&queue);
    let _second = Getter::waiting(&queue);
    drop(a);
    assert!(queue.is_empty());
}

/// The low-level form: a detached key is in work until `done` is called with it, once.
#[test]
fn a_detached_key_is_ended_by_name() {
    let (queue, _) = queue();
    queue.add("a");
    let key = take(&queue).detach();
    queue.add(key);
    assert!(queue.is_empty());
    queue.done(&key);
    assert_eq!(queue.len(), 1);
    queue.done(&key);
    assert_eq!(take_all(&queue), ["a"]);
}

/// A guard of an ended hand-out does not end the next one.
#[test]
fn an_item_ends_only_its_own_hand_out() {
    let (queue, _) = queue();
    queue.add("a");
    let first = take(&queue);
    queue.done(&"a");
    queue.add("a");
    let second = take(&queue);
    queue.add("a");
    drop(first);
    assert!(queue.is_empty(), "the second is still in work");
    drop(second);
    assert_eq!(queue.len(), 1);
}

#[test]
fn c097_what_was_handed_out_is_not_kept_alive() {
    let (queue, _) = queue_of::<Arc<str>>(|config| config);
    let key: Arc<str> = Arc::from("a");
    let weak: Weak<str> = Arc::downgrade(&key);
    queue.add(key);
    let item = take(&queue);
    assert!(weak.upgrade().is_some());
    item.done();
    assert!(weak.upgrade().is_none(), "freed while the queue lives on");

    // Cancelled delays and the shutdown forget too.
    let key: Arc<str> = Arc::from("b");
    let weak: Weak<str> = Arc::downgrade(&key);
    queue.add_after(key, super::secs(1));
    assert!(queue.cancel_delayed(&Arc::from("b")));
    assert!(weak.upgrade().is_none());
    let key: Arc<str> = Arc::from("c");
    let weak: Weak<str> = Arc::downgrade(&key);
    queue.add_after(key, super::secs(1));
    queue.shut_down();
    assert!(weak.upgrade().is_none());
}

/// C097: many different keys leave no memory behind, and a burst's is given back.
#[test]
fn c097_different_keys_use_the_same_slots() {
    let (queue, _) = queue_of::<u64>(|config| config);
    for key in 0..100_000 {
        queue.add(key);
        take(&queue).done();
    }
    assert_eq!(queue.shared().state.lock().slots.capacity(), 1);
    (0..100_000).for_each(|key| queue.add(key));
    assert_eq!(queue.shared().state.lock().slots.capacity(), 100_000);
    assert_eq!(take_all(&queue).len(), 100_000);
    assert_eq!(queue.shared().state.lock().slots.capacity(), 0);
    queue.add(1);
    assert_eq!(take_all(&queue), [1]);
}

#[test]
fn c099_length_counts_what_is_ready() {
    let (queue, clock) = queue();
    let len = |expected: usize| {
        assert_eq!(queue.len(), expected);
        let metrics = queue.metrics();
        assert_eq!((metrics.ready, metrics.depth), (expected, expected));
    };
    queue.add_after("a", super::secs(3600));
    len(0);
    queue.add("a");
    len(1);
    let a = take(&queue);
    len(0);
    a.done();
    len(0);
    clock.advance(super::secs(3600));
    // The rule: an immediate add leaves the delay pending, so it comes once more.
    len(1);
    assert_eq!(queue.metrics().adds, 2, "once for each entry");
    assert_eq!(take_all(&queue), ["a"]);
    len(0);
}

#[test]
fn c101_equal_keys_are_one_item() {
    let (queue, _) = queue_of::<String>(|config| config);
    let built = || [String::from("ns1"), String::from("x")].join("/");
    queue.add(built());
    queue.add(built());
    queue.add_rate_limited(built());
    queue.add_rate_limited(built());
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.retries(&built()), 2);
    assert_eq!(queue.delayed().len(), 1);
    assert_eq!(take_all(&queue), ["ns1/x"]);
}

#[test]
fn adding_by_reference_copies_only_what_is_new() {
    #[derive(PartialEq, Eq, Hash, Debug)]
    struct Copied(u8, bool);
    impl Clone for Copied {
        fn clone(&self) -> Self {
            assert!(self.1, "no need to copy {}", self.0);
            Self(self.0, self.1)
        }
    }
    let (queue, _) = queue_of::<Copied>(|config| config);
    queue.add_ref(&Copied(1, true));
    queue.add(Copied(2, false));
    queue.add_ref(&Copied(2, false));
    let second = queue.try_get_batch(2).unwrap().pop().unwrap();
    queue.add_ref(&Copied(2, false));
    assert_eq!(second.key().0, 2);
}
