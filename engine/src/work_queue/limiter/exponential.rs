//! Each key by itself, each wait twice the one before.
use super::RateLimiter;
use super::failures::{DEFAULT_CAPACITY, Failures};
use crate::clock::Timestamp;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

/// `base`, `2 * base`, `4 * base` and so on up to `max`, for each key by itself.
///
/// Remembers the failures of a bounded number of keys ([`ItemExponential::with_capacity`]): at least
/// the last `capacity / 2` keys that failed. One that is squeezed out starts at `base` again.
///
/// ```
/// use informant::Timestamp;
/// use informant::work_queue::{ItemExponential, RateLimiter};
/// use std::time::Duration;
/// let limiter = ItemExponential::default();
/// let now = Timestamp::default();
/// assert_eq!(limiter.when(&"a", now), Duration::from_millis(5));
/// assert_eq!(limiter.when(&"a", now), Duration::from_millis(10));
/// limiter.forget(&"a");
/// assert_eq!(limiter.when(&"a", now), Duration::from_millis(5));
/// ```
pub struct ItemExponential<K> {
    base: Duration,
    max: Duration,
    failures: Failures<K>,
}

impl<K: Hash + Eq + Clone> ItemExponential<K> {
    /// Waits from `base` to `max`.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self::with_capacity(base, max, DEFAULT_CAPACITY)
    }

    /// [`ItemExponential::new`], remembering at most `capacity` failing keys.
    #[must_use]
    pub fn with_capacity(base: Duration, max: Duration, capacity: usize) -> Self {
        Self {
            base,
            max,
            failures: Failures::new(capacity),
        }
    }

    /// How many failing keys are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.failures.len()
    }
}

impl<K: Hash + Eq + Clone> Default for ItemExponential<K> {
    /// 5 ms to 1000 s, as client-go's controllers have it.
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<K: Hash + Eq + Clone + Send> RateLimiter<K> for ItemExponential<K> {
    fn when(&self, key: &K, _now: Timestamp) -> Duration {
        let failures = self.failures.count(key);
        doubled(self.base, failures).map_or(self.max, |delay| delay.min(self.max))
    }

    fn forget(&self, key: &K) {
        self.failures.forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.failures.of(key)
    }
}

/// `base` times two to the power of `times`; `None` past what a duration can hold.
fn doubled(base: Duration, times: u32) -> Option<Duration> {
    if base.is_zero() {
        return Some(base);
    }
    let factor = 1_u128.checked_shl(times)?;
    let nanos = base.as_nanos().checked_mul(factor)?;
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    let rest = u32::try_from(nanos % 1_000_000_000).ok()?;
    Some(Duration::new(seconds, rest))
}

impl<K: Hash + Eq + Clone> fmt::Debug for ItemExponential<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemExponential")
            .field("base", &self.base)
            .field("max", &self.max)
            .field("remembered", &self.remembered())
            .finish_non_exhaustive()
    }
}
