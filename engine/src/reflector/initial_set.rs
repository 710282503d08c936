//! The objects of a streaming list until its end marker: keyed, in one copy.
use crate::indexer::identity::{Delete, Upsert, judge_delete, judge_upsert};
use crate::object::{Incoming, KeyRef, Meta, ObjectKey, ResourceVersion, Uid, Versioning};
use crate::source::BadObject;
use hashbrown::HashTable;

/// What the initial phase of a streaming list has shown so far: the fold of its frames by key.
///
/// The objects lie in the vector that the queue will be given; the table holds only positions in
/// it, so nothing is ever held twice.
pub(super) struct InitialSet<T> {
    slots: Vec<Option<Result<Incoming<T>, BadObject>>>,
    positions: HashTable<usize>,
    hasher: ahash::RandomState,
    versioning: Versioning,
}

impl<T> InitialSet<T> {
    pub(super) fn new(versioning: Versioning) -> Self {
        Self {
            slots: Vec::new(),
            positions: HashTable::new(),
            hasher: ahash::RandomState::new(),
            versioning,
        }
    }

    /// The object appeared or changed.
    pub(super) fn insert(&mut self, object: Incoming<T>) {
        let meta = object.meta.clone();
        self.put(&meta, Ok(object));
    }

    /// A frame whose object cannot be used: it takes the place of what was known of its key.
    pub(super) fn insert_bad(&mut self, bad: BadObject) {
        let Some(key) = bad.key.clone() else {
            self.slots.push(Some(Err(bad)));
            return;
        };
        let meta = Meta {
            key,
            uid: bad.uid.clone(),
            resource_version: bad.resource_version.clone(),
        };
        self.put(&meta, Err(bad));
    }

    /// The object is gone, unless what is known of the key is newer than its end.
    pub(super) fn remove(&mut self, meta: &Meta) {
        if cfg!(informant_mutant = "initial_deletes_are_ignored") {
            return;
        }
        let hash = self.hash(meta.key.as_ref());
        let (slots, versioning) = (&mut self.slots, self.versioning);
        let found = self
            .positions
            .find_entry(hash, |&at| key_at(slots, at) == Some(&meta.key));
        if let Ok(entry) = found
            && deletes(slots[*entry.get()].as_ref(), meta, versioning)
        {
            slots[*entry.get()] = None;
            entry.remove();
        }
    }

    /// Everything that is left, for the queue.
    pub(super) fn into_items(self) -> Vec<Result<Incoming<T>, BadObject>> {
        self.slots.into_iter().flatten().collect()
    }

    fn put(&mut self, meta: &Meta, item: Result<Incoming<T>, BadObject>) {
        let hash = self.hash(meta.key.as_ref());
        let (slots, hasher) = (&mut self.slots, &self.hasher);
        if let Some(&at) = self
            .positions
            .find(hash, |&at| key_at(slots, at) == Some(&meta.key))
        {
            if upserts(slots[at].as_ref(), meta, self.versioning) {
                slots[at] = Some(item);
            }
            return;
        }
        let at = slots.len();
        slots.push(Some(item));
        self.positions.insert_unique(hash, at, |&at| {
            key_at(slots, at).map_or(0, |key| hasher.hash_one(key.as_ref()))
        });
    }

    fn hash(&self, key: KeyRef<'_>) -> u64 {
        self.hasher.hash_one(key)
    }
}

fn key_at<T>(slots: &[Option<Result<Incoming<T>, BadObject>>], at: usize) -> Option<&ObjectKey> {
    match slots[at].as_ref()? {
        Ok(object) => Some(&object.meta.key),
        Err(bad) => bad.key.as_ref(),
    }
}

fn identity<T>(item: &Result<Incoming<T>, BadObject>) -> (&Uid, &ResourceVersion) {
    match item {
        Ok(object) => (&object.meta.uid, &object.meta.resource_version),
        Err(bad) => (&bad.uid, &bad.resource_version),
    }
}

/// Late and repeated frames do not replace what is known.
fn upserts<T>(
    known: Option<&Result<Incoming<T>, BadObject>>,
    arriving: &Meta,
    versioning: Versioning,
) -> bool {
    known.is_none_or(|known| {
        let arriving = (&arriving.uid, &arriving.resource_version);
        let judged = judge_upsert(identity(known), arriving, versioning, true);
        matches!(judged, Upsert::Update | Upsert::Recreate)
    })
}

/// The end of an earlier life or state does not remove what is known.
fn deletes<T>(
    known: Option<&Result<Incoming<T>, BadObject>>,
    arriving: &Meta,
    versioning: Versioning,
) -> bool {
    known.is_some_and(|known| {
        let arriving = (&arriving.uid, &arriving.resource_version);
        judge_delete(identity(known), arriving, versioning) != Delete::Stale
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn meta(key: u8, version: u64) -> Meta {
        Meta::new("ns", &format!("k{key}"), "u", &version.to_string()).unwrap()
    }

    proptest! {
        /// I-R14: the set is the fold of the frames, one entry a key.
        #[test]
        fn i_r14_the_set_is_the_fold_of_its_frames(
            frames in prop::collection::vec((0_u8..4, 0_u8..6), 0..40)
        ) {
            let mut set = InitialSet::new(Versioning::Decimal);
            let mut oracle: BTreeMap<ObjectKey, u64> = BTreeMap::new();
            for (version, (verb, key)) in frames.into_iter().enumerate() {
                let version = version as u64 + 1;
                let meta = meta(key, version);
                if verb == 0 {
                    oracle.remove(&meta.key);
                    set.remove(&meta);
                } else {
                    oracle.insert(meta.key.clone(), version);
                    set.insert(Incoming::new(meta, version));
                }
            }
            let items = set.into_items();
            prop_assert_eq!(items.len(), oracle.len());
            let folded: BTreeMap<_, _> = items
                .into_iter()
                .map(|item| item.unwrap())
                .map(|item| (item.meta.key, item.object))
                .collect();
            prop_assert_eq!(folded, oracle);
        }
    }

    #[test]
    fn late_frames_do_not_undo_newer_ones() {
        let mut set = InitialSet::new(Versioning::Decimal);
        set.insert(Incoming::new(meta(1, 9), 9));
        set.insert(Incoming::new(meta(1, 8), 8));
        set.remove(&meta(1, 7));
        assert_eq!(set.into_items(), [Ok(Incoming::new(meta(1, 9), 9))]);
    }
}
