//! The handle to a registered handler.
use super::drive::runs_here;
use super::hub::Hub;
use super::mailbox::{Mailbox, Policy};
use crate::delta::HandlerId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A registered handler. Dropping it removes the handler, unless it was
/// [detached](Registration::detach).
#[must_use = "dropping a registration removes its handler"]
pub struct Registration<T: Send + Sync + 'static> {
    pub(super) hub: Arc<Hub<T>>,
    pub(super) mailbox: Arc<Mailbox<T>>,
    pub(super) id: HandlerId,
    pub(super) name: Arc<str>,
    pub(super) resync_period: Option<Duration>,
    pub(super) detached: bool,
}

/// The wait for a handler's end was asked for inside a call of that same handler, where it would
/// never end. The handler is removed; this call is its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a handler cannot wait for its own end inside one of its calls; it is removed")]
pub struct OwnHandler;

impl<T: Send + Sync + 'static> Registration<T> {
    /// The handler's id, as resyncs name it.
    #[must_use]
    pub fn id(&self) -> HandlerId {
        self.id
    }

    /// The handler's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True when the cache is synced and all of this handler's initial calls have *returned* (a
    /// panic counts as a return). Once true, it stays so.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.mailbox.has_synced()
    }

    /// Ends with true when [synced](Registration::has_synced), with false when the handler was
    /// removed, or the informer stopped, before that.
    pub async fn synced(&self) -> bool {
        self.mailbox.synced().await
    }

    /// How often this handler is told of every object again: what became of the wish in its
    /// [options](super::HandlerOptions::resync). `None`: never.
    #[must_use]
    pub fn resync_period(&self) -> Option<Duration> {
        self.resync_period
    }

    /// What the handler has been told and what waits.
    #[must_use]
    pub fn status(&self) -> HandlerStatus {
        HandlerStatus::of(self.id, self.name.clone(), &self.mailbox)
    }

    /// Remove the handler, without waiting: no call begins after this, one in flight runs to its
    /// end, what waits is dropped. Removing it again does nothing.
    pub fn remove(&self) {
        self.hub.remove(self.id, &self.mailbox);
    }

    /// Remove the handler and wait until no call of it runs, and it has been dropped.
    ///
    /// # Errors
    /// [`OwnHandler`] when this is polled inside a call of the same handler.
    pub async fn remove_and_wait(&self) -> Result<(), OwnHandler> {
        self.remove();
        if runs_here(&self.mailbox) {
            return Err(OwnHandler);
        }
        self.mailbox.ended().await;
        Ok(())
    }

    /// Let the handler stay for as long as the informer runs. Returns its id.
    #[allow(clippy::must_use_candidate)] // The id is rarely wanted.
    pub fn detach(mut self) -> HandlerId {
        self.detached = true;
        self.id
    }
}

impl<T: Send + Sync + 'static> Drop for Registration<T> {
    fn drop(&mut self) {
        if !self.detached {
            self.remove();
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Registration<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.status()).finish()
    }
}

/// What a handler has been told and what waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Its id.
    pub id: HandlerId,
    /// Its name.
    pub name: Arc<str>,
    /// Its policy. Only [`PastLimit::Block`](super::PastLimit) can delay anyone else.
    pub policy: Policy,
    /// All its initial calls have returned.
    pub synced: bool,
    /// Calls that were made.
    pub calls: u64,
    /// Of these, calls that panicked.
    pub panics: u64,
    /// Changes that wait: keys where they are coalesced, else deltas.
    pub waiting: usize,
    /// Changes that were folded into another one that was waiting.
    pub coalesced: u64,
    /// How often it had to start over.
    pub replays: u64,
    /// A lossless handler is past its limit, and what arrives now is coalesced.
    pub overflowing: bool,
    /// It was removed, or the informer has stopped.
    pub removed: bool,
}

impl HandlerStatus {
    pub(super) fn of<T>(id: HandlerId, name: Arc<str>, mailbox: &Mailbox<T>) -> Self {
        let stats = mailbox.stats();
        Self {
            id,
            name,
            policy: mailbox.policy(),
            synced: mailbox.has_synced(),
            calls: stats.calls,
            panics: stats.panics,
            waiting: stats.waiting,
            coalesced: stats.coalesced,
            replays: stats.replays,
            overflowing: stats.overflowing,
            removed: mailbox.is_closed(),
        }
    }
}
