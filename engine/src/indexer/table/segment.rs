//! A segment: thirty-two chunks, each stamped with the version that changed it last.
use super::Lane;
use super::chunk::Chunk;
use std::sync::Arc;

pub(crate) const CHUNKS_PER_SEGMENT: usize = 32;

/// What a table keeps of a segment: a pointer, and beside it the newest stamp inside, so that a
/// diff passes over an unchanged segment without touching it.
pub(crate) struct SegmentRef<L> {
    segment: Arc<Segment<L>>,
    stamp: u64,
}

pub(crate) struct Segment<L> {
    chunks: [Option<Arc<Chunk<L>>>; CHUNKS_PER_SEGMENT],
    stamps: [u64; CHUNKS_PER_SEGMENT],
    depths: [u8; CHUNKS_PER_SEGMENT],
    counts: [u8; CHUNKS_PER_SEGMENT],
}

impl<L> Clone for SegmentRef<L> {
    fn clone(&self) -> Self {
        Self {
            segment: self.segment.clone(),
            stamp: self.stamp,
        }
    }
}

impl<L> Clone for Segment<L> {
    fn clone(&self) -> Self {
        Self {
            chunks: self.chunks.clone(),
            stamps: self.stamps,
            depths: self.depths,
            counts: self.counts,
        }
    }
}

impl<L> SegmentRef<L> {
    pub(super) fn new(segment: Segment<L>) -> Self {
        Self {
            segment: Arc::new(segment),
            stamp: 0,
        }
    }

    #[inline]
    pub(crate) fn segment(&self) -> &Segment<L> {
        &self.segment
    }

    /// The version that last changed anything inside.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    pub(super) fn segment_mut(&mut self, stamp: u64) -> &mut Segment<L> {
        self.stamp = stamp;
        Arc::make_mut(&mut self.segment)
    }

    /// Free one chunk of a segment that is no longer used; false when there is nothing to free:
    /// the segment is empty, or another version still holds it.
    pub(super) fn drop_one_chunk(&mut self) -> bool {
        Arc::get_mut(&mut self.segment)
            .and_then(|segment| segment.chunks.iter_mut().rev().find_map(Option::take))
            .is_some()
    }
}

impl<L> Segment<L> {
    pub(super) fn empty() -> Self {
        Self {
            chunks: [const { None }; CHUNKS_PER_SEGMENT],
            stamps: [0; CHUNKS_PER_SEGMENT],
            depths: [0; CHUNKS_PER_SEGMENT],
            counts: [0; CHUNKS_PER_SEGMENT],
        }
    }

    pub(super) fn with_first_chunk() -> Self {
        let mut segment = Self::empty();
        segment.put_empty(0, 0, 0);
        segment
    }

    #[allow(clippy::cast_possible_truncation)] // A depth is below 64.
    pub(super) fn put_empty(&mut self, within: usize, depth: u32, stamp: u64) {
        self.chunks[within] = Some(Arc::new(Chunk::new()));
        self.stamps[within] = stamp;
        self.depths[within] = depth as u8;
        self.counts[within] = 0;
    }

    #[inline]
    pub(crate) fn chunk(&self, within: usize) -> &Chunk<L> {
        self.chunks[within]
            .as_deref()
            .expect("a chunk below the chunk count is there")
    }

    /// The chunks that there are, with their place in the segment.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (usize, &Chunk<L>)> {
        self.chunks
            .iter()
            .enumerate()
            .map_while(|(within, chunk)| Some((within, chunk.as_deref()?)))
    }

    /// A chunk, if there is one here, and the version that last changed it.
    pub(crate) fn try_chunk(&self, within: usize) -> Option<(u64, &Chunk<L>)> {
        Some((self.stamps[within], self.chunks[within].as_deref()?))
    }

    pub(super) fn count(&self, within: usize) -> u8 {
        self.counts[within]
    }

    pub(super) fn depth(&self, within: usize) -> u32 {
        u32::from(self.depths[within])
    }
}

impl<L: Lane> Segment<L> {
    pub(super) fn chunk_mut(&mut self, within: usize, stamp: u64) -> &mut Chunk<L> {
        self.stamps[within] = stamp;
        let chunk = self.chunks[within]
            .as_mut()
            .expect("a chunk below the chunk count is there");
        if Arc::strong_count(chunk) > 1 {
            // A copy counts every entry up. Read them first, which costs far less than counting one
            // after the other up while each is far away.
            chunk.read_ahead();
        }
        Arc::make_mut(chunk)
    }

    pub(super) fn insert(
        &mut self,
        within: usize,
        hash: u64,
        entry: L,
        stamp: u64,
    ) -> (usize, usize) {
        self.counts[within] += 1;
        self.chunk_mut(within, stamp).insert(hash, entry)
    }

    pub(super) fn remove(
        &mut self,
        within: usize,
        hash: u64,
        bucket: usize,
        lane: usize,
        stamp: u64,
    ) -> L {
        self.counts[within] -= 1;
        self.chunk_mut(within, stamp).remove(hash, bucket, lane)
    }

    /// Take out what belongs to the sibling of a chunk that is split at `depth`.
    #[allow(clippy::cast_possible_truncation)] // At most 56 entries are in a chunk.
    pub(super) fn split_off(
        &mut self,
        within: usize,
        depth: u32,
        stamp: u64,
        hasher: &ahash::RandomState,
    ) -> Vec<(u64, usize, usize, L)> {
        let moving = self.chunk_mut(within, stamp).split_off(depth, hasher);
        self.depths[within] += 1;
        self.counts[within] -= moving.len() as u8;
        moving
    }
}
