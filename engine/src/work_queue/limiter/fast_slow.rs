//! A few quick attempts, then slow ones.
use super::RateLimiter;
use super::failures::{DEFAULT_CAPACITY, Failures};
use crate::clock::Timestamp;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

/// The first attempts of a key wait `fast`, the others `slow`.
///
/// Remembers the failures of at most [`DEFAULT_CAPACITY`] keys, by the rule of
/// [`ItemExponential`](super::ItemExponential).
pub struct FastSlow<K> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: Failures<K>,
}

impl<K: Hash + Eq + Clone> FastSlow<K> {
    /// `fast_attempts` waits of `fast`, then `slow`.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self {
            fast,
            slow,
            fast_attempts,
            failures: Failures::new(DEFAULT_CAPACITY),
        }
    }
}

impl<K: Hash + Eq + Clone + Send> RateLimiter<K> for FastSlow<K> {
    fn when(&self, key: &K, _now: Timestamp) -> Duration {
        if self.failures.count(key) < self.fast_attempts {
            self.fast
        } else {
            self.slow
        }
    }

    fn forget(&self, key: &K) {
        self.failures.forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.failures.of(key)
    }
}

impl<K: Hash + Eq + Clone> fmt::Debug for FastSlow<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastSlow")
            .field("fast", &self.fast)
            .field("slow", &self.slow)
            .field("fast_attempts", &self.fast_attempts)
            .finish_non_exhaustive()
    }
}
