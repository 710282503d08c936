//! The read side: a handle, a short borrow, and a snapshot to keep.
use super::builder::IndexerBuilder;
use super::freshness::Freshness;
use super::index::{Index, UnknownIndex};
use super::view::View;
use crate::object::{Cached, KeyRef, ResourceVersion};
use crate::sync::{Root, RootGuard};
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

/// What the read handles and the writer of one indexer share.
pub(super) struct Shared<T> {
    pub(super) root: Root<View<T>>,
    pub(super) freshness: Freshness,
}

/// The read handle of a cache. Clones are cheap and see the same cache; it can be used from any
/// thread, and no call on it ever waits for the writer.
///
/// ```
/// use informant::delta::{Batch, Delta, SourceId};
/// use informant::{Cached, Incoming, Meta, indexer::Indexer};
///
/// let (indexer, mut writer) = Indexer::<String>::builder()
///     .index("first-letter", |pod: &Cached<String>| pod.chars().next())
///     .build();
/// let letter = indexer.index::<char>("first-letter")?;
///
/// let pod = Incoming::new(Meta::new("default", "web-0", "u1", "7")?, "nginx".to_owned());
/// writer.apply(Batch::of(SourceId(0), Delta::Added(pod.into())));
///
/// let snapshot = indexer.snapshot();
/// assert_eq!(snapshot.get("default/web-0").map(|pod| pod.as_str()), Some("nginx"));
/// assert_eq!(snapshot.by_index(&letter, &'n')?.count(), 1);
/// assert_eq!(snapshot.resource_version().to_string(), "7");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Indexer<T> {
    pub(super) shared: Arc<Shared<T>>,
}

impl<T: Send + Sync + 'static> Indexer<T> {
    /// Declare an indexer and its indexes.
    pub fn builder() -> IndexerBuilder<T> {
        IndexerBuilder::new()
    }
}

impl<T> Indexer<T> {
    /// Borrow the current version for a moment: the fastest way to a single read, since it touches
    /// no shared count. Keep it short; to keep a version, take a [`Snapshot`].
    #[must_use]
    #[inline]
    pub fn load(&self) -> ReadGuard<T> {
        ReadGuard(self.shared.root.load())
    }

    /// The current version, to keep. O(1): one reference count.
    ///
    /// Holding it never blocks or slows the writer; it keeps alive what has changed since.
    #[must_use]
    #[inline]
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot(self.shared.root.load_full())
    }

    /// The object with this key in the current version. Two calls may see two versions: for more
    /// than one read, take a snapshot.
    #[must_use]
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Cached<T>> {
        self.load().get(key).cloned()
    }

    /// How many objects the current version has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.load().len()
    }

    /// True when the current version has no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects of the current version, copied into a vector of handles: for loops, a
    /// [`Snapshot`] and its [`View::iter`] need no copy (client-go's `List`).
    #[must_use]
    pub fn list(&self) -> Vec<Cached<T>> {
        self.load().iter().cloned().collect()
    }

    /// The version of the source that the cache shows now: see [`View::resource_version`].
    #[must_use]
    pub fn resource_version(&self) -> ResourceVersion {
        self.load().resource_version()
    }

    /// A typed handle to the index of this name.
    ///
    /// # Errors
    /// [`UnknownIndex`] when there is none, or its values are of another type.
    pub fn index<V>(&self, name: &str) -> Result<Index<T, V>, UnknownIndex>
    where
        V: Hash + Eq + Send + Sync + 'static,
    {
        self.load().index(name)
    }
}

impl<T> Clone for Indexer<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T> fmt::Debug for Indexer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Indexer({:?})", &*self.load())
    }
}

/// A short borrow of the current version: see [`Indexer::load`].
///
/// It is bound to the thread's stack and cannot be sent away:
///
/// ```compile_fail
/// # use informant::indexer::Indexer;
/// let (indexer, _writer) = Indexer::<String>::builder().build();
/// let pod = indexer.load().get("default/web-0"); // the guard is gone at the end of the line
/// pod.is_some();
/// ```
pub struct ReadGuard<T>(RootGuard<View<T>>);

impl<T> Deref for ReadGuard<T> {
    type Target = View<T>;
    #[inline]
    fn deref(&self) -> &View<T> {
        &self.0
    }
}

impl<T> fmt::Debug for ReadGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// One version of the cache, to keep: an owned, immutable value.
///
/// It can be held for ever, sent to other threads, iterated, queried through every index, and
/// compared with another. Clones are one reference count.
pub struct Snapshot<T>(Arc<View<T>>);

impl<T> Deref for Snapshot<T> {
    type Target = View<T>;
    #[inline]
    fn deref(&self) -> &View<T> {
        &self.0
    }
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
