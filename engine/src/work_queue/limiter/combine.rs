//! Limiters made of others.
use super::{ItemExponential, RateLimiter, TokenBucket};
use crate::clock::Timestamp;
use crate::sync::Mutex;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait of several limiters. Each of them counts every call; `retries` is the largest of
/// theirs.
pub struct MaxOf<K> {
    limiters: Vec<Arc<dyn RateLimiter<K>>>,
}

impl<K> MaxOf<K> {
    /// The longest wait of these; without any there is no wait.
    #[must_use]
    pub fn new(limiters: Vec<Arc<dyn RateLimiter<K>>>) -> Self {
        Self { limiters }
    }

    /// What client-go gives its controllers: 5 ms to 1000 s for each key, and for all keys together
    /// ten retries a second with bursts of a hundred.
    #[must_use]
    pub fn client_go_default() -> Self
    where
        K: Hash + Eq + Clone + Send + 'static,
    {
        Self::new(vec![
            Arc::new(ItemExponential::default()),
            Arc::new(TokenBucket::new(10.0, 100)),
        ])
    }
}

impl<K> RateLimiter<K> for MaxOf<K> {
    fn when(&self, key: &K, now: Timestamp) -> Duration {
        let waits = self.limiters.iter().map(|limiter| limiter.when(key, now));
        waits.max().unwrap_or_default()
    }

    fn forget(&self, key: &K) {
        for limiter in &self.limiters {
            limiter.forget(key);
        }
    }

    fn retries(&self, key: &K) -> u32 {
        let retries = self.limiters.iter().map(|limiter| limiter.retries(key));
        retries.max().unwrap_or_default()
    }
}

impl<K> fmt::Debug for MaxOf<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaxOf({} limiters)", self.limiters.len())
    }
}

/// Another limiter, but no wait is longer than a maximum.
#[derive(Debug)]
pub struct WithMaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L> WithMaxWait<L> {
    /// `limiter`, with waits of at most `max`.
    #[must_use]
    pub const fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for WithMaxWait<L> {
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

/// Another limiter whose waits are made longer at random, so that keys that failed together do not
/// come back together: each wait is drawn evenly from `[d, d * (1 + factor))`.
pub struct Jittered<L> {
    limiter: L,
    factor: f64,
    random: Mutex<fastrand::Rng>,
}

impl<L> Jittered<L> {
    /// `limiter`, with up to `factor` of each wait added. Below zero counts as zero. The same seed
    /// and calls give the same waits.
    #[must_use]
    pub fn new(limiter: L, factor: f64, seed: u64) -> Self {
        Self {
            limiter,
            // `max` takes the other operand for NaN.
            factor: factor.max(0.0),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for Jittered<L> {
    fn when(&self, key: &K, now: Timestamp) -> Duration {
        let delay = self.limiter.when(key, now);
        let stretch = 1.0 + self.factor * self.random.lock().f64();
        Duration::try_from_secs_f64(delay.as_secs_f64() * stretch).unwrap_or(Duration::MAX)
    }

    fn forget(&self, key: &K) {
        self.limiter.forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.limiter.retries(key)
    }
}

impl<L: fmt::Debug> fmt::Debug for Jittered<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jittered")
            .field("limiter", &self.limiter)
            .field("factor", &self.factor)
            .finish_non_exhaustive()
    }
}
