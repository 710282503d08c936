//! Which values each slot has: the writer's memory of what the index functions said.
use crate::indexer::table::Slot;
use slab::Slab;
use smallvec::SmallVec;

/// The id of a value in the index's dictionary.
pub(crate) type ValueId = u32;

/// The values of one object under one index, sorted, without repeats.
pub(crate) type ValueIds = SmallVec<[ValueId; 4]>;

/// Nearly every object has exactly one value, whose id stands directly in the slot's code.
#[derive(Default)]
pub(crate) struct Assignments {
    codes: Codes,
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
        let code = self.codes.get(slot.0 as usize);
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
        self.codes.set(slot.0 as usize, code);
        old
    }

    /// Clear a slot, and return what it had.
    pub(crate) fn take(&mut self, slot: Slot) -> Assigned {
        let code = self.codes.get(slot.0 as usize);
        if code == NONE {
            return Assigned::Values(ValueIds::new());
        }
        self.codes.set(slot.0 as usize, NONE);
        if code == POISONED {
            return Assigned::Poisoned;
        }
        Assigned::Values(if code & MANY == 0 {
            ValueIds::from_slice(&[code])
        } else {
            ValueIds::from_slice(&self.many.remove((code & !MANY) as usize))
        })
    }
}

const NONE: u32 = u32::MAX;
const POISONED: u32 = u32::MAX - 1;
/// The rest is a position in `many`.
const MANY: u32 = 1 << 31;

/// One code a slot. Two bytes suffice until there are many values; it is the memory that an update
/// looks at first, so half the size is also half the misses.
enum Codes {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Default for Codes {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

/// [`MANY`] in a narrow code.
const NARROW_MANY: u16 = 1 << 15;

impl Codes {
    #[inline]
    fn get(&self, at: usize) -> u32 {
        match self {
            Self::Narrow(codes) => codes.get(at).map_or(NONE, |&code| widened(code)),
            Self::Wide(codes) => codes.get(at).copied().unwrap_or(NONE),
        }
    }

    fn set(&mut self, at: usize, code: u32) {
        match self {
            Self::Narrow(codes) => {
                if let Some(code) = narrowed(code) {
                    return put(codes, at, code, u16::MAX);
                }
                let mut codes: Vec<_> = codes.iter().copied().map(widened).collect();
                put(&mut codes, at, code, NONE);
                *self = Self::Wide(codes);
            }
            Self::Wide(codes) => put(codes, at, code, NONE),
        }
    }
}

fn put<C: Copy + PartialEq>(codes: &mut Vec<C>, at: usize, code: C, none: C) {
    if at >= codes.len() {
        if code == none {
            return;
        }
        // A whole chunk of slots at a time.
        codes.resize((at / 64 + 1) * 64, none);
    }
    codes[at] = code;
}

#[inline]
fn widened(code: u16) -> u32 {
    match code {
        u16::MAX => NONE,
        code if code == u16::MAX - 1 => POISONED,
        code if code & NARROW_MANY != 0 => MANY | u32::from(code & !NARROW_MANY),
        one => u32::from(one),
    }
}

/// The narrow form of a code, if it has one.
fn narrowed(code: u32) -> Option<u16> {
    match code {
        NONE => Some(u16::MAX),
        POISONED => Some(u16::MAX - 1),
        code if code & MANY != 0 => u16::try_from(code & !MANY)
            .ok()
            .filter(|at| *at < NARROW_MANY - 2)
            .map(|at| at | NARROW_MANY),
        one => u16::try_from(one).ok().filter(|id| *id < NARROW_MANY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn assigned() -> impl Strategy<Value = Assigned> {
        let id = prop_oneof![0..5_u32, 32_760..32_775_u32, 65_530..65_540_u32];
        let several = prop::collection::btree_set(id, 0..4);
        prop_oneof![
            8 => several.prop_map(|ids| Assigned::Values(ids.into_iter().collect())),
            1 => Just(Assigned::Poisoned),
        ]
    }

    proptest! {
        #[test]
        fn a_slot_has_what_it_was_given_whatever_the_size_of_the_codes(
            script in prop::collection::vec((0..200_u32, assigned()), 1..200),
        ) {
            let (mut ours, mut oracle) = (Assignments::default(), HashMap::new());
            let nothing = Assigned::Values(ValueIds::new());
            for (at, new) in script {
                let old = oracle.insert(at, new.clone()).unwrap_or(nothing.clone());
                prop_assert_eq!(ours.set(Slot(at), &new), old);
                for at in 0..200 {
                    let only = match oracle.get(&at) {
                        Some(Assigned::Values(ids)) if ids.len() == 1 => Some(ids[0]),
                        _ => None,
                    };
                    prop_assert_eq!(ours.only(Slot(at)), only);
                }
            }
            for at in 0..200 {
                let had = oracle.remove(&at).unwrap_or(nothing.clone());
                prop_assert_eq!(ours.take(Slot(at)), had);
            }
        }
    }

    #[test]
    fn more_objects_with_several_values_than_narrow_codes_reach() {
        let mut ours = Assignments::default();
        let several = Assigned::Values(ValueIds::from_slice(&[1, 2]));
        for at in 0..32_800 {
            ours.set(Slot(at), &several);
        }
        assert!((0..32_800).all(|at| ours.take(Slot(at)) == several));
    }
}
