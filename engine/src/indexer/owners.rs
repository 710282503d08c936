//! Which source each object came from.
use super::table::Slot;
use crate::delta::SourceId;

/// The owner of each slot. With one source, the usual case, nothing is stored.
#[derive(Default)]
pub(super) struct Owners {
    /// Empty until a second source brings something.
    by_slot: Vec<SourceId>,
    /// The only source so far.
    sole: Option<SourceId>,
}

impl Owners {
    pub(super) fn of(&self, slot: Slot) -> SourceId {
        match self.by_slot.get(slot.0 as usize) {
            Some(owner) => *owner,
            None => self.sole.unwrap_or_default(),
        }
    }

    pub(super) fn set(&mut self, slot: Slot, owner: SourceId) {
        let sole = *self.sole.get_or_insert(owner);
        if self.by_slot.is_empty() && sole == owner {
            return;
        }
        let at = slot.0 as usize;
        if at >= self.by_slot.len() {
            self.by_slot.resize((at / 64 + 1) * 64, sole);
        }
        self.by_slot[at] = owner;
    }

    pub(super) fn moved(&mut self, from: Slot, to: Slot) {
        if !self.by_slot.is_empty() {
            self.set(to, self.of(from));
        }
    }
}
