//! Objects that could not be used: what is noted of them, and when that is over.
use super::Preparation;
use crate::delta::{Deleted, Delta, SourceId};
use crate::indexer::applied::Quarantined;
use crate::object::{KeyRef, ResourceVersion};
use crate::source::BadObject;
use std::sync::Arc;

impl<T: Send + Sync + 'static> Preparation<'_, T> {
    pub(super) fn bad(&mut self, source: SourceId, object: BadObject, deleted: bool) {
        if deleted && let Some(key) = object.key {
            // What the final state was does not matter for the cache: the key is gone.
            let deleted = Deleted {
                key,
                uid: object.uid,
                resource_version: object.resource_version,
                last: None,
                final_state_unknown: true,
            };
            let hash = self.hash(&deleted.key);
            self.fold(hash, source, std::iter::once(Delta::deleted(deleted)));
            return;
        }
        self.quarantine(source, object, true);
    }

    /// Note an object that could not be used, unless (with the guard, which a reset lifts) something
    /// newer is known of its key.
    pub(super) fn quarantine(&mut self, source: SourceId, object: BadObject, guard: bool) {
        let known = object.key.as_ref().and_then(|key| {
            let hash = self.view.hash_of(key.as_ref());
            self.view.find(hash, key.as_ref()).map(|(_, object)| object)
        });
        let is_older = |than: &ResourceVersion| {
            let failed = &object.resource_version;
            failed.is_older_than(than, self.versioning)
        };
        let worse = object.key.as_ref().and_then(|key| {
            let quarantine = &self.view.quarantine;
            quarantine.failed_version(key.as_ref())
        });
        let is_outdated = known.is_some_and(|known| is_older(known.resource_version()))
            || worse.is_some_and(is_older);
        if guard && is_outdated {
            self.applied.dropped.stale += 1;
            return;
        }
        let entry = Quarantined {
            last_good: known.map(|known| known.resource_version().clone()),
            key: object.key,
            failed_version: object.resource_version,
            reason: object.reason,
            source,
        };
        Arc::make_mut(&mut self.view.quarantine).add(entry.clone());
        self.applied.quarantined.push(entry);
    }

    pub(super) fn release(&mut self, key: KeyRef<'_>, good: &ResourceVersion) {
        let quarantine = &self.view.quarantine;
        if quarantine.is_empty() {
            return;
        }
        // A good state from before the failure says nothing about what failed.
        let is_over = quarantine
            .failed_version(key)
            .is_some_and(|failed| !good.is_older_than(failed, self.versioning));
        if is_over {
            Arc::make_mut(&mut self.view.quarantine).release(key);
        }
    }
}
