//! A bit for each slot: what a relist has seen, and what it has still to index.
use super::table::Slot;

pub(super) struct Marks {
    /// One word a chunk, whose lanes are numbered below 64.
    chunks: Vec<u64>,
}

impl Marks {
    pub(super) fn new(slot_limit: usize) -> Self {
        Self {
            chunks: vec![0; slot_limit.div_ceil(64)],
        }
    }

    pub(super) fn mark(&mut self, slot: Slot) {
        let chunk = slot.chunk() as usize;
        if chunk >= self.chunks.len() {
            self.chunks.resize(chunk + 1, 0);
        }
        self.chunks[chunk] |= 1 << slot.within_chunk();
    }

    pub(super) fn contains(&self, slot: Slot) -> bool {
        self.chunks
            .get(slot.chunk() as usize)
            .is_some_and(|word| word >> slot.within_chunk() & 1 == 1)
    }

    /// What was in `from` is in `to` now.
    pub(super) fn moved(&mut self, from: Slot, to: Slot) {
        if self.contains(from) {
            self.chunks[from.chunk() as usize] &= !(1 << from.within_chunk());
            self.mark(to);
        }
    }

    /// The marked slots, ascending.
    pub(super) fn slots(self) -> impl Iterator<Item = Slot> {
        let chunks = self.chunks.into_iter().zip(0_u32..);
        chunks.flat_map(|(word, chunk)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| Slot(chunk << 6 | bit))
        })
    }
}
