//! A chunk: eight buckets of seven lanes, each bucket one cache line.
use super::Lane;
use std::hint::black_box;

pub(crate) const BUCKETS: usize = 8;
pub(crate) const LANES: usize = 7;

/// One cache line: seven tags, the count of entries that passed by, seven lanes.
#[derive(Clone)]
#[repr(C, align(64))]
struct Bucket<L> {
    /// Bytes 0 to 6: a tag for each lane, zero when it is empty. Byte 7: how many entries have
    /// this bucket or an earlier one as their home and were put behind it because it was full.
    head: [u8; 8],
    lanes: [Option<L>; LANES],
}

#[derive(Clone)]
pub(crate) struct Chunk<L> {
    buckets: [Bucket<L>; BUCKETS],
}

/// The bucket in which an entry of this hash belongs: low bits, since the high ones pick the chunk.
#[inline]
fn home(hash: u64) -> usize {
    (hash & 7) as usize
}

/// Eight further bits, never zero, since zero marks an empty lane.
#[inline]
#[allow(clippy::cast_possible_truncation)] // Eight bits are wanted.
fn tag(hash: u64) -> u8 {
    ((hash >> 3) as u8).max(1)
}

impl<L> Bucket<L> {
    const fn new() -> Self {
        Self {
            head: [0; 8],
            lanes: [const { None }; LANES],
        }
    }

    /// A mask with the high bit of each byte that equals `tag`, and perhaps of bytes above one
    /// that does: a candidate is always compared.
    #[inline]
    fn candidates(&self, tag: u8) -> u64 {
        const ONES: u64 = 0x0001_0101_0101_0101;
        const HIGHS: u64 = 0x0080_8080_8080_8080;
        let differences = u64::from_le_bytes(self.head) ^ (ONES * u64::from(tag));
        differences.wrapping_sub(ONES) & !differences & HIGHS
    }

    #[inline]
    fn passed(&self) -> u8 {
        self.head[7]
    }

    fn free_lane(&self) -> Option<usize> {
        self.head[..LANES].iter().position(|&tag| tag == 0)
    }
}

impl<L> Chunk<L> {
    pub(crate) const fn new() -> Self {
        Self {
            buckets: [const { Bucket::new() }; BUCKETS],
        }
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(&L) -> bool) -> Option<(usize, usize, &L)> {
        let (home, tag) = (home(hash), tag(hash));
        for step in 0..BUCKETS {
            let at = (home + step) % BUCKETS;
            let bucket = &self.buckets[at];
            let mut candidates = bucket.candidates(tag);
            while candidates != 0 {
                let lane = candidates.trailing_zeros() as usize / 8;
                if let Some(entry) = &bucket.lanes[lane]
                    && is_it(entry)
                {
                    return Some((at, lane, entry));
                }
                candidates &= candidates - 1;
            }
            if bucket.passed() == 0 {
                return None;
            }
        }
        None
    }

    /// The head of the bucket in which an entry of this hash belongs.
    #[inline]
    pub(crate) fn head(&self, hash: u64) -> u64 {
        u64::from_le_bytes(self.buckets[home(hash)].head)
    }

    /// The first entry that may be the one of this hash; the one that is, nearly always.
    #[inline]
    pub(crate) fn likely(&self, hash: u64) -> Option<&L> {
        let bucket = &self.buckets[home(hash)];
        let lane = bucket.candidates(tag(hash)).trailing_zeros() as usize / 8;
        bucket.lanes.get(lane)?.as_ref()
    }

    /// Read what counting every entry up or down will read.
    pub(crate) fn read_ahead(&self)
    where
        L: Lane,
    {
        let lanes = self.buckets.iter().flat_map(|bucket| &bucket.lanes);
        black_box(lanes.flatten().fold(0, |sum, lane| sum ^ lane.read_ahead()));
    }

    #[inline]
    pub(crate) fn get(&self, bucket: usize, lane: usize) -> Option<&L> {
        self.buckets[bucket].lanes[lane].as_ref()
    }

    /// The lanes of one bucket that hold something.
    pub(crate) fn lanes(&self, bucket: usize) -> &[Option<L>; LANES] {
        &self.buckets[bucket].lanes
    }

    /// Put in an entry. The caller has made sure that a lane is free.
    pub(crate) fn insert(&mut self, hash: u64, entry: L) -> (usize, usize) {
        let home = home(hash);
        for step in 0..BUCKETS {
            let at = (home + step) % BUCKETS;
            let bucket = &mut self.buckets[at];
            if let Some(lane) = bucket.free_lane() {
                bucket.head[lane] = tag(hash);
                bucket.lanes[lane] = Some(entry);
                return (at, lane);
            }
            // At most 56 entries are in a chunk, so the count cannot overflow.
            bucket.head[7] += 1;
        }
        unreachable!("a chunk is split before it is full")
    }

    pub(crate) fn replace(&mut self, bucket: usize, lane: usize, entry: L) -> L {
        self.buckets[bucket].lanes[lane]
            .replace(entry)
            .expect("only a stored entry is replaced")
    }

    pub(crate) fn entry_mut(&mut self, bucket: usize, lane: usize) -> &mut L {
        self.buckets[bucket].lanes[lane]
            .as_mut()
            .expect("only a stored entry is changed")
    }

    pub(crate) fn remove(&mut self, hash: u64, bucket: usize, lane: usize) -> L {
        // Undo the marks that the insert left on the full buckets before this one.
        let mut at = home(hash);
        while at != bucket {
            self.buckets[at].head[7] -= 1;
            at = (at + 1) % BUCKETS;
        }
        let bucket = &mut self.buckets[bucket];
        bucket.head[lane] = 0;
        bucket.lanes[lane]
            .take()
            .expect("only a stored entry is removed")
    }

    /// Take out every entry whose hash has the bit below the first `depth` ones set.
    pub(crate) fn split_off(
        &mut self,
        depth: u32,
        hasher: &ahash::RandomState,
    ) -> Vec<(u64, usize, usize, L)>
    where
        L: Lane,
    {
        let mut moving = Vec::new();
        for bucket in 0..BUCKETS {
            for lane in 0..LANES {
                let Some(entry) = &self.buckets[bucket].lanes[lane] else {
                    continue;
                };
                let hash = entry.hash(hasher);
                if hash >> (63 - depth) & 1 == 1 {
                    let entry = self.remove(hash, bucket, lane);
                    moving.push((hash, bucket, lane, entry));
                }
            }
        }
        moving
    }
}
