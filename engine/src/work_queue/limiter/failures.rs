//! How often each key has failed, in bounded memory.
use crate::sync::Mutex;
use ahash::RandomState;
use hashbrown::HashMap;
use std::hash::Hash;

/// How many failing keys a limiter remembers if not told otherwise: 2^20.
pub const DEFAULT_CAPACITY: usize = 1 << 20;

/// Failure counts of the keys that failed last.
///
/// Two maps, the young and the old. A failure moves its key into the young one; when that is half of
/// the capacity, it becomes the old one, and what the old one held is forgotten. So the last
/// `capacity / 2` keys that failed are always remembered, never more than `capacity` are, and a
/// failure costs a constant number of look-ups. Time plays no part: a key is not forgotten for
/// having waited long.
pub(super) struct Failures<K> {
    half: usize,
    maps: Mutex<Maps<K>>,
}

struct Maps<K> {
    young: HashMap<K, u32, RandomState>,
    old: HashMap<K, u32, RandomState>,
}

impl<K: Hash + Eq + Clone> Failures<K> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            half: (capacity / 2).max(1),
            maps: Mutex::new(Maps {
                young: HashMap::with_hasher(RandomState::new()),
                old: HashMap::with_hasher(RandomState::new()),
            }),
        }
    }

    /// One failure more: how many there were before.
    pub(super) fn count(&self, key: &K) -> u32 {
        let mut maps = self.maps.lock();
        if let Some(count) = maps.young.get_mut(key) {
            let before = *count;
            *count = before.saturating_add(1);
            return before;
        }
        let (key, before) = maps
            .old
            .remove_entry(key)
            .unwrap_or_else(|| (key.clone(), 0));
        let forgotten = (maps.young.len() >= self.half).then(|| {
            let young = std::mem::take(&mut maps.young);
            std::mem::replace(&mut maps.old, young)
        });
        maps.young.insert(key, before.saturating_add(1));
        drop(maps);
        drop(forgotten);
        before
    }

    pub(super) fn of(&self, key: &K) -> u32 {
        let maps = self.maps.lock();
        let count = maps.young.get(key).or_else(|| maps.old.get(key));
        count.copied().unwrap_or(0)
    }

    pub(super) fn forget(&self, key: &K) {
        let mut maps = self.maps.lock();
        let young = maps.young.remove_entry(key);
        let old = maps.old.remove_entry(key);
        drop(maps);
        drop((young, old));
    }

    pub(super) fn len(&self) -> usize {
        let maps = self.maps.lock();
        maps.young.len() + maps.old.len()
    }
}
