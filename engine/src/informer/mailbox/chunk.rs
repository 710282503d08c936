//! What a handler's task takes out of its mailbox in one go.
use super::super::event::Notice;
use super::pending::Entry;
use crate::delta::SourceId;
use crate::indexer::{Change, Effective};
use crate::object::Cached;
use std::ops::Range;
use std::sync::Arc;

/// A run of notifications that left the mailbox together: they will be delivered, in order, unless
/// the handler is removed meanwhile.
pub(crate) enum Chunk<T> {
    Net(Arc<Vec<Change<T>>>, Range<usize>),
    Steps(Arc<Vec<Effective<T>>>, Range<usize>),
    Joined(Vec<Cached<T>>),
    Resynced(Vec<Cached<T>>),
    Pending(Vec<Entry<T>>),
    Resets(Vec<SourceId>),
    Replay,
}

/// What is said about one key: one notice, or two when a key was deleted and created again.
pub(crate) struct Telling<'a, T> {
    pub(crate) first: Notice<'a, T>,
    pub(crate) second: Option<Notice<'a, T>>,
    /// Counts towards the handler's initial list.
    pub(crate) initial: bool,
}

impl<T> Chunk<T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Net(_, range) | Self::Steps(_, range) => range.len(),
            Self::Joined(objects) | Self::Resynced(objects) => objects.len(),
            Self::Pending(entries) => entries.len(),
            Self::Resets(sources) => sources.len(),
            Self::Replay => 1,
        }
    }

    /// How many of the tellings count towards the initial list.
    pub(crate) fn initial_len(&self) -> usize {
        match self {
            Self::Net(changes, range) => {
                changes[range.clone()].iter().filter(|c| c.initial).count()
            }
            Self::Steps(steps, range) => steps[range.clone()]
                .iter()
                .filter(|s| s.is_initial())
                .count(),
            Self::Joined(objects) => objects.len(),
            Self::Pending(entries) => entries.iter().filter(|e| e.initial).count(),
            Self::Resynced(_) | Self::Resets(_) | Self::Replay => 0,
        }
    }

    /// The telling at `at`, which is less than [`Chunk::len`].
    pub(crate) fn telling(&self, at: usize) -> Telling<'_, T> {
        let (first, second, initial) = match self {
            Self::Net(changes, range) => {
                let change = &changes[range.start + at];
                let deleted = change.deleted.as_deref().map(Notice::Deleted);
                tell(
                    change.old.as_ref(),
                    change.new.as_ref(),
                    deleted,
                    change.initial,
                )
            }
            Self::Steps(steps, range) => match &steps[range.start + at] {
                Effective::Added { new, initial } => tell(None, Some(new), None, *initial),
                Effective::Updated { old, new } => tell(Some(old), Some(new), None, false),
                Effective::Deleted { deleted } => {
                    tell(None, None, Some(Notice::Deleted(deleted)), false)
                }
            },
            Self::Joined(objects) => tell(None, Some(&objects[at]), None, true),
            Self::Resynced(objects) => tell(Some(&objects[at]), Some(&objects[at]), None, false),
            Self::Pending(entries) => {
                let entry = &entries[at];
                let deleted = entry.deleted.as_deref().map(Notice::Deleted);
                tell(
                    entry.seen.as_ref(),
                    entry.new.as_ref(),
                    deleted,
                    entry.initial,
                )
            }
            Self::Resets(sources) => (Notice::Reset(sources[at]), None, false),
            Self::Replay => (Notice::Replay, None, false),
        };
        Telling {
            first,
            second,
            initial,
        }
    }
}

/// Said of one key: its old life's end first, then the new state as an addition or an update.
fn tell<'a, T>(
    old: Option<&'a Cached<T>>,
    new: Option<&'a Cached<T>>,
    deleted: Option<Notice<'a, T>>,
    initial: bool,
) -> (Notice<'a, T>, Option<Notice<'a, T>>, bool) {
    let arrival = new.map(|new| match (old, &deleted) {
        (Some(old), None) => Notice::Updated { old, new },
        _ => Notice::Added {
            object: new,
            initial,
        },
    });
    match (deleted, arrival) {
        (Some(deleted), arrival) => (deleted, arrival, initial),
        (None, Some(arrival)) => (arrival, None, initial),
        (None, None) => unreachable!("a change without a new state tells a deletion"),
    }
}
