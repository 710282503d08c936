//! The settings of a reflector.
use super::{BackoffConfig, ReflectorError};
use crate::clock::SharedClock;
use crate::source::Selectors;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Called with every fault, from the reflector's own task: it should be quick. A panic in it is
/// caught and counted.
pub type ErrorHook = Arc<dyn Fn(&ReflectorError) + Send + Sync>;

/// The settings of a reflector; start from [`ReflectorConfig::new`].
///
/// ```
/// use informant::{ManualClock, reflector::ReflectorConfig};
/// let mut config = ReflectorConfig::new(std::sync::Arc::new(ManualClock::new()));
/// config.page_size = Some(1000);
/// config.on_error = Some(std::sync::Arc::new(|error| eprintln!("{error}")));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ReflectorConfig {
    /// Names the reflector in traces and metrics.
    pub name: Arc<str>,
    /// All waits and timestamps come from here.
    pub clock: SharedClock,
    /// Of all randomness (jitter). Equal seeds give equal runs; by default it is drawn at random, so
    /// that many reflectors do not act in step.
    pub seed: u64,
    /// Which part of the collection; travels with every call as it is.
    pub selectors: Selectors,
    /// Objects a page. `None`: 500 where the server pages anyway, and no paging for lists at a known
    /// version, which its cache can serve whole. `Some(0)`: never paged.
    pub page_size: Option<u32>,
    /// How waits after failures grow.
    pub backoff: BackoffConfig,
    /// Each watch is asked to last for a random time in `[min, 2 min)`. Less than 5 minutes counts
    /// as 5 minutes, the default.
    pub min_watch_timeout: Duration,
    /// A watch that outlives its own timeout by this much is half-open: it is dropped and opened
    /// again, without an error. Default: 30 s.
    pub watch_grace: Duration,
    /// A list page, or the opening of a watch, that takes longer has failed. Default: 2 minutes.
    pub call_timeout: Duration,
    /// For how long a watch that meets internal errors (500) is retried before a relist. Default:
    /// zero, relist at once.
    pub internal_error_retry: Duration,
    /// How many streaming lists may end without their end marker before plain lists are used for
    /// good. Zero: none is tried. Default: 3. Sources that support none are never asked.
    pub streaming_list_tries: u32,
    /// A streaming list without any frame for this long, before its end marker, has failed.
    /// Default: 30 s.
    pub streaming_list_patience: Duration,
    /// Told of every fault.
    pub on_error: Option<ErrorHook>,
}

impl ReflectorConfig {
    /// The defaults, on `clock`.
    #[must_use]
    pub fn new(clock: SharedClock) -> Self {
        Self {
            name: "reflector".into(),
            clock,
            seed: fastrand::u64(..),
            selectors: Selectors::default(),
            page_size: None,
            backoff: BackoffConfig::default(),
            min_watch_timeout: MIN_WATCH_TIMEOUT,
            watch_grace: Duration::from_secs(30),
            call_timeout: Duration::from_secs(120),
            internal_error_retry: Duration::ZERO,
            streaming_list_tries: 3,
            streaming_list_patience: Duration::from_secs(30),
            on_error: None,
        }
    }

    /// How long the next watch shall last: whole seconds, as servers count.
    pub(super) fn watch_timeout(&self, rng: &mut fastrand::Rng) -> Duration {
        let min = self.min_watch_timeout.max(MIN_WATCH_TIMEOUT).as_secs();
        Duration::from_secs(rng.u64(min..min.saturating_mul(2)))
    }
}

/// Shorter watches are a burden to servers and gain nothing.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(300);

impl fmt::Debug for ReflectorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorConfig")
            .field("name", &self.name)
            .field("seed", &self.seed)
            .field("selectors", &self.selectors)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    /// I-R5: the timeout is in `[min, 2 min)`, and min is five minutes at least.
    #[test]
    fn i_r5_watch_timeouts_are_jittered_above_five_minutes() {
        let mut config = ReflectorConfig::new(Arc::new(ManualClock::new()));
        let mut rng = fastrand::Rng::with_seed(7);
        for (min, range) in [(1, 300..600), (300, 300..600), (1800, 1800..3600)] {
            config.min_watch_timeout = Duration::from_secs(min);
            for _ in 0..200 {
                assert!(range.contains(&config.watch_timeout(&mut rng).as_secs()));
            }
        }
    }
}
