//! What stands in a mailbox, and the work that is done on it outside the lock.
use super::CHUNK;
use super::chunk::Chunk;
use super::pending::PendingMap;
use super::round::{Contents, Round, Shared};
use crate::delta::SourceId;
use crate::indexer::{Change, Effective};
use crate::object::{Cached, ObjectKey};
use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Something to be told, in the order of the queue it stands in.
pub(super) enum Segment<T> {
    Net(Shared<Change<T>>, Range<usize>),
    Steps(Shared<Effective<T>>, Range<usize>),
    /// The state that a late or restarted handler starts from, not unpacked yet.
    Start(Box<dyn Contents<T>>),
    Joined(std::vec::IntoIter<Cached<T>>),
    /// The objects that a resync announces, not unpacked yet, and the changes it came with: a key
    /// among those is announced by its change.
    Resync(Box<dyn Contents<T>>, Arc<Vec<Change<T>>>),
    Resynced(std::vec::IntoIter<Cached<T>>),
    Reset(SourceId),
    Replay,
}

impl<T> Segment<T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Net(_, range) | Self::Steps(_, range) => range.len(),
            Self::Start(contents) | Self::Resync(contents, _) => contents.len(),
            Self::Joined(objects) | Self::Resynced(objects) => objects.len(),
            Self::Reset(_) | Self::Replay => 0,
        }
    }

    /// Whether it counts towards a lossless handler's limit.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::Net(..) | Self::Steps(..))
    }

    pub(super) fn fold_into(self, pending: &mut PendingMap<T>, graveyard: &mut Graveyard<T>) {
        match &self {
            Self::Net(changes, range) => changes.items[range.clone()]
                .iter()
                .for_each(|change| pending.fold_change(change)),
            Self::Steps(steps, range) => steps.items[range.clone()]
                .iter()
                .for_each(|delta| pending.fold_effective(delta)),
            Self::Start(contents) => contents
                .objects()
                .iter()
                .for_each(|object| pending.fold_joined(object)),
            Self::Joined(objects) => objects
                .as_slice()
                .iter()
                .for_each(|object| pending.fold_joined(object)),
            Self::Resync(contents, changes) => unannounced(&**contents, changes)
                .iter()
                .for_each(|object| pending.fold_resynced(object)),
            Self::Resynced(objects) => objects
                .as_slice()
                .iter()
                .for_each(|object| pending.fold_resynced(object)),
            Self::Reset(source) => pending.fold_reset(*source),
            // Only lossless queues hold one, and those are never folded.
            Self::Replay => {}
        }
        graveyard.segments.push(self);
    }
}

/// What a resync has to announce beside the changes of the same batch.
fn unannounced<T>(contents: &dyn Contents<T>, changes: &[Change<T>]) -> Vec<Cached<T>> {
    let told: HashSet<&ObjectKey> = changes.iter().map(Change::key).collect();
    let mut objects = contents.objects();
    objects.retain(|object| !told.contains(object.key()));
    objects
}

/// What is let go of under the lock and dropped after it: dropping may run a user's `Drop`.
pub(super) struct Graveyard<T> {
    pub(super) segments: Vec<Segment<T>>,
    pub(super) objects: Vec<Cached<T>>,
    pub(super) contents: Vec<Box<dyn Contents<T>>>,
    pub(super) pending: Option<PendingMap<T>>,
}

impl<T> Graveyard<T> {
    pub(super) fn new() -> Self {
        Self {
            segments: Vec::new(),
            objects: Vec::new(),
            contents: Vec::new(),
            pending: None,
        }
    }
}

/// What the handler's task finds when it looks.
pub(super) enum Next<T> {
    Idle,
    Chunk(Chunk<T>),
    Work(Work<T>),
}

/// Work that the handler's task does outside the lock, for what it then puts back.
pub(super) enum Work<T> {
    /// Unpack the front of the queue.
    Unpack { front: Segment<T>, restarts: u64 },
    Fold {
        pending: PendingMap<T>,
        behind: VecDeque<Segment<T>>,
        resync: Option<Box<dyn Contents<T>>>,
    },
}

pub(super) enum Done<T> {
    Unpacked {
        front: Segment<T>,
        restarts: u64,
    },
    Folded {
        pending: PendingMap<T>,
        resynced: Vec<Cached<T>>,
    },
}

impl<T> Work<T> {
    pub(super) fn perform(self) -> Done<T> {
        match self {
            Self::Unpack { front, restarts } => Done::Unpacked {
                front: match front {
                    Segment::Start(contents) => Segment::Joined(contents.objects().into_iter()),
                    Segment::Resync(contents, changes) => {
                        Segment::Resynced(unannounced(&*contents, &changes).into_iter())
                    }
                    other => other,
                },
                restarts,
            },
            Self::Fold {
                mut pending,
                behind,
                resync,
            } => {
                let mut graveyard = Graveyard::new();
                for segment in behind {
                    segment.fold_into(&mut pending, &mut graveyard);
                }
                let mut resynced = resync.map_or_else(Vec::new, |contents| contents.objects());
                // A key with a pending change is announced by that.
                resynced.retain(|object| !pending.contains(object));
                Done::Folded { pending, resynced }
            }
        }
    }
}

impl<T> Segment<T> {
    /// The first `len` changes, and the rest.
    pub(super) fn split(self, len: usize) -> (Self, Self) {
        match self {
            Self::Net(changes, range) => {
                let middle = range.start + len;
                (
                    Self::Net(changes.clone(), range.start..middle),
                    Self::Net(changes, middle..range.end),
                )
            }
            Self::Steps(steps, range) => {
                let middle = range.start + len;
                (
                    Self::Steps(steps.clone(), range.start..middle),
                    Self::Steps(steps, middle..range.end),
                )
            }
            _ => unreachable!("only changes are split"),
        }
    }
}

/// The changes of a round as this kind of handler wants them, and how many are initial. A handler
/// that became lossless after the batch was drained gets the net changes of that one.
pub(super) fn whole<T>(round: &Round<T>, lossless: bool) -> (Segment<T>, usize) {
    match &round.steps {
        Some(steps) if lossless => (
            Segment::Steps(steps.clone(), 0..steps.items.len()),
            steps.initial,
        ),
        _ => (
            Segment::Net(round.net.clone(), 0..round.net.items.len()),
            round.net.initial,
        ),
    }
}

pub(super) fn split_front(range: &mut Range<usize>) -> Range<usize> {
    let end = range.end.min(range.start + CHUNK);
    let taken = range.start..end;
    range.start = end;
    taken
}
