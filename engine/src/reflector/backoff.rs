//! How long to wait after a failure: one state, shared by list and watch.
use crate::clock::Timestamp;
use std::time::Duration;

/// The law by which waits grow: `initial`, then times `factor` after each failure, up to `max`;
/// each wait is drawn evenly from `[d, d * (1 + jitter))`.
///
/// Values that make no sense are brought into range: `initial` to a millisecond at least, `max` to
/// `initial` at least, `factor` to 1 at least, `jitter` to 0 at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffConfig {
    /// The first wait. Default: 0.8 s.
    pub initial: Duration,
    /// Where the growth ends (before jitter). Default: 30 s.
    pub max: Duration,
    /// The growth. Default: 2.
    pub factor: f64,
    /// How much may be added at random, as a part of the wait. Default: 1.
    pub jitter: f64,
    /// After this long without a failure the next wait is `initial` again. Default: 2 minutes.
    pub reset_after: Duration,
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            max: Duration::from_secs(30),
            factor: 2.0,
            jitter: 1.0,
            reset_after: Duration::from_secs(120),
        }
    }
}

/// The waits of one reflector.
///
/// Health is counted from the first *success* after the last failure, never from the last reset
/// and never over a call that hangs: an outage cannot reset its own backoff.
#[derive(Debug)]
pub(super) struct Backoff {
    config: BackoffConfig,
    next: Duration,
    healthy_since: Option<Timestamp>,
}

impl Backoff {
    pub(super) fn new(mut config: BackoffConfig) -> Self {
        config.initial = config.initial.max(Duration::from_millis(1));
        config.max = config.max.max(config.initial);
        // `max` takes the other operand for NaN.
        config.factor = config.factor.max(1.0);
        config.jitter = config.jitter.max(0.0);
        Self {
            config,
            next: config.initial,
            healthy_since: None,
        }
    }

    /// Something worked.
    pub(super) fn succeeded(&mut self, now: Timestamp) {
        self.healthy_since.get_or_insert(now);
    }

    /// Something failed: how long to wait, at least `at_least`.
    pub(super) fn failed(
        &mut self,
        now: Timestamp,
        at_least: Option<Duration>,
        rng: &mut fastrand::Rng,
    ) -> Duration {
        let reset_after = if cfg!(informant_mutant = "backoff_resets_in_an_outage") {
            Duration::ZERO
        } else {
            self.config.reset_after
        };
        if let Some(since) = self.healthy_since.take()
            && now.since(since) >= reset_after
        {
            self.next = self.config.initial;
        }
        let base = self.next;
        self.next = scaled(base, self.config.factor).min(self.config.max);
        let delay = scaled(base, 1.0 + self.config.jitter * rng.f64());
        delay.max(at_least.unwrap_or_default())
    }
}

/// A duration times a factor of at least 1, without overflow.
fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::new(Duration::from_secs(secs))
    }

    fn millis(delay: Duration) -> u128 {
        (delay + Duration::from_micros(10)).as_millis()
    }

    /// I-R11: the n-th wait is in `[d, 2d)`, d = 0.8, 1.6, ... 25.6, 30, 30, ...
    #[test]
    fn i_r11_waits_double_up_to_the_cap_with_jitter_on_top() {
        for seed in 0..50 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut backoff = Backoff::new(BackoffConfig::default());
            for expected in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
                let delay = millis(backoff.failed(at(0), None, &mut rng));
                assert!(
                    (expected..=2 * expected).contains(&delay),
                    "seed {seed}: {delay} is not in [{expected}, {})",
                    2 * expected
                );
            }
        }
    }

    #[test]
    fn i_r11_a_custom_law_without_jitter_is_exact() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig {
            initial: Duration::from_millis(10),
            max: Duration::from_millis(100),
            factor: 2.0,
            jitter: 0.0,
            ..BackoffConfig::default()
        });
        let delays: Vec<_> = (0..5)
            .map(|_| millis(backoff.failed(at(0), None, &mut rng)))
            .collect();
        assert_eq!(delays, [10, 20, 40, 80, 100]);
    }

    /// W-R2: a long outage with short successes in between never falls back to the first wait.
    #[test]
    fn only_two_minutes_of_health_reset_the_waits() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig {
            jitter: 0.0,
            ..BackoffConfig::default()
        });
        let mut now = at(0);
        for _ in 0..100 {
            now = now + backoff.failed(now, None, &mut rng);
            backoff.succeeded(now);
            now = now + Duration::from_secs(1);
        }
        assert_eq!(
            backoff.failed(now, None, &mut rng),
            Duration::from_secs(30),
            "still an outage"
        );
        // A call that hangs for ever is no health either.
        now = now + Duration::from_secs(1000);
        assert_eq!(backoff.failed(now, None, &mut rng), Duration::from_secs(30));

        backoff.succeeded(now);
        now = now + Duration::from_secs(60);
        backoff.succeeded(now);
        now = now + Duration::from_secs(59);
        assert_eq!(backoff.failed(now, None, &mut rng), Duration::from_secs(30));
        backoff.succeeded(now);
        now = now + Duration::from_secs(120);
        assert_eq!(
            backoff.failed(now, None, &mut rng),
            Duration::from_millis(800)
        );
    }

    #[test]
    fn the_servers_wish_is_a_lower_bound() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig::default());
        let wish = Duration::from_secs(3);
        assert_eq!(backoff.failed(at(0), Some(wish), &mut rng), wish);
        let small = Duration::from_millis(1);
        assert!(backoff.failed(at(0), Some(small), &mut rng) >= Duration::from_millis(1600));
    }

    #[test]
    fn senseless_settings_are_brought_into_range() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::new(BackoffConfig {
            initial: Duration::ZERO,
            max: Duration::ZERO,
            factor: f64::NAN,
            jitter: -1.0,
            reset_after: Duration::ZERO,
        });
        for _ in 0..5 {
            assert_eq!(
                backoff.failed(at(0), None, &mut rng),
                Duration::from_millis(1)
            );
        }
    }
}
