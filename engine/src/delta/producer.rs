//! The producer's end of the queue: one for each source.
use super::admission::Prepared;
use super::queue::Shared;
use super::state::FirstList;
use super::{Deleted, Delta, Replace, ResyncTargets, SourceId};
use crate::indexer::panic_message;
use crate::object::{Cached, Incoming, Meta, ResourceVersion};
use crate::source::{BadObject, WatchEvent};
use crate::sync::{AtomicU64, Ordering, block_on};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The state of a source at one version: the input of a relist.
#[derive(Debug)]
pub struct ListSnapshot<T> {
    /// The version of the list.
    pub resource_version: ResourceVersion,
    /// What the list holds; an item may have failed on its own.
    pub items: Vec<Result<Incoming<T>, BadObject>>,
    /// The source was reset: versions may be lower than before.
    pub reset: bool,
}

/// A [`ListSnapshot`] whose objects went through the transform one by one, as they arrived: what is
/// held of a list that is not complete yet is a handle an object.
#[derive(Debug)]
pub struct PreparedList<T> {
    /// The version of the list.
    pub resource_version: ResourceVersion,
    /// What the list holds, each from [`Producer::prepare`].
    pub items: Vec<Cached<T>>,
    /// What could not be used.
    pub bad: Vec<BadObject>,
    /// The source was reset: versions may be lower than before.
    pub reset: bool,
}

/// Why an input was not queued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The queue is closed.
    #[error("the delta queue is closed; the input was dropped")]
    Closed,
    /// As many keys wait as may wait. Try again, or use a form that waits for room.
    #[error("the delta queue is full; the input was not taken")]
    Full,
    /// The source was reset since this producer was made: what it says is about an abandoned epoch.
    #[error("the source was reset; the input belongs to an abandoned epoch and was dropped")]
    AbandonedEpoch,
    /// The transform refused the object. It is in the quarantine now, so the source's progress is
    /// not held up.
    #[error("{0}; it was put into quarantine")]
    Transform(BadObject),
}

/// Pushes what one source says. Inputs of one producer keep their order.
pub struct Producer<T> {
    pub(super) shared: Arc<Shared<T>>,
    source: SourceId,
    pub(super) epoch: AtomicU64,
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Self {
        Self::new(
            self.shared.clone(),
            self.source,
            self.epoch.load(Ordering::Acquire),
        )
    }
}

/// Where an object's delta goes.
#[derive(Clone, Copy)]
enum Verb {
    Added,
    Updated,
    Deleted,
}

impl<T> Producer<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, source: SourceId, epoch: u64) -> Self {
        Self {
            shared,
            source,
            epoch: AtomicU64::new(epoch),
        }
    }

    /// Whose inputs these are.
    #[must_use]
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// The object appeared. Waits while the queue is full.
    ///
    /// # Errors
    /// Any [`PushError`]; `Full` only where the queue refuses when full.
    pub async fn added(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.push(self.change(Verb::Added, object)?).await
    }

    /// The object changed. Waits while the queue is full.
    ///
    /// # Errors
    /// As [`Producer::added`].
    pub async fn updated(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.push(self.change(Verb::Updated, object)?).await
    }

    /// The object is gone; this is its final state. Waits while the queue is full.
    ///
    /// # Errors
    /// As [`Producer::added`].
    pub async fn deleted(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.push(self.change(Verb::Deleted, object)?).await
    }

    /// The object is gone, and its final state is not known. Waits while the queue is full.
    ///
    /// # Errors
    /// As [`Producer::added`].
    pub async fn deleted_meta(&self, meta: Meta) -> Result<(), PushError> {
        self.push(self.end(meta)).await
    }

    /// The frames of a watch, in their order, under few locks: what a producer with many inputs at
    /// hand should use. Waits while the queue is full. Frames of another collection are skipped.
    /// Returns the objects that the transform refused; they are in the quarantine.
    ///
    /// Dropping the future leaves the inputs that have not entered yet outside.
    ///
    /// # Errors
    /// [`PushError::Closed`], [`PushError::AbandonedEpoch`] and, where the queue refuses when full,
    /// `Full`. What came before the error has been queued.
    pub async fn push_many(
        &self,
        events: impl IntoIterator<Item = WatchEvent<T>>,
    ) -> Result<Vec<BadObject>, PushError> {
        let mut refused = Vec::new();
        let inputs = events
            .into_iter()
            .filter_map(|event| self.input(event, &mut refused))
            .collect();
        self.push_all(inputs).await?;
        Ok(refused)
    }

    /// [`Producer::added`] that does not wait.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn try_added(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.try_push(self.change(Verb::Added, object)?)
    }

    /// [`Producer::updated`] that does not wait.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn try_updated(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.try_push(self.change(Verb::Updated, object)?)
    }

    /// [`Producer::deleted`] that does not wait.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn try_deleted(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.try_push(self.change(Verb::Deleted, object)?)
    }

    /// [`Producer::deleted_meta`] that does not wait.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn try_deleted_meta(&self, meta: Meta) -> Result<(), PushError> {
        self.try_push(self.end(meta))
    }

    /// [`Producer::added`], blocking this thread while the queue is full.
    ///
    /// # Errors
    /// As [`Producer::added`].
    pub fn added_blocking(&self, object: Incoming<T>) -> Result<(), PushError> {
        block_on(self.added(object))
    }

    /// [`Producer::updated`], blocking this thread while the queue is full.
    ///
    /// # Errors
    /// As [`Producer::added`].
    pub fn updated_blocking(&self, object: Incoming<T>) -> Result<(), PushError> {
        block_on(self.updated(object))
    }

    /// [`Producer::deleted`], blocking this thread while the queue is full.
    ///
    /// # Errors
    /// As [`Producer::added`].
    pub fn deleted_blocking(&self, object: Incoming<T>) -> Result<(), PushError> {
        block_on(self.deleted(object))
    }

    /// [`Producer::deleted_meta`], blocking this thread while the queue is full.
    ///
    /// # Errors
    /// As [`Producer::added`].
    pub fn deleted_meta_blocking(&self, meta: Meta) -> Result<(), PushError> {
        block_on(self.deleted_meta(meta))
    }

    /// [`Producer::push_many`], blocking this thread while the queue is full.
    ///
    /// # Errors
    /// As [`Producer::push_many`].
    pub fn push_many_blocking(
        &self,
        events: impl IntoIterator<Item = WatchEvent<T>>,
    ) -> Result<Vec<BadObject>, PushError> {
        block_on(self.push_many(events))
    }

    /// An object that cannot be used: it goes to the quarantine, in its place in the order. With
    /// `deleted`, its key is gone. Never waits.
    ///
    /// # Errors
    /// [`PushError::Closed`] and [`PushError::AbandonedEpoch`].
    pub fn bad(&self, object: BadObject, deleted: bool) -> Result<(), PushError> {
        match self.unusable(object, deleted) {
            Prepared::Delta { hash, delta } => self.control(|state, source| {
                let compaction = state.compaction;
                state.pending.push(source, hash, delta, compaction)
            }),
            input => self.try_push(input).map(|()| None),
        }
        .map(drop)
    }

    /// Nothing changed up to this version. Keeps its place in the order; never waits.
    ///
    /// # Errors
    /// [`PushError::Closed`] and [`PushError::AbandonedEpoch`].
    pub fn bookmark(&self, version: ResourceVersion) -> Result<(), PushError> {
        self.try_push(Prepared::Bookmark(version))
    }

    /// Announce every stored object to these handlers again. Never waits.
    ///
    /// # Errors
    /// [`PushError::Closed`] and [`PushError::AbandonedEpoch`].
    pub fn resync(&self, targets: ResyncTargets) -> Result<(), PushError> {
        self.control(|state, _| state.pending.resync(targets))
    }

    /// A relist: the source holds exactly this. One input, always admitted; the failure of an
    /// item is the item's alone. Returns the items that the transform refused.
    ///
    /// # Errors
    /// [`PushError::Closed`] and [`PushError::AbandonedEpoch`].
    pub fn replace(&self, list: ListSnapshot<T>) -> Result<Vec<BadObject>, PushError> {
        let (mut items, mut bad, mut refused) =
            (Vec::with_capacity(list.items.len()), vec![], vec![]);
        for item in list.items {
            match item.and_then(|item| {
                self.prepare(item)
                    .inspect_err(|object| refused.push(object.clone()))
            }) {
                Ok(object) => items.push(object),
                Err(object) => bad.push(object),
            }
        }
        self.replace_prepared(PreparedList {
            resource_version: list.resource_version,
            items,
            bad,
            reset: list.reset,
        })?;
        Ok(refused)
    }

    /// [`Producer::replace`] with objects that are prepared already.
    ///
    /// # Errors
    /// [`PushError::Closed`] and [`PushError::AbandonedEpoch`].
    pub fn replace_prepared(&self, list: PreparedList<T>) -> Result<(), PushError> {
        // Nobody has anything to apply for an empty first list, unless something is before it.
        let is_empty = list.items.is_empty() && list.bad.is_empty();
        let (superfluous, synced) = self.control(|state, source| {
            let is_first = state.pending.is_empty() && !state.is_out;
            let first = state.source(source);
            let initial = first.first_list == FirstList::Awaited;
            if initial {
                first.first_list = if is_empty && is_first {
                    FirstList::Applied
                } else {
                    FirstList::Queued
                };
            }
            if list.reset {
                first.epoch += 1;
                self.epoch.store(first.epoch, Ordering::Release);
            }
            let synced = initial && first.first_list == FirstList::Applied;
            let compaction = state.compaction;
            let superfluous = state.pending.replace(
                Replace {
                    source,
                    resource_version: list.resource_version,
                    items: list.items,
                    bad: list.bad,
                    initial,
                    reset: list.reset,
                    superseded_deletes: Vec::new(),
                },
                compaction,
            );
            (superfluous, synced)
        })?;
        if synced {
            self.shared.sync.notify_all();
        }
        superfluous.discard();
        Ok(())
    }

    fn input(&self, event: WatchEvent<T>, refused: &mut Vec<BadObject>) -> Option<Prepared<T>> {
        let (verb, object) = match event {
            WatchEvent::Added(object) => (Verb::Added, object),
            WatchEvent::Modified(object) => (Verb::Updated, object),
            WatchEvent::Deleted(object) => (Verb::Deleted, object),
            WatchEvent::Bookmark {
                resource_version, ..
            } => return Some(Prepared::Bookmark(resource_version)),
            WatchEvent::Bad { object, deleted } => return Some(self.unusable(object, deleted)),
            WatchEvent::Foreign { .. } => return None,
        };
        Some(self.try_change(verb, object).unwrap_or_else(|object| {
            refused.push(object.clone());
            self.unusable(object, matches!(verb, Verb::Deleted))
        }))
    }

    fn change(&self, verb: Verb, object: Incoming<T>) -> Result<Prepared<T>, PushError> {
        self.try_change(verb, object).or_else(|object| {
            self.bad(object.clone(), matches!(verb, Verb::Deleted))?;
            Err(PushError::Transform(object))
        })
    }

    fn try_change(&self, verb: Verb, object: Incoming<T>) -> Result<Prepared<T>, BadObject> {
        let object = self.prepare(object)?;
        Ok(self.shared.delta(match verb {
            Verb::Added => Delta::Added(object),
            Verb::Updated => Delta::Updated(object),
            Verb::Deleted => Delta::deleted(Deleted::known(object)),
        }))
    }

    fn end(&self, meta: Meta) -> Prepared<T> {
        self.shared.delta(Delta::deleted(Deleted::of(meta)))
    }

    /// What an unusable object leads to: when it is said to be gone, its content does not matter.
    fn unusable(&self, object: BadObject, deleted: bool) -> Prepared<T> {
        match object {
            BadObject {
                key: Some(key),
                uid,
                resource_version,
                ..
            } if deleted => self.end(Meta {
                key,
                uid,
                resource_version,
            }),
            object => Prepared::Bad(object),
        }
    }

    /// The object as everyone will see it: the transform runs here, outside any lock. Nothing is
    /// queued.
    ///
    /// # Errors
    /// The object, when the transform refused it or panicked.
    pub fn prepare(&self, mut incoming: Incoming<T>) -> Result<Cached<T>, BadObject> {
        if let Some(transform) = &self.shared.transform {
            let object = &mut incoming.object;
            catch_unwind(AssertUnwindSafe(|| transform(object)))
                .unwrap_or_else(|panic| Err(panic_message(&*panic)))
                .map_err(|reason| BadObject {
                    key: Some(incoming.meta.key.clone()),
                    uid: incoming.meta.uid.clone(),
                    resource_version: incoming.meta.resource_version.clone(),
                    reason: format!("the transform failed: {reason}"),
                })?;
        }
        Ok(incoming.into())
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Producer({:?})", self.source)
    }
}
