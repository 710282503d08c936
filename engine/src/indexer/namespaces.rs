//! Listing by namespace, which every controller does.
use super::builder::IndexDeclaration;
use super::index::Emit;
use super::read::Indexer;
use super::view::View;
use crate::object::Cached;
use std::borrow::Borrow;
use std::sync::Arc;

/// The name under which [`IndexDeclaration::namespaces`] declares its index (client-go's
/// `NamespaceIndex`).
pub const NAMESPACES: &str = "namespaces";

/// A namespace as an index value: a type of its own, so that no other index is taken for this one.
#[derive(PartialEq, Eq, Hash)]
struct Namespace(Arc<str>);

impl Borrow<str> for Namespace {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<T: Send + Sync + 'static> IndexDeclaration<T> {
    /// The index of namespaces, which makes [`View::list_namespaced`] cost what it finds. Objects
    /// without a namespace are under the empty one.
    #[must_use]
    pub fn namespaces() -> Self {
        Self::with(
            NAMESPACES,
            |object: &Cached<T>, emit: &mut Emit<'_, Namespace>| {
                emit.known_as(object.namespace(), |name| Namespace(name.into()));
                Ok(())
            },
        )
    }
}

impl<T: Send + Sync + 'static> View<T> {
    /// The objects of one namespace, in no particular order; the empty namespace is that of
    /// cluster-scoped objects (client-go's `ListAllByNamespace`, but for its "all": use
    /// [`View::iter`]).
    ///
    /// Costs what it finds when the cache has the index [`IndexDeclaration::namespaces`], and a look
    /// at every key otherwise.
    ///
    /// ```
    /// use informant::delta::{Batch, Delta, SourceId};
    /// use informant::indexer::{IndexDeclaration, Indexer};
    /// use informant::{Incoming, Meta};
    ///
    /// let (indexer, mut writer) = Indexer::<()>::builder()
    ///     .declare(IndexDeclaration::namespaces())
    ///     .build();
    /// for (namespace, name, version) in [("blue", "a", "1"), ("red", "a", "2"), ("blue", "b", "3")] {
    ///     let object = Incoming::new(Meta::new(namespace, name, "", version)?, ());
    ///     writer.apply(Batch::of(SourceId(0), Delta::Added(object.into())));
    /// }
    /// assert_eq!(indexer.load().list_namespaced("blue").len(), 2);
    /// assert!(indexer.load().list_namespaced("green").is_empty());
    /// # Ok::<_, informant::KeyError>(())
    /// ```
    #[must_use]
    pub fn list_namespaced(&self, namespace: &str) -> Vec<Cached<T>> {
        let indexed = self.index::<Namespace>(NAMESPACES);
        if let Ok(objects) = indexed.and_then(|index| self.by_index(&index, namespace)) {
            return objects.cloned().collect();
        }
        let all = self.iter();
        all.filter(|object| object.namespace() == namespace)
            .cloned()
            .collect()
    }
}

impl<T: Send + Sync + 'static> Indexer<T> {
    /// [`View::list_namespaced`] of the current version.
    #[must_use]
    pub fn list_namespaced(&self, namespace: &str) -> Vec<Cached<T>> {
        self.load().list_namespaced(namespace)
    }
}

#[cfg(all(test, not(informant_loom)))]
mod tests {
    use super::*;
    use crate::delta::{Batch, Delta, SourceId};
    use crate::object::{Incoming, Meta};

    fn filled(index: Option<IndexDeclaration<u8>>) -> Indexer<u8> {
        let mut builder = Indexer::<u8>::builder();
        if let Some(index) = index {
            builder = builder.declare(index);
        }
        let (indexer, mut writer) = builder.build();
        for (namespace, name, version) in [("x", "a", "1"), ("", "x", "2"), ("x", "b", "3")] {
            let meta = Meta::new(namespace, name, "", version).unwrap();
            writer.apply(Batch::of(
                SourceId(0),
                Delta::Added(Incoming::new(meta, 0).into()),
            ));
        }
        indexer
    }

    #[test]
    fn a_namespace_is_listed_with_its_index_without_it_and_beside_another_of_that_name() {
        let other = IndexDeclaration::new(NAMESPACES, |_: &Cached<u8>| ["x".to_owned()]);
        for index in [None, Some(IndexDeclaration::namespaces()), Some(other)] {
            let indexer = filled(index);
            let keys = |namespace| {
                let mut found = indexer.list_namespaced(namespace);
                found.sort_by(|a, b| a.key().cmp(b.key()));
                let keys = found.iter().map(|object| object.key().to_string());
                keys.collect::<Vec<_>>()
            };
            assert_eq!(keys("x"), ["x/a", "x/b"]);
            assert_eq!(keys(""), ["x"]);
            assert_eq!(keys("y"), [""; 0]);
        }
    }
}
