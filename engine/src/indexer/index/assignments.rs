//! Which values each slot has: the writer's memory of what the index functions said.
use crate::indexer::table::Slot;
use slab::Slab;
use smallvec::SmallVec;

/// The id of a value in the index's dictionary.
pub(crate) type ValueId = u32;

/// The values of one object under one index, sorted, without repeats.
pub(crate) type ValueIds = SmallVec<[ValueId; 4]>;

const NONE: u32 = u32::MAX;
const POISONED: u32 = u32::MAX - 1;
const MANY: u32 = 1 << 31;

/// Four bytes a slot: nearly every object has exactly one value, which stands there directly.
#[derive(Default)]
pub(crate) struct Assignments {
    slots: Vec<u32>,
    /// The values of the few objects that have several.
    many: Slab<Box<[ValueId]>>,
}

/// What a slot has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Assigned {
    Values(ValueIds),
    /// The index function failed on the object.
    Poisoned,
}

impl Assignments {
    /// The value of a slot that has exactly one.
    #[inline]
    pub(crate) fn only(&self, slot: Slot) -> Option<ValueId> {
        let code = *self.slots.get(slot.0 as usize)?;
        (code & MANY == 0).then_some(code)
    }

    /// Set what a slot has, and return what it had.
    pub(crate) fn set(&mut self, slot: Slot, new: &Assigned) -> Assigned {
        let old = self.take(slot);
        let code = match new {
            Assigned::Poisoned => POISONED,
            Assigned::Values(ids) => match ids.as_slice() {
                [] => NONE,
                [one] => *one,
                several => {
                    let at = self.many.insert(several.into());
                    MANY | u32::try_from(at).expect("fewer than 2^31 objects have several values")
                }
            },
        };
        let at = slot.0 as usize;
        if at >= self.slots.len() {
            if code == NONE {
                return old;
            }
            // A whole chunk of slots at a time.
            self.slots.resize((at / 64 + 1) * 64, NONE);
        }
        self.slots[at] = code;
        old
    }

    /// Clear a slot, and return what it had.
    pub(crate) fn take(&mut self, slot: Slot) -> Assigned {
        let Some(code) = self.slots.get_mut(slot.0 as usize) else {
            return Assigned::Values(ValueIds::new());
        };
        match std::mem::replace(code, NONE) {
            NONE => Assigned::Values(ValueIds::new()),
            POISONED => Assigned::Poisoned,
            code if code & MANY != 0 => {
                let ids = self.many.remove((code & !MANY) as usize);
                Assigned::Values(ValueIds::from_slice(&ids))
            }
            one => Assigned::Values(ValueIds::from_slice(&[one])),
        }
    }
}
