//! The quarantine: what the cache knows that it does not show.
use super::applied::Quarantined;
use crate::delta::SourceId;
use crate::object::{KeyRef, ObjectKey, ResourceVersion};
use std::collections::BTreeMap;

/// How many objects of unknown key are remembered; older ones are dropped first. They have been
/// reported, and the next relist clears them anyway.
const UNKNOWN_LIMIT: usize = 128;

/// The objects that could not be applied, by key where that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Quarantine {
    by_key: BTreeMap<ObjectKey, Quarantined>,
    unknown: Vec<Quarantined>,
}

impl Quarantine {
    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.unknown.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Quarantined> {
        self.by_key.values().chain(&self.unknown)
    }

    pub(super) fn add(&mut self, object: Quarantined) {
        if let Some(key) = &object.key {
            self.by_key.insert(key.clone(), object);
            return;
        }
        if self.unknown.len() == UNKNOWN_LIMIT {
            self.unknown.remove(0);
        }
        self.unknown.push(object);
    }

    /// The version of the key that could not be applied, if one is in here.
    pub(super) fn failed_version(&self, key: KeyRef<'_>) -> Option<&ResourceVersion> {
        if self.by_key.is_empty() {
            return None;
        }
        let object = self.by_key.get(&key.to_owned())?;
        Some(&object.failed_version)
    }

    /// A key has a good version again, or is gone.
    pub(super) fn release(&mut self, key: KeyRef<'_>) {
        self.by_key.remove(&key.to_owned());
    }

    /// A relist of a source says all there is to say about it.
    pub(super) fn release_source(&mut self, source: SourceId) {
        self.by_key.retain(|_, object| object.source != source);
        self.unknown.retain(|object| object.source != source);
    }

    pub(super) fn has_source(&self, source: SourceId) -> bool {
        self.iter().any(|object| object.source == source)
    }
}
