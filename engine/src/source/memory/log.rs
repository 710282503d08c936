//! The remembered changes.
use super::faults::Corruption;
use crate::object::Incoming;
use std::collections::VecDeque;
use std::sync::Arc;

/// One state of one object, shared by the collection, its history and its readers.
pub(super) type Item<T> = Arc<Incoming<T>>;

/// One change of the collection.
pub(super) struct Change<T> {
    pub(super) version: u64,
    pub(super) before: Option<Item<T>>,
    /// The new state, or the final one at the version of the deletion.
    pub(super) item: Item<T>,
    pub(super) deleted: bool,
    /// It cannot be decoded.
    pub(super) corrupt: Option<Corruption>,
}

/// Changes, ascending by version, each with a place: a number that rises by one a change and never
/// goes back, not even when versions do. Watches count places, so nothing is seen twice or missed.
pub(super) struct Log<T> {
    changes: VecDeque<Arc<Change<T>>>,
    /// The place of the first change that is remembered.
    first: u64,
    limit: usize,
    /// Changes up to this version are forgotten.
    pub(super) compacted: u64,
}

/// What was forgotten. Dropping it drops user's objects, so it is carried out of the lock.
pub(super) type Forgotten<T> = Vec<Arc<Change<T>>>;

impl<T> Log<T> {
    pub(super) fn new(version: u64, limit: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            first: 0,
            limit,
            compacted: version,
        }
    }

    /// The place of the first change that is remembered.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The place of the next change.
    pub(super) fn next(&self) -> u64 {
        self.first + self.changes.len() as u64
    }

    pub(super) fn push(&mut self, change: Change<T>) -> Option<Arc<Change<T>>> {
        debug_assert!(
            self.changes
                .back()
                .is_none_or(|c| c.version < change.version)
        );
        self.changes.push_back(Arc::new(change));
        if self.changes.len() <= self.limit {
            return None;
        }
        let oldest = self.changes.pop_front()?;
        self.first += 1;
        self.compacted = oldest.version;
        Some(oldest)
    }

    /// Forget the changes up to and including `version`.
    pub(super) fn compact(&mut self, version: u64) -> Forgotten<T> {
        self.compacted = self.compacted.max(version);
        let count = self.index_after(version);
        self.first += count as u64;
        self.changes.drain(..count).collect()
    }

    /// Begin anew at `version`, which may be older. Places go on.
    pub(super) fn restart(&mut self, version: u64) -> Forgotten<T> {
        self.first = self.next();
        self.compacted = version;
        std::mem::take(&mut self.changes).into()
    }

    /// The place of the first change after `version`, which is not forgotten.
    pub(super) fn place_after(&self, version: u64) -> u64 {
        self.first + self.index_after(version) as u64
    }

    /// The changes after `version`, which is not forgotten; newest first.
    pub(super) fn back_to(&self, version: u64) -> impl Iterator<Item = &Change<T>> {
        let newest_first = self.changes.iter().rev().map(|change| &**change);
        newest_first.take_while(move |change| change.version > version)
    }

    /// The changes at the places from `from`, which is not forgotten, to before `to`.
    pub(super) fn range(&self, from: u64, to: u64) -> Vec<Arc<Change<T>>> {
        let index = |place: u64| {
            usize::try_from(place - self.first).expect("a remembered place is an index")
        };
        self.changes
            .range(index(from)..index(to))
            .cloned()
            .collect()
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Change<T>> {
        self.changes.iter().rev().map(|change| &**change)
    }

    fn index_after(&self, version: u64) -> usize {
        self.changes
            .partition_point(|change| change.version <= version)
    }
}
