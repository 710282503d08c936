//! What the operations under the queue's lock take and give.
use super::priority::Priority;
use super::slots::{Burst, KeyCell, SlotId};
use super::waiters::Wakes;
use crate::clock::{Clock, Timestamp};
use crate::sync::WaitSet;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// What is left to do when the lock is given back; mostly nothing.
pub(super) struct Effects<K> {
    /// There is something in here.
    any: bool,
    wakes: Wakes,
    settled: bool,
    waker: Option<Waker>,
    burst: Option<Burst<K>>,
    /// The work that has ended took so long.
    #[cfg(feature = "metrics")]
    pub(super) worked_for: Option<Duration>,
}

impl<K> Effects<K> {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            any: false,
            wakes: Wakes::new(),
            settled: false,
            waker: None,
            burst: None,
            #[cfg(feature = "metrics")]
            worked_for: None,
        }
    }

    /// Wakers to call.
    pub(super) fn wakes(&mut self) -> &mut Wakes {
        self.any = true;
        &mut self.wakes
    }

    /// Those who wait for the end of a drain must look.
    pub(super) fn settled(&mut self) {
        self.any = true;
        self.settled = true;
    }

    /// A waker that is not needed any more.
    pub(super) fn discard(&mut self, waker: Option<Waker>) {
        self.any = true;
        self.waker = waker;
    }

    /// Memory that is not needed any more.
    pub(super) fn release(&mut self, burst: Burst<K>) {
        self.any = true;
        self.burst = Some(burst);
    }

    /// Let it happen, now that no lock is held.
    #[inline]
    pub(super) fn happen(self, waiting_for_the_end: &WaitSet) {
        if self.any {
            self.do_happen(waiting_for_the_end);
        } else {
            // Nothing to drop, and this saves each operation from looking.
            std::mem::forget(self);
        }
    }

    #[cold]
    fn do_happen(self, waiting_for_the_end: &WaitSet) {
        for waker in self.wakes {
            waker.wake();
        }
        if self.settled {
            waiting_for_the_end.notify_all();
        }
    }
}

/// The time, read at most once for an operation and only when it matters.
pub(super) struct Now<'a> {
    clock: &'a dyn Clock,
    read: Option<Timestamp>,
}

impl<'a> Now<'a> {
    #[inline]
    pub(super) const fn of(clock: &'a dyn Clock) -> Self {
        Self { clock, read: None }
    }

    pub(super) fn get(&mut self) -> Timestamp {
        *self.read.get_or_insert_with(|| self.clock.now())
    }
}

/// What is handed out.
pub(super) struct HandOut<K> {
    pub(super) slot: SlotId,
    pub(super) number: u64,
    pub(super) cell: Arc<KeyCell<K>>,
    pub(super) priority: Priority,
    /// The gate is to be asked first.
    pub(super) ask: bool,
    pub(super) waited: Option<Duration>,
}

/// What a look for work finds.
pub(super) enum Found<R> {
    Work(R),
    Nothing,
    /// Nothing, and nothing will come.
    End,
}

/// How a `get` goes on after it has looked.
pub(super) enum Next<R> {
    Work(R),
    End,
    /// The conditions of holds are to be polled first.
    PollHolds,
    /// There is nothing, but soon again conditions to poll: come back soon.
    LookAgain,
    /// There is nothing: look again with a waker.
    BringWaker,
    /// Wait to be woken; the timekeeper sleeps no longer than until that time.
    Wait(Option<Timestamp>),
}

/// What is asked of a delay that is pending already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// The earlier of both counts.
    EarliestWins,
    /// The new one counts.
    Replace,
}

/// A key and its hash, to be kept only if it is new.
pub(super) struct Keyed<K> {
    /// Taken if the key is new to the queue; else it is dropped outside the lock.
    pub(super) key: Option<K>,
    pub(super) hash: u64,
    pub(super) tenant: u32,
}

/// What is delayed, and how it meets a delay that is pending.
#[derive(Clone, Copy)]
pub(super) struct DelayOf {
    pub(super) priority: Priority,
    pub(super) backing_off: bool,
    pub(super) conflict: Conflict,
}
