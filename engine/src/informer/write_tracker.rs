//! Reading one's own writes.
use crate::indexer::{Indexer, View, WaitError};
use crate::object::{Cached, KeyRef, Meta, ObjectKey, ResourceVersion, Uid, Versioning};
use crate::sync::Mutex;
use ahash::RandomState;
use hashbrown::HashMap;
use std::fmt;

/// Knows what a program has written, so that its reads (and its work queue) can wait for exactly
/// that: for its *own* writes of *that* key, and for nothing else.
///
/// Feed it from whatever writes: [`wrote`](WriteTracker::wrote) with what the server answered, and
/// [`deleting`](WriteTracker::deleting) *before* a delete is sent, since its event may be there
/// before its answer. Deletions are matched by uid, so a re-created object counts as deleted and the
/// creation as another write. Several writes of one key count as the last of them.
///
/// A key costs memory from its write until the cache shows it.
///
/// ```
/// # use informant::{Meta, informer::{SharedInformer, WriteTracker}};
/// # async fn f(informer: SharedInformer<String>, answer: Meta) -> Result<(), Box<dyn std::error::Error>> {
/// let writes = WriteTracker::new(informer.lister());
/// // … an update was sent, and this is the metadata of what the server stored:
/// writes.wrote(answer.clone());
/// let object = writes.get(&answer.key).await?; // never older than the own write
/// # Ok(()) }
/// ```
pub struct WriteTracker<T> {
    cache: Indexer<T>,
    versioning: Versioning,
    writes: Mutex<Writes>,
}

struct Writes {
    own: HashMap<ObjectKey, OwnWrite, RandomState>,
    /// Look for writes that the cache shows by now when there are more than this.
    sweep_above: usize,
}

/// What the cache must show of a key, in the epoch in which it was written.
#[derive(Clone, PartialEq, Eq)]
struct OwnWrite {
    epoch: u64,
    uid: Uid,
    /// `None`: the object is to be gone.
    version: Option<ResourceVersion>,
}

const SWEEP_ABOVE_AT_LEAST: usize = 1024;

impl<T> WriteTracker<T> {
    /// A tracker of writes to what `cache` shows, for sources whose versions can be compared.
    #[must_use]
    pub fn new(cache: Indexer<T>) -> Self {
        Self::with_versioning(cache, Versioning::Decimal)
    }

    /// [`WriteTracker::new`] for sources of another kind. Where versions cannot be compared, a write
    /// is seen only when the cache shows exactly its version, or the object is another or gone.
    #[must_use]
    pub fn with_versioning(cache: Indexer<T>, versioning: Versioning) -> Self {
        Self {
            cache,
            versioning,
            writes: Mutex::new(Writes {
                own: HashMap::with_hasher(RandomState::new()),
                sweep_above: SWEEP_ABOVE_AT_LEAST,
            }),
        }
    }

    /// The server has stored this state of an object: it was created, updated or patched; or its
    /// deletion was asked for and something holds it up (a finalizer).
    pub fn wrote(&self, meta: Meta) {
        let Meta {
            key,
            uid,
            resource_version,
        } = meta;
        self.track(key, uid, Some(resource_version));
    }

    /// A deletion of this object is about to be sent.
    pub fn deleting(&self, key: ObjectKey, uid: Uid) {
        self.track(key, uid, None);
    }

    /// The deletion was refused, or did not arrive: do not wait for it.
    pub fn delete_failed<'k>(&self, key: impl Into<KeyRef<'k>>, uid: &Uid) {
        let key = key.into();
        let mut writes = self.writes.lock();
        if let Some(write) = writes.own.get(&key)
            && write.version.is_none()
            && write.uid == *uid
        {
            writes.own.remove(&key);
        }
    }

    fn track(&self, key: ObjectKey, uid: Uid, version: Option<ResourceVersion>) {
        let view = self.cache.load();
        let write = OwnWrite {
            epoch: view.epoch(),
            uid,
            version,
        };
        let mut writes = self.writes.lock();
        writes.own.insert(key, write);
        if writes.own.len() > writes.sweep_above {
            let shown = |key: &ObjectKey, write: &mut OwnWrite| {
                !write.is_shown(&view, key.as_ref(), self.versioning)
            };
            writes.own.retain(shown);
            writes.sweep_above = (2 * writes.own.len()).max(SWEEP_ABOVE_AT_LEAST);
        }
    }

    /// Whether the cache shows the own writes of this key by now; true when there are none. A work
    /// queue asks this before it hands a key out.
    pub fn is_current<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        let key = key.into();
        let Some(write) = self.own_write(key) else {
            return true;
        };
        let shown = write.is_shown(&self.cache.load(), key, self.versioning);
        if shown {
            self.forget(key, &write);
        }
        shown
    }

    /// Wait until the cache shows the own writes of this key: those made before this call. Bound it
    /// in time like any wait for another system; dropping the future ends it.
    ///
    /// # Errors
    /// [`WaitError::Stopped`]
    pub async fn current<'k>(&self, key: impl Into<KeyRef<'k>>) -> Result<(), WaitError> {
        let key = key.into();
        // A copy: a write that is made while this waits is for the next call.
        let Some(write) = self.own_write(key) else {
            return Ok(());
        };
        self.cache
            .wait_until(|view| write.is_shown(view, key, self.versioning).then_some(()))
            .await?;
        self.forget(key, &write);
        Ok(())
    }

    /// The object of this key, never older than the own writes that were made before this call.
    ///
    /// # Errors
    /// As [`WriteTracker::current`].
    pub async fn get<'k>(
        &self,
        key: impl Into<KeyRef<'k>>,
    ) -> Result<Option<Cached<T>>, WaitError> {
        let key = key.into();
        self.current(key).await?;
        Ok(self.cache.get(key))
    }

    /// Keys with writes that were not seen in the cache when last looked for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.lock().own.len()
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn own_write(&self, key: KeyRef<'_>) -> Option<OwnWrite> {
        self.writes.lock().own.get(&key).cloned()
    }

    /// Drop this write, unless another was made meanwhile.
    fn forget(&self, key: KeyRef<'_>, write: &OwnWrite) {
        let mut writes = self.writes.lock();
        if writes.own.get(&key) == Some(write) {
            writes.own.remove(&key);
        }
    }
}

impl OwnWrite {
    fn is_shown<T>(&self, view: &View<T>, key: KeyRef<'_>, versioning: Versioning) -> bool {
        // After a reset of the source its versions from before mean nothing.
        if view.epoch() != self.epoch {
            return true;
        }
        let stored = view.get(key);
        let Some(version) = &self.version else {
            return stored.is_none_or(|stored| !stored.uid().may_equal(&self.uid));
        };
        let reached =
            |shown: &ResourceVersion| shown == version || version.is_older_than(shown, versioning);
        match stored {
            Some(stored) if stored.uid().may_equal(&self.uid) => reached(stored.resource_version()),
            // Not stored (yet, or any more), or another life of the key: what the cache as a whole
            // has reached decides.
            Some(stored) if reached(stored.resource_version()) => true,
            _ => !view.versions().is_empty() && view.versions().iter().all(|(_, v)| reached(v)),
        }
    }
}

impl<T> fmt::Debug for WriteTracker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTracker")
            .field("waiting", &self.len())
            .finish_non_exhaustive()
    }
}
