//! Ending a queue in good order.
use super::shared::Shared;
use super::state::Phase;

/// What a drain does with the keys whose time has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delayed {
    /// They are dropped: a restart finds them again by its list.
    #[default]
    Drop,
    /// They are waited for and handed out.
    Deliver,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everything that was there was handed out, and its work has ended.
    Complete,
    /// A [`shut_down`](super::WorkQueue::shut_down) put an end to the wait; work may be left.
    CutShort,
}

impl<K> Shared<K> {
    /// Wait until the drain that has begun ends.
    pub(super) async fn drained(&self) -> Drained {
        let ended = || {
            let state = self.state.lock();
            match state.phase {
                _ if state.is_drained() => Some(Drained::Complete),
                Phase::ShutDown => Some(Drained::CutShort),
                Phase::Draining | Phase::Open => None,
            }
        };
        self.settled.until(ended).await
    }
}
