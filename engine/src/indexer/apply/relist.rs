//! A relist applied as a difference: only what changed is touched, and what it does not name is gone.
use super::{Preparation, Transition};
use crate::delta::{Deleted, Replace, SourceId};
use crate::indexer::identity::Upsert;
use crate::indexer::marks::Marks;
use crate::indexer::table::{READ_AHEAD, Slot};
use crate::object::{Cached, ObjectKey, ResourceVersion};
use crate::source::BadObject;
use std::cmp::Ordering;
use std::collections::HashMap;

/// A relist that is being applied.
struct List {
    source: SourceId,
    version: ResourceVersion,
    initial: bool,
    /// Older states do not replace newer ones.
    guard: bool,
}

impl<T: Send + Sync + 'static> Preparation<'_, T> {
    pub(super) fn replace(&mut self, replace: Replace<T>) {
        let Replace {
            source,
            resource_version,
            items,
            bad,
            initial,
            reset,
            superseded_deletes,
        } = replace;
        let mut list = List {
            source,
            version: resource_version,
            initial,
            guard: true,
        };
        if reset {
            self.reset(&mut list);
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
                self.replace_item(*hash, &mut list, new, &mut superseded);
            }
            if count < READ_AHEAD {
                break;
            }
        }
        self.index_relisted();
        let rewritten = self.release_source(source);
        for object in bad {
            self.see_bad(&object);
            let key = object.key.as_ref();
            let is_rewritten = !list.guard || key.is_some_and(|key| rewritten.contains(key));
            self.quarantine(source, object, is_rewritten);
        }
        #[cfg(not(informant_mutant = "relist_without_deletes"))]
        self.remove_unseen(source, &mut superseded);
        self.seen = None;
        if initial {
            self.applied.synced.push(source);
        }
    }

    /// From here on versions may go back.
    fn reset(&mut self, list: &mut List) {
        list.guard = false;
        self.applied.resets.push(list.source);
        self.view.epoch += 1;
    }

    /// True when an item of a list shows that its source's history was rewritten: the list is as
    /// new as what is known, which came from the same source, and yet its item is older. (A backup
    /// was restored, and the version of the store raised beyond what it ever was.)
    fn shows_reset(&self, list: &List, slot: Slot, known: &Cached<T>) -> bool {
        let known = known.resource_version();
        // Of a key that stands in the list twice, what is known may be of this very list.
        let is_of_this_list = || self.seen.as_ref().is_some_and(|seen| seen.contains(slot));
        let order = list.version.compare(known, self.versioning);
        order.is_some_and(Ordering::is_ge)
            && self.owners.of(slot) == list.source
            && !is_of_this_list()
    }

    fn replace_item(
        &mut self,
        hash: u64,
        list: &mut List,
        new: Cached<T>,
        superseded: &mut Ends<T>,
    ) {
        let mut found = self.view.find(hash, new.key_ref());
        if let Some((slot, known)) = found {
            match self.judge(known, &new, list.guard) {
                Upsert::Unchanged => {
                    self.applied.dropped.unchanged += 1;
                    self.release(new.key_ref(), new.resource_version());
                    self.see(slot);
                    return;
                }
                Upsert::Stale if self.shows_reset(list, slot, known) => {
                    self.reset(list);
                    found = self.view.find(hash, new.key_ref());
                }
                Upsert::Stale => {
                    self.applied.dropped.stale += 1;
                    self.see(slot);
                    return;
                }
                Upsert::Update | Upsert::Recreate => (),
            }
        }
        let List {
            source,
            guard,
            initial,
            ..
        } = *list;
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
        // Whether the stored state counts is known until the new one has been judged beside it.
        let ends_quarantine = (!self.view.quarantine.is_empty()).then(|| new.clone());
        self.fold_upsert(&mut current, new, &mut ended, guard, initial);
        if let Some(good) = ends_quarantine {
            self.release(good.key_ref(), good.resource_version());
        }
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
