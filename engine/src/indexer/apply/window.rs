//! Changes of single objects, a window of them at a time: first everything is read, then changed.
//!
//! Memory answers many questions in the time of one, as long as none depends on another and no
//! atomic operation stands between them. So what a window's changes will read is read beforehand,
//! for all of them, and the index functions run then too; what is left is to change what is near.
use super::{Preparation, identity};
use crate::delta::{Delta, KeyDeltas, SourceId};
use crate::indexer::applied::Effective;
use crate::indexer::identity::{Upsert, judge_upsert};
use crate::indexer::table::{READ_AHEAD, Slot};
use crate::object::Cached;

/// What was found out about a group ahead of its turn.
#[derive(Clone, Copy, Default)]
struct Ahead {
    hash: u64,
    /// Where its key is, if it is there and the index functions have run on its new state.
    foreseen: Option<Slot>,
}

impl<T: Send + Sync + 'static> Preparation<'_, T> {
    pub(super) fn groups(&mut self, groups: Vec<KeyDeltas<T>>) {
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
        // Of a single one, all but the index functions has been read before the replay.
        if count > 1 {
            self.view.table.read_ahead(&hashes[..count]);
        }
        self.has_moved = false;
        for (ahead, group) in ahead.iter_mut().zip(&groups[..count]) {
            ahead.foreseen = self.foresee(ahead.hash, group);
        }
        (ahead, count)
    }

    /// Run the index functions on the new state of a group, if that is clearly what they will have
    /// to run on.
    fn foresee(&mut self, hash: u64, group: &KeyDeltas<T>) -> Option<Slot> {
        let [Delta::Updated(new) | Delta::Added(new) | Delta::Replaced(new)] = &*group.deltas
        else {
            return None;
        };
        let (slot, known) = self.view.find(hash, new.key_ref())?;
        let verdict = judge_upsert(identity(known), identity(new), self.versioning, true);
        if verdict != Upsert::Update {
            return None;
        }
        for driver in self.drivers.iter_mut().flatten() {
            driver.foresee(slot, new);
        }
        Some(slot)
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
        // As long as no key came or went, a slot keeps its key.
        let found = match foreseen.filter(|_| !self.has_moved) {
            Some(slot) => self.view.table.get(slot).map(|known| (slot, known)),
            None => self.view.find(hash, new.key_ref()),
        };
        let verdict = found.map(|(slot, known)| {
            let verdict = judge_upsert(identity(known), identity(&new), self.versioning, true);
            (slot, verdict)
        });
        if let Some((slot, Upsert::Update)) = verdict {
            self.release(new.key_ref(), new.resource_version());
            let old = self.exchange(slot, source, &new, foreseen.is_some());
            self.effective(|| Effective::Updated {
                old: old.clone(),
                new: new.clone(),
            });
            self.net.note(hash, Some(old), Some(new), None, false);
            return;
        }
        if foreseen.is_some() {
            // The key was changed by another group of the window, which is why it looks different.
            for driver in self.drivers.iter_mut().flatten() {
                driver.forget_foreseen();
            }
        }
        match verdict {
            Some((_, Upsert::Stale)) => self.applied.dropped.stale += 1,
            Some((_, Upsert::Unchanged)) => {
                self.applied.dropped.unchanged += 1;
                self.release(new.key_ref(), new.resource_version());
            }
            _ => self.fold(hash, source, std::iter::once(Delta::Updated(new))),
        }
    }
}
