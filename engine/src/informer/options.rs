//! What a handler is registered with.
use super::mailbox::Policy;
use super::resync::Resync;
use std::sync::Arc;
use std::time::Duration;

/// How a handler is to be served; the default coalesces, and resyncs as the informer does.
///
/// ```
/// use informant::informer::{HandlerOptions, PastLimit, Policy, Resync};
/// let options = HandlerOptions::named("audit")
///     .policy(Policy::lossless(10_000, PastLimit::Coalesce))
///     .resync(Resync::Never);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct HandlerOptions {
    pub(super) name: Option<Arc<str>>,
    pub(super) policy: Policy,
    pub(super) resync: Resync,
    pub(super) dedicated_thread: bool,
}

impl HandlerOptions {
    /// The defaults, with a name for reports, traces and metrics. Names need not be unique.
    pub fn named(name: &str) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::default()
        }
    }

    /// What is kept when the handler is slower than the changes.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How often the handler is told of every object again. What becomes of it is told by
    /// [`Registration::resync_period`](super::Registration::resync_period).
    pub fn resync(mut self, resync: Resync) -> Self {
        self.resync = resync;
        self
    }

    /// [`Resync::Every`] of this period; zero means never.
    pub fn resync_every(self, period: Duration) -> Self {
        self.resync(Resync::Every(period))
    }

    /// Run the handler on a thread of its own rather than on a task: for handlers that block. Such
    /// a handler can wait on anything without occupying a thread of the runtime. The thread ends
    /// with the registration.
    pub fn dedicated_thread(mut self) -> Self {
        self.dedicated_thread = true;
        self
    }
}
