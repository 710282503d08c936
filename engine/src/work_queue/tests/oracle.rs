//! The queue as one would write it down: sets, a list, and a map of due times.
use super::super::Delayed;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(super) type Key = u8;

/// Times are milliseconds.
#[derive(Default)]
pub(super) struct Oracle {
    pub(super) now: u64,
    ready: VecDeque<Key>,
    running: BTreeSet<Key>,
    dirty: BTreeSet<Key>,
    /// Due time, order of asking, and whether it is a backoff.
    delayed: BTreeMap<Key, (u64, u64, bool)>,
    asked: u64,
    failures: BTreeMap<Key, u32>,
    closed: bool,
    backoff_holds: bool,
}

impl Oracle {
    pub(super) fn new(backoff_holds: bool) -> Self {
        Self {
            backoff_holds,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, key: Key) {
        if self.closed {
            return;
        }
        let idle = !self.ready.contains(&key) && !self.running.contains(&key);
        let backs_off = self.delayed.get(&key).is_some_and(|delay| delay.2);
        if !(self.backoff_holds && idle && backs_off) {
            self.mark(key);
        }
    }

    fn mark(&mut self, key: Key) {
        if self.running.contains(&key) {
            self.dirty.insert(key);
        } else if !self.ready.contains(&key) {
            self.ready.push_back(key);
        }
    }

    pub(super) fn add_after(&mut self, key: Key, delay: u64, backing_off: bool) {
        if self.closed {
            return;
        }
        if delay == 0 {
            return self.mark(key);
        }
        self.asked += 1;
        let due = self.now + delay;
        let pending = self.delayed.get(&key);
        if pending.is_none_or(|&(pending, ..)| due < pending) {
            self.delayed.insert(key, (due, self.asked, backing_off));
        }
    }

    pub(super) fn replace(&mut self, key: Key, delay: u64) {
        if !self.closed {
            self.delayed.remove(&key);
            self.add_after(key, delay, false);
        }
    }

    pub(super) fn cancel(&mut self, key: Key) -> bool {
        self.delayed.remove(&key).is_some()
    }

    pub(super) fn fail(&mut self, key: Key) -> u64 {
        let failures = self.failures.entry(key).or_default();
        *failures += 1;
        let delay = (5_u64 << (*failures - 1).min(30)).min(1_000_000);
        self.add_after(key, delay, true);
        delay
    }

    pub(super) fn forget(&mut self, key: Key) {
        self.failures.remove(&key);
    }

    pub(super) fn retries(&self, key: Key) -> u32 {
        self.failures.get(&key).copied().unwrap_or(0)
    }

    pub(super) fn advance(&mut self, by: u64) {
        self.now += by;
        let now = self.now;
        let next = |delayed: &BTreeMap<Key, (u64, u64, bool)>| {
            let due = delayed.iter().filter(|(_, delay)| delay.0 <= now);
            due.min_by_key(|(_, delay)| (delay.0, delay.1))
                .map(|(key, _)| *key)
        };
        while let Some(key) = next(&self.delayed) {
            self.delayed.remove(&key);
            self.mark(key);
        }
    }

    pub(super) fn get(&mut self) -> Option<Key> {
        let key = self.ready.pop_front()?;
        self.running.insert(key);
        Some(key)
    }

    pub(super) fn done(&mut self, key: Key) {
        if !self.running.remove(&key) || !self.dirty.remove(&key) {
            return;
        }
        let backs_off = self.delayed.get(&key).is_some_and(|delay| delay.2);
        if !(self.backoff_holds && backs_off) {
            self.ready.push_back(key);
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.closed = true;
        self.delayed.clear();
    }

    pub(super) fn drain(&mut self, delayed: Delayed) {
        self.closed = true;
        if delayed == Delayed::Drop {
            self.delayed.clear();
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.running.is_empty() && self.delayed.is_empty()
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn depth(&self) -> usize {
        self.ready.len() + self.dirty.len()
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Keys and due times, in order.
    pub(super) fn delayed(&self) -> Vec<(Key, u64)> {
        let mut delayed: Vec<_> = self.delayed.iter().collect();
        delayed.sort_by_key(|(_, delay)| (delay.0, delay.1));
        delayed
            .into_iter()
            .map(|(key, delay)| (*key, delay.0))
            .collect()
    }
}
