//! Keys that become ready later: a heap that knows where each of its entries stands.
use super::links::NONE;
use super::slots::{SlotId, Slots};
use crate::clock::Timestamp;

/// A four-ary heap by due time; equal times in the order in which they were asked for. An entry's
/// index is kept in its slot, so a delay is moved or cancelled in O(log n) without a search.
///
/// A heap rather than a timing wheel: it gives the exact order for one comparison more, and with
/// growing due times (equal delays, asked for one after another) an insertion costs O(1).
pub(super) struct Delays {
    heap: Vec<Entry>,
    asked: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    due: Timestamp,
    asked: u64,
    slot: SlotId,
}

impl Entry {
    fn is_before(&self, other: &Self) -> bool {
        (self.due, self.asked) < (other.due, other.asked)
    }
}

const ARITY: usize = 4;

impl Delays {
    pub(super) const fn new() -> Self {
        Self {
            heap: Vec::new(),
            asked: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// When the first entry is due.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.heap.first().map(|entry| entry.due)
    }

    /// When this slot is due.
    pub(super) fn due<K>(&self, slots: &Slots<K>, slot: SlotId) -> Option<Timestamp> {
        let at = slots.get(slot).delay_at;
        (at != NONE).then(|| self.heap[at as usize].due)
    }

    /// Let `slot` be due then, whatever it was before.
    pub(super) fn set<K>(&mut self, slots: &mut Slots<K>, slot: SlotId, due: Timestamp) {
        self.asked += 1;
        let entry = Entry {
            due,
            asked: self.asked,
            slot,
        };
        match slots.get(slot).delay_at {
            NONE => {
                self.heap.push(entry);
                self.rise(slots, self.heap.len() - 1);
            }
            at => {
                self.heap[at as usize] = entry;
                self.settle(slots, at as usize);
            }
        }
    }

    /// Take the entry of this slot out; false when there is none.
    pub(super) fn cancel<K>(&mut self, slots: &mut Slots<K>, slot: SlotId) -> bool {
        let at = slots.get(slot).delay_at;
        if at == NONE {
            return false;
        }
        self.take(slots, at as usize);
        true
    }

    /// Take the first entry out if it is due.
    pub(super) fn pop_due<K>(&mut self, slots: &mut Slots<K>, now: Timestamp) -> Option<SlotId> {
        let first = *self.heap.first()?;
        if first.due > now {
            return None;
        }
        self.take(slots, 0);
        Some(first.slot)
    }

    /// Every entry in no order, with what its place in the order is.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotId, (Timestamp, u64))> {
        let entries = self.heap.iter();
        entries.map(|entry| (entry.slot, (entry.due, entry.asked)))
    }

    /// Give back the memory of a burst.
    pub(super) fn shrink(&mut self) {
        if self.heap.is_empty() {
            self.heap = Vec::new();
        }
    }

    fn take<K>(&mut self, slots: &mut Slots<K>, at: usize) {
        let taken = self.heap.swap_remove(at);
        let slot = slots.get_mut(taken.slot);
        slot.delay_at = NONE;
        slot.backing_off = false;
        if at < self.heap.len() {
            self.settle(slots, at);
        }
    }

    /// The entry at `at` is new there: bring it to where it belongs.
    fn settle<K>(&mut self, slots: &mut Slots<K>, at: usize) {
        if at > 0 && self.heap[at].is_before(&self.heap[(at - 1) / ARITY]) {
            self.rise(slots, at);
        } else {
            self.sink(slots, at);
        }
    }

    fn rise<K>(&mut self, slots: &mut Slots<K>, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.place(slots, at, self.heap[parent]);
            at = parent;
        }
        self.place(slots, at, entry);
    }

    fn sink<K>(&mut self, slots: &mut Slots<K>, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let children = ARITY * at + 1..(ARITY * at + 1 + ARITY).min(self.heap.len());
            let first = children.reduce(|best, other| {
                if self.heap[other].is_before(&self.heap[best]) {
                    other
                } else {
                    best
                }
            });
            match first {
                Some(first) if self.heap[first].is_before(&entry) => {
                    self.place(slots, at, self.heap[first]);
                    at = first;
                }
                _ => break,
            }
        }
        self.place(slots, at, entry);
    }

    fn place<K>(&mut self, slots: &mut Slots<K>, at: usize, entry: Entry) {
        self.heap[at] = entry;
        // There are no more delays than slots, whose numbers fit.
        slots.get_mut(entry.slot).delay_at = u32::try_from(at).unwrap_or(NONE);
    }
}
