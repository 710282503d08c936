//! The objects of a streaming list until its end marker: keyed, in one copy.
use crate::delta::PreparedList;
use crate::indexer::identity::{Delete, Upsert, judge_delete, judge_upsert};
use crate::object::{Cached, KeyRef, Meta, ObjectKey, ResourceVersion, Uid, Versioning};
use crate::source::BadObject;
use hashbrown::HashTable;

/// A prepared object, or one that cannot be used: 16 bytes.
type Item<T> = Result<Cached<T>, Box<BadObject>>;

/// What the initial phase of a streaming list has shown so far: the fold of its frames by key.
///
/// The table holds only positions in the vector of objects, so nothing is ever held twice.
pub(super) struct InitialSet<T> {
    slots: Vec<Option<Item<T>>>,
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
    pub(super) fn insert(&mut self, object: Cached<T>) {
        let meta = object.meta();
        self.put(&meta, Ok(object));
    }

    /// A frame whose object cannot be used: it takes the place of what was known of its key.
    pub(super) fn insert_bad(&mut self, bad: BadObject) {
        let Some(key) = bad.key.clone() else {
            self.slots.push(Some(Err(bad.into())));
            return;
        };
        let meta = Meta {
            key,
            uid: bad.uid.clone(),
            resource_version: bad.resource_version.clone(),
        };
        self.put(&meta, Err(bad.into()));
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

    /// Everything that is left, as a list of this version.
    pub(super) fn into_list(self, resource_version: ResourceVersion) -> PreparedList<T> {
        let mut bad = Vec::new();
        let items = self.slots.into_iter().flatten();
        PreparedList {
            resource_version,
            items: items
                .filter_map(|item| item.map_err(|object| bad.push(*object)).ok())
                .collect(),
            bad,
            reset: false,
        }
    }

    fn put(&mut self, meta: &Meta, item: Item<T>) {
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

fn key_at<T>(slots: &[Option<Item<T>>], at: usize) -> Option<&ObjectKey> {
    match slots[at].as_ref()? {
        Ok(object) => Some(object.key()),
        Err(bad) => bad.key.as_ref(),
    }
}

fn identity<T>(item: &Item<T>) -> (&Uid, &ResourceVersion) {
    match item {
        Ok(object) => (object.uid(), object.resource_version()),
        Err(bad) => (&bad.uid, &bad.resource_version),
    }
}

/// Late and repeated frames do not replace what is known.
fn upserts<T>(known: Option<&Item<T>>, arriving: &Meta, versioning: Versioning) -> bool {
    known.is_none_or(|known| {
        let arriving = (&arriving.uid, &arriving.resource_version);
        let judged = judge_upsert(identity(known), arriving, versioning, true);
        matches!(judged, Upsert::Update | Upsert::Recreate)
    })
}

/// The end of an earlier life or state does not remove what is known.
fn deletes<T>(known: Option<&Item<T>>, arriving: &Meta, versioning: Versioning) -> bool {
    known.is_some_and(|known| {
        let arriving = (&arriving.uid, &arriving.resource_version);
        judge_delete(identity(known), arriving, versioning) != Delete::Stale
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Incoming;
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
                    set.insert(Incoming::new(meta, version).into());
                }
            }
            let items = set.into_list("99".into()).items;
            prop_assert_eq!(items.len(), oracle.len());
            let folded: BTreeMap<_, _> =
                items.iter().map(|item| (item.key().clone(), **item)).collect();
            prop_assert_eq!(folded, oracle);
        }
    }

    #[test]
    fn late_frames_do_not_undo_newer_ones() {
        let mut set = InitialSet::new(Versioning::Decimal);
        set.insert(Incoming::new(meta(1, 9), 9).into());
        set.insert(Incoming::new(meta(1, 8), 8).into());
        set.remove(&meta(1, 7));
        let items = set.into_list("9".into()).items;
        assert_eq!(items.iter().map(|item| **item).collect::<Vec<_>>(), [9]);
    }
}
