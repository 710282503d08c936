//! One version of the cache: all objects and all indexes at one moment.
use super::applied::Quarantined;
use super::index::{Index, IndexPart, UnknownIndex, ValueTable};
use super::objects::{IndexValues, Objects, Values};
use super::quarantine::Quarantine;
use super::table::{Lane, Slot, Table};
use crate::delta::SourceId;
use crate::object::{Cached, KeyRef, ObjectKey, ResourceVersion};
use ahash::RandomState;
use hashbrown::Equivalent;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

/// One immutable version of the cache. All reads are here; [`Snapshot`](super::Snapshot) and
/// [`ReadGuard`](super::ReadGuard) both dereference to it.
///
/// Everything read from one view, by key or through any index, is of one moment: the source's
/// state at [`View::resource_version`], but for the keys in [`View::quarantine`].
pub struct View<T> {
    pub(super) indexer: u64,
    /// Counts publications; also the stamp of what this version changed.
    pub(super) sequence: u64,
    pub(super) table: Table<Cached<T>>,
    pub(super) indexes: Vec<Option<Box<dyn IndexPart>>>,
    pub(super) versions: SmallVec<[(SourceId, ResourceVersion); 1]>,
    pub(super) epoch: u64,
    pub(super) quarantine: Arc<Quarantine>,
}

impl<T> Lane for Cached<T> {
    fn hash(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one(self.key())
    }

    #[inline]
    fn read_ahead(&self) -> u64 {
        Cached::read_ahead(self)
    }
}

impl<T> Clone for View<T> {
    /// A shallow copy: shares everything but the top of each table.
    fn clone(&self) -> Self {
        Self {
            indexer: self.indexer,
            sequence: self.sequence,
            table: self.table.clone(),
            indexes: self
                .indexes
                .iter()
                .map(|part| part.as_ref().map(|part| part.boxed_clone()))
                .collect(),
            versions: self.versions.clone(),
            epoch: self.epoch,
            quarantine: self.quarantine.clone(),
        }
    }
}

impl<T> View<T> {
    pub(super) fn new(indexer: u64, hasher: RandomState) -> Self {
        Self {
            indexer,
            sequence: 0,
            table: Table::new(hasher),
            indexes: Vec::new(),
            versions: SmallVec::new(),
            epoch: 0,
            quarantine: Arc::default(),
        }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: KeyRef<'_>) -> Option<(Slot, &Cached<T>)> {
        // Which form the key has is asked once, not of every candidate.
        match key.joined() {
            Some(text) => self.table.find(hash, |object| object.key().bytes() == text),
            None => self.table.find(hash, |object| object.key().is(key)),
        }
    }

    #[inline]
    pub(super) fn hash_of(&self, key: KeyRef<'_>) -> u64 {
        self.table.hasher().hash_one(key)
    }

    /// The object with this key. Expected O(1), allocates nothing.
    ///
    /// Namespaced look-ups are exact: a cluster-scoped object is found under its plain name only.
    #[must_use]
    #[inline]
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&Cached<T>> {
        let key = key.into();
        self.find(self.hash_of(key), key).map(|(_, object)| object)
    }

    /// True when there is an object with this key.
    #[must_use]
    pub fn contains<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        self.get(key).is_some()
    }

    /// How many objects there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// True when there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects, in no particular order, without copying or allocating.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Cached<T>> + use<'_, T> {
        self.table.lanes()
    }

    /// All keys, in no particular order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &ObjectKey> + use<'_, T> {
        self.table.lanes().map(Cached::key)
    }

    /// The objects that have `value` under `index`, in no particular order. O(1) to get, its
    /// length is known, iterating allocates nothing.
    ///
    /// # Errors
    /// [`UnknownIndex`] when the handle is another indexer's, or the index is not part of this view.
    pub fn by_index<V, Q>(
        &self,
        index: &Index<T, V>,
        value: &Q,
    ) -> Result<Objects<'_, T>, UnknownIndex>
    where
        V: Hash + Eq + Send + Sync + 'static,
        Q: Hash + Equivalent<V> + ?Sized,
    {
        Ok(Objects::of(
            &self.table,
            self.value_table(index)?.posting(value),
        ))
    }

    /// How many objects have `value` under `index`. O(1).
    ///
    /// # Errors
    /// As [`View::by_index`].
    pub fn count_by_index<V, Q>(
        &self,
        index: &Index<T, V>,
        value: &Q,
    ) -> Result<usize, UnknownIndex>
    where
        V: Hash + Eq + Send + Sync + 'static,
        Q: Hash + Equivalent<V> + ?Sized,
    {
        Ok(self.by_index(index, value)?.len())
    }

    /// The values of an index with their objects: no value without an object is ever among them.
    ///
    /// # Errors
    /// As [`View::by_index`].
    pub fn index_values<V>(
        &self,
        index: &Index<T, V>,
    ) -> Result<IndexValues<'_, T, V>, UnknownIndex>
    where
        V: Hash + Eq + Send + Sync + 'static,
    {
        Ok(IndexValues::new(
            &self.table,
            self.value_table(index)?.nodes(),
        ))
    }

    /// A typed handle to the index of this name.
    ///
    /// # Errors
    /// [`UnknownIndex`] when there is none, or its values are of another type.
    pub fn index<V>(&self, name: &str) -> Result<Index<T, V>, UnknownIndex>
    where
        V: Hash + Eq + Send + Sync + 'static,
    {
        let found = self.indexes.iter().enumerate().find_map(|(at, part)| {
            Some((at, part.as_ref().filter(|part| &**part.name() == name)?))
        });
        let Some((position, part)) = found else {
            return Err(UnknownIndex::NotFound {
                name: name.to_owned(),
                present: self.index_names().map(str::to_owned).collect(),
            });
        };
        if !(&**part as &dyn Any).is::<ValueTable<V>>() {
            return Err(UnknownIndex::OtherType {
                name: name.to_owned(),
                asked: std::any::type_name::<V>(),
            });
        }
        Ok(Index {
            indexer: self.indexer,
            position,
            name: part.name().clone(),
            types: PhantomData,
        })
    }

    /// The objects that have the text `value` under the index called `name`.
    ///
    /// # Errors
    /// [`UnknownIndex`] when there is no such index, or its values are not `String`s.
    pub fn by_index_name(&self, name: &str, value: &str) -> Result<Objects<'_, T>, UnknownIndex> {
        self.by_index(&self.index::<String>(name)?, value)
    }

    /// The values of the index called `name`, with their objects.
    ///
    /// # Errors
    /// As [`View::by_index_name`].
    pub fn index_values_by_name(
        &self,
        name: &str,
    ) -> Result<IndexValues<'_, T, String>, UnknownIndex> {
        self.index_values(&self.index::<String>(name)?)
    }

    /// The names of the indexes.
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        self.indexes.iter().flatten().map(|part| &**part.name())
    }

    /// How many different values the index called `name` has, whatever their type. O(1).
    ///
    /// # Errors
    /// [`UnknownIndex`] when there is no such index.
    pub fn index_value_count(&self, name: &str) -> Result<usize, UnknownIndex> {
        Ok(self.part(name)?.value_count())
    }

    /// The objects on which the function of the index called `name` failed: they are stored, and
    /// readable by key, but the index does not know them.
    ///
    /// # Errors
    /// [`UnknownIndex`] when there is no such index.
    pub fn poisoned(&self, name: &str) -> Result<Objects<'_, T>, UnknownIndex> {
        Ok(Objects::of(&self.table, Some(self.part(name)?.poisoned())))
    }

    /// The version of the source that this view shows, where there is one source. With several
    /// sources it is empty: see [`View::versions`].
    #[must_use]
    pub fn resource_version(&self) -> ResourceVersion {
        match self.versions.as_slice() {
            [(_, version)] => version.clone(),
            _ => ResourceVersion::empty(),
        }
    }

    /// The version of each source that this view shows.
    #[must_use]
    pub fn versions(&self) -> &[(SourceId, ResourceVersion)] {
        &self.versions
    }

    /// How often a source was reset. Versions are monotone within an epoch; across epochs the pair
    /// (epoch, version) is.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Counts publications: of two views of one indexer, the one with the higher number is newer.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The objects that could not be applied: for every other key, this view equals the source.
    pub fn quarantine(&self) -> impl Iterator<Item = &Quarantined> {
        self.quarantine.iter()
    }

    /// True when nothing is in quarantine.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.quarantine.is_empty()
    }

    fn part(&self, name: &str) -> Result<&dyn IndexPart, UnknownIndex> {
        self.indexes
            .iter()
            .flatten()
            .find(|part| &**part.name() == name)
            .map(|part| &**part)
            .ok_or_else(|| UnknownIndex::NotFound {
                name: name.to_owned(),
                present: self.index_names().map(str::to_owned).collect(),
            })
    }

    pub(super) fn value_table<V>(&self, index: &Index<T, V>) -> Result<&ValueTable<V>, UnknownIndex>
    where
        V: Hash + Eq + Send + Sync + 'static,
    {
        self.indexes
            .get(index.position)
            .filter(|_| index.indexer == self.indexer)
            .and_then(Option::as_ref)
            .and_then(|part| (&**part as &dyn Any).downcast_ref())
            .ok_or_else(|| UnknownIndex::NotHere {
                name: index.name.to_string(),
            })
    }
}

/// The keys that have `value` and the values themselves, for callers that want plain collections.
impl<T> View<T> {
    /// The keys of the objects that have `value` under `index`, sorted (client-go's `IndexKeys`).
    ///
    /// # Errors
    /// As [`View::by_index`].
    pub fn index_keys<V, Q>(
        &self,
        index: &Index<T, V>,
        value: &Q,
    ) -> Result<Vec<ObjectKey>, UnknownIndex>
    where
        V: Hash + Eq + Send + Sync + 'static,
        Q: Hash + Equivalent<V> + ?Sized,
    {
        let mut keys: Vec<_> = self
            .by_index(index, value)?
            .map(|o| o.key().clone())
            .collect();
        keys.sort_unstable();
        Ok(keys)
    }

    /// The objects that share at least one of `values` under `index`, each once (client-go's
    /// `Index`, whose values are those of an object).
    ///
    /// # Errors
    /// As [`View::by_index`].
    pub fn by_any<'q, V, Q>(
        &self,
        index: &Index<T, V>,
        values: impl IntoIterator<Item = &'q Q>,
    ) -> Result<Values<'_, T>, UnknownIndex>
    where
        V: Hash + Eq + Send + Sync + 'static,
        Q: Hash + Equivalent<V> + ?Sized + 'q,
    {
        let table = self.value_table(index)?;
        let mut slots: Vec<Slot> = values
            .into_iter()
            .filter_map(|value| table.posting(value))
            .flat_map(super::posting::Posting::iter)
            .collect();
        slots.sort_unstable();
        slots.dedup();
        Ok(Values::new(&self.table, slots))
    }
}

impl<T> fmt::Debug for View<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("versions", &self.versions)
            .field("epoch", &self.epoch)
            .field("objects", &self.len())
            .field("indexes", &self.index_names().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
