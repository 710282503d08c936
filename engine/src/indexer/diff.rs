//! What changed between two versions of one cache, in time proportional to what changed.
use super::table::{BUCKETS, CHUNKS_PER_SEGMENT, LANES, SegmentRef};
use super::view::View;
use crate::object::Cached;
use ahash::RandomState;
use hashbrown::HashTable;

/// The differences between two snapshots of one indexer: see [`View::diff`].
#[derive(Debug)]
pub struct Diff<T> {
    /// Objects that only the newer one has.
    pub added: Vec<Cached<T>>,
    /// Objects that both have, in different versions: (old, new).
    pub modified: Vec<(Cached<T>, Cached<T>)>,
    /// Objects that only the older one has.
    pub deleted: Vec<Cached<T>>,
}

/// Two views are of different indexers, so their difference means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the two snapshots are of different indexers")]
pub struct ForeignSnapshot;

impl<T> Diff<T> {
    fn new() -> Self {
        Self {
            added: Vec::new(),
            modified: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// True when nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.deleted.is_empty()
    }

    /// How many keys differ; a re-created object counts twice.
    #[must_use]
    pub fn len(&self) -> usize {
        self.added.len() + self.modified.len() + self.deleted.len()
    }
}

impl<T> View<T> {
    /// What changed from `older` to `self`: applied to the older one's objects, the differences
    /// give the newer one's. An object that was re-created (same key, other uid) is deleted and
    /// added. Given in the wrong order, the result is the way back.
    ///
    /// Time is proportional to what changed between the two, plus eight bytes read for about every
    /// thousand objects that did not.
    ///
    /// # Errors
    /// [`ForeignSnapshot`] when the two are of different indexers.
    pub fn diff(&self, older: &Self) -> Result<Diff<T>, ForeignSnapshot> {
        if self.indexer != older.indexer {
            return Err(ForeignSnapshot);
        }
        let mut lanes = LaneDiff::default();
        let (new, old) = (self.table.spine(), older.table.spine());
        for at in 0..new.len().max(old.len()) {
            lanes.segments(new.get(at), old.get(at));
        }
        Ok(lanes.pair(self.table.hasher()))
    }
}

/// Entries that are in a lane of one version and not in the same lane of the other.
struct LaneDiff<'a, T> {
    new: Vec<&'a Cached<T>>,
    old: Vec<&'a Cached<T>>,
}

impl<T> Default for LaneDiff<'_, T> {
    fn default() -> Self {
        Self {
            new: Vec::new(),
            old: Vec::new(),
        }
    }
}

type Segment<'a, T> = Option<&'a SegmentRef<Cached<T>>>;

impl<'a, T> LaneDiff<'a, T> {
    /// One writer makes all versions, one after the other, so the stamp of the last change says
    /// all: equal stamps are equal contents.
    fn segments(&mut self, new: Segment<'a, T>, old: Segment<'a, T>) {
        if new.map(SegmentRef::stamp) == old.map(SegmentRef::stamp) {
            return;
        }
        let chunk =
            |segment: Segment<'a, T>, within| segment.and_then(|s| s.segment().try_chunk(within));
        for within in 0..CHUNKS_PER_SEGMENT {
            let (new, old) = (chunk(new, within), chunk(old, within));
            if new.map(|(stamp, _)| stamp) == old.map(|(stamp, _)| stamp) {
                continue;
            }
            for bucket in 0..BUCKETS {
                for lane in 0..LANES {
                    let entry = |chunk: Option<(u64, &'a super::table::Chunk<Cached<T>>)>| {
                        chunk.and_then(|(_, chunk)| chunk.get(bucket, lane))
                    };
                    match (entry(new), entry(old)) {
                        (Some(new), Some(old)) if new.ptr_eq(old) => (),
                        (new, old) => {
                            self.new.extend(new);
                            self.old.extend(old);
                        }
                    }
                }
            }
        }
    }

    /// Pair by key, never by lane: a split moves an entry to another lane, and a lane may be used
    /// again for another key.
    fn pair(self, hasher: &RandomState) -> Diff<T> {
        let hash = |object: &Cached<T>| hasher.hash_one(object.key_ref());
        let mut old_by_key: HashTable<&Cached<T>> = HashTable::with_capacity(self.old.len());
        for old in self.old {
            old_by_key.insert_unique(hash(old), old, |old| hash(old));
        }
        let mut diff = Diff::new();
        for new in self.new {
            let same_key = old_by_key.find_entry(hash(new), |old| old.key() == new.key());
            let Ok(entry) = same_key else {
                diff.added.push(new.clone());
                continue;
            };
            let (old, _) = entry.remove();
            if old.ptr_eq(new) {
                continue;
            }
            if old.uid().may_equal(new.uid()) {
                diff.modified.push((old.clone(), new.clone()));
            } else {
                diff.deleted.push(old.clone());
                diff.added.push(new.clone());
            }
        }
        diff.deleted.extend(old_by_key.into_iter().cloned());
        diff
    }
}
