//! What applying a batch did: the input of the dispatcher.
use crate::delta::{Deleted, ResyncTargets, SourceId};
use crate::object::{Cached, ObjectKey, ResourceVersion};
use std::sync::Arc;

/// What one applied batch changed, in net and (when asked) step by step.
#[derive(Debug)]
pub struct Applied<T> {
    /// The net change of each key that changed, in the order of its first effective delta.
    pub changes: Vec<Change<T>>,
    /// Every delta that had an effect, in order, after the identity guards; `None` unless asked
    /// for (a lossless handler is registered).
    pub effective: Option<Vec<Effective<T>>>,
    /// The resyncs in the batch; each covers what is stored now.
    pub resyncs: Vec<ResyncTargets>,
    /// Sources that were reset by this batch: handlers are told before the differences.
    pub resets: Vec<SourceId>,
    /// Sources whose first list this batch completed.
    pub synced: Vec<SourceId>,
    /// Index functions that failed on a new object version, each reported once.
    pub index_failures: Vec<IndexFailure>,
    /// Objects that entered the quarantine.
    pub quarantined: Vec<Quarantined>,
    /// Deltas that the identity guards dropped.
    pub dropped: DropCounts,
}

impl<T> Applied<T> {
    pub(super) fn new(effective: bool) -> Self {
        Self {
            changes: Vec::new(),
            effective: effective.then(Vec::new),
            resyncs: Vec::new(),
            resets: Vec::new(),
            synced: Vec::new(),
            index_failures: Vec::new(),
            quarantined: Vec::new(),
            dropped: DropCounts::default(),
        }
    }
}

/// The net change of one key in one batch. At least one of `old` and `new` is there.
#[derive(Debug)]
pub struct Change<T> {
    /// What the snapshot before the batch held.
    pub old: Option<Cached<T>>,
    /// What the snapshot after the batch holds.
    pub new: Option<Cached<T>>,
    /// Set when `old` is over: the key is gone, or `new` is another object of the same key (then
    /// the change is a delete followed by an add).
    pub deleted: Option<Box<Deleted<T>>>,
    /// `new` was in the first list of its source.
    pub initial: bool,
}

impl<T> Change<T> {
    /// The key that changed.
    ///
    /// # Panics
    /// Never: one of `old` and `new` is always there.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        self.object()
            .expect("a change has an old or a new state")
            .key()
    }

    /// The newest state there is.
    pub(super) fn object(&self) -> Option<&Cached<T>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

/// One delta that had an effect, after the identity guards.
#[derive(Debug)]
pub enum Effective<T> {
    /// The key was free.
    Added {
        /// The new object.
        new: Cached<T>,
        /// It was in the first list of its source.
        initial: bool,
    },
    /// A new state of the stored object.
    Updated {
        /// The state before.
        old: Cached<T>,
        /// The state after.
        new: Cached<T>,
    },
    /// The stored object is gone.
    Deleted {
        /// How it ended; `last` is always set.
        deleted: Box<Deleted<T>>,
    },
}

/// An index function failed on one object version. The object is stored and readable by key and
/// through the other indexes; for this index it is listed as poisoned until its next good version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "index {index:?} failed on {key} at version {resource_version}: {reason}; the object is stored and left out of this index"
)]
pub struct IndexFailure {
    /// The index.
    pub index: Arc<str>,
    /// The object.
    pub key: ObjectKey,
    /// Its version.
    pub resource_version: ResourceVersion,
    /// The error or the panic's message.
    pub reason: String,
}

/// An object that could not be applied: the snapshot equals the source for every key but these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The key; `None` when not even that could be read.
    pub key: Option<ObjectKey>,
    /// The version that the cache still shows, if any.
    pub last_good: Option<ResourceVersion>,
    /// The version that failed.
    pub failed_version: ResourceVersion,
    /// Why.
    pub reason: String,
    /// Whose object it is.
    pub source: SourceId,
}

/// How many deltas the identity guards dropped, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DropCounts {
    /// Older than the stored state.
    pub stale: usize,
    /// The same version of the same object.
    pub unchanged: usize,
    /// Deletions of what is not stored.
    pub unknown_deletes: usize,
}
