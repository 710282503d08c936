//! Rate limiters: how long a key that failed has to wait.
use crate::clock::Timestamp;
use crate::sync::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// Says how long a key has to wait. Called outside the queue's lock.
pub trait RateLimiter<K>: Send + Sync {
    /// The delay of this add; each call counts as a failure of the key.
    fn when(&self, key: &K, now: Timestamp) -> Duration;
    /// The key succeeded: its failures do not count any more. Of an unknown key: nothing.
    fn forget(&self, key: &K);
    /// Failures of the key since it was last forgotten.
    fn retries(&self, key: &K) -> u32;
}

/// Keys whose failures are remembered at the most; those that have not failed for longest are
/// forgotten first. A key that succeeds should be forgotten by the caller.
const REMEMBERED: usize = 1 << 20;

/// Failure counts in two generations: when the younger is full, the older is let go. So memory is
/// bounded, and what failed lately is remembered.
struct Failures<K> {
    young: HashMap<K, u32>,
    old: HashMap<K, u32>,
    limit: usize,
}

impl<K: Hash + Eq + Clone> Failures<K> {
    fn new() -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            limit: REMEMBERED / 2,
        }
    }

    /// Count a failure; how many there were before.
    fn count(&mut self, key: &K) -> u32 {
        if let Some(count) = self.young.get_mut(key) {
            let before = *count;
            *count = before.saturating_add(1);
            return before;
        }
        let before = self.old.remove(key).unwrap_or(0);
        if self.young.len() >= self.limit {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key.clone(), before.saturating_add(1));
        before
    }

    fn forget(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    fn get(&self, key: &K) -> u32 {
        let found = self.young.get(key).or_else(|| self.old.get(key));
        found.copied().unwrap_or(0)
    }
}

/// `base` doubled at each failure of the key, `max` at the most.
pub struct ItemExponential<K> {
    base: Duration,
    max: Duration,
    failures: Mutex<Failures<K>>,
}

impl<K: Hash + Eq + Clone> ItemExponential<K> {
    /// A limiter that begins at `base`.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self {
            base,
            max,
            failures: Mutex::new(Failures::new()),
        }
    }
}

impl<K: Hash + Eq + Clone> Default for ItemExponential<K> {
    /// 5 ms to 1000 s.
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1_000))
    }
}

impl<K: Hash + Eq + Clone + Send> RateLimiter<K> for ItemExponential<K> {
    fn when(&self, key: &K, _now: Timestamp) -> Duration {
        let failures = self.failures.lock().count(key);
        let factor = 1_u32.checked_shl(failures);
        factor
            .and_then(|factor| self.base.checked_mul(factor))
            .map_or(self.max, |delay| delay.min(self.max))
    }

    fn forget(&self, key: &K) {
        self.failures.lock().forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.failures.lock().get(key)
    }
}

/// `fast` for the first attempts of a key, `slow` afterwards.
pub struct FastSlow<K> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: Mutex<Failures<K>>,
}

impl<K: Hash + Eq + Clone> FastSlow<K> {
    /// A limiter with so many fast attempts.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self {
            fast,
            slow,
            fast_attempts,
            failures: Mutex::new(Failures::new()),
        }
    }
}

impl<K: Hash + Eq + Clone + Send> RateLimiter<K> for FastSlow<K> {
    fn when(&self, key: &K, _now: Timestamp) -> Duration {
        if self.failures.lock().count(key) < self.fast_attempts {
            self.fast
        } else {
            self.slow
        }
    }

    fn forget(&self, key: &K) {
        self.failures.lock().forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.failures.lock().get(key)
    }
}

/// One bucket for all keys: `burst` adds at once, then `per_second`.
pub struct TokenBucket {
    interval: Duration,
    burst: u32,
    /// The time at which the bucket, if nobody took from it again, would be full.
    full_at: Mutex<Timestamp>,
}

impl TokenBucket {
    /// A full bucket.
    ///
    /// # Panics
    /// When `per_second` is not a positive number.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        assert!(
            per_second.is_finite() && per_second > 0.0,
            "a bucket needs a positive rate, not {per_second}"
        );
        Self {
            interval: Duration::from_secs_f64(1.0 / per_second),
            burst,
            full_at: Mutex::new(Timestamp::default()),
        }
    }
}

impl<K> RateLimiter<K> for TokenBucket {
    fn when(&self, _key: &K, now: Timestamp) -> Duration {
        let mut full_at = self.full_at.lock();
        *full_at = (*full_at).max(now) + self.interval;
        // With `burst` tokens taken the bucket is full again after as many intervals.
        full_at.since(now + self.interval.saturating_mul(self.burst))
    }

    fn forget(&self, _key: &K) {}

    fn retries(&self, _key: &K) -> u32 {
        0
    }
}

/// The longest of several delays; every limiter counts every failure.
pub struct MaxOf<K>(pub Vec<Arc<dyn RateLimiter<K>>>);

impl<K> RateLimiter<K> for MaxOf<K> {
    fn when(&self, key: &K, now: Timestamp) -> Duration {
        let delays = self.0.iter().map(|limiter| limiter.when(key, now));
        delays.max().unwrap_or_default()
    }

    fn forget(&self, key: &K) {
        self.0.iter().for_each(|limiter| limiter.forget(key));
    }

    fn retries(&self, key: &K) -> u32 {
        let retries = self.0.iter().map(|limiter| limiter.retries(key));
        retries.max().unwrap_or_default()
    }
}

/// Another limiter, but never longer than this.
pub struct WithMaxWait<K> {
    /// The limiter.
    pub limiter: Arc<dyn RateLimiter<K>>,
    /// The longest delay.
    pub max: Duration,
}

impl<K> RateLimiter<K> for WithMaxWait<K> {
    fn when(&self, key: &K, now: Timestamp) -> Duration {
        self.limiter.when(key, now).min(self.max)
    }

    fn forget(&self, key: &K) {
        self.limiter.forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.limiter.retries(key)
    }
}

/// Another limiter, lengthened at random by up to a part of its delay, so that keys which failed
/// together do not come again together.
pub struct Jittered<K> {
    limiter: Arc<dyn RateLimiter<K>>,
    part: f64,
    random: Mutex<fastrand::Rng>,
}

impl<K> Jittered<K> {
    /// Lengthen delays by up to `part` of themselves; `seed` makes it the same in every run.
    #[must_use]
    pub fn new(limiter: Arc<dyn RateLimiter<K>>, part: f64, seed: u64) -> Self {
        Self {
            limiter,
            part: part.max(0.0),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }
}

impl<K> RateLimiter<K> for Jittered<K> {
    fn when(&self, key: &K, now: Timestamp) -> Duration {
        let delay = self.limiter.when(key, now);
        let stretch = 1.0 + self.part * self.random.lock().f64();
        Duration::try_from_secs_f64(delay.as_secs_f64() * stretch).unwrap_or(delay)
    }

    fn forget(&self, key: &K) {
        self.limiter.forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.limiter.retries(key)
    }
}

macro_rules! debug_by_name {
    ($($name:ident<K>),* $(,)?) => {
        $(impl<K> fmt::Debug for $name<K> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
    };
}

debug_by_name!(
    ItemExponential<K>,
    FastSlow<K>,
    MaxOf<K>,
    WithMaxWait<K>,
    Jittered<K>
);

impl fmt::Debug for TokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBucket")
            .field("interval", &self.interval)
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}
