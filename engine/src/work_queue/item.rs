//! What a worker is given.
use super::hold::{self, Hold};
use super::operation::HandOut;
use super::priority::Priority;
use super::shared::Shared;
use super::slots::{KeyCell, SlotId};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// What happens to an item that is dropped by a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnPanic {
    /// The key is added again through the rate limiter, then the item is done.
    #[default]
    Retry,
    /// The item is done.
    Forget,
}

/// A key that is being worked on. It dereferences to the key.
///
/// No other worker is given this key until the item is dropped, or ended by one of its methods: that
/// is the *done* of other queues, and cannot be forgotten. An item that is dropped by a panic is
/// treated as [`OnPanic`] says. It may outlive every handle of its queue.
///
/// ```
/// use informant::StdClock;
/// use informant::work_queue::{WorkQueue, WorkQueueConfig};
/// # use std::sync::Arc;
/// let queue = WorkQueue::new(WorkQueueConfig::new(Arc::new(StdClock::new())));
/// queue.add("default/web-0");
/// let item = queue.get_blocking()?;
/// assert_eq!(*item, "default/web-0");
/// queue.add("default/web-0"); // meanwhile
/// assert!(queue.try_get()?.is_none(), "never two workers on one key");
/// item.done();
/// assert!(queue.try_get()?.is_some(), "and once more afterwards");
/// # Ok::<_, informant::work_queue::ShutDown>(())
/// ```
#[must_use = "dropping an item says that its work is done"]
pub struct Item<K> {
    queue: Arc<Shared<K>>,
    /// Empty once the item is ended.
    cell: Option<Arc<KeyCell<K>>>,
    slot: SlotId,
    number: u64,
    priority: Priority,
    waited: Option<Duration>,
}

impl<K> Item<K> {
    #[inline]
    pub(super) fn new(queue: Arc<Shared<K>>, hand_out: HandOut<K>) -> Self {
        #[cfg(feature = "metrics")]
        if let (Some(exporter), Some(waited)) = (&queue.exporter, hand_out.waited) {
            exporter.waited(waited);
        }
        Self {
            queue,
            cell: Some(hand_out.cell),
            slot: hand_out.slot,
            number: hand_out.number,
            priority: hand_out.priority,
            waited: hand_out.waited,
        }
    }

    /// The key.
    #[must_use]
    #[allow(clippy::missing_panics_doc)] // It cannot: the cell is taken only when the item ends.
    #[inline]
    pub fn key(&self) -> &K {
        self.cell
            .as_ref()
            .expect("an item has its key until it ends")
            .key()
    }

    /// The priority with which it was handed out.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// From the first add to the hand-out; `None` when the queue does not measure times.
    #[must_use]
    pub fn waited(&self) -> Option<Duration> {
        self.waited
    }

    /// The failures of the key since it was last forgotten.
    #[must_use]
    pub fn retries(&self) -> u32 {
        self.queue.limiter.retries(self.key())
    }

    /// The key has succeeded: its failures no longer count. The item goes on.
    pub fn forget(&self) {
        self.queue.limiter.forget(self.key());
    }

    /// The work is done. If the key was added meanwhile, it is ready now. The same as a drop.
    pub fn done(self) {}

    /// Done with success: the failures of the key no longer count.
    pub fn succeed(self) {
        self.forget();
    }

    /// Done, and to be worked on again: at the tail of the queue, with the same priority.
    pub fn requeue(self) {
        self.put_back(Duration::ZERO, false);
    }

    /// Done, and to be worked on again after `delay`, or earlier if it is added. Counts as no
    /// failure, and keeps the priority.
    pub fn requeue_after(self, delay: Duration) {
        self.put_back(delay, false);
    }

    /// Done, failed, and to be worked on again when the rate limiter allows, after the returned
    /// time. Keeps the priority. When the queue is shutting down, it is only done.
    #[allow(clippy::must_use_candidate)] // The time is for logs.
    pub fn retry(self) -> Duration {
        let delay = self.queue.limit(self.key());
        self.put_back(delay, true);
        delay
    }

    /// Done for now, and to be worked on again once the hold ends. It stays one entry however often
    /// the key is added meanwhile. When the queue has shut down, it is only done.
    pub fn hold(mut self, hold: Hold)
    where
        K: Send + Sync + 'static,
    {
        self.cell = None;
        let waker = hold::waker(&self.queue, self.slot, self.number);
        if self
            .queue
            .hold(self.slot, self.number, hold, waker)
            .is_some()
        {
            self.end();
        } else {
            self.queue.poll_holds();
        }
    }

    /// The bare key. It stays in work until [`done`](super::WorkQueue::done) is called with it.
    #[must_use = "the key is in work until `done` is called with it"]
    pub fn detach(mut self) -> K
    where
        K: Clone,
    {
        let key = self.key().clone();
        self.cell = None;
        key
    }

    #[inline]
    fn end(&self) {
        let _retired = self
            .queue
            .locked(|state, now, effects| state.done(self.slot, self.number, now, effects));
    }

    fn put_back(mut self, delay: Duration, backing_off: bool) {
        // Before the key may be forgotten, so that its memory can be used again.
        self.cell = None;
        self.queue
            .put_back(self.slot, self.number, delay, backing_off);
    }
}

impl<K> Deref for Item<K> {
    type Target = K;
    #[inline]
    fn deref(&self) -> &K {
        self.key()
    }
}

impl<K> Drop for Item<K> {
    #[inline]
    fn drop(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        if std::thread::panicking() {
            self.queue.locked(|state, _, _| state.counts.panics += 1);
            if self.queue.on_panic == OnPanic::Retry {
                let delay = self.queue.limit(cell.key());
                drop(cell);
                self.queue.put_back(self.slot, self.number, delay, true);
                return;
            }
        }
        drop(cell);
        self.end();
    }
}

impl<K: fmt::Debug> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Item").field(self.key()).finish()
    }
}
