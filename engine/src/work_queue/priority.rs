//! How urgent an entry is, and what keeps the less urgent from starving.
use std::time::Duration;

/// How urgent an entry is.
///
/// The most urgent goes first; [`PriorityConfig`] says how much the others get meanwhile. A key that
/// is added again while it waits keeps the higher of both; what a worker puts back with the methods
/// of [`Item`](super::Item) keeps the priority with which it was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// What can wait for everything else: initial lists and resyncs.
    Low,
    /// What is not said otherwise.
    #[default]
    Normal,
    /// What goes before everything else.
    High,
}

impl Priority {
    pub(super) const COUNT: usize = 3;

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// What the less urgent get while more urgent entries wait: a guaranteed share of the hand-outs, and
/// a larger one for what has waited long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityConfig {
    /// Of this many hand-outs one is for each less urgent level that has something. Default: 10. At
    /// least 2.
    pub share: u32,
    /// From this age on, [`aged_share`](Self::aged_share) counts for a level whose oldest entry is
    /// that old. Default: 30 seconds.
    pub age_after: Duration,
    /// As [`share`](Self::share), for what has waited long. Default: 3. At least 2.
    pub aged_share: u32,
}

impl Default for PriorityConfig {
    fn default() -> Self {
        Self {
            share: 10,
            age_after: Duration::from_secs(30),
            aged_share: 3,
        }
    }
}
