//! What a batch did to the primary table, for the versions that must catch up.
use crate::indexer::publish::Operation;

/// What was done to the primary table, unless it is so much that copying beats replaying.
pub(in crate::indexer) struct Log<T> {
    ops: Vec<Operation<T>>,
    limit: usize,
    overflowed: bool,
}

impl<T> Log<T> {
    pub(in crate::indexer) fn new(limit: usize, empty: Vec<Operation<T>>) -> Self {
        Self {
            ops: empty,
            limit,
            overflowed: false,
        }
    }

    pub(super) fn push(&mut self, op: Operation<T>) {
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

    /// The operations; `None` when there were too many.
    pub(in crate::indexer) fn finish(self) -> Option<Vec<Operation<T>>> {
        (!self.overflowed).then_some(self.ops)
    }
}
