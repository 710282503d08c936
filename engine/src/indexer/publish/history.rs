//! What recent versions did to the primary table, for the spare versions that have not done it yet.
use super::Operation;
use crate::indexer::table::{READ_AHEAD, Table};
use crate::object::Cached;
use std::collections::VecDeque;

/// Empty lists that are kept for the versions to come, and how large they may be.
const KEPT_LISTS: usize = 2;
const KEPT_LIST_ROOM: usize = 1_024;

/// Physical operations in order, by the version that did them. There are no gaps: every published
/// version has an entry, if perhaps an empty one.
pub(super) struct History<T> {
    entries: VecDeque<(u64, Vec<Operation<T>>)>,
    operations: usize,
    /// Lists to be filled again.
    empty: Vec<Vec<Operation<T>>>,
}

impl<T: Send + Sync + 'static> History<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            operations: 0,
            empty: Vec::new(),
        }
    }

    /// True when a version that has done everything up to and including `sequence` can do all that
    /// came after it, up to `newest`.
    pub(super) fn reaches_back_to(&self, sequence: u64, newest: u64) -> bool {
        let Some((first, _)) = self.entries.front() else {
            return sequence == newest;
        };
        #[cfg(informant_mutant = "replay_gap")]
        let sequence = sequence + 1;
        *first <= sequence + 1
    }

    pub(super) fn push(&mut self, stamp: u64, ops: Vec<Operation<T>>) {
        self.operations += ops.len();
        self.entries.push_back((stamp, ops));
    }

    /// An empty list for the operations of the next version.
    pub(super) fn empty_list(&mut self) -> Vec<Operation<T>> {
        self.empty.pop().unwrap_or_default()
    }

    /// The version that is reached from `reached` by about so many operations: one at the least.
    pub(super) fn step(&self, reached: u64, operations: usize) -> u64 {
        let mut last = reached;
        let mut count = 0;
        for (stamp, ops) in self.entries.range(self.first_after(reached)..) {
            count += ops.len();
            if last > reached && count > operations {
                break;
            }
            last = *stamp;
        }
        last
    }

    /// Do to `table` what the versions after `reached` up to and including `upto` did. No other
    /// version needs what is not after `others`, so that is not copied but taken.
    pub(super) fn replay(
        &mut self,
        table: &mut Table<Cached<T>>,
        reached: u64,
        upto: u64,
        others: u64,
    ) {
        #[cfg(informant_mutant = "skip_replay")]
        let reached = reached + 1;
        while let Some((stamp, _)) = self.entries.front()
            && *stamp <= others.min(upto)
        {
            let (stamp, mut ops) = self.take_first();
            if stamp > reached {
                replay(table, &mut ops, stamp);
            }
            self.recycle(ops);
        }
        if self.entries.is_empty() {
            return;
        }
        for (stamp, ops) in self.entries.range(self.first_after(reached)..) {
            if *stamp > upto {
                break;
            }
            replay(table, &mut ops.clone(), *stamp);
        }
    }

    /// Forget what nobody needs (all up to and including `stamp`), and then the oldest until no more
    /// than `limit` operations are left; but never the newest entry, which the next publication
    /// replays. Returns the last stamp that was forgotten.
    pub(super) fn trim(&mut self, stamp: u64, limit: usize) -> Option<u64> {
        let mut forgotten = None;
        while let Some((first, _)) = self.entries.front()
            && self.entries.len() > 1
            && (*first <= stamp || self.operations > limit)
        {
            let (first, ops) = self.take_first();
            forgotten = Some(first);
            self.recycle(ops);
        }
        forgotten
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.operations = 0;
    }

    fn first_after(&self, reached: u64) -> usize {
        self.entries.partition_point(|(stamp, _)| *stamp <= reached)
    }

    fn take_first(&mut self) -> (u64, Vec<Operation<T>>) {
        let first = self.entries.pop_front().expect("there is a first entry");
        self.operations -= first.1.len();
        first
    }

    fn recycle(&mut self, mut ops: Vec<Operation<T>>) {
        ops.clear();
        if self.empty.len() < KEPT_LISTS && ops.capacity() <= KEPT_LIST_ROOM {
            self.empty.push(ops);
        }
    }
}

/// Do `ops` to a table, and leave the list empty.
fn replay<T>(table: &mut Table<Cached<T>>, ops: &mut Vec<Operation<T>>, stamp: u64) {
    if ops.len() == 1 {
        return ops.drain(..).for_each(|op| table.replay(op, stamp));
    }
    let mut rest = ops.drain(..);
    while !rest.as_slice().is_empty() {
        let window = rest.as_slice().len().min(READ_AHEAD);
        table.read_ops_ahead(&rest.as_slice()[..window]);
        for op in rest.by_ref().take(window) {
            table.replay(op, stamp);
        }
    }
}
