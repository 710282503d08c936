//! Latencies, counted in buckets of at most three per cent width.

/// Buckets per power of two.
const STEPS: usize = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// A histogram of nanoseconds. Recording allocates nothing.
#[derive(Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; (64 - STEP_BITS as usize + 1) * STEPS],
            total: 0,
            max: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.max = self.max.max(nanos);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    pub(crate) fn count(&self) -> u64 {
        self.total
    }

    pub(crate) fn max(&self) -> f64 {
        self.max as f64
    }

    /// The value below which the part `q` of all lies; 0 when nothing was recorded.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        let rank = (q * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return (upper_end(at).min(self.max)) as f64;
            }
        }
        0.0
    }
}

#[inline]
fn bucket(nanos: u64) -> usize {
    if nanos < STEPS as u64 {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEP_BITS;
    (shift as usize + 1) * STEPS + ((nanos >> shift) as usize - STEPS)
}

fn upper_end(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let shift = bucket / STEPS - 1;
    let start = ((bucket % STEPS + STEPS) as u64) << shift;
    start + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_within_its_bucket_and_three_per_cent() {
        for nanos in [0, 1, 31, 32, 33, 63, 64, 1_000, 123_456_789, 1 << 40] {
            let end = upper_end(bucket(nanos));
            assert!(end >= nanos && end - nanos <= nanos / 32, "{nanos} {end}");
        }
    }

    #[test]
    fn quantiles_of_known_values() {
        let mut histogram = Histogram::new();
        (1..=1_000).for_each(|nanos| histogram.record(nanos));
        assert!((histogram.quantile(0.5) - 500.0).abs() < 20.0);
        assert!((histogram.quantile(1.0) - 1_000.0).abs() < 1e-9);
    }
}
