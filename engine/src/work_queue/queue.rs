//! The queue's handle.
use super::config::WorkQueueConfig;
use super::drain::{Delayed, Drained};
use super::get::{self, Get, GetBatch, items};
use super::item::Item;
use super::metrics::WorkQueueMetrics;
use super::operation::{Conflict, DelayOf};
use super::priority::Priority;
use super::report::{DelayedCell, DelayedKey, HeldCell, HeldKey, RunningKey};
use super::shared::Shared;
use super::slots::KeyCell;
use super::state::{Phase, State};
use crate::clock::Timestamp;
use crate::sync::block_on;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// A queue of keys to work on: see the [module](super). A clone is another handle of the same queue.
///
/// Every call takes one short lock. None blocks, except those that say so.
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

/// The queue is shutting down and nothing is left to hand out; nothing will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work queue is shut down and empty")]
pub struct ShutDown;

impl<K> WorkQueue<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: WorkQueueConfig<K>) -> Self {
        Self {
            shared: Arc::new(config.into_shared()),
        }
    }

    #[cfg(all(test, feature = "tokio", not(informant_loom)))]
    pub(super) fn shared(&self) -> &Arc<Shared<K>> {
        &self.shared
    }

    /// The queue's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Wait for the next item. While the queue [drains](WorkQueue::shut_down_with_drain), this waits
    /// as long as something may be handed out again.
    ///
    /// Each entry wakes one waiting `get`. Dropping the future is safe at any time: a wake-up that it
    /// has not used goes to another.
    ///
    /// # Errors
    /// [`ShutDown`] once the queue is shutting down and nothing is left; then always, at once.
    pub fn get(&self) -> Get<'_, K> {
        Get::new(&self.shared)
    }

    /// [`WorkQueue::get`], waiting on this thread: for programs without a runtime. Waits for delays
    /// too, with any clock.
    ///
    /// # Errors
    /// As [`WorkQueue::get`].
    pub fn get_blocking(&self) -> Result<Item<K>, ShutDown> {
        match self.try_get()? {
            Some(item) => Ok(item),
            None => block_on(self.get()),
        }
    }

    /// The next item; `None` when none is ready.
    ///
    /// # Errors
    /// As [`WorkQueue::get`].
    #[inline]
    pub fn try_get(&self) -> Result<Option<Item<K>>, ShutDown> {
        let hand_out = get::try_get(&self.shared, State::take)?;
        Ok(hand_out.map(|hand_out| Item::new(self.shared.clone(), hand_out)))
    }

    /// Wait for an item, and take up to `max` that are ready then, under one lock.
    ///
    /// # Errors
    /// As [`WorkQueue::get`].
    pub fn get_batch(&self, max: usize) -> GetBatch<'_, K> {
        GetBatch::new(&self.shared, max)
    }

    /// Up to `max` items that are ready, one at least unless none is.
    ///
    /// # Errors
    /// As [`WorkQueue::get`].
    pub fn try_get_batch(&self, max: usize) -> Result<Vec<Item<K>>, ShutDown> {
        let batch = get::try_get(&self.shared, |state, now, effects| {
            state.take_batch(max.max(1), now, effects)
        })?;
        Ok(items(&self.shared, batch.unwrap_or_default()))
    }

    /// How many keys are ready: not those that are delayed, in work, or added again while in work.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.locked(|state, now, effects| {
            state.deliver_due(now, effects);
            state.ready.len()
        })
    }

    /// True when no key is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Take no more adds, drop what is delayed or held, and let waiting `get`s end once nothing is ready.
    /// What is ready can still be taken, and a key that was added again while in work becomes ready
    /// when that work is done. Ends the wait for a drain. Calling it again changes nothing.
    pub fn shut_down(&self) {
        let _dropped = self
            .shared
            .locked(|state, _, effects| state.shut_down(effects));
    }

    /// Take no more adds, and have everything handled that is there: what is queued, in work, or
    /// added again while in work. The drain begins with this call; the returned future waits for its
    /// end, and dropping it ends only the wait. Workers must go on calling `get`, which tells them
    /// when nothing is left.
    pub fn shut_down_with_drain(&self, delayed: Delayed) -> impl Future<Output = Drained> {
        let _dropped = self
            .shared
            .locked(|state, _, effects| state.drain(delayed == Delayed::Deliver, effects));
        self.shared.drained()
    }

    /// [`WorkQueue::shut_down_with_drain`], waiting on this thread.
    #[allow(clippy::must_use_candidate)] // Most callers only want the wait.
    pub fn shut_down_with_drain_blocking(&self, delayed: Delayed) -> Drained {
        block_on(self.shut_down_with_drain(delayed))
    }

    /// True once a shutdown or a drain has begun: adds have no effect.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.state.lock().phase != Phase::Open
    }

    /// Where the queue stands.
    #[must_use]
    pub fn metrics(&self) -> WorkQueueMetrics {
        self.shared.locked(|state, now, effects| {
            state.deliver_due(now, effects);
            state.metrics(now)
        })
    }
}

impl<K: Hash + Eq> WorkQueue<K> {
    /// There is something to do for this key. Without effect when it waits already (it keeps its
    /// place) or the queue is shutting down; while it is in work, it is handed out once more
    /// afterwards.
    #[inline]
    pub fn add(&self, key: K) {
        self.add_with(key, Priority::Normal);
    }

    /// [`WorkQueue::add`] with a priority. A waiting key keeps the higher of both priorities.
    #[inline]
    pub fn add_with(&self, key: K, priority: Priority) {
        let mut keyed = self.shared.keyed(key);
        self.shared
            .locked(|state, now, effects| state.add(&mut keyed, priority, now, effects));
    }

    /// [`WorkQueue::add`] by reference: the key is copied only if the queue does not know it.
    pub fn add_ref(&self, key: &K)
    where
        K: Clone,
    {
        let hash = self.shared.hasher.hash_one(key);
        let known = self.shared.locked(|state, now, effects| {
            state.add_known(hash, key, Priority::Normal, now, effects)
        });
        if !known {
            self.add(key.clone());
        }
    }

    /// Add the key once `delay` has passed; at once if it is zero. Of several delays of one key the
    /// earliest counts, for one delivery. An [`add`](WorkQueue::add) meanwhile is served at once and
    /// leaves the delay pending.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_at(key, self.shared.clock.now() + delay);
    }

    /// Add the key at `due`, a point in time of the queue's clock; at once if that is past.
    pub fn add_at(&self, key: K, due: Timestamp) {
        self.delay(key, due, Conflict::EarliestWins, false);
    }

    /// Let the key's delay end after `delay`, be it earlier or later than before, or none.
    pub fn replace_delayed(&self, key: K, delay: Duration) {
        let due = self.shared.clock.now() + delay;
        self.delay(key, due, Conflict::Replace, false);
    }

    /// The key has failed: add it when the rate limiter allows, after the returned time.
    #[allow(clippy::must_use_candidate)] // The time is for logs.
    pub fn add_rate_limited(&self, key: K) -> Duration {
        let delay = self.shared.limit(&key);
        let due = self.shared.clock.now() + delay;
        self.delay(key, due, Conflict::EarliestWins, true);
        delay
    }

    fn delay(&self, key: K, due: Timestamp, conflict: Conflict, backing_off: bool) {
        let delay = DelayOf {
            priority: Priority::Normal,
            backing_off,
            conflict,
        };
        let mut keyed = self.shared.keyed(key);
        self.shared.locked(|state, now, effects| {
            state.counts.retries += u64::from(backing_off);
            state.add_at(&mut keyed, due, delay, now, effects);
        });
    }

    /// Drop the key's pending delay; false when there is none. An entry that is ready stays.
    pub fn cancel_delayed(&self, key: &K) -> bool {
        let hash = self.shared.hasher.hash_one(key);
        let cancelled = self.shared.locked(|state, now, effects| {
            state.deliver_due(now, effects);
            let id = state.slots.find(hash, key);
            id.map(|id| state.cancel_delayed(id, effects))
        });
        cancelled.is_some_and(|(cancelled, _retired)| cancelled)
    }

    /// The key has succeeded: its failures no longer count. Neither a pending retry nor an entry is
    /// touched, and it is no [`done`](WorkQueue::done).
    pub fn forget(&self, key: &K) {
        self.shared.limiter.forget(key);
    }

    /// The failures of the key since it was last forgotten.
    #[must_use]
    pub fn retries(&self, key: &K) -> u32 {
        self.shared.limiter.retries(key)
    }

    /// The work on a [detached](Item::detach) key has ended. Without effect for a key that is not in
    /// work.
    pub fn done(&self, key: &K) {
        let hash = self.shared.hasher.hash_one(key);
        let _retired = self.shared.locked(|state, now, effects| {
            let id = state.slots.find(hash, key)?;
            let number = state.slots.get(id).hand_out;
            state.done(id, number, now, effects)
        });
    }
}

impl<K: Clone> WorkQueue<K> {
    /// The keys whose time has not come, the earliest first. O(n log n).
    #[must_use]
    pub fn delayed(&self) -> Vec<DelayedKey<K>> {
        let mut delayed = self.shared.locked(|state, now, effects| {
            state.deliver_due(now, effects);
            state.delayed()
        });
        delayed.sort_unstable_by_key(|&(_, order, _)| order);
        let key = |(cell, (due, _), backing_off): DelayedCell<K>| DelayedKey {
            key: cell.key().clone(),
            due,
            backing_off,
        };
        delayed.into_iter().map(key).collect()
    }

    /// The keys that wait for a condition, in no order.
    #[must_use]
    pub fn held(&self) -> Vec<HeldKey<K>> {
        let held = self.shared.locked(|state, _, _| state.held());
        let key = |(cell, reason, since): HeldCell<K>| HeldKey {
            key: cell.key().clone(),
            reason,
            since,
        };
        held.into_iter().map(key).collect()
    }

    /// The keys that have been in work for longer than `limit`, the longest first: workers that
    /// hang. Empty unless the queue measures times.
    #[must_use]
    pub fn stuck(&self, limit: Duration) -> Vec<RunningKey<K>> {
        let stuck = self
            .shared
            .locked(|state, now, _| state.running_for(limit, now));
        let key = |(cell, running_for): (Arc<KeyCell<K>>, _)| RunningKey {
            key: cell.key().clone(),
            running_for,
        };
        stuck.into_iter().map(key).collect()
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = self.metrics();
        f.debug_struct("WorkQueue")
            .field("name", &self.shared.name)
            .field("ready", &metrics.ready)
            .field("in_flight", &metrics.in_flight)
            .field("delayed", &metrics.delayed)
            .finish_non_exhaustive()
    }
}
