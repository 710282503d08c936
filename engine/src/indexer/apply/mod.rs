//! Applying one batch to a version that nobody sees yet.
mod log;
mod net;
mod relist;
mod unusable;
mod window;

use crate::delta::{Batch, Deleted, Delta, SourceId, Step};
use crate::indexer::applied::{Applied, Effective, IndexFailure};
use crate::indexer::identity::{Delete, Upsert};
use crate::indexer::index::{IndexDriver, IndexPart};
use crate::indexer::marks::Marks;
use crate::indexer::owners::Owners;
use crate::indexer::publish::Drivers;
use crate::indexer::table::{Op, Slot};
use crate::indexer::view::View;
use crate::object::{Cached, ObjectKey, ResourceVersion, Uid, Versioning};
pub(super) use log::Log;
use net::NetChanges;
pub(super) use net::Positions;

/// A version in preparation, and what has been done to it so far.
pub(super) struct Preparation<'a, T> {
    view: &'a mut View<T>,
    drivers: &'a mut Drivers<T>,
    owners: &'a mut Owners,
    versioning: Versioning,
    /// The version that this preparation becomes: the stamp of all it changes.
    stamp: u64,
    log: Log<T>,
    net: NetChanges<T>,
    applied: Applied<T>,
    /// A key came or went, so that slots which were found earlier may have changed.
    has_moved: bool,
    /// What a relist has seen so far; `None` outside of one.
    seen: Option<Marks>,
    /// Slots whose new objects a relist has not indexed yet.
    unindexed: Option<Marks>,
}

/// What is known of the index values of a new state.
#[derive(Clone, Copy)]
enum Values {
    /// Nothing: the index functions have not run on it.
    Unknown,
    /// They have, and it was number so and so.
    Foreseen(usize),
    /// They have, and every index keeps the value it has.
    Kept,
}

/// A transition of one key: from what was stored to what is.
struct Transition<T> {
    stored: Option<(Slot, Cached<T>)>,
    new: Option<Cached<T>>,
    /// How the stored life ended, if it did.
    ended: Option<Box<Deleted<T>>>,
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
        positions: Positions,
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
            has_moved: false,
            net: NetChanges::new(positions),
            seen: None,
            unindexed: None,
        }
    }

    /// Apply a whole batch: what it did to the primary table, what came of it, and what can be used
    /// again for the next one.
    pub(super) fn run(mut self, batch: Batch<T>) -> (Log<T>, Applied<T>, Positions) {
        for step in batch.steps {
            match step {
                Step::Changes(groups) => self.groups(groups),
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
        let (changes, positions) = self.net.finish();
        self.applied.changes = changes;
        (self.log, self.applied, positions)
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

    fn hash(&self, key: &ObjectKey) -> u64 {
        self.view.hash_of(key.as_ref())
    }

    /// The deltas of one key, oldest first: folded, and applied once.
    fn fold(&mut self, hash: u64, source: SourceId, deltas: impl Iterator<Item = Delta<T>>) {
        let mut deltas = deltas.peekable();
        let Some(key) = deltas.peek().map(|delta| delta.key().clone()) else {
            return;
        };
        let stored = self
            .view
            .find(hash, key.as_ref())
            .map(|(slot, object)| (slot, object.clone()));
        let mut current = stored.as_ref().map(|(_, object)| object.clone());
        let mut ended = None;
        for delta in deltas {
            let version = delta.resource_version().clone();
            let is_good = match delta {
                Delta::Deleted(deleted) => self.fold_delete(&mut current, deleted, &mut ended),
                Delta::Added(new)
                | Delta::Updated(new)
                | Delta::Replaced(new)
                | Delta::Sync(new) => self.fold_upsert(&mut current, new, &mut ended, true, false),
            };
            if is_good {
                self.release(key.as_ref(), &version);
            }
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
        ended: &mut Option<Box<Deleted<T>>>,
        guard: bool,
        initial: bool,
    ) -> bool {
        let verdict = current.as_ref().map(|known| self.judge(known, &new, guard));
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
                    self.end(Box::new(Deleted::unknown(old)), ended);
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
        mut deleted: Box<Deleted<T>>,
        ended: &mut Option<Box<Deleted<T>>>,
    ) -> bool {
        let Some(known) = current.take() else {
            self.applied.dropped.unknown_deletes += 1;
            return true;
        };
        match self.judge_end(&known, &deleted) {
            Delete::Stale => {
                self.applied.dropped.stale += 1;
                *current = Some(known);
                return false;
            }
            Delete::Remove => {
                // A last known state that is older than what is stored is not the last known.
                let is_last = deleted.last.as_ref().is_some_and(|last| {
                    !self.knows_more(&known, last, deleted.final_state_unknown)
                });
                if !is_last {
                    deleted.last = Some(known);
                }
                self.end(deleted, ended);
            }
            Delete::RemoveUnseen => self.end(Box::new(Deleted::unknown(known)), ended),
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
    fn end(&mut self, deleted: Box<Deleted<T>>, ended: &mut Option<Box<Deleted<T>>>) {
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
                (
                    Some(self.exchange(slot, source, &new, Values::Unknown)),
                    Some(new),
                )
            }
            (Some((slot, old)), None) => {
                self.remove(slot, hash);
                (Some(old), None)
            }
        };
        self.net.note(hash, old, new, ended, initial);
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
        self.has_moved = true;
        self.settle(slot, source, object, Values::Unknown);
    }

    /// Put a new state in the place of another of the same key; returns that one.
    fn exchange(
        &mut self,
        slot: Slot,
        source: SourceId,
        object: &Cached<T>,
        values: Values,
    ) -> Cached<T> {
        let old = self.view.table.replace(slot, object.clone(), self.stamp);
        self.log.push(Op::Replace(slot, object.clone()));
        self.settle(slot, source, object, values);
        old
    }

    /// A new object version is in its slot: owner, marks and indexes follow.
    fn settle(&mut self, slot: Slot, source: SourceId, object: &Cached<T>, values: Values) {
        self.owners.set(slot, source);
        self.see(slot);
        if let Some(unindexed) = &mut self.unindexed {
            unindexed.mark(slot);
            return;
        }
        let (indexes, failures) = (&mut self.view.indexes, &mut self.applied.index_failures);
        let stamp = self.stamp;
        match values {
            Values::Kept => (),
            Values::Foreseen(position) => {
                index(indexes, self.drivers, object, failures, |part, driver| {
                    driver.set_foreseen(part, slot, position, stamp)
                });
            }
            Values::Unknown => {
                index(indexes, self.drivers, object, failures, |part, driver| {
                    driver.set(part, slot, object, stamp)
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
        let View { table, indexes, .. } = &mut *self.view;
        for slot in unindexed.slots() {
            let object = table.get(slot).expect("a marked slot holds an object");
            let (failures, stamp) = (&mut self.applied.index_failures, self.stamp);
            index(indexes, self.drivers, object, failures, |part, driver| {
                driver.set(part, slot, object, stamp)
            });
        }
    }

    fn remove(&mut self, slot: Slot, hash: u64) {
        for (part, driver) in self.view.indexes.iter_mut().zip(self.drivers.iter_mut()) {
            if let (Some(part), Some(driver)) = (part, driver) {
                driver.clear(&mut **part, slot, self.stamp);
            }
        }
        self.view.table.remove(slot, hash, self.stamp);
        self.has_moved = true;
        self.log.push(Op::Remove(slot, hash));
    }
}

fn identity<T>(object: &Cached<T>) -> (&Uid, &ResourceVersion) {
    (object.uid(), object.resource_version())
}

/// Let every index take in a new object version, and note which of them failed on it.
fn index<T>(
    parts: &mut [Option<Box<dyn IndexPart>>],
    drivers: &mut Drivers<T>,
    object: &Cached<T>,
    failures: &mut Vec<IndexFailure>,
    set: impl Fn(&mut dyn IndexPart, &mut dyn IndexDriver<T>) -> Result<(), String>,
) {
    for (part, driver) in parts.iter_mut().zip(drivers) {
        let (Some(part), Some(driver)) = (part, driver) else {
            continue;
        };
        if let Err(reason) = set(&mut **part, &mut **driver) {
            failures.push(IndexFailure {
                index: driver.name().clone(),
                key: object.key().clone(),
                resource_version: object.resource_version().clone(),
                reason,
            });
        }
    }
}
