//! The work queue's handle.
use super::item::{Item, OnPanic};
use super::limiter::{ItemExponential, RateLimiter};
use super::state::{Found, Phase, State, WorkQueueMetrics};
use crate::clock::{SharedClock, Sleep, Timestamp};
use crate::sync::{Mutex, WaitSet, block_on};
use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// What a [`WorkQueue`] is made of.
pub struct WorkQueueConfig<K> {
    /// The clock of delays and metrics.
    pub clock: SharedClock,
    /// How long [`WorkQueue::add_rate_limited`] delays.
    pub limiter: Arc<dyn RateLimiter<K>>,
    /// What happens to a key whose worker panicked.
    pub on_panic: OnPanic,
}

impl<K: Hash + Eq + Clone + Send + 'static> WorkQueueConfig<K> {
    /// 5 ms, doubled at each failure of a key, to 1000 s at the most: client-go's limiter for
    /// controllers, without the bucket that ties all keys together.
    #[must_use]
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            limiter: Arc::new(ItemExponential::default()),
            on_panic: OnPanic::Retry,
        }
    }
}

impl<K> fmt::Debug for WorkQueueConfig<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueueConfig")
            .field("clock", &self.clock)
            .field("on_panic", &self.on_panic)
            .finish_non_exhaustive()
    }
}

/// The queue is shut down, and nothing is left to hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work queue is shut down")]
pub struct ShutDown;

/// What a drain does with keys that wait for their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delayed {
    /// They are dropped.
    #[default]
    Drop,
    /// They are waited for and handed out.
    Deliver,
}

struct Shared<K> {
    clock: SharedClock,
    limiter: Arc<dyn RateLimiter<K>>,
    on_panic: OnPanic,
    state: Mutex<State<K>>,
    /// Workers that wait for a key.
    workers: WaitSet,
    /// Drains that wait for the end.
    drains: WaitSet,
}

/// A queue of keys for workers. Clones are handles of one queue.
///
/// - A key is queued once, however often it is added, in the order of first adds.
/// - No two workers hold the same key at once; a key that is added while a worker holds it is
///   handed out exactly once more, after that worker is done.
/// - A delayed add stands beside a plain one: adding a key now does not cancel its delayed add,
///   which will make it ready once more at its time ([`WorkQueue::cancel_delayed`] does).
///
/// ```
/// use informant::work_queue::{WorkQueue, WorkQueueConfig};
/// use informant::ManualClock;
/// use std::{sync::Arc, time::Duration};
///
/// let clock = ManualClock::new();
/// let queue = WorkQueue::new(WorkQueueConfig::new(Arc::new(clock.clone())));
/// queue.add("a");
/// queue.add("a");
/// queue.add_after("b", Duration::from_secs(1));
/// let item = queue.try_get()?.expect("a is ready");
/// queue.add("a"); // while it is being worked on
/// assert!(queue.try_get()?.is_none());
/// item.done();
/// assert_eq!(*queue.try_get()?.expect("a is ready again"), "a");
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(*queue.try_get()?.expect("b is due"), "b");
/// # Ok::<_, informant::work_queue::ShutDown>(())
/// ```
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Hash + Eq + Clone> WorkQueue<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: WorkQueueConfig<K>) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock: config.clock,
                limiter: config.limiter,
                on_panic: config.on_panic,
                state: Mutex::new(State::new()),
                workers: WaitSet::new(),
                drains: WaitSet::new(),
            }),
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Add a key. Nothing happens when it is ready already, or after a shutdown.
    pub fn add(&self, key: K) {
        let now = self.now();
        let ready = self.shared.state.lock().add(key, now);
        #[cfg(informant_mutant = "add_wakes_nobody")]
        let ready = ready && false;
        if ready {
            self.shared.workers.notify_one();
        }
    }

    /// Add a key after `delay`. Of several requests the earliest counts; a delay of zero is a
    /// plain add. Nothing happens after a shutdown.
    pub fn add_after(&self, key: K, delay: Duration) {
        let now = self.now();
        let look = self.shared.state.lock().add_at(key, now + delay, now);
        if look {
            self.shared.workers.notify_one();
        }
    }

    /// Add a key after the delay that the rate limiter says, and count a failure of it.
    pub fn add_rate_limited(&self, key: K) {
        // The limiter may be the user's own: it runs outside the lock.
        let delay = self.shared.limiter.when(&key, self.now());
        self.shared.state.lock().counts.retries += 1;
        self.add_after(key, delay);
    }

    /// Forget the failures of a key. A delay that was asked for stays.
    pub fn forget(&self, key: &K) {
        self.shared.limiter.forget(key);
    }

    /// Failures of a key since it was last forgotten.
    #[must_use]
    pub fn retries(&self, key: &K) -> u32 {
        self.shared.limiter.retries(key)
    }

    /// Take back the delayed add of a key; true when there was one.
    pub fn cancel_delayed(&self, key: &K) -> bool {
        let cancelled = self.shared.state.lock().cancel_delayed(key);
        if cancelled {
            self.shared.drains.notify_all();
        }
        cancelled
    }

    /// The keys that wait for their time, earliest first.
    #[must_use]
    pub fn delayed(&self) -> Vec<(Arc<K>, Timestamp)> {
        self.shared.state.lock().delayed()
    }

    /// Hand out the next key; `None` when none is ready.
    ///
    /// # Errors
    /// [`ShutDown`] when the queue is shut down and nothing is left.
    pub fn try_get(&self) -> Result<Option<Item<K>>, ShutDown> {
        match self.take() {
            Found::Key(id, key) => Ok(Some(self.item(id, key))),
            Found::Nothing(_) => Ok(None),
            Found::ShutDown => Err(ShutDown),
        }
    }

    fn take(&self) -> Found<K> {
        let now = self.now();
        let (found, more) = {
            let mut state = self.shared.state.lock();
            let found = state.take(now);
            let more = matches!(found, Found::Key(..)) && state.has_ready();
            (found, more)
        };
        if more {
            // Each worker that gets one wakes the next: several became ready at once.
            self.shared.workers.notify_one();
        }
        found
    }

    fn item(&self, id: u32, key: Arc<K>) -> Item<K> {
        Item {
            queue: self.clone(),
            id,
            key,
        }
    }

    /// Wait for the next key.
    ///
    /// # Errors
    /// [`ShutDown`] when the queue is shut down and nothing is left; then always, at once.
    pub async fn get(&self) -> Result<Item<K>, ShutDown> {
        let mut sleep: Option<(Timestamp, Sleep)> = None;
        loop {
            let known = sleep.as_ref().map(|(at, _)| *at);
            // Ends with a key, with the shutdown, or when something is due before the sleep ends.
            let mut wait = self.shared.workers.until(|| match self.take() {
                Found::Nothing(due) if due == known => None,
                found => Some(found),
            });
            let found = poll_fn(|context| {
                if let Poll::Ready(found) = Pin::new(&mut wait).poll(context) {
                    return Poll::Ready(Some(found));
                }
                match &mut sleep {
                    Some((_, sleep)) => sleep.as_mut().poll(context).map(|()| None),
                    None => Poll::Pending,
                }
            })
            .await;
            sleep = match found {
                Some(Found::Key(id, key)) => return Ok(self.item(id, key)),
                Some(Found::ShutDown) => return Err(ShutDown),
                Some(Found::Nothing(Some(at))) => Some((at, self.shared.clock.sleep_until(at))),
                Some(Found::Nothing(None)) | None => None,
            };
        }
    }

    /// [`WorkQueue::get`], blocking this thread. Delays need a clock whose sleeps work outside a
    /// runtime, as [`StdClock`](crate::StdClock)'s and [`ManualClock`](crate::ManualClock)'s do.
    ///
    /// # Errors
    /// As [`WorkQueue::get`].
    pub fn get_blocking(&self) -> Result<Item<K>, ShutDown> {
        block_on(self.get())
    }

    /// Up to `count` keys that are ready, at least one: waits for the first.
    ///
    /// # Errors
    /// As [`WorkQueue::get`].
    pub async fn get_batch(&self, count: usize) -> Result<Vec<Item<K>>, ShutDown> {
        let mut items = vec![self.get().await?];
        while items.len() < count
            && let Ok(Some(item)) = self.try_get()
        {
            items.push(item);
        }
        Ok(items)
    }

    /// A worker is done with this key; nothing happens when no worker holds it. [`Item`] does this
    /// by itself.
    pub fn done(&self, key: &K) {
        let now = self.now();
        let again = self.shared.state.lock().done_key(key, now);
        self.after_done(again);
    }

    pub(super) fn finish(&self, id: u32) {
        let now = self.now();
        let again = self.shared.state.lock().done(id, now);
        self.after_done(again);
    }

    fn after_done(&self, again: bool) {
        #[cfg(informant_mutant = "done_wakes_nobody")]
        let again = again && false;
        if again {
            self.shared.workers.notify_one();
        }
        let drained = {
            let state = self.shared.state.lock();
            state.phase == Phase::Draining && state.is_drained()
        };
        if drained {
            // Workers that waited for what was held elsewhere can go, and so can the drains.
            #[cfg(not(informant_mutant = "drain_forgets_workers"))]
            self.shared.workers.notify_all();
            self.shared.drains.notify_all();
        }
    }

    pub(super) fn retries_after_panic(&self) -> bool {
        self.shared.on_panic == OnPanic::Retry
    }

    /// Take no more adds. What is ready is still handed out, then workers are told; delayed keys
    /// are dropped. A drain that is under way ends.
    pub fn shut_down(&self) {
        {
            let mut state = self.shared.state.lock();
            state.phase = Phase::ShutDown;
            state.drop_delayed();
        }
        self.shared.workers.notify_all();
        self.shared.drains.notify_all();
    }

    /// Take no more adds, and end when everything has been handed out and is done: what is ready,
    /// what workers hold, and what was added while they held it. Needs workers that go on getting.
    pub async fn shut_down_with_drain(&self, delayed: Delayed) {
        {
            let mut state = self.shared.state.lock();
            if state.phase == Phase::Open {
                state.phase = Phase::Draining;
                state.deliver_delayed = delayed == Delayed::Deliver;
                if delayed == Delayed::Drop {
                    state.drop_delayed();
                }
            }
        }
        self.shared.workers.notify_all();
        let ended = || {
            let state = self.shared.state.lock();
            (state.phase == Phase::ShutDown || state.is_drained()).then_some(())
        };
        self.shared.drains.until(ended).await;
        self.shared.workers.notify_all();
    }

    /// [`WorkQueue::shut_down_with_drain`], blocking this thread.
    pub fn shut_down_with_drain_blocking(&self, delayed: Delayed) {
        block_on(self.shut_down_with_drain(delayed));
    }

    /// True once the queue takes no more adds.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.state.lock().phase != Phase::Open
    }

    /// Keys that are ready: neither delayed, nor held by a worker.
    #[must_use]
    pub fn len(&self) -> usize {
        let now = self.now();
        self.shared.state.lock().len(now)
    }

    /// True when no key is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the queue counts. O(keys that workers hold or that wait).
    #[must_use]
    pub fn metrics(&self) -> WorkQueueMetrics {
        let now = self.now();
        self.shared.state.lock().metrics(now)
    }

    /// Keys that workers have held for longer than `limit`, longest first.
    #[must_use]
    pub fn stuck(&self, limit: Duration) -> Vec<(Arc<K>, Duration)> {
        let now = self.now();
        self.shared.state.lock().stuck(limit, now)
    }
}

impl<K: Hash + Eq + Clone> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("metrics", &self.metrics())
            .finish_non_exhaustive()
    }
}
