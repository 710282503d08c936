//! The writer's half of an index: the function, and what it said of each slot.
use super::assignments::{Assigned, Assignments, ValueIds};
use super::dictionary::Dictionary;
use super::function::{Emit, IndexFunction, Said};
use super::value_table::{IndexOp, IndexPart, ValueTable};
use crate::indexer::table::Slot;
use crate::object::Cached;
use ahash::RandomState;
use std::any::Any;
use std::collections::VecDeque;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A driver without the type of its values. `part` is always this index's part of the version that
/// is being prepared.
pub(crate) trait IndexDriver<T>: Send {
    fn name(&self) -> &Arc<str>;
    /// An empty part, for a version that does not have this index yet.
    fn new_part(&self) -> Box<dyn IndexPart>;
    /// A new object version is in `slot`: run the function, apply the difference of its values.
    ///
    /// # Errors
    /// The function's error or panic message. The slot then has no values and is listed as poisoned.
    fn set(
        &mut self,
        part: &mut dyn IndexPart,
        slot: Slot,
        object: &Cached<T>,
        stamp: u64,
    ) -> Result<(), String>;
    /// Run the function on objects that are going to be in these slots, ahead of their turns. A bit
    /// is set for each that keeps the value which its slot has; for every other, a call of
    /// `set_foreseen` or `forget_foreseen` follows, in order.
    fn foresee(&mut self, objects: &[(Slot, &Cached<T>)]) -> u32;
    /// As `set`, of the object that was number `position` of those which were foreseen.
    ///
    /// # Errors
    /// As `set`.
    fn set_foreseen(
        &mut self,
        part: &mut dyn IndexPart,
        slot: Slot,
        position: usize,
        stamp: u64,
    ) -> Result<(), String>;
    /// What was foreseen of number `position` does not come to be.
    fn forget_foreseen(&mut self, position: usize);
    /// The object in `slot` is gone.
    fn clear(&mut self, part: &mut dyn IndexPart, slot: Slot, stamp: u64);
    /// The object in `from` now is in `to`.
    fn moved(&mut self, part: &mut dyn IndexPart, from: Slot, to: Slot, stamp: u64);
    /// A version is going to be prepared, whose log may take so many operations of the objects.
    fn begin(&mut self, limit: usize);
    /// The version `stamp` is complete: what was done goes to the log, for other versions. False
    /// when it was too much to be replayed; the whole log is void then.
    fn seal(&mut self, stamp: u64) -> bool;
    /// Bring the part of a version that is at `reached` up to the sealed version `upto`.
    fn catch_up(&self, part: &mut dyn IndexPart, reached: u64, upto: u64);
    /// Forget the log of versions up to and including `stamp`.
    fn trim(&mut self, stamp: u64);
}

pub(crate) struct Driver<T, V> {
    name: Arc<str>,
    hasher: RandomState,
    function: IndexFunction<T, V>,
    dictionary: Dictionary<V>,
    assigned: Assignments,
    /// What the function said ahead of its turn of objects whose value changes, in order.
    foreseen: VecDeque<(usize, Said)>,
    /// What the version that is being prepared did so far.
    pending: Pending<V>,
    log: VecDeque<(u64, Vec<IndexOp<V>>)>,
}

/// The log of the version in preparation, unless it is so long that copying beats replaying.
struct Pending<V> {
    ops: Vec<IndexOp<V>>,
    limit: usize,
    overflowed: bool,
}

impl<V> Pending<V> {
    fn push(&mut self, op: IndexOp<V>) {
        if self.overflowed {
            return;
        }
        if self.ops.len() == self.limit {
            self.overflowed = true;
            self.ops = Vec::new();
            return;
        }
        self.ops.push(op);
    }
}

/// Index operations that a version may log for each operation of its objects: an update of one
/// value is two.
const OPS_PER_OBJECT: usize = 4;

impl<T, V: Hash + Eq + Send + Sync + 'static> Driver<T, V> {
    pub(crate) fn new(name: Arc<str>, hasher: RandomState, function: IndexFunction<T, V>) -> Self {
        Self {
            name,
            dictionary: Dictionary::new(hasher.clone()),
            hasher,
            function,
            assigned: Assignments::default(),
            foreseen: VecDeque::new(),
            pending: Pending {
                ops: Vec::new(),
                limit: usize::MAX,
                overflowed: false,
            },
            log: VecDeque::new(),
        }
    }

    /// Run the user's function on an object in `slot`. Whatever it does, nothing but the dictionary
    /// has changed, and that only by values which nobody uses yet.
    #[inline]
    fn evaluate(&mut self, slot: Slot, object: &Cached<T>) -> Said {
        let mut emit = Emit::new(&mut self.dictionary, self.assigned.only(slot));
        let function = &self.function;
        let result = catch_unwind(AssertUnwindSafe(|| function(object, &mut emit)));
        match result {
            Ok(Ok(())) => emit.finish(),
            Ok(Err(reason)) => Said::Failed(reason),
            Err(panic) => Said::Failed(panic_message(&*panic)),
        }
    }

    fn pop_foreseen(&mut self, position: usize) -> Option<Said> {
        let (first, _) = self.foreseen.front()?;
        if *first != position {
            return None;
        }
        self.foreseen.pop_front().map(|(_, said)| said)
    }

    fn take_in(
        &mut self,
        part: &mut dyn IndexPart,
        slot: Slot,
        said: Said,
        stamp: u64,
    ) -> Result<(), String> {
        let (new, result) = match said {
            Said::One(one) if self.assigned.only(slot) == Some(one) => return Ok(()),
            Said::One(one) => (Assigned::Values(ValueIds::from_slice(&[one])), Ok(())),
            Said::Many(ids) => (Assigned::Values(ids), Ok(())),
            Said::Failed(reason) => (Assigned::Poisoned, Err(reason)),
        };
        self.assign(part, slot, &new, stamp);
        result
    }

    fn assign(&mut self, part: &mut dyn IndexPart, slot: Slot, new: &Assigned, stamp: u64) {
        let old = self.assigned.set(slot, new);
        let (old_ids, was_poisoned) = parts(&old);
        let (new_ids, is_poisoned) = parts(new);
        let table = downcast::<V>(part);
        for &id in new_ids.iter().filter(|id| !old_ids.contains(id)) {
            self.dictionary.use_once_more(id);
            let (hash, value) = self.dictionary.value(id);
            Self::run(
                &mut self.pending,
                table,
                IndexOp::Add(hash, value, slot),
                stamp,
            );
        }
        for &id in old_ids.iter().filter(|id| !new_ids.contains(id)) {
            let (hash, value) = self.dictionary.value(id);
            Self::run(
                &mut self.pending,
                table,
                IndexOp::Remove(hash, value, slot),
                stamp,
            );
            self.dictionary.use_once_less(id);
        }
        match (was_poisoned, is_poisoned) {
            (false, true) => Self::run(&mut self.pending, table, IndexOp::Poison(slot), stamp),
            (true, false) => Self::run(&mut self.pending, table, IndexOp::Cure(slot), stamp),
            _ => (),
        }
    }

    fn run(pending: &mut Pending<V>, table: &mut ValueTable<V>, op: IndexOp<V>, stamp: u64) {
        table.apply(&op, stamp);
        pending.push(op);
    }
}

fn parts(assigned: &Assigned) -> (&[u32], bool) {
    match assigned {
        Assigned::Values(ids) => (ids, false),
        Assigned::Poisoned => (&[], true),
    }
}

fn downcast<V: 'static>(part: &mut dyn IndexPart) -> &mut ValueTable<V> {
    (part as &mut dyn Any)
        .downcast_mut()
        .expect("an index keeps its type and its position")
}

/// What a caught panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    match text {
        Some(text) => format!("panicked: {text}"),
        None => "panicked".to_owned(),
    }
}

impl<T, V> IndexDriver<T> for Driver<T, V>
where
    T: Send + Sync + 'static,
    V: Hash + Eq + Send + Sync + 'static,
{
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn new_part(&self) -> Box<dyn IndexPart> {
        Box::new(ValueTable::<V>::new(self.name.clone(), self.hasher.clone()))
    }

    fn set(
        &mut self,
        part: &mut dyn IndexPart,
        slot: Slot,
        object: &Cached<T>,
        stamp: u64,
    ) -> Result<(), String> {
        let said = self.evaluate(slot, object);
        self.take_in(part, slot, said, stamp)
    }

    fn foresee(&mut self, objects: &[(Slot, &Cached<T>)]) -> u32 {
        let mut kept = 0;
        for (position, (slot, object)) in objects.iter().enumerate() {
            match self.evaluate(*slot, object) {
                Said::One(one) if self.assigned.only(*slot) == Some(one) => kept |= 1 << position,
                said => self.foreseen.push_back((position, said)),
            }
        }
        kept
    }

    fn set_foreseen(
        &mut self,
        part: &mut dyn IndexPart,
        slot: Slot,
        position: usize,
        stamp: u64,
    ) -> Result<(), String> {
        match self.pop_foreseen(position) {
            Some(said) => self.take_in(part, slot, said, stamp),
            None => Ok(()),
        }
    }

    fn forget_foreseen(&mut self, position: usize) {
        self.pop_foreseen(position);
    }

    fn clear(&mut self, part: &mut dyn IndexPart, slot: Slot, stamp: u64) {
        self.assign(part, slot, &Assigned::Values(ValueIds::new()), stamp);
    }

    fn moved(&mut self, part: &mut dyn IndexPart, from: Slot, to: Slot, stamp: u64) {
        let moving = self.assigned.take(from);
        self.assigned.set(to, &moving);
        let table = downcast::<V>(part);
        let (ids, poisoned) = parts(&moving);
        for &id in ids {
            let (hash, value) = self.dictionary.value(id);
            Self::run(
                &mut self.pending,
                table,
                IndexOp::Add(hash, value.clone(), to),
                stamp,
            );
            Self::run(
                &mut self.pending,
                table,
                IndexOp::Remove(hash, value, from),
                stamp,
            );
        }
        if poisoned {
            Self::run(&mut self.pending, table, IndexOp::Poison(to), stamp);
            Self::run(&mut self.pending, table, IndexOp::Cure(from), stamp);
        }
    }

    fn begin(&mut self, limit: usize) {
        self.pending.limit = limit.saturating_mul(OPS_PER_OBJECT);
        self.pending.overflowed = false;
        self.pending.ops.clear();
    }

    fn seal(&mut self, stamp: u64) -> bool {
        self.dictionary.forget_unused();
        if !self.pending.ops.is_empty() {
            let ops = std::mem::take(&mut self.pending.ops);
            self.log.push_back((stamp, ops));
        }
        !self.pending.overflowed
    }

    fn catch_up(&self, part: &mut dyn IndexPart, reached: u64, upto: u64) {
        if self.log.back().is_none_or(|(newest, _)| *newest <= reached) {
            return;
        }
        let first = self.log.partition_point(|(stamp, _)| *stamp <= reached);
        let table = downcast::<V>(part);
        for (stamp, ops) in self.log.range(first..) {
            if *stamp > upto {
                return;
            }
            for op in ops {
                table.apply(op, *stamp);
            }
        }
    }

    fn trim(&mut self, stamp: u64) {
        let forgotten = self.log.partition_point(|(s, _)| *s <= stamp);
        self.log.drain(..forgotten);
    }
}
