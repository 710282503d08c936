//! Iterators over the objects that an index names.
use super::index::{Node, NodeIter};
use super::posting::{Posting, SlotIter};
use super::table::{Slot, Table};
use crate::object::Cached;
use std::fmt;

/// The objects of one posting, in no particular order; its length is known.
pub struct Objects<'a, T> {
    table: &'a Table<Cached<T>>,
    slots: SlotIter<'a>,
}

impl<'a, T> Objects<'a, T> {
    pub(super) fn of(table: &'a Table<Cached<T>>, posting: Option<&'a Posting>) -> Self {
        Self {
            table,
            slots: posting.map_or_else(SlotIter::empty, Posting::iter),
        }
    }
}

#[inline]
fn object<T>(table: &Table<Cached<T>>, slot: Slot) -> &Cached<T> {
    table
        .get(slot)
        .expect("a slot in a posting holds an object in the same version")
}

impl<'a, T> Iterator for Objects<'a, T> {
    type Item = &'a Cached<T>;

    #[inline]
    fn next(&mut self) -> Option<&'a Cached<T>> {
        self.slots.next().map(|slot| object(self.table, slot))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }

    fn count(self) -> usize {
        self.slots.len()
    }

    fn fold<B, F: FnMut(B, Self::Item) -> B>(self, start: B, mut f: F) -> B {
        let table = self.table;
        self.slots
            .fold(start, |folded, slot| f(folded, object(table, slot)))
    }
}

impl<T> ExactSizeIterator for Objects<'_, T> {}

impl<T> Clone for Objects<'_, T> {
    fn clone(&self) -> Self {
        Self {
            table: self.table,
            slots: self.slots.clone(),
        }
    }
}

impl<T> fmt::Debug for Objects<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.clone().map(Cached::key))
            .finish()
    }
}

/// The objects of several postings, each object once.
pub struct Values<'a, T> {
    table: &'a Table<Cached<T>>,
    slots: std::vec::IntoIter<Slot>,
}

impl<'a, T> Values<'a, T> {
    pub(super) fn new(table: &'a Table<Cached<T>>, slots: Vec<Slot>) -> Self {
        Self {
            table,
            slots: slots.into_iter(),
        }
    }
}

impl<'a, T> Iterator for Values<'a, T> {
    type Item = &'a Cached<T>;

    fn next(&mut self) -> Option<&'a Cached<T>> {
        self.slots.next().map(|slot| object(self.table, slot))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl<T> ExactSizeIterator for Values<'_, T> {}

impl<T> fmt::Debug for Values<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values")
            .field("len", &self.slots.len())
            .finish()
    }
}

/// The values of an index, each with its objects.
pub struct IndexValues<'a, T, V> {
    table: &'a Table<Cached<T>>,
    nodes: NodeIter<'a, V>,
}

impl<'a, T, V> IndexValues<'a, T, V> {
    pub(super) fn new(table: &'a Table<Cached<T>>, nodes: NodeIter<'a, V>) -> Self {
        Self { table, nodes }
    }
}

impl<'a, T, V> Iterator for IndexValues<'a, T, V> {
    type Item = (&'a V, Objects<'a, T>);

    fn next(&mut self) -> Option<Self::Item> {
        let node: &'a Node<V> = self.nodes.next()?;
        Some((node.value(), Objects::of(self.table, Some(node.posting()))))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.nodes.size_hint()
    }
}

impl<T, V> ExactSizeIterator for IndexValues<'_, T, V> {}

impl<T, V> fmt::Debug for IndexValues<'_, T, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexValues")
            .field("len", &self.nodes.len())
            .finish_non_exhaustive()
    }
}
