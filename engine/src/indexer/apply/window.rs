//! Changes of single objects, a window of them at a time: first everything is read, then changed.
//!
//! Memory answers many questions in the time of one, as long as none depends on another and no
//! atomic operation stands between them. So what a window's changes will read is read beforehand,
//! for all of them, and the index functions run then too; what is left is to change what is near.
use super::{Preparation, Values};
use crate::delta::{Delta, KeyDeltas, SourceId};
use crate::indexer::applied::Effective;
use crate::indexer::identity::Upsert;
use crate::indexer::table::{READ_AHEAD, Slot};
use crate::object::Cached;
use smallvec::SmallVec;

/// What was found out about a group ahead of its turn.
#[derive(Clone, Copy, Default)]
struct Ahead {
    hash: u64,
    /// Set when the group is an update of what is stored, so that the index functions have run.
    foreseen: Option<Foreseen>,
}

/// An update of what is stored, judged ahead of its turn.
#[derive(Clone, Copy)]
struct Foreseen {
    slot: Slot,
    /// What was stored then: as long as it is, all of this stands.
    known: usize,
    /// Its number among the updates of the window.
    position: usize,
    /// Every index keeps the value that it has.
    keeps_values: bool,
}

impl<T: Send + Sync + 'static> Preparation<'_, T> {
    pub(super) fn groups(&mut self, groups: Vec<KeyDeltas<T>>) {
        if groups.len() == 1 {
            // There is nothing to read beside it; its own key has been read ahead of the replay.
            for group in groups {
                let hash = group
                    .deltas
                    .first()
                    .map_or(0, |delta| self.hash(delta.key()));
                let foreseen = None;
                self.group(Ahead { hash, foreseen }, group);
            }
            return;
        }
        self.net.expect(groups.len());
        let mut groups = groups.into_iter();
        loop {
            let (ahead, count) = self.look_ahead(groups.as_slice());
            for (ahead, group) in ahead[..count].iter().zip(groups.by_ref()) {
                self.group(*ahead, group);
            }
            if count < READ_AHEAD {
                return;
            }
        }
    }

    /// Read what the next groups will read; returns what was found, and for how many groups.
    fn look_ahead(&mut self, groups: &[KeyDeltas<T>]) -> ([Ahead; READ_AHEAD], usize) {
        let (mut ahead, mut hashes) = ([Ahead::default(); READ_AHEAD], [0; READ_AHEAD]);
        let count = groups.len().min(READ_AHEAD);
        for (at, group) in groups[..count].iter().enumerate() {
            if let Some(delta) = group.deltas.first() {
                hashes[at] = self.hash(delta.key());
                ahead[at].hash = hashes[at];
            }
        }
        self.view.table.read_ahead(&hashes[..count]);
        self.has_moved = false;
        let mut updates: SmallVec<[(Slot, &Cached<T>); READ_AHEAD]> = SmallVec::new();
        for (ahead, group) in ahead.iter_mut().zip(&groups[..count]) {
            if let Some((slot, known, new)) = self.update_in(ahead.hash, group) {
                ahead.foreseen = Some(Foreseen {
                    slot,
                    known,
                    position: updates.len(),
                    keeps_values: false,
                });
                updates.push((slot, new));
            }
        }
        let mut kept = u32::MAX;
        for driver in self.drivers.iter_mut().flatten() {
            kept &= driver.foresee(&updates);
        }
        for foreseen in ahead.iter_mut().filter_map(|ahead| ahead.foreseen.as_mut()) {
            foreseen.keeps_values = kept >> foreseen.position & 1 == 1;
        }
        (ahead, count)
    }

    /// Where a group's key is, what is stored there, and the new state, if the group is clearly an
    /// update of that.
    fn update_in<'g>(
        &self,
        hash: u64,
        group: &'g KeyDeltas<T>,
    ) -> Option<(Slot, usize, &'g Cached<T>)> {
        let [Delta::Updated(new) | Delta::Added(new) | Delta::Replaced(new)] = &*group.deltas
        else {
            return None;
        };
        let (slot, known) = self.view.find(hash, new.key_ref())?;
        let verdict = self.judge(known, new, true);
        (verdict == Upsert::Update).then(|| (slot, known.address(), new))
    }

    fn group(&mut self, ahead: Ahead, KeyDeltas { source, deltas }: KeyDeltas<T>) {
        let mut deltas = deltas.into_iter();
        let Some(first) = deltas.next() else { return };
        match first {
            Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new)
                if deltas.len() == 0 =>
            {
                self.upsert(ahead, source, new);
            }
            first => self.fold(ahead.hash, source, std::iter::once(first).chain(deltas)),
        }
    }

    /// One new state of one key: what nearly every group is.
    fn upsert(&mut self, Ahead { hash, foreseen }: Ahead, source: SourceId, new: Cached<T>) {
        if let Some(foreseen) = foreseen {
            // As long as no key came or went, a slot keeps its key.
            let found = if self.has_moved {
                self.view.find(hash, new.key_ref())
            } else {
                let known = self.view.table.get(foreseen.slot);
                known.map(|known| (foreseen.slot, known))
            };
            if let Some((slot, known)) = found
                && known.address() == foreseen.known
            {
                let values = if foreseen.keeps_values {
                    Values::Kept
                } else {
                    Values::Foreseen(foreseen.position)
                };
                return self.update(hash, slot, source, new, values);
            }
            // Another group of the window was of the same key.
            for driver in self.drivers.iter_mut().flatten() {
                driver.forget_foreseen(foreseen.position);
            }
        }
        let Some((slot, known)) = self.view.find(hash, new.key_ref()) else {
            return self.fold(hash, source, std::iter::once(Delta::Updated(new)));
        };
        match self.judge(known, &new, true) {
            Upsert::Stale => self.applied.dropped.stale += 1,
            Upsert::Unchanged => {
                self.applied.dropped.unchanged += 1;
                self.release(new.key_ref(), new.resource_version());
            }
            Upsert::Update => self.update(hash, slot, source, new, Values::Unknown),
            Upsert::Recreate => self.fold(hash, source, std::iter::once(Delta::Updated(new))),
        }
    }

    fn update(&mut self, hash: u64, slot: Slot, source: SourceId, new: Cached<T>, values: Values) {
        self.release(new.key_ref(), new.resource_version());
        let old = self.exchange(slot, source, &new, values);
        self.effective(|| Effective::Updated {
            old: old.clone(),
            new: new.clone(),
        });
        self.net.note(hash, Some(old), Some(new), None, false);
    }
}
