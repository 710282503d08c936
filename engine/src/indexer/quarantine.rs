//! The quarantine: what the cache knows that it does not show.
use super::applied::Quarantined;
use crate::delta::SourceId;
use crate::object::{KeyRef, ObjectKey, ResourceVersion};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashSet};

/// How many objects of unknown key are remembered; older ones are dropped first. They have been
/// reported, and the next relist clears them anyway.
const UNKNOWN_LIMIT: usize = 128;

/// The objects that could not be applied, by key where that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Quarantine {
    /// Each source's last word on the key, the newest at the end and never none. A source that
    /// takes its word back (an object that moved between shards left it) says nothing about what
    /// another source still cannot use.
    by_key: BTreeMap<ObjectKey, SmallVec<[Quarantined; 1]>>,
    unknown: Vec<Quarantined>,
    /// Keys whose stored state is of a history that was rewritten since: a reset could not use what
    /// it listed of them. Versions of that state compare with nothing that came after it.
    rewritten: HashSet<ObjectKey>,
}

impl Quarantine {
    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.unknown.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Quarantined> {
        let known = self.by_key.values().filter_map(|words| words.last());
        known.chain(&self.unknown)
    }

    /// Note an object that could not be applied; `rewritten` if what is stored of it is of another
    /// history.
    pub(super) fn add(&mut self, object: Quarantined, rewritten: bool) {
        if let Some(key) = &object.key {
            if rewritten {
                self.rewritten.insert(key.clone());
            }
            let words = self.by_key.entry(key.clone()).or_default();
            words.retain(|word| word.source != object.source);
            words.push(object);
            return;
        }
        if self.unknown.len() == UNKNOWN_LIMIT {
            self.unknown.remove(0);
        }
        self.unknown.push(object);
    }

    /// The version that could not be applied, of a key whose stored state is of a history that was
    /// rewritten since.
    pub(super) fn rewritten(&self, key: KeyRef<'_>) -> Option<&ResourceVersion> {
        if self.rewritten.is_empty() {
            return None;
        }
        self.rewritten.contains(&key.to_owned()).then_some(())?;
        self.failed_version(key)
    }

    /// The newest version of the key that could not be applied, if one is in here.
    pub(super) fn failed_version(&self, key: KeyRef<'_>) -> Option<&ResourceVersion> {
        if self.by_key.is_empty() {
            return None;
        }
        let words = self.by_key.get(&key.to_owned())?;
        Some(&words.last()?.failed_version)
    }

    /// A key has a good version again, or is gone.
    pub(super) fn release(&mut self, key: KeyRef<'_>) {
        let key = key.to_owned();
        self.by_key.remove(&key);
        self.rewritten.remove(&key);
    }

    /// A relist of a source says all there is to say about it. Returns the keys of which the stored
    /// state was of another history until now, which the relist alone does not change.
    pub(super) fn release_source(&mut self, source: SourceId) -> HashSet<ObjectKey> {
        self.by_key.retain(|_, words| {
            words.retain(|word| word.source != source);
            !words.is_empty()
        });
        self.unknown.retain(|object| object.source != source);
        let (by_key, rewritten) = (&self.by_key, &mut self.rewritten);
        let is_over = |key: &ObjectKey| !by_key.contains_key(key);
        let released = rewritten.iter().filter(|key| is_over(key)).cloned();
        let released = released.collect();
        rewritten.retain(|key| !is_over(key));
        released
    }

    pub(super) fn has_source(&self, source: SourceId) -> bool {
        let known = self.by_key.values().flatten();
        let mut all = known.chain(&self.unknown);
        all.any(|object| object.source == source)
    }
}
