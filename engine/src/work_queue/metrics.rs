//! What a queue has counted and measured.
use std::time::Duration;

/// The counters inside the lock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) adds: u64,
    pub(super) collapsed: u64,
    pub(super) refused: u64,
    pub(super) delivered: u64,
    pub(super) delays_dropped: u64,
    pub(super) gets: u64,
    pub(super) done: u64,
    pub(super) retries: u64,
    pub(super) panics: u64,
}

/// The measured times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timings {
    pub(super) queue_latency: DurationSummary,
    pub(super) work_duration: DurationSummary,
}

/// Durations, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurationSummary {
    /// How many there were.
    pub count: u64,
    /// Their sum.
    pub total: Duration,
    /// The longest.
    pub max: Duration,
}

impl DurationSummary {
    #[inline]
    pub(super) fn record(&mut self, duration: Duration) {
        self.count += 1;
        self.total = self.total.saturating_add(duration);
        self.max = self.max.max(duration);
    }

    /// The mean; zero when there were none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let nanos = self.total.as_nanos().checked_div(u128::from(self.count));
        nanos.map_or(Duration::ZERO, |nanos| {
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        })
    }
}

/// Where a queue stands and what it has counted since it was made; a plain copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkQueueMetrics {
    /// Keys that can be handed out now: what `len` returns.
    pub ready: usize,
    /// Keys with work that was not handed out yet: `ready`, `held`, and the keys that were added again
    /// while they are being worked on (client-go's `workqueue_depth`).
    pub depth: usize,
    /// Keys whose time has not come.
    pub delayed: usize,
    /// Keys that wait for a condition.
    pub held: usize,
    /// Keys that are being worked on.
    pub in_flight: usize,
    /// `get`s that wait.
    pub waiting_workers: usize,
    /// Adds that made an entry (client-go's `workqueue_adds_total`), delays included once they were due.
    pub adds: u64,
    /// Adds that found an entry of their key, or a backoff that holds it.
    pub collapsed: u64,
    /// Adds of any kind that came after the shutdown began.
    pub refused: u64,
    /// Delays whose time came.
    pub delivered: u64,
    /// Delays that the shutdown dropped.
    pub delays_dropped: u64,
    /// Entries that were handed out.
    pub gets: u64,
    /// Of these, those whose work has ended.
    pub done: u64,
    /// Adds through the rate limiter (client-go's `workqueue_retries_total`).
    pub retries: u64,
    /// Items that were dropped by a panic.
    pub panics: u64,
    /// From the first add of an entry, or the end of its hold, to its hand-out. Zero unless times are measured.
    pub queue_latency: DurationSummary,
    /// From hand-out to done. Zero unless times are measured.
    pub work_duration: DurationSummary,
    /// The ages of all work that runs, added up. Zero unless times are measured.
    pub unfinished: Duration,
    /// The age of the oldest work that runs. Zero unless times are measured.
    pub longest_running: Duration,
}
