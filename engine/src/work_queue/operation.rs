//! What the operations under the queue's lock take and give.
use super::priority::Priority;
use super::slots::{Burst, KeyCell, Retired, SlotId};
use super::waiters::Wakes;
use crate::clock::{Clock, Timestamp};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// What is left to do when the lock is given back.
pub(super) struct Effects<K> {
    pub(super) wakes: Wakes,
    /// Those who wait for the end of a drain must look.
    pub(super) settled: bool,
    pub(super) retired: Option<Retired<K>>,
    pub(super) burst: Option<Burst<K>>,
    pub(super) waker: Option<Waker>,
}

impl<K> Effects<K> {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            wakes: Wakes::new(),
            settled: false,
            retired: None,
            burst: None,
            waker: None,
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
    pub(super) tenant: u64,
}

/// What is delayed, and how it meets a delay that is pending.
#[derive(Clone, Copy)]
pub(super) struct DelayOf {
    pub(super) priority: Priority,
    pub(super) backing_off: bool,
    pub(super) conflict: Conflict,
}
