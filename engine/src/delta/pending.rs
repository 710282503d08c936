//! What is pending between two drains: coalesced by key, with relists in their place.
use super::compaction::{Compaction, Pushed, push};
use super::{Batch, Deleted, Delta, KeyDeltas, Replace, ResyncTargets, SourceId, Step};
use crate::object::{Cached, ObjectKey, ResourceVersion, Uid, Versioning};
use crate::source::BadObject;
use ahash::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::collections::HashSet;

/// Unusable objects of unknown key that are kept for the quarantine; all of them are counted.
const UNKNOWN_BAD_LIMIT: usize = 128;

/// A stretch of inputs between two relists.
struct Segment<T> {
    groups: Vec<KeyDeltas<T>>,
    /// Positions in `groups` by key: the newest group of each.
    by_key: HashTable<u32>,
    /// Unusable objects. They come after the groups: a good delta that follows one releases it.
    bad: Vec<(SourceId, BadObject)>,
}

impl<T> Segment<T> {
    fn new() -> Self {
        Self {
            groups: Vec::new(),
            by_key: HashTable::new(),
            bad: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.bad.is_empty()
    }

    /// What it holds, without the way to find a key.
    fn copy(&self) -> Self {
        Self {
            groups: self.groups.clone(),
            by_key: HashTable::new(),
            bad: self.bad.clone(),
        }
    }
}

/// Everything that was pushed since the last drain.
pub(super) struct Pending<T> {
    hasher: RandomState,
    versioning: Versioning,
    /// What came before the open segment: segments and relists, in order.
    earlier: Vec<Earlier<T>>,
    open: Segment<T>,
    resyncs: Vec<ResyncTargets>,
    versions: SmallVec<[(SourceId, ResourceVersion); 1]>,
    inputs: usize,
    coalesced: u64,
    keys: usize,
}

/// What a relist made superfluous.
pub(super) struct Superseded<T> {
    items: Vec<Vec<Cached<T>>>,
    deltas: Vec<Delta<T>>,
}

impl<T> Default for Superseded<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            deltas: Vec::new(),
        }
    }
}

enum Earlier<T> {
    Segment(Segment<T>),
    Replace(Replace<T>),
}

impl<T> Earlier<T> {
    fn copy(&self) -> Self {
        match self {
            Self::Segment(segment) => Self::Segment(segment.copy()),
            Self::Replace(replace) => Self::Replace(replace.clone()),
        }
    }
}

impl<T> Pending<T> {
    pub(super) fn new(hasher: RandomState, versioning: Versioning) -> Self {
        Self {
            hasher,
            versioning,
            earlier: Vec::new(),
            open: Segment::new(),
            resyncs: Vec::new(),
            versions: SmallVec::new(),
            inputs: 0,
            coalesced: 0,
            keys: 0,
        }
    }

    /// Keys that wait, not counting those inside a relist.
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    /// True when a drain would give nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.inputs == 0
    }

    pub(super) fn coalesced(&self) -> u64 {
        self.coalesced
    }

    /// True when the key waits already, so that another delta of it takes no further place.
    pub(super) fn has_key(&self, hash: u64, key: &ObjectKey) -> bool {
        let groups = &self.open.groups;
        self.open
            .by_key
            .find(hash, |&at| groups[at as usize].deltas[0].key() == key)
            .is_some()
    }

    /// Queue a delta. What it makes superfluous comes back, to be dropped outside the lock.
    pub(super) fn push(
        &mut self,
        source: SourceId,
        hash: u64,
        delta: Delta<T>,
        version: ResourceVersion,
        compaction: Compaction,
    ) -> Option<Delta<T>> {
        self.inputs += 1;
        self.reach(source, version, false);
        let Segment {
            groups,
            by_key,
            bad,
        } = &mut self.open;
        if !bad.is_empty() {
            // The key has a good state again, or is gone: what was bad about it is over.
            bad.retain(|(_, object)| object.key.as_ref() != Some(delta.key()));
        }
        let known = by_key.find_mut(hash, |&at| {
            groups[at as usize].deltas[0].key() == delta.key()
        });
        if let Some(at) = known {
            let group = &mut groups[*at as usize];
            if group.source == source {
                let pushed = push(&mut group.deltas, delta, compaction, self.versioning);
                return match pushed {
                    Pushed::Kept => None,
                    Pushed::Merged(superfluous) => {
                        self.coalesced += 1;
                        Some(superfluous)
                    }
                };
            }
            // Another source: its deltas come after, in a group of their own.
            *at = position(groups.len());
        } else {
            let hasher = &self.hasher;
            by_key.insert_unique(hash, position(groups.len()), |&at| {
                hasher.hash_one(groups[at as usize].deltas[0].key())
            });
        }
        self.keys += 1;
        groups.push(KeyDeltas {
            source,
            deltas: smallvec::smallvec![delta],
        });
        None
    }

    pub(super) fn bad(&mut self, source: SourceId, object: BadObject) {
        self.inputs += 1;
        self.reach(source, object.resource_version.clone(), false);
        let bad = &mut self.open.bad;
        if let Some(key) = &object.key {
            bad.retain(|(_, other)| other.key.as_ref() != Some(key));
        } else if bad.iter().filter(|(_, other)| other.key.is_none()).count() == UNKNOWN_BAD_LIMIT {
            return;
        }
        bad.push((source, object));
    }

    pub(super) fn bookmark(&mut self, source: SourceId, version: ResourceVersion) {
        self.inputs += 1;
        self.reach(source, version, false);
    }

    pub(super) fn resync(&mut self, targets: ResyncTargets) {
        self.inputs += 1;
        if !self.resyncs.contains(&targets) {
            self.resyncs.push(targets);
        }
    }

    /// A relist: what its source queued before it is superseded, unless everything is to be kept.
    /// What it makes superfluous comes back, to be dropped outside the lock.
    pub(super) fn replace(
        &mut self,
        mut replace: Replace<T>,
        compaction: Compaction,
    ) -> Superseded<T> {
        self.inputs += 1;
        self.reach(
            replace.source,
            replace.resource_version.clone(),
            replace.reset,
        );
        if !self.open.is_empty() {
            let open = std::mem::replace(&mut self.open, Segment::new());
            self.earlier.push(Earlier::Segment(open));
        }
        let mut superseded = Superseded::default();
        match compaction {
            Compaction::FirstAndLast => self.supersede(&mut replace, &mut superseded),
            // A relist right behind another of the same source: nothing was seen in between.
            Compaction::KeepAll => {
                if let Some(Earlier::Replace(last)) = self.earlier.last()
                    && last.source == replace.source
                    && let Some(Earlier::Replace(last)) = self.earlier.pop()
                {
                    self.supersede_replace(last, &mut replace, &mut superseded);
                }
            }
        }
        self.earlier.push(Earlier::Replace(replace));
        superseded
    }

    /// Take out what the source of `replace` queued before, but keep how lives ended.
    fn supersede(&mut self, replace: &mut Replace<T>, superseded: &mut Superseded<T>) {
        for step in std::mem::take(&mut self.earlier) {
            match step {
                Earlier::Replace(older) if older.source == replace.source => {
                    self.supersede_replace(older, replace, superseded);
                }
                Earlier::Replace(other) => self.earlier.push(Earlier::Replace(other)),
                Earlier::Segment(mut segment) => {
                    self.supersede_segment(&mut segment, replace, superseded);
                    if !segment.is_empty() {
                        self.earlier.push(Earlier::Segment(segment));
                    }
                }
            }
        }
    }

    fn supersede_replace(
        &mut self,
        older: Replace<T>,
        newer: &mut Replace<T>,
        superseded: &mut Superseded<T>,
    ) {
        self.coalesced += 1;
        newer.initial |= older.initial;
        newer.reset |= older.reset;
        keep_ends(newer, older.superseded_deletes);
        superseded.items.push(older.items);
    }

    fn supersede_segment(
        &mut self,
        segment: &mut Segment<T>,
        replace: &mut Replace<T>,
        superseded: &mut Superseded<T>,
    ) {
        let (mut kept, mut ends) = (Vec::new(), Vec::new());
        for group in std::mem::take(&mut segment.groups) {
            if group.source != replace.source {
                kept.push(group);
                continue;
            }
            self.keys -= 1;
            self.coalesced += group.deltas.len() as u64;
            for delta in group.deltas {
                match delta {
                    Delta::Deleted(deleted) if !deleted.final_state_unknown => ends.push(deleted),
                    delta => superseded.deltas.push(delta),
                }
            }
        }
        keep_ends(replace, ends);
        segment.groups = kept;
        // Nothing is pushed to an earlier segment any more.
        segment.by_key = HashTable::new();
        segment.bad.retain(|(source, _)| *source != replace.source);
    }

    /// Take everything. What is left is empty.
    pub(super) fn take(&mut self) -> Batch<T> {
        let taken = std::mem::replace(self, Self::new(self.hasher.clone(), self.versioning));
        self.coalesced = taken.coalesced;
        taken.into_batch()
    }

    /// What [`Pending::take`] would give; nothing is taken.
    pub(super) fn copy(&self) -> Batch<T> {
        Self {
            hasher: self.hasher.clone(),
            versioning: self.versioning,
            earlier: self.earlier.iter().map(Earlier::copy).collect(),
            open: self.open.copy(),
            resyncs: self.resyncs.clone(),
            versions: self.versions.clone(),
            inputs: self.inputs,
            coalesced: self.coalesced,
            keys: self.keys,
        }
        .into_batch()
    }

    fn into_batch(mut self) -> Batch<T> {
        if !self.open.is_empty() {
            self.earlier.push(Earlier::Segment(self.open));
        }
        let mut steps = Vec::with_capacity(self.earlier.len() + self.resyncs.len());
        for step in self.earlier {
            match step {
                Earlier::Replace(replace) => steps.push(Step::Replace(replace)),
                Earlier::Segment(segment) => {
                    if !segment.groups.is_empty() {
                        steps.push(Step::Changes(segment.groups));
                    }
                    steps.extend(segment.bad.into_iter().map(|(source, object)| Step::Bad {
                        source,
                        object,
                        deleted: false,
                    }));
                }
            }
        }
        // A resync covers what is stored once the batch is applied, so its place is the end: a key
        // that changed in the batch is announced by its change.
        steps.extend(self.resyncs.into_iter().map(Step::Resync));
        Batch {
            steps,
            versions: self.versions,
            inputs: self.inputs,
        }
    }

    /// The source has come this far: never back, except in a reset, so that how far a batch comes
    /// does not depend on where one ends. An input without a version says nothing about that.
    fn reach(&mut self, source: SourceId, version: ResourceVersion, reset: bool) {
        if version.is_empty() {
            return;
        }
        match self.versions.iter_mut().find(|(s, _)| *s == source) {
            Some((_, reached)) if reset || !version.is_older_than(reached, self.versioning) => {
                *reached = version;
            }
            Some(_) => (),
            None => self.versions.push((source, version)),
        }
    }
}

fn position(at: usize) -> u32 {
    u32::try_from(at).expect("fewer than 2^32 keys are pending")
}

/// The first known end of each key tells how the stored life ended.
fn keep_ends<T>(replace: &mut Replace<T>, ends: Vec<Deleted<T>>) {
    if ends.is_empty() {
        return;
    }
    let known: HashSet<(ObjectKey, Uid)> = replace
        .superseded_deletes
        .iter()
        .map(|deleted| (deleted.key.clone(), deleted.uid.clone()))
        .collect();
    replace.superseded_deletes.extend(
        ends.into_iter()
            .filter(|deleted| !known.contains(&(deleted.key.clone(), deleted.uid.clone()))),
    );
}
