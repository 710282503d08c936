//! What the consumer takes: everything that was pending, as one unit of publication.
use super::{Delta, HandlerId, SourceId};
use crate::object::{Cached, ObjectKey, ResourceVersion};
use crate::source::BadObject;
use smallvec::SmallVec;
use std::sync::Arc;

/// Everything that was pending at one moment. Applied as a whole, it brings the cache to
/// [`Batch::versions`]; nothing in between is ever shown.
#[derive(Debug)]
pub struct Batch<T> {
    /// The inputs, coalesced, in the order in which they must be applied.
    pub steps: Vec<Step<T>>,
    /// For each source that contributed: the version that the cache has reached once the batch is
    /// applied.
    pub versions: SmallVec<[(SourceId, ResourceVersion); 1]>,
    /// How many inputs the batch stands for, before coalescing.
    pub inputs: usize,
}

/// One step of a [`Batch`].
#[derive(Debug)]
pub enum Step<T> {
    /// Changes of single objects, grouped by key. Within a group the order is that of arrival;
    /// groups are in the order of their first delta. A key appears once at the most.
    Changes(Vec<KeyDeltas<T>>),
    /// A relist: what its source holds, whole.
    Replace(Replace<T>),
    /// Announce every object that is stored at this point to these handlers again.
    Resync(ResyncTargets),
    /// An object that could not be used: it goes to the quarantine, at this point of the order.
    Bad {
        /// Whose object it is.
        source: SourceId,
        /// What is known of it.
        object: BadObject,
        /// The frame said that it is gone.
        deleted: bool,
    },
}

/// The deltas of one key from one source, oldest first; never empty.
#[derive(Debug)]
pub struct KeyDeltas<T> {
    /// Who brought them.
    pub source: SourceId,
    /// Oldest first.
    pub deltas: SmallVec<[Delta<T>; 2]>,
}

/// A relist of one source.
#[derive(Debug)]
pub struct Replace<T> {
    /// Whose relist it is: only objects of this source are deleted by it.
    pub source: SourceId,
    /// The version of the list.
    pub resource_version: ResourceVersion,
    /// What the source holds. Of a key that stands twice, the later one counts.
    pub items: Vec<Cached<T>>,
    /// Objects of the list that could not be used.
    pub bad: Vec<BadObject>,
    /// The first list of this source: its additions are part of the initial list.
    pub initial: bool,
    /// The source was reset (restored from a backup, say): versions may go back. Starts a new epoch.
    pub reset: bool,
    /// Ends of objects that were queued before the relist superseded them, for consumers that
    /// should learn the true final state of what the relist deletes.
    pub superseded_deletes: Vec<super::Deleted<T>>,
}

/// Whom a resync is for: the list of handlers travels with the resync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResyncTargets {
    /// Every handler.
    All,
    /// These handlers.
    Handlers(Arc<[HandlerId]>),
}

impl<T> Clone for KeyDeltas<T> {
    fn clone(&self) -> Self {
        Self {
            source: self.source,
            deltas: self.deltas.clone(),
        }
    }
}

impl<T> Clone for Replace<T> {
    fn clone(&self) -> Self {
        Self {
            source: self.source,
            resource_version: self.resource_version.clone(),
            items: self.items.clone(),
            bad: self.bad.clone(),
            initial: self.initial,
            reset: self.reset,
            superseded_deletes: self.superseded_deletes.clone(),
        }
    }
}

impl<T> Batch<T> {
    /// A batch of one delta, which brings its source to the delta's version.
    #[must_use]
    pub fn of(source: SourceId, delta: Delta<T>) -> Self {
        let version = delta.resource_version().clone();
        Self {
            steps: vec![Step::Changes(vec![KeyDeltas {
                source,
                deltas: smallvec::smallvec![delta],
            }])],
            versions: smallvec::smallvec![(source, version)],
            inputs: 1,
        }
    }

    /// The first key that is changed by itself, if the batch begins with such.
    pub(crate) fn first_key(&self) -> Option<&ObjectKey> {
        let Some(Step::Changes(groups)) = self.steps.first() else {
            return None;
        };
        Some(groups.first()?.deltas.first()?.key())
    }

    /// A batch with nothing in it.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            steps: Vec::new(),
            versions: SmallVec::new(),
            inputs: 0,
        }
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::empty()
    }
}
