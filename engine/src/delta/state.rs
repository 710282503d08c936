//! What is under the queue's one lock.
use super::SourceId;
use super::compaction::Compaction;
use super::pending::{Pending, Taken};
use crate::clock::Timestamp;

pub(super) struct State<T> {
    pub(super) pending: Pending<T>,
    pub(super) closed: bool,
    pub(super) sources: Vec<Source>,
    /// When the oldest pending input arrived.
    pub(super) first_at: Option<Timestamp>,
    /// A batch was drained and not acknowledged.
    pub(super) is_out: bool,
    /// The high-water mark was reached and the depth has not been below it since.
    pub(super) is_high: bool,
    /// In force for what is pending.
    pub(super) compaction: Compaction,
    /// In force from the next drain on.
    pub(super) next_compaction: Compaction,
    pub(super) inputs: u64,
    pub(super) drains: u64,
    pub(super) last_batch: usize,
    pub(super) largest_batch: usize,
}

/// How far a source's first list is.
pub(super) struct Source {
    pub(super) id: SourceId,
    pub(super) epoch: u64,
    pub(super) first_list: FirstList,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstList {
    Awaited,
    Queued,
    Drained,
    Applied,
}

impl<T> State<T> {
    pub(super) fn new(pending: Pending<T>, compaction: Compaction) -> Self {
        Self {
            pending,
            closed: false,
            sources: Vec::new(),
            first_at: None,
            is_out: false,
            is_high: false,
            compaction,
            next_compaction: compaction,
            inputs: 0,
            drains: 0,
            last_batch: 0,
            largest_batch: 0,
        }
    }

    /// The state of a source. A producer registered it, so it is there.
    pub(super) fn source(&mut self, id: SourceId) -> &mut Source {
        self.sources
            .iter_mut()
            .find(|source| source.id == id)
            .expect("a producer's source is registered")
    }

    /// Take out everything that is pending; `None` when nothing is.
    pub(super) fn take(&mut self) -> Option<Taken<T>> {
        if self.pending.is_empty() {
            return None;
        }
        self.drains += 1;
        self.last_batch = self.pending.inputs();
        self.largest_batch = self.largest_batch.max(self.last_batch);
        self.first_at = None;
        self.compaction = self.next_compaction;
        for source in &mut self.sources {
            if source.first_list == FirstList::Queued {
                source.first_list = FirstList::Drained;
            }
        }
        Some(self.pending.take())
    }

    /// True when every source's first list was applied.
    pub(super) fn has_synced(&self) -> bool {
        let applied = |source: &Source| source.first_list == FirstList::Applied;
        !self.sources.is_empty() && self.sources.iter().all(applied)
    }
}
