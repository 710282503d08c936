//! Objects that could not be used: what is noted of them, and when that is over.
use super::{Preparation, identity};
use crate::delta::{Deleted, Delta, SourceId};
use crate::indexer::applied::Quarantined;
use crate::indexer::identity::{Delete, Upsert, judge_delete, judge_upsert};
use crate::object::{Cached, KeyRef, ObjectKey, ResourceVersion};
use crate::source::BadObject;
use std::collections::HashSet;
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
        self.quarantine(source, object, false);
    }

    /// Note an object that could not be used, unless something newer is known of its key. With
    /// `rewritten`, what is stored of it is of another history, so that versions tell nothing.
    pub(super) fn quarantine(&mut self, source: SourceId, object: BadObject, rewritten: bool) {
        let known = object.key.as_ref().and_then(|key| {
            let hash = self.view.hash_of(key.as_ref());
            self.view.find(hash, key.as_ref()).map(|(_, object)| object)
        });
        let quarantine = &self.view.quarantine;
        let key = object.key.as_ref().map(ObjectKey::as_ref);
        let is_older = |than: &ResourceVersion| {
            let failed = &object.resource_version;
            failed.is_older_than(than, self.versioning)
        };
        let is_known_rewritten = key.is_some_and(|key| quarantine.rewritten(key).is_some());
        let newest = known
            .filter(|_| !is_known_rewritten)
            .map(Cached::resource_version);
        let worse = key.and_then(|key| quarantine.failed_version(key));
        let is_outdated = newest.is_some_and(is_older) || worse.is_some_and(is_older);
        if !rewritten && is_outdated {
            self.applied.dropped.stale += 1;
            return;
        }
        let rewritten = known.is_some() && (rewritten || is_known_rewritten);
        let entry = Quarantined {
            last_good: known.map(|known| known.resource_version().clone()),
            key: object.key,
            failed_version: object.resource_version,
            reason: object.reason,
            source,
        };
        Arc::make_mut(&mut self.view.quarantine).add(entry.clone(), rewritten);
        self.applied.quarantined.push(entry);
    }

    /// What a new state means beside the stored one. If that is of a history that was rewritten,
    /// the state that failed since is what counts.
    #[inline]
    pub(super) fn judge(&self, known: &Cached<T>, new: &Cached<T>, guard: bool) -> Upsert {
        if self.view.quarantine.is_empty() {
            return judge_upsert(identity(known), identity(new), self.versioning, guard);
        }
        let failed = self.view.quarantine.rewritten(known.key_ref());
        let version = new.resource_version();
        if guard && failed.is_some_and(|failed| version.is_older_than(failed, self.versioning)) {
            return Upsert::Stale;
        }
        let guard = guard && failed.is_none();
        judge_upsert(identity(known), identity(new), self.versioning, guard)
    }

    /// What a deletion means beside the stored state, likewise.
    pub(super) fn judge_end(&self, known: &Cached<T>, deleted: &Deleted<T>) -> Delete {
        let (uid, version) = identity(known);
        let failed = self.view.quarantine.rewritten(known.key_ref());
        judge_delete(
            (uid, failed.unwrap_or(version)),
            (&deleted.uid, &deleted.resource_version),
            self.versioning,
        )
    }

    /// A relist of a source has said all there is to say about it. Returns the keys of which what is
    /// stored remains of another history.
    pub(super) fn release_source(&mut self, source: SourceId) -> HashSet<ObjectKey> {
        if !self.view.quarantine.has_source(source) {
            return HashSet::new();
        }
        Arc::make_mut(&mut self.view.quarantine).release_source(source)
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
