//! A versioned hash table: the one structure that objects and index values are stored in.
//!
//! # Layout
//! directory (hash prefix → chunk) → segment of 32 chunks → chunk of 8 buckets → bucket, which is
//! one cache line: 7 tags and 7 pointers. A look-up costs one line for the bucket and one for what
//! it points to; everything above is small and stays in the cache.
//!
//! # Versions
//! Everything below the directory is shared between the versions of a table through `Arc`s. A
//! change goes down through `Arc::make_mut`, so it copies exactly what another version still
//! shares, and nothing when no other does. Two tables that start equal and are given the same
//! [`Op`]s stay equal to the last lane: that is what lets a retired version catch up by replay.
//!
//! # Slots
//! A lane has a number ([`Slot`]) that postings refer to. It stays the same for as long as its
//! entry is stored, except when its chunk is split: then about half of the chunk's entries move,
//! and the caller is told which.
//!
//! # Growth
//! Extendible hashing: a full chunk is split in two by the next bit of the hash, and only the
//! directory (four bytes a chunk) doubles. No step touches more than one chunk's entries.
mod chunk;
mod iter;
mod segment;

use ahash::RandomState;
pub(crate) use chunk::{BUCKETS, Chunk, LANES};
pub(crate) use iter::Lanes;
use segment::Segment;
pub(crate) use segment::{CHUNKS_PER_SEGMENT, SegmentRef};
use std::hint::black_box;
use std::sync::Arc;

/// What a table holds: a shared pointer that knows the hash of its own key.
pub(crate) trait Lane: Clone {
    /// The hash of the key, always the same for the same key and state.
    fn hash(&self, hasher: &RandomState) -> u64;

    /// Read what a look-up or an exchange will read of the entry; the result means nothing.
    fn read_ahead(&self) -> u64;
}

/// Keys whose places are read ahead at a time. More would push each other out of the cache.
pub(crate) const READ_AHEAD: usize = 32;

/// The number of a lane: chunk, bucket and lane, packed so that the lanes of a chunk share all but
/// the lowest six bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    fn new(chunk: u32, bucket: usize, lane: usize) -> Self {
        debug_assert!(bucket < BUCKETS && lane < LANES);
        #[allow(clippy::cast_possible_truncation)] // Both are below eight.
        Self(chunk << 6 | (bucket as u32) << 3 | lane as u32)
    }

    /// The number of the chunk.
    #[inline]
    pub(crate) fn chunk(self) -> u32 {
        self.0 >> 6
    }

    /// The position inside the chunk, below 64.
    #[inline]
    pub(crate) fn within_chunk(self) -> u32 {
        self.0 & 63
    }

    #[inline]
    fn bucket(self) -> usize {
        (self.0 >> 3 & 7) as usize
    }

    #[inline]
    fn lane(self) -> usize {
        (self.0 & 7) as usize
    }
}

/// A physical change, as another version of the table replays it.
#[derive(Clone, Debug)]
pub(crate) enum Op<L> {
    /// A new key came in.
    Insert(u64, L),
    /// The entry in a slot was replaced by another of the same key.
    Replace(Slot, L),
    /// The entry in a slot, of this hash, was taken out.
    Remove(Slot, u64),
}

/// Entries a chunk holds before it is split: higher is denser but makes probes longer.
const CHUNK_LIMIT: u8 = 50;

pub(crate) struct Table<L> {
    hasher: RandomState,
    /// Chunk numbers by the first `depth` bits of the hash.
    directory: Arc<[u32]>,
    depth: u32,
    spine: Vec<SegmentRef<L>>,
    chunk_count: u32,
    len: usize,
}

impl<L> Clone for Table<L> {
    /// A shallow copy: shares everything below the spine.
    fn clone(&self) -> Self {
        Self {
            hasher: self.hasher.clone(),
            directory: self.directory.clone(),
            depth: self.depth,
            spine: self.spine.clone(),
            chunk_count: self.chunk_count,
            len: self.len,
        }
    }
}

impl<L: Lane> Table<L> {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            hasher,
            directory: Arc::from([0]),
            depth: 0,
            spine: vec![SegmentRef::new(Segment::with_first_chunk())],
            chunk_count: 1,
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Slots are numbered below this.
    pub(crate) fn slot_limit(&self) -> usize {
        self.chunk_count as usize * 64
    }

    pub(crate) fn hasher(&self) -> &RandomState {
        &self.hasher
    }

    pub(crate) fn spine(&self) -> &[SegmentRef<L>] {
        &self.spine
    }

    #[inline]
    fn chunk_of(&self, hash: u64) -> u32 {
        // Two shifts, since a shift by 64 (depth 0) is not defined.
        self.directory[(hash >> 1 >> (63 - self.depth)) as usize]
    }

    #[inline]
    fn chunk(&self, number: u32) -> &Chunk<L> {
        self.spine[number as usize / CHUNKS_PER_SEGMENT]
            .segment()
            .chunk(number as usize % CHUNKS_PER_SEGMENT)
    }

    /// The entry with this hash for which `is_it` holds, and its slot. Expected O(1).
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(&L) -> bool) -> Option<(Slot, &L)> {
        let number = self.chunk_of(hash);
        let (bucket, lane, entry) = self.chunk(number).find(hash, is_it)?;
        Some((Slot::new(number, bucket, lane), entry))
    }

    /// Read what look-ups of these hashes will read. The reads do not depend on each other, so that
    /// they take little more than the time of one; look-ups one after the other each wait.
    pub(crate) fn read_ahead(&self, hashes: &[u64]) {
        let buckets = hashes
            .iter()
            .map(|&hash| self.chunk(self.chunk_of(hash)).head(hash));
        black_box(buckets.fold(0, u64::wrapping_add));
        let entries = hashes
            .iter()
            .map(|&hash| self.chunk(self.chunk_of(hash)).likely(hash));
        black_box(entries.fold(0, |sum, entry| sum ^ entry.map_or(0, Lane::read_ahead)));
    }

    /// As [`Table::read_ahead`], of slots.
    fn read_slots_ahead(&self, slots: impl Iterator<Item = Slot> + Clone) {
        // A slot may be in a chunk that only replaying makes.
        let present = slots.filter(|slot| slot.chunk() < self.chunk_count);
        let entries = present.map(|slot| self.get(slot));
        black_box(entries.clone().flatten().count());
        black_box(entries.fold(0, |sum, entry| sum ^ entry.map_or(0, Lane::read_ahead)));
    }

    /// The entry in a slot.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<&L> {
        self.chunk(slot.chunk()).get(slot.bucket(), slot.lane())
    }

    /// Put in an entry whose key is not there yet. `moved(old, new)` is told of every entry that a
    /// split moves, before the new entry's slot is known. Amortised O(1).
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        entry: L,
        stamp: u64,
        mut moved: impl FnMut(Slot, Slot),
    ) -> Slot {
        let mut number = self.chunk_of(hash);
        while self.count_of(number) >= CHUNK_LIMIT {
            self.split(number, hash, stamp, &mut moved);
            number = self.chunk_of(hash);
        }
        self.len += 1;
        let (bucket, lane) = self.segment_mut(number, stamp).insert(
            number as usize % CHUNKS_PER_SEGMENT,
            hash,
            entry,
            stamp,
        );
        Slot::new(number, bucket, lane)
    }

    /// Exchange the entry in `slot` for another of the same key; returns the old one.
    pub(crate) fn replace(&mut self, slot: Slot, entry: L, stamp: u64) -> L {
        let within = slot.chunk() as usize % CHUNKS_PER_SEGMENT;
        self.segment_mut(slot.chunk(), stamp)
            .chunk_mut(within, stamp)
            .replace(slot.bucket(), slot.lane(), entry)
    }

    /// The entry in `slot`, to be changed in place: its key stays the same.
    pub(crate) fn entry_mut(&mut self, slot: Slot, stamp: u64) -> &mut L {
        let within = slot.chunk() as usize % CHUNKS_PER_SEGMENT;
        self.segment_mut(slot.chunk(), stamp)
            .chunk_mut(within, stamp)
            .entry_mut(slot.bucket(), slot.lane())
    }

    /// Take the entry out of `slot`; `hash` is its key's.
    pub(crate) fn remove(&mut self, slot: Slot, hash: u64, stamp: u64) -> L {
        self.len -= 1;
        let within = slot.chunk() as usize % CHUNKS_PER_SEGMENT;
        self.segment_mut(slot.chunk(), stamp).remove(
            within,
            hash,
            slot.bucket(),
            slot.lane(),
            stamp,
        )
    }

    /// Do what was done to another version of this table.
    pub(crate) fn replay(&mut self, op: Op<L>, stamp: u64) {
        match op {
            Op::Insert(hash, entry) => {
                self.insert(hash, entry, stamp, |_, _| ());
            }
            Op::Replace(slot, entry) => {
                self.replace(slot, entry, stamp);
            }
            Op::Remove(slot, hash) => {
                self.remove(slot, hash, stamp);
            }
        }
    }

    /// Read what replaying `ops` will read.
    pub(crate) fn read_ops_ahead(&self, ops: &[Op<L>]) {
        if ops.len() > 1 {
            self.read_slots_ahead(ops.iter().filter_map(|op| match op {
                Op::Replace(slot, _) => Some(*slot),
                Op::Insert(..) | Op::Remove(..) => None,
            }));
        }
    }

    /// All entries, in slot order.
    pub(crate) fn lanes(&self) -> Lanes<'_, L> {
        Lanes::new(&self.spine, self.len)
    }

    /// All entries with their slots, in slot order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Slot, &L)> {
        (0..self.chunk_count).flat_map(move |number| {
            let chunk = self.chunk(number);
            (0..BUCKETS).flat_map(move |bucket| {
                let lanes = chunk.lanes(bucket).iter().enumerate();
                lanes.filter_map(move |(lane, entry)| {
                    Some((Slot::new(number, bucket, lane), entry.as_ref()?))
                })
            })
        })
    }

    /// Free up to `chunks` chunks of a table that is no longer used; true when none is left.
    pub(crate) fn dismantle(&mut self, chunks: usize) -> bool {
        for _ in 0..chunks {
            let Some(last) = self.spine.last_mut() else {
                return true;
            };
            if !last.drop_one_chunk() {
                self.spine.pop();
            }
        }
        self.spine.is_empty()
    }

    fn count_of(&self, number: u32) -> u8 {
        self.spine[number as usize / CHUNKS_PER_SEGMENT]
            .segment()
            .count(number as usize % CHUNKS_PER_SEGMENT)
    }

    fn segment_mut(&mut self, number: u32, stamp: u64) -> &mut Segment<L> {
        self.spine[number as usize / CHUNKS_PER_SEGMENT].segment_mut(stamp)
    }

    /// Split the chunk that `hash` belongs to by the next bit of the hash.
    fn split(&mut self, number: u32, hash: u64, stamp: u64, moved: &mut impl FnMut(Slot, Slot)) {
        let within = number as usize % CHUNKS_PER_SEGMENT;
        let depth = self.spine[number as usize / CHUNKS_PER_SEGMENT]
            .segment()
            .depth(within);
        if depth == self.depth {
            self.double_directory();
        }
        let sibling = self.push_chunk(depth + 1, stamp);
        let hasher = self.hasher.clone();
        let moving = self
            .segment_mut(number, stamp)
            .split_off(within, depth, stamp, &hasher);
        for (hash, bucket, lane, entry) in moving {
            let (new_bucket, new_lane) = self.segment_mut(sibling, stamp).insert(
                sibling as usize % CHUNKS_PER_SEGMENT,
                hash,
                entry,
                stamp,
            );
            moved(
                Slot::new(number, bucket, lane),
                Slot::new(sibling, new_bucket, new_lane),
            );
        }
        self.point_directory(hash, sibling, depth);
    }

    fn double_directory(&mut self) {
        self.directory = self.directory.iter().flat_map(|&n| [n, n]).collect();
        self.depth += 1;
    }

    fn push_chunk(&mut self, depth: u32, stamp: u64) -> u32 {
        let number = self.chunk_count;
        self.chunk_count += 1;
        if (number as usize).is_multiple_of(CHUNKS_PER_SEGMENT) {
            self.spine.push(SegmentRef::new(Segment::empty()));
        }
        self.segment_mut(number, stamp).put_empty(
            number as usize % CHUNKS_PER_SEGMENT,
            depth,
            stamp,
        );
        number
    }

    /// Of the directory entries of the chunk of `hash` at `depth`, the upper half now names `sibling`.
    fn point_directory(&mut self, hash: u64, sibling: u32, depth: u32) {
        // The entries of one chunk are adjacent and aligned to their number.
        let span = 1_usize << (self.depth - depth);
        let first = (hash >> 1 >> (63 - self.depth)) as usize / span * span;
        Arc::make_mut(&mut self.directory)[first + span / 2..first + span].fill(sibling);
    }
}

#[cfg(all(test, not(informant_loom)))]
mod tests;
