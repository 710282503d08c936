//! Random operations in virtual time, against the oracle.
use super::super::{Delayed, Drained, Item, ShutDown, WorkQueue};
use super::oracle::{Key, Oracle};
use super::{ms, queue_of};
use crate::clock::{Clock, ManualClock};
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEYS: Key = 4;

#[derive(Clone, Debug)]
enum Step {
    Add(Key),
    AddAfter(Key, u64),
    AddRateLimited(Key),
    Replace(Key, u64),
    Cancel(Key),
    Forget(Key),
    Get,
    GetBatch(usize),
    /// End the work on a key, if it is in work, in one of the ways there are.
    Done(Key, Ending),
    /// Of a key that may not be in work.
    DoneByName(Key),
    Advance(u64),
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Done,
    Requeue,
    RequeueAfter(u64),
    RateLimited,
}

#[derive(Clone, Copy, Debug)]
enum Close {
    ShutDown,
    Drain(bool),
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        4 => Just(Ending::Done),
        1 => Just(Ending::Requeue),
        1 => (0..20_u64).prop_map(Ending::RequeueAfter),
        1 => Just(Ending::RateLimited),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS;
    // Few times, so that many are equal.
    let delay = prop_oneof![Just(0_u64), Just(5), Just(10), 0..20_u64];
    prop_oneof![
        6 => key.clone().prop_map(Step::Add),
        4 => (key.clone(), delay.clone()).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        2 => key.clone().prop_map(Step::AddRateLimited),
        1 => (key.clone(), delay).prop_map(|(key, delay)| Step::Replace(key, delay)),
        1 => key.clone().prop_map(Step::Cancel),
        1 => key.clone().prop_map(Step::Forget),
        6 => Just(Step::Get),
        1 => (1..4_usize).prop_map(Step::GetBatch),
        6 => (key.clone(), ending()).prop_map(|(key, ending)| Step::Done(key, ending)),
        1 => key.prop_map(Step::DoneByName),
        3 => (0..15_u64).prop_map(Step::Advance),
    ]
}

struct World {
    queue: WorkQueue<Key>,
    clock: ManualClock,
    oracle: Oracle,
    items: BTreeMap<Key, Item<Key>>,
}

impl World {
    fn new(backoff_holds: bool) -> Self {
        let (queue, clock) = queue_of(|config| config.backoff_holds(backoff_holds));
        let oracle = Oracle::new(backoff_holds);
        Self {
            queue,
            clock,
            oracle,
            items: BTreeMap::new(),
        }
    }

    fn get(&mut self) {
        let expected = self.oracle.get();
        let item = self.queue.try_get().ok().flatten();
        assert_eq!(item.as_ref().map(|item| **item), expected);
        if let Some(item) = item {
            // I-W2: an item of the same key would still be here.
            assert!(self.items.insert(*item, item).is_none());
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Add(key) => {
                self.queue.add(key);
                self.oracle.add(key);
            }
            Step::AddAfter(key, delay) => {
                self.queue.add_after(key, ms(delay));
                self.oracle.add_after(key, delay, false);
            }
            Step::AddRateLimited(key) => {
                let delay = self.queue.add_rate_limited(key);
                assert_eq!(delay, ms(self.oracle.fail(key)));
            }
            Step::Replace(key, delay) => {
                self.queue.replace_delayed(key, ms(delay));
                self.oracle.replace(key, delay);
            }
            Step::Cancel(key) => {
                assert_eq!(self.queue.cancel_delayed(&key), self.oracle.cancel(key));
            }
            Step::Forget(key) => {
                self.queue.forget(&key);
                self.oracle.forget(key);
            }
            Step::Get => self.get(),
            Step::GetBatch(max) => {
                let batch = self.queue.try_get_batch(max).unwrap_or_default();
                for item in &batch {
                    assert_eq!(Some(**item), self.oracle.get());
                }
                assert!(batch.len() == max || self.oracle.ready() == 0);
                for item in batch {
                    assert!(self.items.insert(*item, item).is_none());
                }
            }
            Step::Done(key, ending) => self.end(key, ending),
            Step::DoneByName(key) => {
                if let Some(item) = self.items.remove(&key) {
                    let _key = item.detach();
                }
                self.queue.done(&key);
                self.oracle.done(key);
            }
            Step::Advance(by) => {
                self.clock.advance(ms(by));
                self.oracle.advance(by);
            }
        }
        self.compare();
    }

    fn end(&mut self, key: Key, ending: Ending) {
        let Some(item) = self.items.remove(&key) else {
            return;
        };
        match ending {
            Ending::Done => item.done(),
            Ending::Requeue => {
                item.requeue();
                self.oracle.add_after(key, 0, false);
            }
            Ending::RequeueAfter(delay) => {
                item.requeue_after(ms(delay));
                self.oracle.add_after(key, delay, false);
            }
            Ending::RateLimited => {
                let delay = item.retry();
                assert_eq!(delay, ms(self.oracle.fail(key)));
            }
        }
        self.oracle.done(key);
    }

    fn compare(&self) {
        let (queue, oracle) = (&self.queue, &self.oracle);
        let metrics = queue.metrics();
        assert_eq!(queue.len(), oracle.ready());
        assert_eq!(metrics.depth, oracle.depth(), "I-W14");
        assert_eq!(metrics.in_flight, oracle.running());
        let delayed: Vec<_> = queue
            .delayed()
            .into_iter()
            .map(|delayed| (delayed.key, delayed.due.since_origin()))
            .collect();
        let expected = oracle.delayed().into_iter();
        let expected: Vec<_> = expected.map(|(key, due)| (key, ms(due))).collect();
        assert_eq!(delayed, expected);
        for key in 0..KEYS {
            assert_eq!(queue.retries(&key), oracle.retries(key), "I-W13");
        }
        let known = queue.shared().state.lock().slots.len();
        assert!(known <= usize::from(KEYS), "one slot a key (I-W1)");
    }

    /// Close, do some more, and see everything through.
    fn close(mut self, close: Close, after: &[Step]) {
        let draining = match close {
            Close::ShutDown => {
                self.queue.shut_down();
                self.oracle.shut_down();
                false
            }
            Close::Drain(deliver) => {
                let delayed = if deliver {
                    Delayed::Deliver
                } else {
                    Delayed::Drop
                };
                self.oracle.drain(delayed);
                drop(self.queue.shut_down_with_drain(delayed));
                true
            }
        };
        self.compare();
        for step in after {
            self.step(step);
        }
        while !self.oracle.is_drained() {
            self.get();
            if let Some(key) = self.items.keys().next().copied() {
                self.end(key, Ending::Done);
            } else if self.oracle.ready() == 0 {
                // What is delayed holds a drain up until it is due.
                self.step(&Step::Advance(7));
            }
            self.compare();
        }
        assert_eq!(self.queue.get_blocking().unwrap_err(), ShutDown);
        if draining {
            // That it begins again changes nothing.
            let drained = self.queue.shut_down_with_drain_blocking(Delayed::Drop);
            assert_eq!(drained, Drained::Complete);
        }
        assert_eq!(self.clock.next_deadline(), None);
        assert_eq!(self.clock.now().since_origin(), ms(self.oracle.now));
        assert_eq!(self.queue.shared().state.lock().slots.len(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// I-W1 to I-W9, I-W13 and I-W14, over random operations.
    #[test]
    fn the_queue_does_what_the_oracle_does(
        backoff_holds: bool,
        steps in prop::collection::vec(step(), 0..60),
        close in prop_oneof![
            Just(Close::ShutDown),
            any::<bool>().prop_map(Close::Drain),
        ],
        after in prop::collection::vec(step(), 0..10),
    ) {
        let mut world = World::new(backoff_holds);
        for step in &steps {
            world.step(step);
        }
        world.close(close, &after);
    }
}
