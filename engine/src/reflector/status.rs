//! What a reflector is doing, for everyone who wants to know.
use super::{ReflectorError, ReflectorMetrics};
use crate::clock::{SharedClock, Timestamp};
use crate::object::ResourceVersion;
use crate::sync::{AtomicBool, Mutex, Ordering, WaitSet};
use std::sync::Arc;
use std::time::Duration;

/// What a reflector is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReflectorState {
    /// It has not begun.
    Initialising,
    /// A list is under way.
    Listing,
    /// A streaming list is under way.
    Streaming,
    /// A watch is open or being opened.
    Watching,
    /// It waits after a failure.
    BackingOff {
        /// Why.
        reason: Arc<ReflectorError>,
        /// Until when, on the reflector's clock.
        until: Timestamp,
    },
    /// It has ended and will do nothing more.
    Stopped,
}

/// A copy of what a reflector is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReflectorStatus {
    /// What it is doing.
    pub state: ReflectorState,
    /// The queue has accepted a list.
    pub listed: bool,
    /// The version from which it would go on; empty before the first list.
    pub last_seen_version: ResourceVersion,
    /// When the source last proved that it is there (a page, an open watch, a frame).
    pub last_proof_of_life: Option<Timestamp>,
    /// The last fault, however long ago.
    pub last_error: Option<Arc<ReflectorError>>,
}

/// Watches one reflector from outside; clones watch the same one. It outlives the reflector.
#[derive(Clone)]
pub struct ReflectorHandle {
    shared: Arc<Shared>,
}

impl ReflectorHandle {
    /// What the reflector is doing now.
    #[must_use]
    pub fn status(&self) -> ReflectorStatus {
        self.shared.board.lock().status.clone()
    }

    /// What it has counted.
    #[must_use]
    pub fn metrics(&self) -> ReflectorMetrics {
        self.shared.board.lock().metrics
    }

    /// True when the source proved within the last `max_lag` that it is there, and the reflector
    /// runs: for readiness probes. A quiet watch proves it by its bookmarks, about once a minute.
    #[must_use]
    pub fn is_live(&self, max_lag: Duration) -> bool {
        let now = self.shared.clock.now();
        let board = self.shared.board.lock();
        board.status.state != ReflectorState::Stopped
            && board.status.listed
            && board
                .status
                .last_proof_of_life
                .is_some_and(|proof| now.since(proof) <= max_lag)
    }

    /// Ask for a relist of the most recent state: an open watch is given up for it at once, a wait
    /// after a failure is not cut short. A list that begins after this call fulfils it; asking again
    /// before that changes nothing.
    pub fn relist(&self) {
        // SeqCst with the load in `is_relist_wanted`: see `WaitSet` for why no wake-up is lost.
        self.shared.relist_wanted.store(true, Ordering::SeqCst);
        self.shared.relist_wanted_set.notify_all();
    }

    /// Wait for a status that satisfies `condition`, which is looked at after each change of state,
    /// each fault and each list (not after each frame).
    ///
    /// # Errors
    /// The last status, when the reflector has ended without satisfying it.
    pub async fn wait_for(
        &self,
        mut condition: impl FnMut(&ReflectorStatus) -> bool,
    ) -> Result<ReflectorStatus, ReflectorStatus> {
        self.shared
            .waiters
            .until(|| {
                let status = self.status();
                if condition(&status) {
                    Some(Ok(status))
                } else if status.state == ReflectorState::Stopped {
                    Some(Err(status))
                } else {
                    None
                }
            })
            .await
    }
}

impl std::fmt::Debug for ReflectorHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ReflectorHandle")
            .field(&self.status())
            .finish()
    }
}

/// The reflector's side: it writes, handles read. Dropping it ends the status, so nobody waits for
/// a reflector that was dropped, stopped or never run.
pub(super) struct StatusBoard {
    shared: Arc<Shared>,
    #[cfg(feature = "metrics")]
    exporter: super::metrics::Exporter,
}

struct Shared {
    clock: SharedClock,
    board: Mutex<Board>,
    waiters: WaitSet,
    relist_wanted: AtomicBool,
    relist_wanted_set: WaitSet,
}

struct Board {
    status: ReflectorStatus,
    metrics: ReflectorMetrics,
}

impl StatusBoard {
    pub(super) fn new(clock: SharedClock, name: &Arc<str>) -> Self {
        #[cfg(not(feature = "metrics"))]
        let _ = name;
        Self {
            shared: Arc::new(Shared {
                clock,
                board: Mutex::new(Board {
                    status: ReflectorStatus {
                        state: ReflectorState::Initialising,
                        listed: false,
                        last_seen_version: ResourceVersion::empty(),
                        last_proof_of_life: None,
                        last_error: None,
                    },
                    metrics: ReflectorMetrics::default(),
                }),
                waiters: WaitSet::new(),
                relist_wanted: AtomicBool::new(false),
                relist_wanted_set: WaitSet::new(),
            }),
            #[cfg(feature = "metrics")]
            exporter: super::metrics::Exporter::new(name),
        }
    }

    pub(super) fn handle(&self) -> ReflectorHandle {
        ReflectorHandle {
            shared: self.shared.clone(),
        }
    }

    pub(super) fn enter(&self, state: ReflectorState) {
        self.shared.board.lock().status.state = state;
        self.shared.waiters.notify_all();
    }

    pub(super) fn failed(&self, error: Arc<ReflectorError>) {
        self.count(|metrics| metrics.errors += 1);
        self.shared.board.lock().status.last_error = Some(error);
        self.shared.waiters.notify_all();
    }

    pub(super) fn listed(&self, version: &ResourceVersion) {
        {
            let mut board = self.shared.board.lock();
            board.status.listed = true;
            board.status.last_seen_version = version.clone();
        }
        self.shared.waiters.notify_all();
    }

    /// Ends when a relist is wanted, at once if it is.
    pub(super) async fn relist_wanted(&self) {
        self.shared
            .relist_wanted_set
            .until(|| self.is_relist_wanted().then_some(()))
            .await;
    }

    pub(super) fn is_relist_wanted(&self) -> bool {
        self.shared.relist_wanted.load(Ordering::SeqCst)
    }

    /// True when a relist was wanted; a list that begins now fulfils it.
    pub(super) fn take_relist_wish(&self) -> bool {
        self.shared.relist_wanted.swap(false, Ordering::SeqCst)
    }

    /// The source is there.
    pub(super) fn alive(&self) {
        let now = self.shared.clock.now();
        self.shared.board.lock().status.last_proof_of_life = Some(now);
    }

    /// The queue accepted a frame, which may have moved the resume point.
    pub(super) fn delivered(
        &self,
        now: Timestamp,
        moved_to: Option<&ResourceVersion>,
        count: impl FnOnce(&mut ReflectorMetrics),
    ) {
        self.update(|board| {
            board.status.last_proof_of_life = Some(now);
            if let Some(version) = moved_to {
                board.status.last_seen_version = version.clone();
            }
            count(&mut board.metrics);
        });
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut ReflectorMetrics)) {
        self.update(|board| count(&mut board.metrics));
    }

    fn update(&self, update: impl FnOnce(&mut Board)) {
        let mut board = self.shared.board.lock();
        #[cfg(feature = "metrics")]
        let before = board.metrics;
        update(&mut board);
        #[cfg(feature = "metrics")]
        {
            // The facade's recorder is foreign code: never under our lock.
            let after = board.metrics;
            drop(board);
            self.exporter.export(&before, &after);
        }
    }
}

impl Drop for StatusBoard {
    fn drop(&mut self) {
        self.enter(ReflectorState::Stopped);
    }
}
