//! Keys to look up, laid out one after the other: reading the next query must not cost the cache
//! miss that is to be measured.
use crate::pod::World;

/// Query keys in the order in which they are asked.
pub(crate) struct Queries {
    text: String,
    /// Start, length of the namespace, length of the key.
    spans: Vec<(u32, u16, u16)>,
}

/// Which keys are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Every object is as likely as any other.
    Uniform,
    /// Sixty-four objects, all the time.
    Hot,
}

impl Queries {
    pub(crate) fn new(world: &World, keys: Keys, count: usize, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut queries = Self {
            text: String::new(),
            spans: Vec::with_capacity(count),
        };
        let hot: Vec<_> = (0..64).map(|_| rng.usize(..world.len())).collect();
        for _ in 0..count {
            let at = match keys {
                Keys::Uniform => rng.usize(..world.len()),
                Keys::Hot => hot[rng.usize(..hot.len())],
            };
            let pod = &world.pods[at];
            let start = queries.text.len() as u32;
            queries.text.push_str(&pod.key());
            let len = queries.text.len() - start as usize;
            queries
                .spans
                .push((start, pod.namespace.len() as u16, len as u16));
        }
        queries
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The query `at` as `namespace/name`; wraps around.
    #[inline]
    pub(crate) fn text(&self, at: usize) -> &str {
        let (start, _, len) = self.spans[at % self.spans.len()];
        &self.text[start as usize..start as usize + len as usize]
    }

    /// The query `at` in its two parts; wraps around.
    #[inline]
    pub(crate) fn parts(&self, at: usize) -> (&str, &str) {
        let (_, namespace, _) = self.spans[at % self.spans.len()];
        let text = self.text(at);
        (&text[..namespace as usize], &text[namespace as usize + 1..])
    }

    /// All queries as text.
    pub(crate) fn texts(&self) -> Vec<&str> {
        (0..self.len()).map(|at| self.text(at)).collect()
    }
}
