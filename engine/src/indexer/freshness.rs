//! Waiting until the cache has reached a version.
use super::read::Indexer;
use super::view::View;
use crate::clock::{SharedClock, Timestamp};
use crate::delta::SourceId;
use crate::object::{ResourceVersion, Versioning};
use crate::sync::{AtomicBool, Mutex, Ordering, WaitSet, block_on};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;

/// Versions that are remembered as applied, for sources whose versions cannot be compared.
const REMEMBERED: usize = 128;

/// What waiters look at beside the current view.
pub(super) struct Freshness {
    pub(super) versioning: Versioning,
    waiters: WaitSet,
    stopped: AtomicBool,
    /// The last versions that were published, newest last. Only opaque versions need it.
    applied: Mutex<VecDeque<(SourceId, ResourceVersion)>>,
}

/// Why a wait for a version ended without reaching it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The deadline passed first. The cache goes on; wait again if it still matters.
    #[error("the cache did not reach the version before the deadline")]
    Deadline,
    /// The deadline passed, and the versions of this source cannot be compared: the version may
    /// have been passed without ever being the newest one.
    #[error(
        "the cache did not show exactly this version before the deadline, and versions of this source are not comparable"
    )]
    NotComparable,
    /// The writer is gone: the cache will never change again.
    #[error("the cache is stopped")]
    Stopped,
    /// The source was reset: versions from before mean nothing any more.
    #[error("the source was reset while waiting, so the version means nothing any more")]
    SourceReset,
}

impl Freshness {
    pub(super) fn new(versioning: Versioning) -> Self {
        Self {
            versioning,
            waiters: WaitSet::new(),
            stopped: AtomicBool::new(false),
            applied: Mutex::new(VecDeque::new()),
        }
    }

    /// A version was published.
    pub(super) fn published(&self, versions: &[(SourceId, ResourceVersion)]) {
        if self.versioning == Versioning::Opaque {
            let mut applied = self.applied.lock();
            for reached in versions {
                if applied.back() != Some(reached) {
                    applied.push_back(reached.clone());
                }
            }
            while applied.len() > REMEMBERED {
                applied.pop_front();
            }
        }
        self.waiters.notify_all();
    }

    /// No version will be published any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.waiters.notify_all();
    }
}

impl<T> Indexer<T> {
    /// Wait until the cache shows `version` of its only source, or a later one. Gaps in the
    /// numbers are normal. Dropping the future ends the wait.
    ///
    /// # Errors
    /// [`WaitError::Stopped`] or [`WaitError::SourceReset`]; never a deadline, since none is given.
    pub async fn wait_for(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        self.wait_for_source(SourceId::default(), version).await
    }

    /// [`Indexer::wait_for`] of one of several sources.
    ///
    /// # Errors
    /// As [`Indexer::wait_for`].
    pub async fn wait_for_source(
        &self,
        source: SourceId,
        version: &ResourceVersion,
    ) -> Result<(), WaitError> {
        let epoch = self.load().epoch();
        self.shared
            .freshness
            .waiters
            .until(|| self.judge(source, version, epoch))
            .await
    }

    /// [`Indexer::wait_for`] until `deadline` on `clock` at the latest.
    ///
    /// # Errors
    /// As [`Indexer::wait_for`], and [`WaitError::Deadline`] or [`WaitError::NotComparable`].
    pub async fn wait_for_until(
        &self,
        version: &ResourceVersion,
        clock: &SharedClock,
        deadline: Timestamp,
    ) -> Result<(), WaitError> {
        let mut wait = pin!(self.wait_for(version));
        let mut sleep = clock.sleep_until(deadline);
        std::future::poll_fn(|context| {
            if let Poll::Ready(result) = wait.as_mut().poll(context) {
                return Poll::Ready(result);
            }
            sleep.as_mut().poll(context).map(|()| {
                Err(match self.shared.freshness.versioning {
                    Versioning::Decimal => WaitError::Deadline,
                    Versioning::Opaque => WaitError::NotComparable,
                })
            })
        })
        .await
    }

    /// Wait until `look` finds what it looks for. It is given the current view, then the newest one
    /// after each publication (some may be skipped), outside any lock: it may read the cache.
    ///
    /// # Errors
    /// [`WaitError::Stopped`] when the writer is gone and the last view has nothing.
    pub async fn wait_until<R>(
        &self,
        mut look: impl FnMut(&View<T>) -> Option<R>,
    ) -> Result<R, WaitError> {
        let freshness = &self.shared.freshness;
        let poll = || {
            // Before the view: a writer that stops publishes nothing after it.
            let stopped = freshness.stopped.load(Ordering::SeqCst);
            match look(&self.load()) {
                Some(found) => Some(Ok(found)),
                None => stopped.then_some(Err(WaitError::Stopped)),
            }
        };
        freshness.waiters.until(poll).await
    }

    /// [`Indexer::wait_for`], blocking this thread.
    ///
    /// # Errors
    /// As [`Indexer::wait_for`].
    pub fn wait_for_blocking(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        block_on(self.wait_for(version))
    }

    fn judge(
        &self,
        source: SourceId,
        version: &ResourceVersion,
        epoch: u64,
    ) -> Option<Result<(), WaitError>> {
        let freshness = &self.shared.freshness;
        // Before the view: a writer that stops publishes nothing after it.
        let stopped = freshness.stopped.load(Ordering::SeqCst);
        let view = self.load();
        if view.epoch() != epoch {
            return Some(Err(WaitError::SourceReset));
        }
        let reached = view.versions().iter().any(|(s, shown)| {
            *s == source && (shown == version || version.is_older_than(shown, freshness.versioning))
        });
        if reached || self.was_applied(source, version) {
            return Some(Ok(()));
        }
        stopped.then_some(Err(WaitError::Stopped))
    }

    fn was_applied(&self, source: SourceId, version: &ResourceVersion) -> bool {
        let freshness = &self.shared.freshness;
        freshness.versioning == Versioning::Opaque
            && freshness
                .applied
                .lock()
                .iter()
                .any(|(s, applied)| *s == source && applied == version)
    }
}
