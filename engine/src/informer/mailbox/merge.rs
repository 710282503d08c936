//! Batches that several lagging handlers have waiting, made into one: once, for all of them.
use super::pending::PendingMap;
use super::round::Shared;
use super::segment::Segment;
use crate::indexer::Change;
use std::collections::VecDeque;
use std::sync::Arc;

/// Whole batches of net changes, merged: the net change of each key over all of them.
pub(super) struct Merged<T> {
    pub(super) changes: Shared<Change<T>>,
    /// Flags of the initial list that the merge has made void.
    pub(super) initial_released: usize,
}

/// The merges of one hand-over. Handlers that lag have mostly the same batches waiting, and batches
/// are consecutive, so the first and the last of them tell which ones they are.
pub(crate) struct Merges<T> {
    made: Vec<(Span<T>, Merged<T>)>,
}

struct Span<T> {
    first: Arc<Vec<Change<T>>>,
    last: Arc<Vec<Change<T>>>,
}

impl<T> Merges<T> {
    pub(crate) fn new() -> Self {
        Self { made: Vec::new() }
    }

    /// The merge of what waits; `None` unless it is whole batches of net changes, at least two.
    pub(super) fn of(&mut self, behind: &VecDeque<Segment<T>>) -> Option<Merged<T>> {
        let batches: Option<Vec<&Shared<Change<T>>>> = behind
            .iter()
            .map(|segment| match segment {
                Segment::Net(changes, range) if *range == (0..changes.items.len()) => Some(changes),
                _ => None,
            })
            .collect();
        let batches = batches?;
        let [first, .., last] = batches[..] else {
            return None;
        };
        let made = self.made.iter().find(|(span, _)| {
            let same_first = Arc::ptr_eq(&span.first, &first.items);
            #[cfg(informant_mutant = "merge_of_another_span")]
            let same_first = true;
            same_first && Arc::ptr_eq(&span.last, &last.items)
        });
        if let Some((_, merged)) = made {
            return Some(merged.clone());
        }
        let merged = merge(&batches);
        let span = Span {
            first: first.items.clone(),
            last: last.items.clone(),
        };
        self.made.push((span, merged.clone()));
        Some(merged)
    }
}

fn merge<T>(batches: &[&Shared<Change<T>>]) -> Merged<T> {
    let mut pending = PendingMap::new();
    for batch in batches {
        batch
            .items
            .iter()
            .for_each(|change| pending.fold_change(change));
    }
    let changes: Vec<_> = pending
        .take(usize::MAX)
        .into_iter()
        .map(|entry| Change {
            old: entry.seen,
            new: entry.new,
            deleted: entry.deleted,
            initial: entry.initial,
        })
        .collect();
    let initial = changes.iter().filter(|change| change.initial).count();
    let before: usize = batches.iter().map(|batch| batch.initial).sum();
    Merged {
        changes: Shared {
            items: Arc::new(changes),
            initial,
        },
        initial_released: before - initial,
    }
}

impl<T> Clone for Merged<T> {
    fn clone(&self) -> Self {
        Self {
            changes: self.changes.clone(),
            initial_released: self.initial_released,
        }
    }
}
