//! How late handlers are: a histogram that many threads write to.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Sixteen buckets for each doubling: a quantile is at most a sixteenth off.
const PER_DOUBLING: u64 = 16;
const BUCKETS: usize = 1024;

/// Counts durations by size.
pub(super) struct Histogram {
    buckets: Box<[AtomicU64]>,
}

/// A copy of a histogram's counts.
#[derive(Clone)]
pub(super) struct Counts(Vec<u64>);

/// What is told of a distribution, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(super) fn record(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        // A statistic: nothing is ordered by it.
        self.buckets[bucket_of(micros)].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        Counts(
            self.buckets
                .iter()
                .map(|bucket| bucket.load(Ordering::Relaxed))
                .collect(),
        )
    }
}

impl Counts {
    pub(super) fn empty() -> Self {
        Self(vec![0; BUCKETS])
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (mine, others) in self.0.iter_mut().zip(&other.0) {
            *mine += others;
        }
    }

    /// What was counted since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let pairs = self.0.iter().zip(&earlier.0);
        Self(pairs.map(|(now, then)| now.saturating_sub(*then)).collect())
    }

    /// `None` when nothing was counted.
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        let total: u64 = self.0.iter().sum();
        let at = |rank: u64| {
            let mut seen = 0;
            let found = self.0.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            micros_of(found.unwrap_or(BUCKETS - 1))
        };
        (total > 0).then(|| Quantiles {
            p50: at(total.div_ceil(2)),
            p99: at(total - total / 100),
            max: at(total),
        })
    }
}

fn bucket_of(micros: u64) -> usize {
    if micros < PER_DOUBLING {
        return usize::try_from(micros).unwrap_or(BUCKETS - 1);
    }
    let doubling = u64::from(micros.ilog2()) - 4;
    let within = (micros >> doubling) - PER_DOUBLING;
    usize::try_from(PER_DOUBLING * (doubling + 1) + within).unwrap_or(BUCKETS - 1)
}

/// The lower bound of a bucket.
fn micros_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PER_DOUBLING {
        return bucket;
    }
    let doubling = bucket / PER_DOUBLING - 1;
    (PER_DOUBLING + bucket % PER_DOUBLING) << doubling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_is_at_most_a_sixteenth_above_it() {
        for shift in 0..64 {
            for near in [0, 1, 3] {
                let micros = (1_u64 << shift) | near;
                let bucket = bucket_of(micros);
                assert!(bucket < BUCKETS, "{micros}");
                let low = micros_of(bucket);
                assert!(low <= micros && micros - low <= low / 16, "{micros} {low}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let histogram = Histogram::new();
        assert_eq!(histogram.counts().quantiles(), None);
        for micros in 1..=10 {
            histogram.record(Duration::from_micros(micros));
        }
        let all = histogram.counts();
        let expected = Quantiles {
            p50: 5,
            p99: 10,
            max: 10,
        };
        assert_eq!(all.quantiles(), Some(expected));
        assert_eq!(histogram.counts().since(&all).quantiles(), None);
    }
}
