//! Typed handles to indexes.
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A handle to one index of one indexer: queries through it name an index that exists.
pub struct Index<T, V> {
    pub(crate) indexer: u64,
    pub(crate) position: usize,
    pub(crate) name: Arc<str>,
    pub(crate) types: PhantomData<fn(&T) -> V>,
}

impl<T, V> Index<T, V> {
    /// The index's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T, V> Clone for Index<T, V> {
    fn clone(&self) -> Self {
        Self {
            indexer: self.indexer,
            position: self.position,
            name: self.name.clone(),
            types: PhantomData,
        }
    }
}

impl<T, V> fmt::Debug for Index<T, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({:?})", self.name)
    }
}

/// A query named an index that this view does not have: never an empty answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownIndex {
    /// There is no index of this name.
    #[error("there is no index {name:?}; there are {}", list(.present))]
    NotFound {
        /// The name asked for.
        name: String,
        /// The names that there are.
        present: Vec<String>,
    },
    /// The index has values of another type.
    #[error("index {name:?} has values of another type than {asked}")]
    OtherType {
        /// The name asked for.
        name: String,
        /// The type asked for.
        asked: &'static str,
    },
    /// The handle belongs to another indexer, or the index was removed, or the snapshot is older
    /// than the index.
    #[error("index {name:?} is not part of this snapshot")]
    NotHere {
        /// The name of the handle.
        name: String,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// An index of this name exists already; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is an index {name:?} already; nothing was changed")]
pub struct IndexConflict {
    /// The name.
    pub name: String,
}
