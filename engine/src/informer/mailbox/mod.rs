//! One handler's mailbox: a plain synchronous structure between the dispatcher and one handler.
//!
//! # Who does what
//! The dispatcher calls [`Mailbox::push`] once per applied batch: it takes the lock once, appends a
//! reference to the batch, and wakes the handler's task if that is idle. The handler's task takes
//! [`Chunk`]s and does the folding (see [`pending`]) on its own time, outside the lock.
//!
//! # Order
//! `queue` is told first, then `pending`, then `behind`. Per key, whatever is in an earlier of the
//! three is older, so each key's history stays in order and the `old` of a change is what the
//! handler was given last: every change's `old` is the store's state before it, and the handler has
//! been told of every earlier change of that key, or the fold put its own last seen state there.
//!
//! # Memory
//! A coalescing handler that does not come back would pin every batch. So once more changes wait
//! unfolded than [`FOLD_AT`] (and than what stands in `queue`), and [`PATIENCE`] pushes have not been
//! answered, the dispatcher folds them: constant work per change, one entry per key. Handlers that
//! come back but lag have much the same batches waiting; at twice the number of objects the
//! dispatcher merges these, once for all ([`merge`]). It touches nothing while the task itself works
//! on what it has taken out (`busy`).
mod chunk;
mod merge;
mod pending;
mod policy;
mod round;
mod segment;
mod state;
#[cfg(all(test, not(informant_loom)))]
mod tests;

pub(crate) use chunk::Chunk;
pub(crate) use merge::Merges;
pub use policy::{PastLimit, Policy};
pub(crate) use round::{Contents, Current, Round};

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, WaitSet};
use segment::{Graveyard, Next};
use state::State;
use std::task::{Context, Poll};

/// Changes that may wait unfolded for a handler that does not come back.
const FOLD_AT: usize = if cfg!(test) { 16 } else { 4096 };
/// Pushes without a take after which a handler counts as one that does not come back.
const PATIENCE: u32 = if cfg!(test) { 3 } else { 16 };
/// Changes that may wait unmerged for one that does, where the cache is small.
const MERGE_AT: usize = if cfg!(test) { 16 } else { 65_536 };
/// Changes that leave the mailbox in one go. What has left is no longer coalesced, so it is small.
const CHUNK: usize = 32;

/// See the [module](self).
pub(crate) struct Mailbox<T> {
    policy: Policy,
    state: Mutex<State<T>>,
    closed: AtomicBool,
    synced: AtomicBool,
    sync_waiters: WaitSet,
    ended: AtomicBool,
    end_waiters: WaitSet,
    calls: AtomicU64,
    panics: AtomicU64,
}

/// What a mailbox holds and has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct MailboxStats {
    pub(crate) waiting: usize,
    pub(crate) coalesced: u64,
    pub(crate) replays: u64,
    pub(crate) overflowing: bool,
    pub(crate) calls: u64,
    pub(crate) panics: u64,
}

impl<T> Mailbox<T> {
    /// A mailbox that is not started: it knows of no initial list yet.
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: Mutex::new(State::new(policy)),
            closed: AtomicBool::new(false),
            synced: AtomicBool::new(false),
            sync_waiters: WaitSet::new(),
            ended: AtomicBool::new(false),
            end_waiters: WaitSet::new(),
            calls: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy
    }

    /// Start from `contents`: what is pushed from now on must follow exactly that state. `None`
    /// when there is nothing to tell yet.
    pub(crate) fn start(&self, contents: Option<Box<dyn Contents<T>>>, upstream_synced: bool) {
        self.change(|state, _| {
            state.note_upstream(upstream_synced);
            state.start(contents);
        });
    }

    /// Append one batch. `resync` when this handler is to be told of every object again;
    /// `upstream_synced` once the cache holds the first list. `merges` is that of the hand-over.
    pub(crate) fn push(
        &self,
        round: &Round<T>,
        resync: bool,
        upstream_synced: bool,
        current: Current<'_, T>,
        merges: &mut Merges<T>,
    ) {
        self.change(|state, graveyard| {
            state.note_upstream(upstream_synced);
            state.accept(round, resync, current, merges, graveyard);
        });
    }

    /// Change the state under the lock; wake and drop outside of it.
    fn change(&self, change: impl FnOnce(&mut State<T>, &mut Graveyard<T>)) {
        let mut graveyard = Graveyard::new();
        let (consumer, now_synced) = {
            let mut state = self.state.lock();
            if state.closed {
                return;
            }
            change(&mut state, &mut graveyard);
            let idle = !state.has_work();
            #[cfg(informant_mutant = "mailbox_forgets_to_wake")]
            let idle = idle || state.behind_len() == 1;
            let consumer = if idle { None } else { state.consumer.take() };
            (consumer, self.latch(&state))
        };
        if now_synced {
            self.sync_waiters.notify_all();
        }
        if let Some(consumer) = consumer {
            consumer.wake();
        }
    }

    fn latch(&self, state: &State<T>) -> bool {
        let now = state.is_synced() && !self.synced.load(Ordering::SeqCst);
        if now {
            self.synced.store(true, Ordering::SeqCst);
        }
        now
    }

    /// The next chunk for the handler; `None` once the mailbox is closed. One caller at a time.
    pub(crate) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Chunk<T>>> {
        loop {
            let (work, room) = {
                let mut state = self.state.lock();
                if state.closed {
                    return Poll::Ready(None);
                }
                let work = state.next();
                if matches!(work, Next::Idle) {
                    // Under the same lock as the look, so no push falls in between.
                    state.consumer = Some(context.waker().clone());
                }
                (work, state.take_room_waker())
            };
            if let Some(room) = room {
                room.wake();
            }
            match work {
                Next::Idle => return Poll::Pending,
                Next::Chunk(chunk) => return Poll::Ready(Some(chunk)),
                Next::Work(work) => {
                    let done = work.perform();
                    let mut graveyard = Graveyard::new();
                    let now_synced = {
                        let mut state = self.state.lock();
                        state.finish(done, &mut graveyard);
                        self.latch(&state)
                    };
                    if now_synced {
                        self.sync_waiters.notify_all();
                    }
                }
            }
        }
    }

    /// [`Mailbox::poll_take`] as a future.
    pub(crate) async fn take(&self) -> Option<Chunk<T>> {
        std::future::poll_fn(|context| self.poll_take(context)).await
    }

    /// The handler returned from `initial` tellings of its initial list (panics count as returns).
    pub(crate) fn initial_returned(&self, initial: usize) {
        if initial == 0 {
            return;
        }
        let now_synced = {
            let mut state = self.state.lock();
            state.initial_returned(initial);
            self.latch(&state)
        };
        if now_synced {
            self.sync_waiters.notify_all();
        }
    }

    /// Ends when no more than the limit is waiting, or the mailbox is closed. One caller at a time.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.has_room() {
            return Poll::Ready(());
        }
        state.room = Some(context.waker().clone());
        Poll::Pending
    }

    /// Forget everything and end: no telling begins after this, one in flight runs to its end.
    pub(crate) fn close(&self) {
        // First the flag that the task looks at between two calls, then the state.
        self.closed.store(true, Ordering::SeqCst);
        let (graveyard, consumer, room) = {
            let mut state = self.state.lock();
            state.closed = true;
            let (consumer, room) = (state.consumer.take(), state.room.take());
            #[cfg(informant_mutant = "close_leaves_the_task_asleep")]
            let consumer = consumer.filter(|_| false);
            (state.clear(), consumer, room)
        };
        drop(graveyard);
        self.sync_waiters.notify_all();
        [consumer, room]
            .into_iter()
            .flatten()
            .for_each(std::task::Waker::wake);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// All initial tellings have returned and the cache is synced. Latched.
    pub(crate) fn has_synced(&self) -> bool {
        self.synced.load(Ordering::SeqCst)
    }

    /// Ends when synced (true) or closed before that (false).
    pub(crate) async fn synced(&self) -> bool {
        let outcome = || match (self.has_synced(), self.is_closed()) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        };
        self.sync_waiters.until(outcome).await
    }

    /// The handler's task is over: no call runs or will run.
    pub(crate) fn mark_ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.end_waiters.notify_all();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(crate) async fn ended(&self) {
        self.end_waiters
            .until(|| self.has_ended().then_some(()))
            .await;
    }

    pub(crate) fn count_calls(&self, calls: u64) {
        self.calls.fetch_add(calls, Ordering::Relaxed);
    }

    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> MailboxStats {
        let mut stats = self.state.lock().stats();
        stats.calls = self.calls.load(Ordering::Relaxed);
        stats.panics = self.panics.load(Ordering::Relaxed);
        stats
    }
}
