//! The embedded source: a versioned collection in memory that lists and watches as an API server
//! does. The demo runs on it, and so can your own unit tests.
mod list;
mod state;
mod watch;

use super::{ListOptions, ListPage, ListWatch, SourceError, WatchOptions, WatchStream};
use crate::clock::SharedClock;
use crate::object::{Incoming, Meta, ObjectKey, ResourceVersion, Uid};
use crate::sync::{Mutex, WaitSet};
use state::{Change, State};
use std::fmt;
use std::sync::Arc;

pub use state::{Disconnect, Request};

/// Writes the metadata into an object, where the object type carries its own.
pub type Stamp<T> = Arc<dyn Fn(&mut T, &Meta) + Send + Sync>;

/// What a [`MemorySource`] is made of.
pub struct MemoryConfig<T> {
    /// Changes that are remembered for watches; older ones are compacted away.
    pub history: usize,
    /// Writes key, uid and version into each object that is stored.
    pub stamp: Option<Stamp<T>>,
    /// Ends watches after their timeout; without a clock they never time out.
    pub clock: Option<SharedClock>,
    /// A bookmark is sent to a watch that allows them after this many changes that it did not see.
    pub bookmark_every: u64,
}

impl<T> Default for MemoryConfig<T> {
    fn default() -> Self {
        Self {
            history: 100_000,
            stamp: None,
            clock: None,
            bookmark_every: 1_000,
        }
    }
}

impl<T> fmt::Debug for MemoryConfig<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryConfig")
            .field("history", &self.history)
            .field("stamp", &self.stamp.is_some())
            .field("bookmark_every", &self.bookmark_every)
            .finish_non_exhaustive()
    }
}

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
}

pub(super) struct Shared<T> {
    stamp: Option<Stamp<T>>,
    clock: Option<SharedClock>,
    bookmark_every: u64,
    state: Mutex<State<T>>,
    changes: WaitSet,
}

/// A versioned collection in memory. Clones are handles of one collection.
///
/// ```
/// use informant::ObjectKey;
/// use informant::source::memory::MemorySource;
///
/// let pods = MemorySource::<String>::new();
/// let web = ObjectKey::new("default", "web-0")?;
/// let created = pods.create(web.clone(), "nginx:1".to_owned())?;
/// pods.update(&web, Some(&created.resource_version), "nginx:2".to_owned())?;
/// // Optimistic concurrency: the version above is not the newest any more.
/// assert!(pods.update(&web, Some(&created.resource_version), "nginx:3".to_owned()).is_err());
/// assert_eq!(pods.get(&web).unwrap().object, "nginx:2");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct MemorySource<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for MemorySource<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Default for MemorySource<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Send + Sync + 'static> MemorySource<T> {
    /// An empty collection at version 1.
    #[must_use]
    pub fn new() -> Self {
        Self::with(MemoryConfig::default())
    }

    /// An empty collection, configured.
    #[must_use]
    pub fn with(config: MemoryConfig<T>) -> Self {
        Self {
            shared: Arc::new(Shared {
                stamp: config.stamp,
                clock: config.clock,
                bookmark_every: config.bookmark_every,
                state: Mutex::new(State::new(config.history)),
                changes: WaitSet::new(),
            }),
        }
    }

    /// Create an object; its uid is made up, its version is the next one.
    ///
    /// # Errors
    /// [`WriteError::AlreadyExists`].
    pub fn create(&self, key: ObjectKey, object: T) -> Result<Meta, WriteError> {
        self.write(|state, stamp| {
            if state.objects.contains_key(&key) {
                return Err(WriteError::AlreadyExists(key));
            }
            let uid = state.next_uid();
            Ok(state.put(key, uid, object, Change::Added, stamp))
        })
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
        self.write(|state, stamp| {
            let uid = state.check(key, expected)?;
            Ok(state.put(key.clone(), uid, object, Change::Modified, stamp))
        })
    }

    /// Create or change an object.
    pub fn upsert(&self, key: ObjectKey, object: T) -> Meta {
        self.write(|state, stamp| {
            let known = state.objects.get(&key).map(|item| item.meta.uid.clone());
            let (uid, change) = match known {
                Some(uid) => (uid, Change::Modified),
                None => (state.next_uid(), Change::Added),
            };
            state.put(key, uid, object, change, stamp)
        })
    }

    /// Delete an object. With `expected`, only if it is at that version. Returns its last state at
    /// the version of the deletion.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] and [`WriteError::Conflict`].
    pub fn delete(
        &self,
        key: &ObjectKey,
        expected: Option<&ResourceVersion>,
    ) -> Result<Meta, WriteError> {
        self.write(|state, stamp| {
            state.check(key, expected)?;
            Ok(state.remove(key, stamp))
        })
    }

    fn write<R>(&self, change: impl FnOnce(&mut State<T>, Option<&Stamp<T>>) -> R) -> R {
        let result = change(&mut self.shared.state.lock(), self.shared.stamp.as_ref());
        self.shared.changes.notify_all();
        result
    }

    /// The object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Incoming<T>> {
        let item = self.shared.state.lock().objects.get(key).cloned()?;
        Some((*item).clone())
    }

    /// All objects at one version, in key order.
    #[must_use]
    pub fn objects(&self) -> (ResourceVersion, Vec<Arc<Incoming<T>>>) {
        let state = self.shared.state.lock();
        (
            state.version.into(),
            state.objects.values().cloned().collect(),
        )
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().objects.len()
    }

    /// True when there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest version.
    #[must_use]
    pub fn resource_version(&self) -> ResourceVersion {
        self.shared.state.lock().version.into()
    }

    /// Forget all changes up to and including `version`: watches from before get 410, and lists
    /// that are being paged expire.
    pub fn compact(&self, version: &ResourceVersion) {
        if let Some(version) = version.as_number() {
            self.write(|state, _| state.compact(version));
        }
    }

    /// Send a bookmark to every watch that allows them.
    pub fn send_bookmark(&self) {
        self.write(|state, _| state.bookmark_at = state.version);
    }

    /// End every watch that is open.
    pub fn disconnect(&self, how: Disconnect) {
        self.write(|state, _| state.disconnect(how));
    }

    /// Lose the next `count` changes on every watch that is open: they are in no frame, though the
    /// version moves on. Nothing tells the client; this is what a consistency check is for.
    pub fn drop_frames(&self, count: u64) {
        self.write(|state, _| state.drop_until = state.version + count);
    }

    /// Answer the next list with this error.
    pub fn fail_next_list(&self, error: SourceError) {
        self.write(|state, _| state.list_faults.push_back(error));
    }

    /// Answer the next watch with this error.
    pub fn fail_next_watch(&self, error: SourceError) {
        self.write(|state, _| state.watch_faults.push_back(error));
    }

    /// Every list and watch call so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state.lock().requests.clone()
    }
}

impl<T: Clone + Send + Sync + 'static> ListWatch for MemorySource<T> {
    type Object = T;

    async fn list(&self, options: ListOptions) -> Result<ListPage<T>, SourceError> {
        list::page(&self.shared, &options)
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<T>, SourceError> {
        watch::open(&self.shared, options)
    }
}

impl<T> fmt::Debug for MemorySource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        write!(
            f,
            "MemorySource({} objects at version {})",
            state.objects.len(),
            state.version
        )
    }
}

/// True when the object is in the part of the collection that the selectors name. The embedded
/// source knows namespaces, and `metadata.name` as a field.
fn selects(selectors: &super::Selectors, key: &ObjectKey) -> bool {
    let in_namespace = selectors
        .namespace
        .as_deref()
        .is_none_or(|namespace| namespace == key.namespace());
    let by_name = selectors
        .fields
        .as_deref()
        .and_then(|fields| fields.strip_prefix("metadata.name="))
        .is_none_or(|name| name.trim_start_matches('=') == key.name());
    in_namespace && by_name
}

/// A made-up uid, the same in every run.
fn uid(number: u64) -> Uid {
    Uid::new(&format!("00000000-0000-4000-8000-{number:012x}"))
}

#[cfg(all(test, not(informant_loom)))]
mod tests;
