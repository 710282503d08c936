//! Interleaved rounds: every arm runs once in each round, in an order that turns.
use crate::spread::Spread;

/// How one arm measures once; `K` figures that belong together (reads and writes, say).
type Measure<'a, const K: usize> = Box<dyn FnMut() -> [f64; K] + 'a>;

/// Arms that are measured against each other.
pub(crate) struct Contest<'a, const K: usize> {
    arms: Vec<(&'static str, Measure<'a, K>)>,
    skipped: Vec<(&'static str, String)>,
}

/// What each arm came to, in the order of the arms.
pub(crate) struct Standing<const K: usize> {
    pub(crate) arms: Vec<(&'static str, [Spread; K])>,
    pub(crate) skipped: Vec<(&'static str, String)>,
}

impl<'a, const K: usize> Contest<'a, K> {
    pub(crate) fn new() -> Self {
        Self {
            arms: Vec::new(),
            skipped: Vec::new(),
        }
    }

    pub(crate) fn arm(&mut self, name: &'static str, measure: impl FnMut() -> [f64; K] + 'a) {
        self.arms.push((name, Box::new(measure)));
    }

    /// The arm `name` if the peer is there, and a note that says why it is missing if not.
    pub(crate) fn arm_of<P>(
        &mut self,
        name: &'static str,
        peer: Result<P, impl std::fmt::Display>,
        measure: impl FnOnce(P) -> Measure<'a, K>,
    ) {
        match peer {
            Ok(peer) => self.arms.push((name, measure(peer))),
            Err(reason) => self.skipped.push((name, reason.to_string())),
        }
    }

    /// Note why an arm is missing.
    pub(crate) fn skip(&mut self, name: &'static str, reason: &str) {
        self.skipped.push((name, reason.to_owned()));
    }

    /// One round to warm up, then `rounds` that count.
    pub(crate) fn run(mut self, rounds: usize) -> Standing<K> {
        let mut samples = vec![Vec::with_capacity(rounds); self.arms.len()];
        let count = self.arms.len();
        for round in 0..=rounds {
            for turn in 0..count {
                let at = (turn + round) % count;
                let figures = (self.arms[at].1)();
                if round > 0 {
                    samples[at].push(figures);
                }
            }
        }
        let arms = self
            .arms
            .iter()
            .zip(samples)
            .map(|((name, _), samples)| {
                let spread = |k: usize| {
                    Spread::of(&samples.iter().map(|figures| figures[k]).collect::<Vec<_>>())
                };
                (*name, std::array::from_fn(spread))
            })
            .collect();
        Standing {
            arms,
            skipped: self.skipped,
        }
    }
}

impl<const K: usize> Standing<K> {
    /// The figure `k` of the arm `name`, if it ran.
    pub(crate) fn figure(&self, name: &str, k: usize) -> Option<Spread> {
        self.arms
            .iter()
            .find(|(arm, _)| *arm == name)
            .map(|(_, figures)| figures[k])
    }
}
