//! A cache that is obviously right: a sorted map, and every question answered by a loop.
use super::Zones;
use crate::object::{Cached, ObjectKey};
use std::collections::{BTreeMap, BTreeSet};

/// A state of one key, and which source brought it.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) object: Cached<Zones>,
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) source: u32,
}

#[derive(Clone, Default)]
pub(super) struct Oracle {
    pub(super) held: BTreeMap<ObjectKey, Held>,
}

impl Oracle {
    pub(super) fn upsert(&mut self, object: &Cached<Zones>, source: u32, guard: bool) {
        let new = Held {
            object: object.clone(),
            uid: object.uid().to_string(),
            version: object.resource_version().as_number().unwrap(),
            source,
        };
        if let Some(known) = self.held.get(object.key()) {
            if guard && new.version < known.version {
                return;
            }
            if guard && new.version == known.version && new.uid == known.uid {
                return;
            }
        }
        self.held.insert(object.key().clone(), new);
    }

    pub(super) fn delete(&mut self, key: &ObjectKey, uid: &str, version: u64) {
        let Some(known) = self.held.get(key) else {
            return;
        };
        let gone = if known.uid == uid {
            version >= known.version
        } else {
            version > known.version
        };
        if gone {
            self.held.remove(key);
        }
    }

    pub(super) fn replace(
        &mut self,
        items: &[Cached<Zones>],
        source: u32,
        version: u64,
        reset: bool,
    ) {
        let mut guard = !reset;
        for (at, object) in items.iter().enumerate() {
            // The list is as new as what is known of its source, and its item is older.
            let is_first = items[..at].iter().all(|other| other.key() != object.key());
            guard &= !self.held.get(object.key()).is_some_and(|known| {
                known.source == source
                    && known.version <= version
                    && object.resource_version().as_number() < Some(known.version)
                    && is_first
            });
            self.upsert(object, source, guard);
        }
        let named: BTreeSet<_> = items.iter().map(Cached::key).collect();
        self.held
            .retain(|key, held| held.source != source || named.contains(key));
    }

    /// Zone → keys, as the index must have it; and the poisoned keys.
    pub(super) fn zones(&self) -> (BTreeMap<u8, Vec<ObjectKey>>, Vec<ObjectKey>) {
        let (mut zones, mut poisoned) = (BTreeMap::new(), Vec::new());
        for (key, held) in &self.held {
            let values: BTreeSet<u8> = held.object.iter().copied().collect();
            if values.iter().any(|zone| *zone >= 8) {
                poisoned.push(key.clone());
                continue;
            }
            for zone in values {
                zones.entry(zone).or_insert_with(Vec::new).push(key.clone());
            }
        }
        (zones, poisoned)
    }
}
