//! What many rounds of one measurement come to.
use serde::{Deserialize, Serialize};

/// Median and the tenth and ninetieth percentile of the rounds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) p10: f64,
    pub(crate) p90: f64,
}

impl Spread {
    /// # Panics
    /// When there is no sample: a row without a measurement is a mistake in its scenario.
    pub(crate) fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self {
            median: quantile(&sorted, 0.5),
            p10: quantile(&sorted, 0.1),
            p90: quantile(&sorted, 0.9),
        }
    }

    pub(crate) fn exact(value: f64) -> Self {
        Self::of(&[value])
    }
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty(), "a row needs at least one sample");
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_taken_between_neighbours() {
        let spread = Spread::of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert!((spread.median - 3.0).abs() < 1e-9);
        assert!((spread.p10 - 1.4).abs() < 1e-9);
        assert!((spread.p90 - 4.6).abs() < 1e-9);
    }
}
