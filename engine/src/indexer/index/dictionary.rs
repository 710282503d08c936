//! The values of one index, each stored once, by small numbers.
use super::assignments::ValueId;
use ahash::RandomState;
use hashbrown::{Equivalent, HashTable};
use slab::Slab;
use std::hash::Hash;
use std::sync::Arc;

pub(crate) struct Dictionary<V> {
    hasher: RandomState,
    ids: HashTable<ValueId>,
    values: Slab<Value<V>>,
    /// Values that perhaps nobody uses. They are kept while a version is prepared, since what the
    /// index functions said ahead of time may name them.
    idle: Vec<ValueId>,
}

struct Value<V> {
    shared: Arc<V>,
    hash: u64,
    /// Objects that have the value.
    uses: u32,
}

impl<V: Hash + Eq> Dictionary<V> {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            hasher,
            ids: HashTable::new(),
            values: Slab::new(),
            idle: Vec::new(),
        }
    }

    /// The id of a value, new if need be. A new value has no uses yet, and is forgotten
    /// by the next [`Dictionary::forget_unused`] if it stays so.
    pub(crate) fn intern<Q>(&mut self, value: &Q, own: impl FnOnce() -> V) -> ValueId
    where
        Q: Hash + Equivalent<V> + ?Sized,
    {
        let hash = self.hasher.hash_one(value);
        let values = &self.values;
        if let Some(&id) = self
            .ids
            .find(hash, |&id| value.equivalent(&values[id as usize].shared))
        {
            return id;
        }
        self.add(hash, own())
    }

    /// As [`Dictionary::intern`], of a value that is owned already.
    pub(crate) fn intern_owned(&mut self, value: V) -> ValueId {
        let hash = self.hasher.hash_one(&value);
        let values = &self.values;
        match self
            .ids
            .find(hash, |&id| *values[id as usize].shared == value)
        {
            Some(&id) => id,
            None => self.add(hash, value),
        }
    }

    fn add(&mut self, hash: u64, value: V) -> ValueId {
        let at = self.values.insert(Value {
            shared: Arc::new(value),
            hash,
            uses: 0,
        });
        let id = u32::try_from(at)
            .ok()
            .filter(|id| *id < 1 << 31)
            .expect("an index has fewer than 2^31 values");
        self.idle.push(id);
        let values = &self.values;
        self.ids
            .insert_unique(hash, id, |&id| values[id as usize].hash);
        id
    }

    /// The value of an id, if it has one.
    #[inline]
    pub(crate) fn get(&self, id: ValueId) -> Option<&V> {
        self.values.get(id as usize).map(|value| &*value.shared)
    }

    pub(crate) fn value(&self, id: ValueId) -> (u64, Arc<V>) {
        let value = &self.values[id as usize];
        (value.hash, value.shared.clone())
    }

    pub(crate) fn use_once_more(&mut self, id: ValueId) {
        self.values[id as usize].uses += 1;
    }

    /// One object fewer has the value.
    pub(crate) fn use_once_less(&mut self, id: ValueId) {
        let uses = &mut self.values[id as usize].uses;
        *uses -= 1;
        if *uses == 0 {
            self.idle.push(id);
        }
    }

    /// Forget the values that nobody uses.
    #[inline]
    pub(crate) fn forget_unused(&mut self) {
        if !self.idle.is_empty() {
            self.forget_idle();
        }
    }

    fn forget_idle(&mut self) {
        for id in std::mem::take(&mut self.idle) {
            // An id may have become idle twice.
            let Some(Value { uses: 0, hash, .. }) = self.values.get(id as usize) else {
                continue;
            };
            let hash = *hash;
            if let Ok(entry) = self.ids.find_entry(hash, |&other| other == id) {
                entry.remove();
            }
            self.values.remove(id as usize);
        }
        self.give_memory_back();
    }

    /// Short-lived values must not keep the memory of their heyday.
    fn give_memory_back(&mut self) {
        if self.ids.capacity() > 64 && self.ids.len() < self.ids.capacity() / 8 {
            let values = &self.values;
            self.ids
                .shrink_to(self.ids.len() * 2, |&id| values[id as usize].hash);
            self.values.shrink_to_fit();
        }
    }
}
