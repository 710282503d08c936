//! What is pending between two drains: inputs by key, with relists in their place.
use super::compaction::{Compaction, Pushed, push};
use super::superseded::{Ends, Relist, Superfluous};
use super::{Batch, Delta, KeyDeltas, QueueMode, Replace, ResyncTargets, SourceId, Step};
use crate::object::{ObjectKey, ResourceVersion, Versioning};
use crate::source::BadObject;
use ahash::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;

/// Unusable objects of unknown key that are kept for the quarantine; all of them are counted.
const UNKNOWN_BAD_LIMIT: usize = 128;

/// A part of what was pending, in the order of the parts.
pub(super) enum Part<T> {
    /// Changes by key.
    Changes(Vec<KeyDeltas<T>>),
    Replace {
        replace: Replace<T>,
        /// How lives ended that the relist superseded.
        ends: Ends<T>,
    },
    Bad(SourceId, BadObject),
    Resync(ResyncTargets),
}

/// The changes since the last relist.
struct Segment<T> {
    groups: Vec<KeyDeltas<T>>,
    /// Beside the groups, so that a growing table need not look at any object.
    hashes: Vec<u64>,
    /// Positions in `groups` by key: the newest group of each.
    by_key: HashTable<u32>,
    /// Unusable objects. They come after the groups: a good delta that follows one ends it.
    bad: Vec<(SourceId, BadObject)>,
}

/// How far a source has come.
struct Reached {
    source: SourceId,
    version: ResourceVersion,
    /// It was heard of since the last drain.
    contributed: bool,
}

impl<T> Part<T> {
    fn copy(&self) -> Self {
        match self {
            Self::Changes(groups) => Self::Changes(groups.clone()),
            Self::Replace { replace, ends } => Self::Replace {
                replace: replace.clone(),
                ends: ends.clone(),
            },
            Self::Bad(source, object) => Self::Bad(*source, object.clone()),
            Self::Resync(targets) => Self::Resync(targets.clone()),
        }
    }
}

/// Everything that was pushed since the last drain.
pub(super) struct Pending<T> {
    mode: QueueMode,
    versioning: Versioning,
    /// What came before the open segment.
    earlier: Vec<Part<T>>,
    open: Segment<T>,
    resyncs: Vec<ResyncTargets>,
    reached: SmallVec<[Reached; 1]>,
    inputs: usize,
    coalesced: u64,
    keys: usize,
}

/// What a drain took out.
pub(super) struct Taken<T> {
    pub(super) parts: Vec<Part<T>>,
    pub(super) versions: SmallVec<[(SourceId, ResourceVersion); 1]>,
    pub(super) inputs: usize,
}

/// The hash by which a key is found here.
pub(super) fn hash_of(hasher: &RandomState, key: &ObjectKey) -> u64 {
    hasher.hash_one(key)
}

impl<T> Segment<T> {
    fn new(by_key: HashTable<u32>) -> Self {
        Self {
            groups: Vec::new(),
            hashes: Vec::new(),
            by_key,
            bad: Vec::new(),
        }
    }

    fn find(&self, hash: u64, key: &ObjectKey) -> Option<usize> {
        let same = |&at: &u32| {
            let at = at as usize;
            self.hashes[at] == hash && self.groups[at].deltas[0].key() == key
        };
        self.by_key.find(hash, same).map(|&at| at as usize)
    }

    /// Begin a group: the newest one of its key from now on.
    fn begin(&mut self, hash: u64, source: SourceId, delta: Delta<T>, known: Option<usize>) {
        let at = position(self.groups.len());
        let Self { hashes, by_key, .. } = self;
        let of_older =
            known.and_then(|known| by_key.find_mut(hash, |&other| other as usize == known));
        match of_older {
            Some(slot) => *slot = at,
            None => {
                by_key.insert_unique(hash, at, |&at| hashes[at as usize]);
            }
        }
        self.append(hash, source, delta);
    }

    fn append(&mut self, hash: u64, source: SourceId, delta: Delta<T>) {
        self.hashes.push(hash);
        self.groups.push(KeyDeltas {
            source,
            deltas: smallvec::smallvec![delta],
        });
    }

    fn into_parts(self, parts: &mut Vec<Part<T>>) {
        let Self { groups, bad, .. } = self;
        if !groups.is_empty() {
            parts.push(Part::Changes(groups));
        }
        parts.extend(bad.into_iter().map(|(source, bad)| Part::Bad(source, bad)));
    }
}

impl<T> Pending<T> {
    pub(super) fn new(mode: QueueMode, versioning: Versioning) -> Self {
        Self {
            mode,
            versioning,
            earlier: Vec::new(),
            open: Segment::new(HashTable::new()),
            resyncs: Vec::new(),
            reached: SmallVec::new(),
            inputs: 0,
            coalesced: 0,
            keys: 0,
        }
    }

    /// Keys that wait (inputs, where every input stands for itself), not counting those inside a
    /// relist.
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    /// True when a drain would give nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.inputs == 0
    }

    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(super) fn coalesced(&self) -> u64 {
        self.coalesced
    }

    /// True when another delta of the key takes no further place.
    pub(super) fn has_key(&self, hash: u64, key: &ObjectKey) -> bool {
        self.mode == QueueMode::Coalescing && self.open.find(hash, key).is_some()
    }

    /// Queue a delta. What it makes superfluous comes back, to be dropped outside the lock.
    pub(super) fn push(
        &mut self,
        source: SourceId,
        hash: u64,
        delta: Delta<T>,
        compaction: Compaction,
    ) -> Option<Delta<T>> {
        self.inputs += 1;
        self.reach(source, delta.resource_version(), false);
        if self.mode == QueueMode::Ordered {
            self.keys += 1;
            self.open.append(hash, source, delta);
            return None;
        }
        self.release(&delta);
        let known = self.open.find(hash, delta.key());
        if let Some(at) = known {
            let group = &mut self.open.groups[at];
            if group.source == source {
                return match push(&mut group.deltas, delta, compaction, self.versioning) {
                    Pushed::Kept => None,
                    Pushed::Merged(superfluous) => {
                        self.coalesced += 1;
                        Some(superfluous)
                    }
                };
            }
            // Another source: its deltas come after, in a group of their own.
        }
        self.keys += 1;
        self.open.begin(hash, source, delta, known);
        None
    }

    /// The key has a good state again, or is gone: what was bad about it is over, unless that is
    /// newer.
    fn release(&mut self, good: &Delta<T>) {
        let versioning = self.versioning;
        self.open.bad.retain(|(_, bad)| {
            bad.key.as_ref() != Some(good.key())
                || good
                    .resource_version()
                    .is_older_than(&bad.resource_version, versioning)
        });
    }

    pub(super) fn bad(&mut self, source: SourceId, object: BadObject) {
        self.inputs += 1;
        self.reach(source, &object.resource_version, false);
        if self.mode == QueueMode::Ordered {
            self.close();
            self.earlier.push(Part::Bad(source, object));
            return;
        }
        let bad = &mut self.open.bad;
        if let Some(key) = &object.key {
            let known = bad
                .iter()
                .position(|(_, other)| other.key.as_ref() == Some(key));
            if let Some(at) = known {
                let newer = &bad[at].1.resource_version;
                if !object
                    .resource_version
                    .is_older_than(newer, self.versioning)
                {
                    bad[at] = (source, object);
                }
                return;
            }
        } else if bad.iter().filter(|(_, other)| other.key.is_none()).count() == UNKNOWN_BAD_LIMIT {
            return;
        }
        bad.push((source, object));
    }

    pub(super) fn bookmark(&mut self, source: SourceId, version: &ResourceVersion) {
        self.inputs += 1;
        self.reach(source, version, false);
    }

    pub(super) fn resync(&mut self, targets: ResyncTargets) {
        self.inputs += 1;
        if self.mode == QueueMode::Ordered {
            self.close();
            self.earlier.push(Part::Resync(targets));
        } else if !self.resyncs.contains(&targets) {
            // It covers what is stored once everything before it is applied, and a key that changes
            // after it is announced by its change: its place is the end.
            self.resyncs.push(targets);
        }
    }

    /// A relist. What its source queued before it is superseded, where not every delta is to be
    /// kept. What it makes superfluous comes back, to be dropped outside the lock.
    pub(super) fn replace(
        &mut self,
        replace: Replace<T>,
        compaction: Compaction,
    ) -> Superfluous<T> {
        self.inputs += 1;
        let version = replace.resource_version.clone();
        // A list that is older than what its source said before is no authority over that. (The
        // reflector refuses such lists.)
        let reached = self.reached.iter().find(|r| r.source == replace.source);
        let goes_back = !replace.reset
            && reached.is_some_and(|r| version.is_older_than(&r.version, self.versioning));
        self.reach(replace.source, &version, replace.reset);
        self.close();
        let mut relist = Relist::new(replace);
        let keep_all = self.mode == QueueMode::Ordered || compaction == Compaction::KeepAll;
        if relist.is_reset() || !(keep_all || goes_back) {
            self.earlier = relist.supersede(std::mem::take(&mut self.earlier));
        } else if let Some(last) = self.earlier.pop() {
            self.earlier.extend(relist.supersede_last(last, goes_back));
        }
        self.keys = self.keys + relist.kept_keys - relist.superseded_keys;
        self.coalesced += relist.superseded_inputs;
        let (part, superfluous) = relist.finish();
        self.earlier.push(part);
        superfluous
    }

    fn close(&mut self) {
        // What is closed is not looked up any more; its table serves the next segment, unless it is
        // left from a much larger one and would cost more to clear than to grow.
        let mut by_key = std::mem::take(&mut self.open.by_key);
        if by_key.capacity() > 1024 + 8 * by_key.len() {
            by_key = HashTable::new();
        }
        by_key.clear();
        let open = std::mem::replace(&mut self.open, Segment::new(by_key));
        open.into_parts(&mut self.earlier);
    }

    /// Take everything. What is left is empty, and how far the sources have come stays known.
    pub(super) fn take(&mut self) -> Taken<T> {
        self.close();
        let mut parts = std::mem::take(&mut self.earlier);
        parts.extend(self.resyncs.drain(..).map(Part::Resync));
        let mut versions = SmallVec::new();
        for reached in &mut self.reached {
            if std::mem::take(&mut reached.contributed) {
                versions.push((reached.source, reached.version.clone()));
            }
        }
        self.keys = 0;
        Taken {
            parts,
            versions,
            inputs: std::mem::take(&mut self.inputs),
        }
    }

    /// What [`Pending::take`] would give; nothing is taken.
    pub(super) fn copy(&self) -> Taken<T> {
        let open = Segment {
            groups: self.open.groups.clone(),
            bad: self.open.bad.clone(),
            ..Segment::new(HashTable::new())
        };
        let mut parts: Vec<_> = self.earlier.iter().map(Part::copy).collect();
        open.into_parts(&mut parts);
        parts.extend(self.resyncs.iter().cloned().map(Part::Resync));
        let contributed = self.reached.iter().filter(|reached| reached.contributed);
        Taken {
            parts,
            versions: contributed
                .map(|reached| (reached.source, reached.version.clone()))
                .collect(),
            inputs: self.inputs,
        }
    }

    /// The source has come this far: never back, except in a reset, so that how far a batch comes
    /// does not depend on where one ends. An input without a version says nothing about that.
    fn reach(&mut self, source: SourceId, version: &ResourceVersion, reset: bool) {
        if version.is_empty() {
            return;
        }
        let known = self.reached.iter_mut().find(|known| known.source == source);
        let Some(known) = known else {
            self.reached.push(Reached {
                source,
                version: version.clone(),
                contributed: true,
            });
            return;
        };
        known.contributed = true;
        if reset || !version.is_older_than(&known.version, self.versioning) {
            known.version.clone_from(version);
        }
    }
}

impl<T> Taken<T> {
    /// What the indexer takes.
    pub(super) fn into_batch(self) -> Batch<T> {
        let mut steps = Vec::with_capacity(self.parts.len());
        for part in self.parts {
            steps.push(match part {
                Part::Changes(groups) => Step::Changes(groups),
                Part::Replace { mut replace, ends } => {
                    replace.superseded_deletes = ends.into_deletes();
                    Step::Replace(replace)
                }
                Part::Bad(source, object) => Step::Bad {
                    source,
                    object,
                    deleted: false,
                },
                Part::Resync(targets) => Step::Resync(targets),
            });
        }
        Batch {
            steps,
            versions: self.versions,
            inputs: self.inputs,
        }
    }
}

fn position(at: usize) -> u32 {
    u32::try_from(at).expect("fewer than 2^32 keys are pending")
}
