//! All keys together: so many a second, with bursts.
use super::RateLimiter;
use crate::clock::Timestamp;
use crate::sync::Mutex;
use std::fmt;
use std::time::Duration;

/// A token bucket that all keys share: full at first, refilled evenly; a call takes a token, or the
/// promise of the next one and waits for it. It forgets nothing and counts nothing by key.
///
/// It ties all keys together: one hot failing key slows down every other, which is why no queue has
/// one by default. Combine it with a limiter by key through [`MaxOf`](super::MaxOf).
///
/// The arithmetic is in whole nanoseconds of the injected clock, so it is exact in virtual time.
pub struct TokenBucket {
    /// Time for one token.
    interval: Duration,
    /// How far promises may run ahead of time before a call has to wait.
    tolerance: Duration,
    /// When every promise so far is paid: a full bucket is at or before now.
    paid_at: Mutex<Timestamp>,
}

impl TokenBucket {
    /// `per_second` tokens a second, at most `burst` of them saved up. What makes no sense is
    /// brought into range: `burst` to 1 at least, `per_second` to one token in 30 years at least and
    /// one in a nanosecond at most.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        const SLOWEST: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
        let interval = Duration::try_from_secs_f64(per_second.max(0.0).recip())
            .map_or(SLOWEST, |interval| interval.min(SLOWEST))
            .max(Duration::from_nanos(1));
        Self {
            interval,
            tolerance: interval.saturating_mul(burst.max(1) - 1),
            paid_at: Mutex::new(Timestamp::default()),
        }
    }

    /// Take a token: how long to wait for it.
    pub fn reserve(&self, now: Timestamp) -> Duration {
        let mut paid_at = self.paid_at.lock();
        let promised = (*paid_at).max(now);
        *paid_at = promised + self.interval;
        promised.since(now).saturating_sub(self.tolerance)
    }
}

impl<K> RateLimiter<K> for TokenBucket {
    fn when(&self, _key: &K, now: Timestamp) -> Duration {
        self.reserve(now)
    }

    fn forget(&self, _key: &K) {}

    fn retries(&self, _key: &K) -> u32 {
        0
    }
}

impl fmt::Debug for TokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBucket")
            .field("interval", &self.interval)
            .field("tolerance", &self.tolerance)
            .finish_non_exhaustive()
    }
}
