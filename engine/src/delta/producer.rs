//! The producer's end of the queue: one for each source.
use super::queue::{FirstList, Shared, State};
use super::{Deleted, Delta, Replace, ResyncTargets, SourceId};
use crate::indexer::panic_message;
use crate::object::{Cached, Incoming, Meta, ResourceVersion};
use crate::source::BadObject;
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
    shared: Arc<Shared<T>>,
    source: SourceId,
    epoch: AtomicU64,
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
    /// Any [`PushError`] but `Full`.
    pub async fn added(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.push(self.delta(Verb::Added, object)?).await
    }

    /// The object changed. Waits while the queue is full.
    ///
    /// # Errors
    /// Any [`PushError`] but `Full`.
    pub async fn updated(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.push(self.delta(Verb::Updated, object)?).await
    }

    /// The object is gone; this is its final state. Waits while the queue is full.
    ///
    /// # Errors
    /// Any [`PushError`] but `Full`.
    pub async fn deleted(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.push(self.delta(Verb::Deleted, object)?).await
    }

    /// The object is gone, and its final state is not known. Waits while the queue is full.
    ///
    /// # Errors
    /// Any [`PushError`] but `Full`.
    pub async fn deleted_meta(&self, meta: Meta) -> Result<(), PushError> {
        self.push(Delta::Deleted(Deleted::of(meta))).await
    }

    /// [`Producer::added`] that does not wait.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn try_added(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.try_push(self.delta(Verb::Added, object)?)
    }

    /// [`Producer::updated`] that does not wait.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn try_updated(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.try_push(self.delta(Verb::Updated, object)?)
    }

    /// [`Producer::deleted`] that does not wait.
    ///
    /// # Errors
    /// Any [`PushError`].
    pub fn try_deleted(&self, object: Incoming<T>) -> Result<(), PushError> {
        self.try_push(self.delta(Verb::Deleted, object)?)
    }

    /// [`Producer::updated`], blocking this thread while the queue is full.
    ///
    /// # Errors
    /// Any [`PushError`] but `Full`.
    pub fn updated_blocking(&self, object: Incoming<T>) -> Result<(), PushError> {
        block_on(self.updated(object))
    }

    /// An object that cannot be used: it goes to the quarantine, in its place in the order. With
    /// `deleted`, its key is gone. Never waits.
    ///
    /// # Errors
    /// [`PushError::Closed`] and [`PushError::AbandonedEpoch`].
    pub fn bad(&self, object: BadObject, deleted: bool) -> Result<(), PushError> {
        let BadObject {
            key,
            uid,
            resource_version,
            reason,
        } = object;
        match key {
            Some(key) if deleted => {
                let meta = Meta {
                    key,
                    uid,
                    resource_version,
                };
                self.enter(true, Delta::Deleted(Deleted::of(meta)))
                    .map_err(|(_, error)| error)
            }
            key => {
                let object = BadObject {
                    key,
                    uid,
                    resource_version,
                    reason,
                };
                self.control(|state, source| state.pending.bad(source, object))
            }
        }
    }

    /// Nothing changed up to this version. Keeps its place in the order; never waits.
    ///
    /// # Errors
    /// [`PushError::Closed`] and [`PushError::AbandonedEpoch`].
    pub fn bookmark(&self, version: ResourceVersion) -> Result<(), PushError> {
        self.control(|state, source| state.pending.bookmark(source, version))
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
        self.control(|state, source| {
            let first = state.source(source);
            let initial = first.first_list == FirstList::Awaited;
            if initial {
                first.first_list = FirstList::Queued;
            }
            if list.reset {
                first.epoch += 1;
                self.epoch.store(first.epoch, Ordering::Release);
            }
            let compaction = state.compaction;
            state.pending.replace(
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
            )
        })
        .map(drop)
    }

    fn delta(&self, verb: Verb, object: Incoming<T>) -> Result<Delta<T>, PushError> {
        match self.prepare(object) {
            Ok(object) => Ok(match verb {
                Verb::Added => Delta::Added(object),
                Verb::Updated => Delta::Updated(object),
                Verb::Deleted => Delta::Deleted(Deleted::known(object)),
            }),
            Err(object) => {
                self.bad(object.clone(), matches!(verb, Verb::Deleted))?;
                Err(PushError::Transform(object))
            }
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

    fn try_push(&self, delta: Delta<T>) -> Result<(), PushError> {
        self.enter(false, delta).map_err(|(_, error)| error)
    }

    async fn push(&self, delta: Delta<T>) -> Result<(), PushError> {
        let mut waiting = match self.enter(false, delta) {
            Err((delta, PushError::Full)) => Some(delta),
            entered => return entered.map_err(|(_, error)| error),
        };
        self.shared
            .room
            .until(|| match self.enter(false, waiting.take()?) {
                Err((delta, PushError::Full)) => {
                    waiting = Some(delta);
                    None
                }
                entered => Some(entered.map_err(|(_, error)| error)),
            })
            .await
    }

    /// Queue a delta; one that was not taken comes back. `always`: whatever the bound.
    // The caller gets its delta back without an allocation; nothing else is in the error.
    #[allow(clippy::result_large_err)]
    fn enter(&self, always: bool, delta: Delta<T>) -> Result<(), (Delta<T>, PushError)> {
        let hash = self.shared.hasher.hash_one(delta.key());
        let version = match &delta {
            Delta::Deleted(deleted) => deleted.resource_version.clone(),
            Delta::Added(o) | Delta::Updated(o) | Delta::Replaced(o) | Delta::Sync(o) => {
                o.resource_version().clone()
            }
        };
        let (was_empty, superfluous) = {
            let mut state = self.shared.state.lock();
            if let Err(error) = self.check(&mut state) {
                return Err((delta, error));
            }
            let full = self
                .shared
                .bound
                .is_some_and(|bound| state.pending.keys() >= bound);
            if full && !always && !state.pending.has_key(hash, delta.key()) {
                return Err((delta, PushError::Full));
            }
            let was_empty = self.arrive(&mut state);
            let compaction = state.compaction;
            let superfluous = state
                .pending
                .push(self.source, hash, delta, version, compaction);
            (was_empty, superfluous)
        };
        if was_empty {
            self.shared.arrivals.notify_all();
        }
        // An object's own `Drop` is foreign code too.
        drop(superfluous);
        Ok(())
    }

    /// Queue something that is always admitted.
    fn control<R>(&self, input: impl FnOnce(&mut State<T>, SourceId) -> R) -> Result<R, PushError> {
        let (was_empty, result) = {
            let mut state = self.shared.state.lock();
            self.check(&mut state)?;
            let was_empty = self.arrive(&mut state);
            let result = input(&mut state, self.source);
            (was_empty, result)
        };
        if was_empty {
            self.shared.arrivals.notify_all();
        }
        Ok(result)
    }

    fn check(&self, state: &mut State<T>) -> Result<(), PushError> {
        if state.closed {
            return Err(PushError::Closed);
        }
        if state.source(self.source).epoch != self.epoch.load(Ordering::Acquire) {
            return Err(PushError::AbandonedEpoch);
        }
        Ok(())
    }

    /// Count an input. The consumer sleeps only when nothing is pending, so only the first input
    /// after a drain has to wake it.
    fn arrive(&self, state: &mut State<T>) -> bool {
        state.inputs += 1;
        let was_empty = state.pending.is_empty();
        if was_empty {
            state.first_at = self.shared.clock.as_ref().map(|clock| clock.now());
        }
        was_empty
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Producer({:?})", self.source)
    }
}
