//! Writes: prepared outside of the lock, committed if nothing has moved since.
use super::log::Item;
use super::state::State;
use super::{MemorySource, Shared};
use crate::object::{Incoming, Meta, ObjectKey, ResourceVersion, Uid};
use crate::source::ApiStatus;
use std::sync::Arc;

/// Why a write was refused, as an API server would refuse it. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// 409: there is an object of this key already.
    #[error("{0} already exists")]
    AlreadyExists(ObjectKey),
    /// 404: there is no object of this key.
    #[error("{0} was not found")]
    NotFound(ObjectKey),
    /// 409: the object is at another version than the caller expected.
    #[error("{key} is at version {found}, not {expected}; read it again and retry")]
    Conflict {
        /// The object.
        key: ObjectKey,
        /// The version that the caller gave.
        expected: ResourceVersion,
        /// The version that the object is at.
        found: ResourceVersion,
    },
    /// 409: the object of this key is another one than the caller expected.
    #[error("{key} has the uid {found}, not {expected}; the expected object is gone")]
    OtherUid {
        /// The key.
        key: ObjectKey,
        /// The uid that the caller gave.
        expected: Uid,
        /// The uid of the object that is there.
        found: Uid,
    },
}

impl WriteError {
    /// The answer of a server.
    #[must_use]
    pub fn status(&self) -> ApiStatus {
        let (code, reason) = match self {
            Self::NotFound(_) => (404, "NotFound"),
            Self::AlreadyExists(_) => (409, "AlreadyExists"),
            Self::Conflict { .. } | Self::OtherUid { .. } => (409, "Conflict"),
        };
        ApiStatus::new(code, reason, &self.to_string())
    }
}

/// What must be true of an object for a write to happen; what is `None` is not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Preconditions {
    /// The object is this one, not another of the same key.
    pub uid: Option<Uid>,
    /// The object is at this version.
    pub resource_version: Option<ResourceVersion>,
}

/// One of the writes of [`MemorySource::write_all`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<T> {
    /// As [`MemorySource::create`].
    Create(ObjectKey, T),
    /// As [`MemorySource::update`].
    Update(ObjectKey, Preconditions, T),
    /// As [`MemorySource::upsert`].
    Upsert(ObjectKey, T),
    /// As [`MemorySource::delete_if`].
    Delete(ObjectKey, Preconditions),
}

impl<T: Clone + Send + Sync + 'static> MemorySource<T> {
    /// Create an object; its uid is made up, its version is the next one.
    ///
    /// # Errors
    /// [`WriteError::AlreadyExists`].
    pub fn create(&self, key: ObjectKey, object: T) -> Result<Meta, WriteError> {
        self.write(Write::Create(key, object))
    }

    /// Change an object. With `expected`, only if it is at that version.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] and [`WriteError::Conflict`].
    pub fn update(
        &self,
        key: &ObjectKey,
        expected: Option<&ResourceVersion>,
        object: T,
    ) -> Result<Meta, WriteError> {
        self.write(Write::Update(key.clone(), at_version(expected), object))
    }

    /// Create or change an object.
    ///
    /// # Panics
    /// Never: nothing is asked of the object that it could fail.
    pub fn upsert(&self, key: ObjectKey, object: T) -> Meta {
        self.write(Write::Upsert(key, object))
            .expect("an upsert asks for nothing")
    }

    /// Delete an object. With `expected`, only if it is at that version. Returns its metadata at
    /// the version of the deletion.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] and [`WriteError::Conflict`].
    pub fn delete(
        &self,
        key: &ObjectKey,
        expected: Option<&ResourceVersion>,
    ) -> Result<Meta, WriteError> {
        self.write(Write::Delete(key.clone(), at_version(expected)))
    }

    /// Delete an object if it meets the preconditions. Returns its metadata at the version of the
    /// deletion.
    ///
    /// # Errors
    /// [`WriteError::NotFound`], [`WriteError::OtherUid`] and [`WriteError::Conflict`].
    pub fn delete_if(
        &self,
        key: &ObjectKey,
        preconditions: Preconditions,
    ) -> Result<Meta, WriteError> {
        self.write(Write::Delete(key.clone(), preconditions))
    }

    /// Do many writes, one after the other, each at its own version, and tell the watches once.
    /// It is no transaction, as servers have none: lists see what is done so far, and a write that
    /// is refused does not stop those after it. This is the way to load many objects: 100,000
    /// upserts take well under a second.
    ///
    /// ```
    /// use informant::ObjectKey;
    /// use informant::source::memory::{MemorySource, Write};
    /// let nodes = MemorySource::<u32>::new();
    /// let key = |n: u32| ObjectKey::new("", &format!("node-{n}")).unwrap();
    /// let results = nodes.write_all((0..100).map(|n| Write::Create(key(n), n)));
    /// assert!(results.iter().all(Result::is_ok));
    /// assert_eq!(nodes.len(), 100);
    /// ```
    pub fn write_all(
        &self,
        writes: impl IntoIterator<Item = Write<T>>,
    ) -> Vec<Result<Meta, WriteError>> {
        let _announce = Announce(&self.shared);
        writes
            .into_iter()
            .map(|write| self.shared.write(write))
            .collect()
    }

    fn write(&self, write: Write<T>) -> Result<Meta, WriteError> {
        #[cfg(not(informant_mutant = "announce_before_write"))]
        let _announce = Announce(&self.shared);
        #[cfg(informant_mutant = "announce_before_write")]
        drop(Announce(&self.shared));
        self.shared.write(write)
    }
}

fn at_version(expected: Option<&ResourceVersion>) -> Preconditions {
    Preconditions {
        uid: None,
        resource_version: expected.cloned(),
    }
}

/// Wakes the watches when a write is over, also when it was cut short by a panic of user code.
struct Announce<'a, T>(&'a Shared<T>);

impl<T> Drop for Announce<'_, T> {
    fn drop(&mut self) {
        self.0.changes.notify_all();
    }
}

/// A write that is allowed, as of a certain moment.
struct Plan<T> {
    moves: u64,
    meta: Meta,
    before: Option<Item<T>>,
}

/// What a write asks for, beside its object.
enum Ask {
    Absent,
    Present(Preconditions),
    Any,
}

impl<T: Clone> Shared<T> {
    /// Stamping and copying objects is user code, so it runs between two holds of the lock; if
    /// anything has moved between them, it is done again. Some writer always gets through.
    fn write(&self, write: Write<T>) -> Result<Meta, WriteError> {
        let (key, ask, mut object, deleted) = match write {
            Write::Create(key, object) => (key, Ask::Absent, Some(object), false),
            Write::Update(key, conditions, object) => {
                (key, Ask::Present(conditions), Some(object), false)
            }
            Write::Upsert(key, object) => (key, Ask::Any, Some(object), false),
            Write::Delete(key, conditions) => (key, Ask::Present(conditions), None, true),
        };
        loop {
            let plan = self.state.lock().plan(&key, &ask)?;
            let mut prepared = match (object.take(), &plan.before) {
                (Some(object), _) => object,
                (None, Some(before)) => before.object.clone(),
                (None, None) => unreachable!("only an object that is there is deleted"),
            };
            if let Some(stamp) = &self.config.stamp {
                stamp(&mut prepared, &plan.meta);
            }
            let item = Arc::new(Incoming::new(plan.meta.clone(), prepared));
            let committed = {
                let mut state = self.state.lock();
                let still = plan.moves == state.moves || cfg!(informant_mutant = "commit_blindly");
                still.then(|| state.commit(item.clone(), deleted))
            };
            // What the history had to forget for this is dropped here, outside of the lock.
            if committed.is_some() {
                return Ok(plan.meta);
            }
            if !deleted {
                object = Arc::into_inner(item).map(|item| item.object);
            }
        }
    }
}

impl<T> State<T> {
    fn plan(&self, key: &ObjectKey, ask: &Ask) -> Result<Plan<T>, WriteError> {
        let before = self.objects.get(key);
        match (ask, before) {
            (Ask::Absent, Some(_)) => return Err(WriteError::AlreadyExists(key.clone())),
            (Ask::Present(_), None) => return Err(WriteError::NotFound(key.clone())),
            (Ask::Present(conditions), Some(item)) => conditions.check(&item.meta)?,
            (Ask::Absent, None) | (Ask::Any, _) => {}
        }
        Ok(Plan {
            moves: self.moves,
            meta: Meta {
                key: key.clone(),
                uid: before.map_or_else(|| self.next_uid(), |item| item.meta.uid.clone()),
                resource_version: self.next_version().into(),
            },
            before: before.cloned(),
        })
    }
}

impl Preconditions {
    fn check(&self, found: &Meta) -> Result<(), WriteError> {
        if let Some(expected) = self.uid.as_ref().filter(|uid| **uid != found.uid) {
            return Err(WriteError::OtherUid {
                key: found.key.clone(),
                expected: expected.clone(),
                found: found.uid.clone(),
            });
        }
        let version = self.resource_version.as_ref();
        if let Some(expected) = version.filter(|version| **version != found.resource_version) {
            return Err(WriteError::Conflict {
                key: found.key.clone(),
                expected: expected.clone(),
                found: found.resource_version.clone(),
            });
        }
        Ok(())
    }
}
