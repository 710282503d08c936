//! Iteration over all lanes of a table.
use super::chunk::{BUCKETS, Chunk, LANES};
use super::segment::{CHUNKS_PER_SEGMENT, SegmentRef};

/// All entries of a table, in slot order.
pub(crate) struct Lanes<'a, L> {
    spine: &'a [SegmentRef<L>],
    /// The next place to look at, counted in buckets over all chunks.
    next_bucket: usize,
    current: std::slice::Iter<'a, Option<L>>,
    remaining: usize,
}

impl<'a, L> Lanes<'a, L> {
    pub(super) fn new(spine: &'a [SegmentRef<L>], len: usize) -> Self {
        Self {
            spine,
            next_bucket: 0,
            current: [].iter(),
            remaining: len,
        }
    }

    fn chunk(&self, number: usize) -> &'a Chunk<L> {
        self.spine[number / CHUNKS_PER_SEGMENT]
            .segment()
            .chunk(number % CHUNKS_PER_SEGMENT)
    }
}

impl<'a, L> Iterator for Lanes<'a, L> {
    type Item = &'a L;

    #[inline]
    fn next(&mut self) -> Option<&'a L> {
        loop {
            if let Some(entry) = self.current.by_ref().flatten().next() {
                self.remaining -= 1;
                return Some(entry);
            }
            if self.remaining == 0 {
                return None;
            }
            let bucket = self.next_bucket;
            self.next_bucket += 1;
            self.current = self.chunk(bucket / BUCKETS).lanes(bucket % BUCKETS).iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }

    /// Internal iteration without the bookkeeping of `next`: what `for_each`, `count` over filters
    /// and `collect` run on.
    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, start: B, mut f: F) -> B {
        let mut folded = start;
        for entry in self.current.by_ref().flatten() {
            folded = f(folded, entry);
        }
        let first = self.next_bucket;
        let mut number = first / BUCKETS;
        let mut bucket = first % BUCKETS;
        while number / CHUNKS_PER_SEGMENT < self.spine.len() {
            let segment = self.spine[number / CHUNKS_PER_SEGMENT].segment();
            for (_, chunk) in segment.chunks().skip(number % CHUNKS_PER_SEGMENT) {
                while bucket < BUCKETS {
                    let lanes: &[Option<L>; LANES] = chunk.lanes(bucket);
                    for entry in lanes.iter().flatten() {
                        folded = f(folded, entry);
                    }
                    bucket += 1;
                }
                bucket = 0;
            }
            number = (number / CHUNKS_PER_SEGMENT + 1) * CHUNKS_PER_SEGMENT;
        }
        folded
    }
}

impl<L> ExactSizeIterator for Lanes<'_, L> {}
