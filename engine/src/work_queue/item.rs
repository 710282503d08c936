//! A key in a worker's hands.
use super::queue::WorkQueue;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// What happens to a key whose worker panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnPanic {
    /// It is added again, rate-limited, as after an error.
    #[default]
    Retry,
    /// It counts as done.
    Forget,
}

/// A key that was handed out. Nobody else gets the same key until this is done, which it is when
/// it is dropped; [`OnPanic`] says what a panic means.
pub struct Item<K: Hash + Eq + Clone> {
    pub(super) queue: WorkQueue<K>,
    pub(super) id: u32,
    pub(super) key: Arc<K>,
}

impl<K: Hash + Eq + Clone> Item<K> {
    /// The worker is done with the key.
    pub fn done(self) {}

    /// The worker failed: the key comes again, after the delay that the rate limiter says.
    pub fn retry(self) {
        self.queue.add_rate_limited((*self.key).clone());
    }

    /// The worker succeeded: its failures are forgotten.
    pub fn succeed(self) {
        self.queue.forget(&self.key);
    }

    /// The key comes again after `delay`.
    pub fn requeue_after(self, delay: Duration) {
        self.queue.add_after((*self.key).clone(), delay);
    }
}

impl<K: Hash + Eq + Clone> Deref for Item<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Hash + Eq + Clone> Drop for Item<K> {
    fn drop(&mut self) {
        if std::thread::panicking() && self.queue.retries_after_panic() {
            self.queue.add_rate_limited((*self.key).clone());
        }
        self.queue.finish(self.id);
    }
}

impl<K: Hash + Eq + Clone + fmt::Debug> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({:?})", self.key)
    }
}
