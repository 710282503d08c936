//! What stands inside a mailbox's lock.
use super::merge::Merges;
use super::pending::PendingMap;
use super::policy::{PastLimit, Policy};
use super::round::{Contents, Current, Round};
use super::segment::{Done, Graveyard, Next, Segment, Work, split_front, whole};
use super::{CHUNK, Chunk, FOLD_AT, MERGE_AT, MailboxStats, PATIENCE};
use std::collections::VecDeque;
use std::task::Waker;

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
    /// Pushes since the task last took something.
    unanswered_pushes: u32,
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
            unanswered_pushes: 0,
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
        merges: &mut Merges<T>,
        graveyard: &mut Graveyard<T>,
    ) {
        if !round.is_empty() {
            match self.policy {
                Policy::Coalesce => self.append_behind(round, 0),
                _ if self.overflowing => self.append_behind(round, 0),
                _ => self.accept_exactly(round, current, graveyard),
            }
            self.bound_behind(current, merges, graveyard);
        }
        self.accept_resync(resync, round, current, graveyard);
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

    fn accept_resync(
        &mut self,
        due: bool,
        round: &Round<T>,
        current: Current<'_, T>,
        graveyard: &mut Graveyard<T>,
    ) {
        if self.policy.is_lossless() && !self.overflowing && self.resync.is_none() {
            // In its place among the changes. One that waits stands for those that come due meanwhile.
            let waits = |segment: &Segment<T>| matches!(segment, Segment::Resync(..));
            if due && !self.queue.iter().any(waits) {
                let changes = round.net.items.clone();
                self.queue.push_back(Segment::Resync(current(), changes));
            }
        } else if due || self.resync.is_some() {
            let moved_on = self.resync.replace(current());
            graveyard.contents.extend(moved_on);
        }
    }

    /// Bound what waits unfolded: soon for a handler that does not come back, later for one that
    /// does and lags.
    fn bound_behind(
        &mut self,
        current: Current<'_, T>,
        merges: &mut Merges<T>,
        graveyard: &mut Graveyard<T>,
    ) {
        self.unanswered_pushes += 1;
        if self.busy {
            return;
        }
        if self.unanswered_pushes >= PATIENCE {
            if self.behind_len >= FOLD_AT {
                self.fold_behind(graveyard);
            }
        } else if self.behind_len >= MERGE_AT
            && self.behind_len >= 2 * current().len()
            && let Some(merged) = merges.of(&self.behind)
        {
            self.initial.left -= merged.initial_released;
            self.coalesced += (self.behind_len - merged.changes.items.len()) as u64;
            graveyard.segments.extend(self.behind.drain(..));
            self.behind_len = merged.changes.items.len();
            let all = 0..self.behind_len;
            self.behind.push_back(Segment::Net(merged.changes, all));
        }
    }

    fn fold_behind(&mut self, graveyard: &mut Graveyard<T>) {
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
            let is_resync_due = self.resync.is_some();
            if self.behind.is_empty() && self.pending.is_empty() && !is_resync_due {
                self.overflowing = false;
                return Next::Idle;
            }
            // Few changes are folded, so that each key costs one call. Of many, each batch is told as
            // it is (it is coalesced in itself): folds are each handler's own and cost more than
            // quick calls; for those that lag, the dispatcher merges batches once for all of them.
            let are_few = self.behind_len + self.pending.len() <= FOLD_AT;
            if self.pending.is_empty()
                && !is_resync_due
                && match self.behind.front() {
                    Some(Segment::Reset(_)) => true,
                    Some(Segment::Net(..)) => self.behind.len() == 1 || !are_few,
                    // Steps past a limit, which are to be coalesced.
                    _ => false,
                }
            {
                let first = self.behind.pop_front().expect("looked at above");
                self.behind_len -= first.len();
                self.queued += first.len();
                self.queue.push_back(first);
                continue;
            }
            let must_fold = is_resync_due || self.pending.is_empty();
            if must_fold || (are_few && !self.behind.is_empty()) {
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
            Segment::Start(_) | Segment::Resync(..) => {
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
        self.unanswered_pushes = 0;
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
