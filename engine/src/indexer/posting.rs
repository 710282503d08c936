//! Postings: the slots of the objects that have one value, sorted, in shared blocks.
use super::table::Slot;
use std::sync::Arc;

/// Slots a block holds before it is cut in two.
const BLOCK_LIMIT: usize = 512;

/// A sorted set of slots. Cloning it shares its blocks; changing it copies the block that another
/// version still shares, which is a plain copy of numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Posting {
    /// Never empty blocks, ascending.
    blocks: Vec<Arc<Vec<Slot>>>,
    len: usize,
}

impl Posting {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Add a slot; false when it was there. O(log blocks + block).
    pub(crate) fn insert(&mut self, slot: Slot) -> bool {
        let at = self.block_of(slot);
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(Arc::new(vec![slot]));
            self.len = 1;
            return true;
        };
        let Err(place) = block.binary_search(&slot) else {
            return false;
        };
        if place == BLOCK_LIMIT {
            // Slots that arrive in order fill their blocks to the brim.
            self.blocks.insert(at + 1, Arc::new(vec![slot]));
            self.len += 1;
            return true;
        }
        let block = Arc::make_mut(block);
        if block.len() == block.capacity() {
            // Not twice as much: there are many postings, and most have found their size.
            block.reserve_exact((block.len() / 8).max(4));
        }
        block.insert(place, slot);
        if block.len() > BLOCK_LIMIT {
            let upper = block.split_off(block.len() / 2);
            block.shrink_to_fit();
            self.blocks.insert(at + 1, Arc::new(upper));
        }
        self.len += 1;
        true
    }

    /// Take a slot out; false when it was not there. O(log blocks + block).
    pub(crate) fn remove(&mut self, slot: Slot) -> bool {
        let at = self.block_of(slot);
        let Some(block) = self.blocks.get_mut(at) else {
            return false;
        };
        let Ok(place) = block.binary_search(&slot) else {
            return false;
        };
        if block.len() == 1 {
            self.blocks.remove(at);
        } else {
            let block = Arc::make_mut(block);
            block.remove(place);
            // A block that has become small must not keep the memory of its best days.
            if block.len() < block.capacity() / 4 {
                block.shrink_to_fit();
            }
        }
        self.len -= 1;
        true
    }

    /// The slots, ascending.
    pub(crate) fn iter(&self) -> SlotIter<'_> {
        SlotIter {
            blocks: self.blocks.iter(),
            current: [].iter(),
            remaining: self.len,
        }
    }

    /// For questions about slots that are asked in ascending order.
    pub(crate) fn seeker(&self) -> Seeker<'_> {
        Seeker {
            blocks: &self.blocks,
            within: 0,
        }
    }

    /// The block in which a slot is or belongs: the last one that does not begin after it.
    fn block_of(&self, slot: Slot) -> usize {
        // A relist adds slots in ascending order.
        if let Some(last) = self.blocks.last()
            && last[0] <= slot
        {
            return self.blocks.len() - 1;
        }
        self.blocks
            .partition_point(|block| block[0] <= slot)
            .saturating_sub(1)
    }
}

/// Answers questions about ascending slots by moving on, never back.
pub(crate) struct Seeker<'a> {
    /// The block that was reached, and those behind it.
    blocks: &'a [Arc<Vec<Slot>>],
    /// Slots of the first block that have been passed.
    within: usize,
}

impl Seeker<'_> {
    /// True when the slot is in the set. Slots must be asked for in ascending order.
    pub(crate) fn holds(&mut self, slot: Slot) -> bool {
        while let [_, next, ..] = self.blocks
            && next[0] <= slot
        {
            self.blocks = &self.blocks[1..];
            self.within = 0;
        }
        let Some(block) = self.blocks.first() else {
            return false;
        };
        let rest = &block[self.within..];
        // Gallop: the next slot asked for is usually near.
        let mut step = 1;
        while step < rest.len() && rest[step] < slot {
            step *= 2;
        }
        let from = step / 2;
        let to = rest.len().min(step + 1);
        self.within += from + rest[from..to].partition_point(|passed| *passed < slot);
        block.get(self.within) == Some(&slot)
    }
}

/// The slots of a [`Posting`], ascending.
#[derive(Clone)]
pub(crate) struct SlotIter<'a> {
    blocks: std::slice::Iter<'a, Arc<Vec<Slot>>>,
    current: std::slice::Iter<'a, Slot>,
    remaining: usize,
}

impl SlotIter<'_> {
    pub(crate) fn empty() -> Self {
        Self {
            blocks: [].iter(),
            current: [].iter(),
            remaining: 0,
        }
    }
}

impl Iterator for SlotIter<'_> {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        loop {
            if let Some(slot) = self.current.next() {
                self.remaining -= 1;
                return Some(*slot);
            }
            self.current = self.blocks.next()?.iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }

    fn fold<B, F: FnMut(B, Slot) -> B>(self, start: B, mut f: F) -> B {
        let mut folded = self.current.copied().fold(start, &mut f);
        for block in self.blocks {
            folded = block.iter().copied().fold(folded, &mut f);
        }
        folded
    }
}

impl ExactSizeIterator for SlotIter<'_> {}

#[cfg(all(test, not(informant_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_posting_is_a_sorted_set(script in prop::collection::vec((any::<bool>(), 0..3_000u32), 1..4_000)) {
            let (mut posting, mut oracle) = (Posting::default(), BTreeSet::new());
            for (add, slot) in script {
                let slot = Slot(slot);
                if add {
                    prop_assert_eq!(posting.insert(slot), oracle.insert(slot));
                } else {
                    prop_assert_eq!(posting.remove(slot), oracle.remove(&slot));
                }
            }
            prop_assert!(posting.iter().eq(oracle.iter().copied()));
            prop_assert!(posting.iter().len() == oracle.len());
            let mut folded = Vec::new();
            posting.iter().for_each(|slot| folded.push(slot));
            prop_assert!(folded.into_iter().eq(oracle.iter().copied()));
            for step in [1, 7, 400] {
                let mut seeker = posting.seeker();
                for slot in (0..3_100).step_by(step).map(Slot) {
                    prop_assert_eq!(seeker.holds(slot), oracle.contains(&slot));
                    prop_assert_eq!(seeker.holds(slot), oracle.contains(&slot), "asked twice");
                }
            }
        }
    }

    #[test]
    fn a_clone_keeps_what_it_had() {
        let mut posting = Posting::default();
        (0..2_000).for_each(|n| {
            posting.insert(Slot(n));
        });
        let held = posting.clone();
        (0..2_000).for_each(|n| {
            posting.remove(Slot(n));
        });
        assert!(posting.is_empty() && posting.iter().next().is_none());
        assert_eq!(held.iter().map(|s| s.0).sum::<u32>(), 1_999_000);
    }
}
