//! Declaring an indexer.
use super::freshness::Freshness;
use super::index::{Driver, Emit, IndexDriver, IndexFunction};
use super::publish::{Drivers, Publisher};
use super::read::{Indexer, Shared};
use super::view::View;
use super::writer::IndexWriter;
use crate::object::{Cached, Versioning};
use crate::sync::Root;
use ahash::RandomState;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells indexers apart, so that a handle to an index is refused by another indexer. It guards no
/// data, hence it is not part of any modelled protocol and is a plain static.
static NEXT_INDEXER: AtomicU64 = AtomicU64::new(0);

type MakeDriver<T> = Box<dyn FnOnce(RandomState) -> Box<dyn IndexDriver<T>> + Send>;

/// An index that has been declared but not built: what [`IndexWriter::add_index`] takes.
pub struct IndexDeclaration<T> {
    pub(super) name: Arc<str>,
    pub(super) make: MakeDriver<T>,
}

impl<T: Send + Sync + 'static> IndexDeclaration<T> {
    /// An index whose function gives the values of an object.
    pub fn new<V, I, F>(name: &str, function: F) -> Self
    where
        V: Hash + Eq + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
        F: Fn(&Cached<T>) -> I + Send + 'static,
    {
        Self::with(name, move |object, emit: &mut Emit<'_, V>| {
            function(object)
                .into_iter()
                .for_each(|value| emit.value(value));
            Ok(())
        })
    }

    /// An index whose function may fail; the object is then poisoned for this index.
    pub fn fallible<V, I, E, F>(name: &str, function: F) -> Self
    where
        V: Hash + Eq + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
        E: fmt::Display,
        F: Fn(&Cached<T>) -> Result<I, E> + Send + 'static,
    {
        Self::with(name, move |object, emit: &mut Emit<'_, V>| {
            let values = function(object).map_err(|error| error.to_string())?;
            values.into_iter().for_each(|value| emit.value(value));
            Ok(())
        })
    }

    /// An index whose function puts values into an [`Emit`]: with [`Emit::borrowed`] it allocates
    /// nothing for values that the index knows.
    pub fn with<V, F>(name: &str, function: F) -> Self
    where
        V: Hash + Eq + Send + Sync + 'static,
        F: Fn(&Cached<T>, &mut Emit<'_, V>) -> Result<(), String> + Send + 'static,
    {
        let name: Arc<str> = name.into();
        let function: IndexFunction<T, V> = Box::new(function);
        Self {
            name: name.clone(),
            make: Box::new(move |hasher| Box::new(Driver::new(name, hasher, function))),
        }
    }

    /// The index's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T> fmt::Debug for IndexDeclaration<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexDeclaration({:?})", self.name)
    }
}

/// Declares an indexer: see [`Indexer::builder`].
#[must_use]
pub struct IndexerBuilder<T> {
    versioning: Versioning,
    seed: Option<u64>,
    indexes: Vec<IndexDeclaration<T>>,
}

impl<T: Send + Sync + 'static> IndexerBuilder<T> {
    pub(super) fn new() -> Self {
        Self {
            versioning: Versioning::Decimal,
            seed: None,
            indexes: Vec::new(),
        }
    }

    /// Whether versions of the sources can be compared; they can by default.
    pub fn versioning(mut self, versioning: Versioning) -> Self {
        self.versioning = versioning;
        self
    }

    /// Fix the seed of the hash function, so that iteration order is the same in every run. Keys
    /// come from the users of a cluster, so by default the seed is random.
    pub fn hash_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Declare an index whose function gives the values of an object: many, one, none or repeated.
    ///
    /// # Panics
    /// [`IndexerBuilder::build`] panics when two indexes have the same name.
    pub fn index<V, I, F>(self, name: &str, function: F) -> Self
    where
        V: Hash + Eq + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
        F: Fn(&Cached<T>) -> I + Send + 'static,
    {
        self.declare(IndexDeclaration::new(name, function))
    }

    /// Declare an index: see [`IndexDeclaration`] for its forms.
    pub fn declare(mut self, index: IndexDeclaration<T>) -> Self {
        self.indexes.push(index);
        self
    }

    /// Build the read handle and the writer of an empty cache.
    ///
    /// # Panics
    /// When two indexes have the same name: that is a mistake in the program, not in its input.
    pub fn build(self) -> (Indexer<T>, IndexWriter<T>) {
        let hasher = match self.seed {
            Some(seed) => RandomState::with_seeds(seed, 1, 2, 3),
            None => RandomState::new(),
        };
        let id = NEXT_INDEXER.fetch_add(1, Ordering::Relaxed);
        let mut view = View::new(id, hasher.clone());
        let mut drivers: Drivers<T> = Vec::new();
        for IndexDeclaration { name, make } in self.indexes {
            assert!(
                drivers
                    .iter()
                    .flatten()
                    .all(|driver| *driver.name() != name),
                "two indexes are called {name:?}"
            );
            let driver = make(hasher.clone());
            view.indexes.push(Some(driver.new_part()));
            drivers.push(Some(driver));
        }
        let view = Arc::new(view);
        let shared = Arc::new(Shared {
            root: Root::new(view.clone()),
            freshness: Freshness::new(self.versioning),
        });
        let writer = IndexWriter::new(shared.clone(), Publisher::new(view), drivers);
        (Indexer { shared }, writer)
    }
}

impl<T> fmt::Debug for IndexerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexerBuilder")
            .field("versioning", &self.versioning)
            .field("indexes", &self.indexes)
            .finish_non_exhaustive()
    }
}
