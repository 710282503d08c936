//! The half of an index that is part of every version: value → posting.
use crate::indexer::posting::Posting;
use crate::indexer::table::{Lane, Lanes, Slot, Table};
use ahash::RandomState;
use hashbrown::Equivalent;
use std::any::Any;
use std::hash::Hash;
use std::sync::Arc;

/// What a version knows of an index without knowing the type of its values.
pub(crate) trait IndexPart: Any + Send + Sync {
    fn name(&self) -> &Arc<str>;
    fn boxed_clone(&self) -> Box<dyn IndexPart>;
    /// Objects on which the index function failed.
    fn poisoned(&self) -> &Posting;
    /// How many different values there are.
    fn value_count(&self) -> usize;
    /// Free up to `chunks` chunks of a part that is no longer used; true when none is left.
    fn dismantle(&mut self, chunks: usize) -> bool;
}

/// Value → posting, in one version.
pub(crate) struct ValueTable<V> {
    name: Arc<str>,
    table: Table<Node<V>>,
    poisoned: Posting,
}

/// A value and the slots of the objects that have it.
pub(crate) struct Node<V>(Arc<(Arc<V>, Posting)>);

/// The values of a table, each with its posting.
pub(crate) type NodeIter<'a, V> = Lanes<'a, Node<V>>;

/// A physical change of a value table, as another version replays it.
pub(crate) enum IndexOp<V> {
    Add(u64, Arc<V>, Slot),
    Remove(u64, Arc<V>, Slot),
    Poison(Slot),
    Cure(Slot),
}

impl<V> Clone for Node<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: Hash> Lane for Node<V> {
    fn hash(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one(&*self.0.0)
    }

    fn read_ahead(&self) -> u64 {
        self.posting().len() as u64
    }
}

impl<V> Node<V> {
    pub(crate) fn value(&self) -> &V {
        &self.0.0
    }

    pub(crate) fn posting(&self) -> &Posting {
        &self.0.1
    }
}

impl<V: Hash + Eq + Send + Sync + 'static> ValueTable<V> {
    pub(crate) fn new(name: Arc<str>, hasher: RandomState) -> Self {
        Self {
            name,
            table: Table::new(hasher),
            poisoned: Posting::default(),
        }
    }

    /// The posting of a value; `None` when no object has it.
    #[inline]
    pub(crate) fn posting<Q>(&self, value: &Q) -> Option<&Posting>
    where
        Q: Hash + Equivalent<V> + ?Sized,
    {
        let hash = self.table.hasher().hash_one(value);
        self.table
            .find(hash, |node| value.equivalent(node.value()))
            .map(|(_, node)| node.posting())
    }

    pub(crate) fn nodes(&self) -> NodeIter<'_, V> {
        self.table.lanes()
    }

    pub(crate) fn apply(&mut self, op: &IndexOp<V>, stamp: u64) {
        match op {
            IndexOp::Add(hash, value, slot) => self.add(*hash, value, *slot, stamp),
            IndexOp::Remove(hash, value, slot) => self.remove(*hash, value, *slot, stamp),
            IndexOp::Poison(slot) => {
                self.poisoned.insert(*slot);
            }
            IndexOp::Cure(slot) => {
                self.poisoned.remove(*slot);
            }
        }
    }

    fn place(&self, hash: u64, value: &Arc<V>) -> Option<Slot> {
        // Each value is stored once, in the dictionary, so the pointer tells.
        self.table
            .find(hash, |node| Arc::ptr_eq(&node.0.0, value))
            .map(|(place, _)| place)
    }

    fn add(&mut self, hash: u64, value: &Arc<V>, slot: Slot, stamp: u64) {
        if let Some(place) = self.place(hash, value) {
            let node = self.table.entry_mut(place, stamp);
            Arc::make_mut(&mut node.0).1.insert(slot);
        } else {
            let mut posting = Posting::default();
            posting.insert(slot);
            let node = Node(Arc::new((value.clone(), posting)));
            self.table.insert(hash, node, stamp, |_, _| ());
        }
    }

    fn remove(&mut self, hash: u64, value: &Arc<V>, slot: Slot, stamp: u64) {
        let place = self
            .place(hash, value)
            .expect("a value that an object has is in the table");
        let node = self.table.entry_mut(place, stamp);
        let posting = &mut Arc::make_mut(&mut node.0).1;
        let removed = posting.remove(slot);
        debug_assert!(removed, "a slot is in the posting of each value it has");
        if posting.is_empty() {
            self.table.remove(place, hash, stamp);
        }
    }
}

impl<V: Hash + Eq + Send + Sync + 'static> IndexPart for ValueTable<V> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn boxed_clone(&self) -> Box<dyn IndexPart> {
        Box::new(Self {
            name: self.name.clone(),
            table: self.table.clone(),
            poisoned: self.poisoned.clone(),
        })
    }

    fn poisoned(&self) -> &Posting {
        &self.poisoned
    }

    fn value_count(&self) -> usize {
        self.table.len()
    }

    fn dismantle(&mut self, chunks: usize) -> bool {
        self.table.dismantle(chunks)
    }
}
