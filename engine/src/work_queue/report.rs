//! What can be asked of a queue about its keys.
use super::hold::Held;
use super::links::NONE;
use super::metrics::WorkQueueMetrics;
use super::operation::Now;
use super::slots::KeyCell;
use super::state::State;
use crate::clock::Timestamp;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A key whose time has not come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DelayedKey<K> {
    /// The key.
    pub key: K,
    /// When it becomes ready, in the time of the queue's clock.
    pub due: Timestamp,
    /// It waits after a failure, by the rate limiter's word.
    pub backing_off: bool,
}

/// A key that waits for a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldKey<K> {
    /// The key.
    pub key: K,
    /// What it waits for.
    pub reason: Cow<'static, str>,
    /// Since when, in the time of the queue's clock.
    pub since: Timestamp,
}

/// A key that is in work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningKey<K> {
    /// The key.
    pub key: K,
    /// How long it has been in work.
    pub running_for: Duration,
}

/// Key, place in the order, and whether it is a backoff.
pub(super) type DelayedCell<K> = (Arc<KeyCell<K>>, (Timestamp, u64), bool);

pub(super) type HeldCell<K> = (Arc<KeyCell<K>>, Cow<'static, str>, Timestamp);

impl<K> State<K> {
    pub(super) fn held(&self) -> Vec<HeldCell<K>> {
        let entry = |(id, held): (_, &Held)| (self.slots.cell(id), held.reason.clone(), held.since);
        self.holds.iter().map(entry).collect()
    }

    pub(super) fn delayed(&self) -> Vec<DelayedCell<K>> {
        let entry = |(id, order)| (self.slots.cell(id), order, self.slots.get(id).backing_off);
        self.delays.iter().map(entry).collect()
    }

    /// What has been in work for `limit` or longer, the longest first.
    pub(super) fn running_for(
        &self,
        limit: Duration,
        now: &mut Now<'_>,
    ) -> Vec<(Arc<KeyCell<K>>, Duration)> {
        let mut found = Vec::new();
        let mut next = self.running.front();
        while let Some(id) = next {
            let slot = self.slots.get(id);
            let Some(started_at) = slot.started_at.get() else {
                break;
            };
            let running_for = now.get().since(started_at);
            if running_for < limit {
                break;
            }
            found.push((self.slots.cell(id), running_for));
            next = Some(slot.after()).filter(|&id| id != NONE);
        }
        found
    }

    /// Keys with work that was not handed out yet.
    pub(super) fn depth(&self) -> usize {
        self.ready.len() + self.holds.len() + self.dirty
    }

    pub(super) fn metrics(&self, now: &mut Now<'_>) -> WorkQueueMetrics {
        let counts = self.counts;
        let running = self.running_for(Duration::ZERO, now);
        let timings = self.timings.unwrap_or_default();
        WorkQueueMetrics {
            ready: self.ready.len(),
            depth: self.depth(),
            delayed: self.delays.len(),
            held: self.holds.len(),
            in_flight: self.in_flight,
            waiting_workers: self.waiters.len(),
            adds: counts.adds,
            collapsed: counts.collapsed,
            refused: counts.refused,
            delivered: counts.delivered,
            delays_dropped: counts.delays_dropped,
            gets: counts.gets,
            done: counts.done,
            retries: counts.retries,
            panics: counts.panics,
            queue_latency: timings.queue_latency,
            work_duration: timings.work_duration,
            unfinished: running.iter().map(|(_, running_for)| *running_for).sum(),
            longest_running: running.first().map_or(Duration::ZERO, |(_, age)| *age),
        }
    }
}
