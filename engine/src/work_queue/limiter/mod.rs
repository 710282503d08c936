//! How long a key waits after a failure.
mod bucket;
mod combine;
mod exponential;
mod failures;
mod fast_slow;

pub use bucket::TokenBucket;
pub use combine::{Jittered, MaxOf, WithMaxWait};
pub use exponential::ItemExponential;
pub use failures::DEFAULT_CAPACITY;
pub use fast_slow::FastSlow;

use crate::clock::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Decides how long a key waits before it is worked on again.
///
/// Called by [`add_rate_limited`](super::WorkQueue::add_rate_limited) and its kin, from any thread
/// and outside the queue's lock. Implementations are deterministic functions of the calls and the
/// time that they are given, so that a program runs the same in virtual time.
pub trait RateLimiter<K>: Send + Sync {
    /// How long `key` must wait from `now`. Each call counts as a failure of the key.
    fn when(&self, key: &K, now: Timestamp) -> Duration;

    /// The key has succeeded (or is given up): its failures no longer count. Unknown keys are fine.
    fn forget(&self, key: &K);

    /// The failures of the key since it was last forgotten.
    fn retries(&self, key: &K) -> u32;
}

impl<K, L: RateLimiter<K> + ?Sized> RateLimiter<K> for Arc<L> {
    fn when(&self, key: &K, now: Timestamp) -> Duration {
        (**self).when(key, now)
    }
    fn forget(&self, key: &K) {
        (**self).forget(key);
    }
    fn retries(&self, key: &K) -> u32 {
        (**self).retries(key)
    }
}
