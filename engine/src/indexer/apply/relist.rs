//! A relist applied as a difference: only what changed is touched, and what it does not name is gone.
use super::{Preparation, Transition, identity};
use crate::delta::{Deleted, Replace, SourceId};
use crate::indexer::identity::{Upsert, judge_upsert};
use crate::indexer::marks::Marks;
use crate::indexer::table::{READ_AHEAD, Slot};
use crate::object::{Cached, ObjectKey};
use crate::source::BadObject;
use std::collections::HashMap;
use std::sync::Arc;

impl<T: Send + Sync + 'static> Preparation<'_, T> {
    pub(super) fn replace(&mut self, replace: Replace<T>) {
        let Replace {
            source,
            items,
            bad,
            initial,
            reset,
            superseded_deletes,
            ..
        } = replace;
        if reset {
            self.applied.resets.push(source);
            self.view.epoch += 1;
        }
        if self.view.quarantine.has_source(source) {
            Arc::make_mut(&mut self.view.quarantine).release_source(source);
        }
        let mut superseded = Ends::<T>::new();
        for deleted in superseded_deletes {
            let ends = superseded.entry(deleted.key.clone()).or_default();
            ends.push(deleted);
        }
        let slot_limit = self.view.table.slot_limit();
        self.seen = Some(Marks::new(slot_limit));
        self.unindexed = Some(Marks::new(slot_limit));
        let mut items = items.into_iter();
        loop {
            let mut hashes = [0; READ_AHEAD];
            let mut count = 0;
            for (hash, new) in hashes.iter_mut().zip(items.as_slice()) {
                *hash = self.hash(new.key());
                count += 1;
            }
            self.view.table.read_ahead(&hashes[..count]);
            for (hash, new) in hashes[..count].iter().zip(items.by_ref()) {
                self.replace_item(*hash, source, new, !reset, initial, &mut superseded);
            }
            if count < READ_AHEAD {
                break;
            }
        }
        self.index_relisted();
        for object in bad {
            self.see_bad(&object);
            self.quarantine(source, object);
        }
        #[cfg(not(informant_mutant = "relist_without_deletes"))]
        self.remove_unseen(source, &mut superseded);
        self.seen = None;
        if initial {
            self.applied.synced.push(source);
        }
    }

    fn replace_item(
        &mut self,
        hash: u64,
        source: SourceId,
        new: Cached<T>,
        guard: bool,
        initial: bool,
        superseded: &mut Ends<T>,
    ) {
        let found = self.view.find(hash, new.key_ref());
        if let Some((slot, known)) = found {
            let verdict = judge_upsert(identity(known), identity(&new), self.versioning, guard);
            match verdict {
                Upsert::Unchanged => {
                    self.applied.dropped.unchanged += 1;
                    self.see(slot);
                    return;
                }
                Upsert::Stale => {
                    self.applied.dropped.stale += 1;
                    self.see(slot);
                    return;
                }
                Upsert::Update | Upsert::Recreate => (),
            }
        }
        let stored = found.map(|(slot, object)| (slot, object.clone()));
        let mut current = stored.as_ref().map(|(_, object)| object.clone());
        let mut ended = None;
        // A deletion that was queued before the list told how the stored life ended.
        if let Some(known) = &current
            && let Some(deleted) = take_end_of(known, superseded)
            // Of an object that lives on, a last known state tells nothing.
            && !(deleted.final_state_unknown && known.uid().may_equal(new.uid()))
        {
            self.fold_delete(&mut current, deleted, &mut ended);
        }
        self.fold_upsert(&mut current, new, &mut ended, guard, initial);
        self.transit(
            hash,
            source,
            Transition {
                stored,
                new: current,
                ended,
                initial,
            },
        );
    }

    /// The list is authority: what its source owns and it does not name is gone.
    fn remove_unseen(&mut self, source: SourceId, superseded: &mut Ends<T>) {
        let Some(seen) = self.seen.take() else { return };
        let mut gone = Vec::new();
        for (slot, object) in self.view.table.slots() {
            if !seen.contains(slot) && self.owners.of(slot) == source {
                gone.push((slot, object.clone()));
            }
        }
        for (slot, object) in gone {
            let hash = self.view.hash_of(object.key_ref());
            let (mut current, mut ended) = (Some(object.clone()), None);
            if let Some(deleted) = take_end_of(&object, superseded) {
                self.fold_delete(&mut current, deleted, &mut ended);
            }
            if let Some(object) = current {
                self.end(Box::new(Deleted::unknown(object)), &mut ended);
            }
            self.transit(
                hash,
                source,
                Transition {
                    stored: Some((slot, object)),
                    new: None,
                    ended,
                    initial: false,
                },
            );
        }
    }

    pub(super) fn see(&mut self, slot: Slot) {
        if let Some(seen) = &mut self.seen {
            seen.mark(slot);
        }
    }

    /// An object of a list that could not be used keeps its last good state.
    fn see_bad(&mut self, object: &BadObject) {
        if let Some(key) = &object.key {
            let hash = self.view.hash_of(key.as_ref());
            if let Some((slot, _)) = self.view.find(hash, key.as_ref()) {
                self.see(slot);
            }
        }
    }
}

/// Ends of lives that were queued before a relist, by key.
type Ends<T> = HashMap<ObjectKey, Vec<Deleted<T>>>;

/// The queued end of this very life of a key, if there was one.
fn take_end_of<T>(known: &Cached<T>, superseded: &mut Ends<T>) -> Option<Box<Deleted<T>>> {
    if superseded.is_empty() {
        return None;
    }
    let ends = superseded.get_mut(known.key())?;
    let at = ends
        .iter()
        .position(|deleted| known.uid().may_equal(&deleted.uid))?;
    Some(Box::new(ends.swap_remove(at)))
}
