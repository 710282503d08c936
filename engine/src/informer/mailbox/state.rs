//! What stands inside a mailbox's lock.
use super::pending::PendingMap;
use super::policy::{PastLimit, Policy};
use super::round::{Contents, Current, Round, Shared};
use super::{CHUNK, Chunk, FOLD_AT, MailboxStats};
use crate::delta::SourceId;
use crate::indexer::{Change, Effective};
use crate::object::Cached;
use std::collections::VecDeque;
use std::ops::Range;
use std::task::Waker;

/// Something to be told, in the order of the queue it stands in.
pub(super) enum Segment<T> {
    Net(Shared<Change<T>>, Range<usize>),
    Steps(Shared<Effective<T>>, Range<usize>),
    /// The state that a late or restarted handler starts from, not unpacked yet.
    Start(Box<dyn Contents<T>>),
    Joined(std::vec::IntoIter<Cached<T>>),
    Resync(Box<dyn Contents<T>>),
    Resynced(std::vec::IntoIter<Cached<T>>),
    Reset(SourceId),
    Replay,
}

impl<T> Segment<T> {
    fn len(&self) -> usize {
        match self {
            Self::Net(_, range) | Self::Steps(_, range) => range.len(),
            Self::Start(contents) | Self::Resync(contents) => contents.len(),
            Self::Joined(objects) | Self::Resynced(objects) => objects.len(),
            Self::Reset(_) | Self::Replay => 0,
        }
    }

    /// Whether it counts towards a lossless handler's limit.
    fn is_change(&self) -> bool {
        matches!(self, Self::Net(..) | Self::Steps(..))
    }

    fn fold_into(self, pending: &mut PendingMap<T>, graveyard: &mut Graveyard<T>) {
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
            Self::Resync(contents) => contents
                .objects()
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

/// What is let go of under the lock and dropped after it: dropping may run a user's `Drop`.
pub(super) struct Graveyard<T> {
    segments: Vec<Segment<T>>,
    objects: Vec<Cached<T>>,
    contents: Vec<Box<dyn Contents<T>>>,
    pending: Option<PendingMap<T>>,
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
                    Segment::Resync(contents) => Segment::Resynced(contents.objects().into_iter()),
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

/// How far the handler is with its initial list.
#[derive(Default)]
struct InitialList {
    /// What the handler starts from is known.
    started: bool,
    /// The cache holds the first list, so no more will come.
    upstream_synced: bool,
    /// Tellings that have not returned.
    left: usize,
    /// Of these, the ones that were taken.
    taken: usize,
}

/// See the [module](super) for the order of `queue`, `pending` and `behind`.
pub(super) struct State<T> {
    policy: Policy,
    queue: VecDeque<Segment<T>>,
    /// Changes in `queue`, for the limit.
    queued: usize,
    pending: PendingMap<T>,
    behind: VecDeque<Segment<T>>,
    behind_len: usize,
    /// A lossless handler is past its limit: what arrives is coalesced until it has caught up.
    overflowing: bool,
    /// A resync is due, over the state after everything that waits. It moves on with each push, so
    /// that no mailbox holds an old snapshot.
    resync: Option<Box<dyn Contents<T>>>,
    /// The task has taken `pending` or the front of the queue out, to work on it.
    busy: bool,
    /// How often the handler was made to start over.
    restarts: u64,
    chunks_taken: u64,
    initial: InitialList,
    coalesced: u64,
    pub(super) closed: bool,
    pub(super) consumer: Option<Waker>,
    pub(super) room: Option<Waker>,
}

impl<T> State<T> {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            queue: VecDeque::new(),
            queued: 0,
            pending: PendingMap::new(),
            behind: VecDeque::new(),
            behind_len: 0,
            overflowing: false,
            resync: None,
            busy: false,
            restarts: 0,
            chunks_taken: 0,
            initial: InitialList::default(),
            coalesced: 0,
            closed: false,
            consumer: None,
            room: None,
        }
    }

    pub(super) fn note_upstream(&mut self, synced: bool) {
        self.initial.upstream_synced |= synced;
    }

    pub(super) fn start(&mut self, contents: Option<Box<dyn Contents<T>>>) {
        self.initial.started = true;
        if let Some(contents) = contents
            && contents.len() > 0
        {
            self.initial.left += contents.len();
            self.queue.push_back(Segment::Start(contents));
        }
    }

    pub(super) fn accept(
        &mut self,
        round: &Round<T>,
        resync: bool,
        current: Current<'_, T>,
        graveyard: &mut Graveyard<T>,
    ) {
        if !round.is_empty() {
            match self.policy {
                Policy::Coalesce => self.append_behind(round, 0),
                _ if self.overflowing => self.append_behind(round, 0),
                _ => self.accept_exactly(round, current, graveyard),
            }
            self.fold_if_stuck(graveyard);
        }
        self.accept_resync(resync, current, graveyard);
    }

    fn accept_exactly(
        &mut self,
        round: &Round<T>,
        current: Current<'_, T>,
        graveyard: &mut Graveyard<T>,
    ) {
        let (segment, initial) = whole(round, true);
        let len = segment.len();
        let room = match (self.policy.limit(), self.policy.past_limit()) {
            (Some(limit), Some(PastLimit::Coalesce)) => limit.saturating_sub(self.queued).min(len),
            (Some(limit), Some(PastLimit::Replay)) if self.queued + len > limit => {
                self.restart(current(), graveyard);
                return;
            }
            _ => len,
        };
        self.queue
            .extend(round.resets.iter().map(|source| Segment::Reset(*source)));
        self.initial.left += initial;
        let (now, later) = segment.split(room);
        if now.len() > 0 {
            self.queued += now.len();
            self.queue.push_back(now);
        }
        if later.len() > 0 {
            self.overflowing = true;
            self.behind_len += later.len();
            self.behind.push_back(later);
        }
    }

    fn append_behind(&mut self, round: &Round<T>, from: usize) {
        self.behind
            .extend(round.resets.iter().map(|source| Segment::Reset(*source)));
        let (segment, initial) = whole(round, self.policy.is_lossless());
        self.initial.left += initial;
        let (_, segment) = segment.split(from);
        if segment.len() > 0 {
            self.behind_len += segment.len();
            self.behind.push_back(segment);
        }
    }

    /// Past the limit: drop what waits and start over from the present state.
    fn restart(&mut self, contents: Box<dyn Contents<T>>, graveyard: &mut Graveyard<T>) {
        graveyard.segments.extend(self.queue.drain(..));
        graveyard.contents.extend(self.resync.take());
        self.queued = 0;
        self.restarts += 1;
        // What was taken will still be told; it returns as before.
        self.initial.left = self.initial.taken;
        if self.chunks_taken > 0 {
            self.queue.push_back(Segment::Replay);
        }
        self.start(Some(contents));
    }

    fn accept_resync(&mut self, due: bool, current: Current<'_, T>, graveyard: &mut Graveyard<T>) {
        if self.policy.is_lossless() && !self.overflowing && self.resync.is_none() {
            // In its place among the changes. One that waits stands for those that come due meanwhile.
            let waits = |segment: &Segment<T>| matches!(segment, Segment::Resync(_));
            if due && !self.queue.iter().any(waits) {
                self.queue.push_back(Segment::Resync(current()));
            }
        } else if due || self.resync.is_some() {
            let moved_on = self.resync.replace(current());
            graveyard.contents.extend(moved_on);
        }
    }

    /// Bound what waits unfolded for a handler that does not come back.
    fn fold_if_stuck(&mut self, graveyard: &mut Graveyard<T>) {
        if self.busy || self.behind_len < FOLD_AT {
            return;
        }
        let queue_is_exact = self.policy.is_lossless();
        if !queue_is_exact {
            let ahead: usize = self.queue.iter().map(Segment::len).sum();
            // Folding the queue costs its length, so as many changes must have paid for it.
            if self.behind_len < ahead {
                return;
            }
            self.queued = 0;
            for segment in self.queue.drain(..) {
                segment.fold_into(&mut self.pending, graveyard);
            }
        }
        self.behind_len = 0;
        for segment in self.behind.drain(..) {
            segment.fold_into(&mut self.pending, graveyard);
        }
        self.settle_fold(graveyard);
    }

    fn settle_fold(&mut self, graveyard: &mut Graveyard<T>) {
        let (released, initial) = self.pending.take_released();
        graveyard.objects.extend(released);
        self.initial.left = self.initial.left.saturating_sub(initial);
        self.coalesced += self.pending.take_coalesced();
    }

    pub(super) fn has_work(&self) -> bool {
        !self.queue.is_empty()
            || !self.pending.is_empty()
            || !self.behind.is_empty()
            || self.resync.is_some()
    }

    #[cfg(informant_mutant = "mailbox_forgets_to_wake")]
    pub(super) fn behind_len(&self) -> usize {
        self.behind_len
    }

    /// What the task does next: tell the front of the queue, bring `behind` forward, or nothing.
    pub(super) fn next(&mut self) -> Next<T> {
        loop {
            if !self.queue.is_empty() {
                return self.next_of_queue();
            }
            if self.resync.is_none() && self.pending.is_empty() {
                let Some(first) = self.behind.front() else {
                    self.overflowing = false;
                    return Next::Idle;
                };
                // One batch alone is coalesced already: it is told straight from the shared list.
                // So is a big one that outweighs what follows (the first list): folding would copy it.
                let others = self.behind_len - first.len();
                let is_told_directly = matches!(first, Segment::Reset(_))
                    || self.behind.len() == 1
                    || first.len() > others.max(FOLD_AT);
                if is_told_directly {
                    let first = self.behind.pop_front().expect("looked at above");
                    self.behind_len -= first.len();
                    self.queued += first.len();
                    self.queue.push_back(first);
                    continue;
                }
            }
            if self.resync.is_some() || !self.behind.is_empty() {
                self.busy = true;
                self.behind_len = 0;
                return Next::Work(Work::Fold {
                    pending: std::mem::replace(&mut self.pending, PendingMap::new()),
                    behind: std::mem::take(&mut self.behind),
                    resync: self.resync.take(),
                });
            }
            let resets = self.pending.take_resets();
            let chunk = if resets.is_empty() {
                Chunk::Pending(self.pending.take(CHUNK))
            } else {
                Chunk::Resets(resets)
            };
            return self.hand_out(chunk);
        }
    }

    fn next_of_queue(&mut self) -> Next<T> {
        let front = self.queue.front_mut().expect("the caller looked");
        let chunk = match front {
            Segment::Start(_) | Segment::Resync(_) => {
                self.busy = true;
                let front = self.queue.pop_front().expect("looked at above");
                return Next::Work(Work::Unpack {
                    front,
                    restarts: self.restarts,
                });
            }
            Segment::Net(changes, range) => Chunk::Net(changes.items.clone(), split_front(range)),
            Segment::Steps(steps, range) => Chunk::Steps(steps.items.clone(), split_front(range)),
            Segment::Joined(objects) => Chunk::Joined(objects.by_ref().take(CHUNK).collect()),
            Segment::Resynced(objects) => Chunk::Resynced(objects.by_ref().take(CHUNK).collect()),
            Segment::Reset(source) => Chunk::Resets(vec![*source]),
            Segment::Replay => Chunk::Replay,
        };
        if front.is_change() {
            self.queued -= chunk.len();
        }
        if front.len() == 0 {
            self.queue.pop_front();
        }
        self.hand_out(chunk)
    }

    fn hand_out(&mut self, chunk: Chunk<T>) -> Next<T> {
        self.chunks_taken += 1;
        self.initial.taken += chunk.initial_len();
        Next::Chunk(chunk)
    }

    /// Put back what the task worked on.
    pub(super) fn finish(&mut self, done: Done<T>, graveyard: &mut Graveyard<T>) {
        self.busy = false;
        if self.closed {
            match done {
                Done::Unpacked { front, .. } => graveyard.segments.push(front),
                Done::Folded { pending, resynced } => {
                    graveyard.pending = Some(pending);
                    graveyard.objects.extend(resynced);
                }
            }
            return;
        }
        match done {
            Done::Unpacked { front, restarts } if restarts == self.restarts => {
                // Empty when the state changed its mind about its length: nothing to tell.
                if front.len() > 0 {
                    self.queue.push_front(front);
                }
            }
            // The handler was made to start over meanwhile: what was unpacked is void.
            Done::Unpacked { front, .. } => graveyard.segments.push(front),
            Done::Folded { pending, resynced } => {
                self.pending = pending;
                self.settle_fold(graveyard);
                if !resynced.is_empty() {
                    self.queue
                        .push_back(Segment::Resynced(resynced.into_iter()));
                }
            }
        }
    }

    pub(super) fn initial_returned(&mut self, initial: usize) {
        self.initial.taken = self.initial.taken.saturating_sub(initial);
        self.initial.left = self.initial.left.saturating_sub(initial);
    }

    pub(super) fn is_synced(&self) -> bool {
        self.initial.started && self.initial.upstream_synced && self.initial.left == 0
    }

    pub(super) fn has_room(&self) -> bool {
        self.closed || self.policy.limit().is_none_or(|limit| self.queued <= limit)
    }

    pub(super) fn take_room_waker(&mut self) -> Option<Waker> {
        if self.has_room() {
            self.room.take()
        } else {
            None
        }
    }

    pub(super) fn stats(&self) -> MailboxStats {
        let queued: usize = self.queue.iter().map(Segment::len).sum();
        MailboxStats {
            waiting: queued + self.pending.len() + self.behind_len,
            coalesced: self.coalesced,
            replays: self.restarts,
            overflowing: self.overflowing,
            ..MailboxStats::default()
        }
    }

    /// Let go of everything.
    pub(super) fn clear(&mut self) -> Graveyard<T> {
        let mut graveyard = Graveyard::new();
        graveyard.segments.extend(self.queue.drain(..));
        graveyard.segments.extend(self.behind.drain(..));
        graveyard.contents.extend(self.resync.take());
        graveyard.pending = Some(std::mem::replace(&mut self.pending, PendingMap::new()));
        (self.queued, self.behind_len) = (0, 0);
        graveyard
    }
}

impl<T> Segment<T> {
    /// The first `len` changes, and the rest.
    fn split(self, len: usize) -> (Self, Self) {
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
fn whole<T>(round: &Round<T>, lossless: bool) -> (Segment<T>, usize) {
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

fn split_front(range: &mut Range<usize>) -> Range<usize> {
    let end = range.end.min(range.start + CHUNK);
    let taken = range.start..end;
    range.start = end;
    taken
}
