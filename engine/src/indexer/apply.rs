//! Applying one batch to a version that nobody sees yet.
use super::applied::{Applied, Change, Effective, IndexFailure, Quarantined};
use super::identity::{Delete, Upsert, judge_delete, judge_upsert};
use super::marks::Marks;
use super::owners::Owners;
use super::publish::Drivers;
use super::table::{Op, Slot};
use super::view::View;
use crate::delta::{Batch, Deleted, Delta, KeyDeltas, Replace, SourceId, Step};
use crate::object::{Cached, KeyRef, ObjectKey, ResourceVersion, Uid, Versioning};
use crate::source::BadObject;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::sync::Arc;

/// A version in preparation, and what has been done to it so far.
pub(super) struct Preparation<'a, T> {
    view: &'a mut View<T>,
    drivers: &'a mut Drivers<T>,
    owners: &'a mut Owners,
    versioning: Versioning,
    /// The version that this preparation becomes: the stamp of all it changes.
    stamp: u64,
    log: Log<T>,
    applied: Applied<T>,
    /// Positions in `applied.changes` by key, so that several steps of one key make one net change.
    touched: HashTable<usize>,
    /// What a relist has seen so far; `None` outside of one.
    seen: Option<Marks>,
    /// Slots whose new objects a relist has not indexed yet.
    unindexed: Option<Marks>,
}

/// What was done to the primary table, unless it is so much that copying beats replaying.
pub(super) struct Log<T> {
    ops: Vec<Op<Cached<T>>>,
    limit: usize,
    overflowed: bool,
}

impl<T> Log<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            ops: Vec::new(),
            limit,
            overflowed: false,
        }
    }

    fn push(&mut self, op: Op<Cached<T>>) {
        if self.overflowed {
            return;
        }
        if self.ops.len() == self.limit {
            self.overflowed = true;
            self.ops = Vec::new();
            return;
        }
        self.ops.push(op);
    }

    /// The operations; `None` when there were too many.
    pub(super) fn finish(self) -> Option<Vec<Op<Cached<T>>>> {
        (!self.overflowed).then_some(self.ops)
    }
}

/// A transition of one key: from what was stored to what is.
struct Transition<T> {
    stored: Option<(Slot, Cached<T>)>,
    new: Option<Cached<T>>,
    /// How the stored life ended, if it did.
    ended: Option<Deleted<T>>,
    initial: bool,
}

impl<'a, T: Send + Sync + 'static> Preparation<'a, T> {
    pub(super) fn new(
        view: &'a mut View<T>,
        drivers: &'a mut Drivers<T>,
        owners: &'a mut Owners,
        versioning: Versioning,
        effective: bool,
        log: Log<T>,
    ) -> Self {
        let stamp = view.sequence + 1;
        view.sequence = stamp;
        Self {
            view,
            drivers,
            owners,
            versioning,
            stamp,
            log,
            applied: Applied::new(effective),
            touched: HashTable::new(),
            seen: None,
            unindexed: None,
        }
    }

    /// Apply a whole batch. What it did to the primary table, and what came of it.
    pub(super) fn run(mut self, batch: Batch<T>) -> (Log<T>, Applied<T>) {
        for step in batch.steps {
            match step {
                Step::Changes(groups) => groups.into_iter().for_each(|group| self.group(group)),
                Step::Replace(replace) => self.replace(replace),
                Step::Resync(targets) => self.applied.resyncs.push(targets),
                Step::Bad {
                    source,
                    object,
                    deleted,
                } => self.bad(source, object, deleted),
            }
        }
        for (source, version) in batch.versions {
            self.reach(source, version);
        }
        // Objects that came and went inside the batch leave no net change.
        self.applied
            .changes
            .retain(|change| change.old.is_some() || change.new.is_some());
        (self.log, self.applied)
    }

    /// The watermark of a source moves, never back except in a reset.
    fn reach(&mut self, source: SourceId, version: ResourceVersion) {
        let versions = &mut self.view.versions;
        match versions.binary_search_by_key(&source, |(source, _)| *source) {
            Ok(at) => {
                let is_reset = self.applied.resets.contains(&source);
                if is_reset || !version.is_older_than(&versions[at].1, self.versioning) {
                    versions[at].1 = version;
                }
            }
            Err(at) => versions.insert(at, (source, version)),
        }
    }

    /// The deltas of one key, oldest first: folded, and applied once.
    fn group(&mut self, KeyDeltas { source, deltas }: KeyDeltas<T>) {
        let Some(first) = deltas.first() else { return };
        let key = first.key().clone();
        let hash = self.view.hash_of(key.as_ref());
        let stored = self
            .view
            .find(hash, key.as_ref())
            .map(|(slot, object)| (slot, object.clone()));
        let mut current = stored.as_ref().map(|(_, object)| object.clone());
        let mut ended = None;
        let mut good: Option<ResourceVersion> = None;
        for delta in deltas {
            let version = delta.resource_version().clone();
            let is_good = match delta {
                Delta::Deleted(deleted) => self.fold_delete(&mut current, *deleted, &mut ended),
                Delta::Added(new)
                | Delta::Updated(new)
                | Delta::Replaced(new)
                | Delta::Sync(new) => self.fold_upsert(&mut current, new, &mut ended, true, false),
            };
            let newest = good.as_ref();
            if is_good && !newest.is_some_and(|good| version.is_older_than(good, self.versioning)) {
                good = Some(version);
            }
        }
        if let Some(version) = good {
            self.release(key.as_ref(), &version);
        }
        self.transit(
            hash,
            source,
            Transition {
                stored,
                new: current,
                ended,
                initial: false,
            },
        );
    }

    /// Fold an upsert into `current`; true when it says something about the key's present state.
    fn fold_upsert(
        &mut self,
        current: &mut Option<Cached<T>>,
        new: Cached<T>,
        ended: &mut Option<Deleted<T>>,
        guard: bool,
        initial: bool,
    ) -> bool {
        let verdict = current
            .as_ref()
            .map(|known| judge_upsert(identity(known), identity(&new), self.versioning, guard));
        match (verdict, current.take()) {
            (None, _) => {
                self.effective(|| Effective::Added {
                    new: new.clone(),
                    initial,
                });
            }
            (Some(Upsert::Stale), known) => {
                self.applied.dropped.stale += 1;
                *current = known;
                return false;
            }
            (Some(Upsert::Unchanged), known) => {
                self.applied.dropped.unchanged += 1;
                *current = known;
                return true;
            }
            (Some(Upsert::Update), known) => {
                if let Some(old) = known {
                    self.effective(|| Effective::Updated {
                        old,
                        new: new.clone(),
                    });
                }
            }
            (Some(Upsert::Recreate), known) => {
                if let Some(old) = known {
                    self.end(Deleted::unknown(old), ended);
                }
                self.effective(|| Effective::Added {
                    new: new.clone(),
                    initial,
                });
            }
        }
        *current = Some(new);
        true
    }

    /// Fold a deletion into `current`; true when it says something about the key's present state.
    fn fold_delete(
        &mut self,
        current: &mut Option<Cached<T>>,
        deleted: Deleted<T>,
        ended: &mut Option<Deleted<T>>,
    ) -> bool {
        let Some(known) = current.take() else {
            self.applied.dropped.unknown_deletes += 1;
            return true;
        };
        let arriving = (&deleted.uid, &deleted.resource_version);
        match judge_delete(identity(&known), arriving, self.versioning) {
            Delete::Stale => {
                self.applied.dropped.stale += 1;
                *current = Some(known);
                return false;
            }
            Delete::Remove => {
                let last = match deleted.last {
                    // A last known state that is older than what is stored is not the last known.
                    Some(last) if !self.knows_more(&known, &last, deleted.final_state_unknown) => {
                        last
                    }
                    _ => known,
                };
                self.end(
                    Deleted {
                        last: Some(last),
                        ..deleted
                    },
                    ended,
                );
            }
            Delete::RemoveUnseen => self.end(Deleted::unknown(known), ended),
        }
        true
    }

    fn knows_more(&self, known: &Cached<T>, last: &Cached<T>, unknown: bool) -> bool {
        unknown
            && last
                .resource_version()
                .is_older_than(known.resource_version(), self.versioning)
    }

    /// A life ended. The first end in a batch is that of the stored life.
    fn end(&mut self, deleted: Deleted<T>, ended: &mut Option<Deleted<T>>) {
        self.effective(|| Effective::Deleted {
            deleted: deleted.clone(),
        });
        ended.get_or_insert(deleted);
    }

    fn effective(&mut self, effect: impl FnOnce() -> Effective<T>) {
        if let Some(effective) = &mut self.applied.effective {
            effective.push(effect());
        }
    }

    /// Bring the table and the indexes from what is stored to what is new, and note the change.
    fn transit(&mut self, hash: u64, source: SourceId, transition: Transition<T>) {
        let Transition {
            stored,
            new,
            ended,
            initial,
        } = transition;
        let (old, new) = match (stored, new) {
            (None, None) => return,
            (None, Some(new)) => {
                self.insert(hash, source, &new);
                (None, Some(new))
            }
            (Some((slot, old)), Some(new)) => {
                if old.ptr_eq(&new) {
                    return;
                }
                self.exchange(slot, source, &new);
                (Some(old), Some(new))
            }
            (Some((slot, old)), None) => {
                self.remove(slot, hash);
                (Some(old), None)
            }
        };
        self.note(hash, old, new, ended, initial);
    }

    fn insert(&mut self, hash: u64, source: SourceId, object: &Cached<T>) {
        let Self {
            view,
            drivers,
            owners,
            seen,
            unindexed,
            stamp,
            ..
        } = self;
        let View { table, indexes, .. } = &mut **view;
        let slot = table.insert(hash, object.clone(), *stamp, |from, to| {
            for (part, driver) in indexes.iter_mut().zip(drivers.iter_mut()) {
                if let (Some(part), Some(driver)) = (part, driver) {
                    driver.moved(&mut **part, from, to, *stamp);
                }
            }
            owners.moved(from, to);
            for marks in [&mut *seen, &mut *unindexed].into_iter().flatten() {
                marks.moved(from, to);
            }
        });
        self.log.push(Op::Insert(hash, object.clone()));
        self.settle(slot, source, object);
    }

    fn exchange(&mut self, slot: Slot, source: SourceId, object: &Cached<T>) {
        self.view.table.replace(slot, object.clone(), self.stamp);
        self.log.push(Op::Replace(slot, object.clone()));
        self.settle(slot, source, object);
    }

    /// A new object version is in its slot: owner, marks and indexes follow.
    fn settle(&mut self, slot: Slot, source: SourceId, object: &Cached<T>) {
        self.owners.set(slot, source);
        self.see(slot);
        match &mut self.unindexed {
            Some(unindexed) => unindexed.mark(slot),
            None => self.index(slot, object),
        }
    }

    fn index(&mut self, slot: Slot, object: &Cached<T>) {
        for (part, driver) in self.view.indexes.iter_mut().zip(self.drivers.iter_mut()) {
            let (Some(part), Some(driver)) = (part, driver) else {
                continue;
            };
            if let Err(reason) = driver.set(&mut **part, slot, object, self.stamp) {
                self.applied.index_failures.push(IndexFailure {
                    index: driver.name().clone(),
                    key: object.key().clone(),
                    resource_version: object.resource_version().clone(),
                    reason,
                });
            }
        }
    }

    /// Index what a relist brought, in slot order: postings then grow at their ends, and nothing
    /// that was just indexed is moved by a split.
    fn index_relisted(&mut self) {
        let Some(unindexed) = self.unindexed.take() else {
            return;
        };
        for slot in unindexed.slots() {
            let object = self.view.table.get(slot).cloned();
            let object = object.expect("a marked slot holds an object");
            self.index(slot, &object);
        }
    }

    fn remove(&mut self, slot: Slot, hash: u64) {
        for (part, driver) in self.view.indexes.iter_mut().zip(self.drivers.iter_mut()) {
            if let (Some(part), Some(driver)) = (part, driver) {
                driver.clear(&mut **part, slot, self.stamp);
            }
        }
        self.view.table.remove(slot, hash, self.stamp);
        self.log.push(Op::Remove(slot, hash));
    }

    /// Merge a transition into the net change of its key.
    fn note(
        &mut self,
        hash: u64,
        old: Option<Cached<T>>,
        new: Option<Cached<T>>,
        ended: Option<Deleted<T>>,
        initial: bool,
    ) {
        let changes = &mut self.applied.changes;
        let key = new.as_ref().or(old.as_ref()).map(Cached::key_ref);
        let known = self
            .touched
            .find(hash, |&at| changes[at].object().map(Cached::key_ref) == key)
            .copied();
        let Some(at) = known else {
            let hasher = self.view.table.hasher();
            self.touched.insert_unique(hash, changes.len(), |&at| {
                changes[at]
                    .object()
                    .map_or(0, |object| hasher.hash_one(object.key_ref()))
            });
            changes.push(Change {
                deleted: ended.filter(|_| old.is_some()),
                old,
                new,
                initial,
            });
            return;
        };
        let change = &mut changes[at];
        if change.old.is_some() && change.deleted.is_none() {
            change.deleted = ended;
        }
        change.initial = (change.initial && change.new.is_some()) || initial;
        change.new = new;
        if change.old.is_none() && change.new.is_none() {
            // It came and went inside the batch. Should the key come again, that is a new change.
            if let Ok(entry) = self.touched.find_entry(hash, |&other| other == at) {
                entry.remove();
            }
        }
    }

    fn replace(&mut self, replace: Replace<T>) {
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
        for new in items {
            self.replace_item(source, new, !reset, initial, &mut superseded);
        }
        self.index_relisted();
        for object in bad {
            self.see_bad(&object);
            self.quarantine(source, object);
        }
        self.remove_unseen(source, &mut superseded);
        self.seen = None;
        if initial {
            self.applied.synced.push(source);
        }
    }

    fn replace_item(
        &mut self,
        source: SourceId,
        new: Cached<T>,
        guard: bool,
        initial: bool,
        superseded: &mut Ends<T>,
    ) {
        let hash = self.view.hash_of(new.key_ref());
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
                self.end(Deleted::unknown(object), &mut ended);
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

    fn see(&mut self, slot: Slot) {
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

    fn bad(&mut self, source: SourceId, object: BadObject, deleted: bool) {
        if deleted && let Some(key) = object.key {
            // What the final state was does not matter for the cache: the key is gone.
            let deleted = Deleted {
                key,
                uid: object.uid,
                resource_version: object.resource_version,
                last: None,
                final_state_unknown: true,
            };
            let deltas = smallvec::smallvec![Delta::deleted(deleted)];
            self.group(KeyDeltas { source, deltas });
            return;
        }
        self.quarantine(source, object);
    }

    fn quarantine(&mut self, source: SourceId, object: BadObject) {
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
        if known.is_some_and(|known| is_older(known.resource_version()))
            || worse.is_some_and(is_older)
        {
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

    fn release(&mut self, key: KeyRef<'_>, good: &ResourceVersion) {
        let quarantine = &self.view.quarantine;
        // A good state from before the failure says nothing about what failed.
        let is_over = quarantine
            .failed_version(key)
            .is_some_and(|failed| !good.is_older_than(failed, self.versioning));
        if is_over {
            Arc::make_mut(&mut self.view.quarantine).release(key);
        }
    }
}

fn identity<T>(object: &Cached<T>) -> (&Uid, &ResourceVersion) {
    (object.uid(), object.resource_version())
}

/// Ends of lives that were queued before a relist, by key.
type Ends<T> = HashMap<ObjectKey, Vec<Deleted<T>>>;

/// The queued end of this very life of a key, if there was one.
fn take_end_of<T>(known: &Cached<T>, superseded: &mut Ends<T>) -> Option<Deleted<T>> {
    if superseded.is_empty() {
        return None;
    }
    let ends = superseded.get_mut(known.key())?;
    let at = ends
        .iter()
        .position(|deleted| known.uid().may_equal(&deleted.uid))?;
    Some(ends.swap_remove(at))
}
