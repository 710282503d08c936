//! What the queue's lock guards: the rules of adding, handing out and ending, without any waiting.
//!
//! A key has one slot while there is anything to know of it, and stands in one [`Stage`]. From this
//! the invariants follow: a key is in the queue at most once (I-W1), never handed out twice at once
//! (I-W2), and adds collapse (I-W3).
//!
//! No user code runs in here except the key's `Eq`: what must be dropped, woken or reported is
//! handed to the caller in [`Effects`].
use super::delays::Delays;
use super::hold::Holds;
use super::links::List;
use super::metrics::{Counts, Timings};
use super::operation::{Conflict, DelayOf, Effects, Found, HandOut, Keyed, Next, Now};
use super::priority::{Priority, PriorityConfig};
use super::ready::Ready;
use super::slots::{Retired, SlotId, Slots, Stage, Stamp};
use super::waiters::{WaiterId, Waiters};
use crate::clock::Timestamp;
use std::task::Waker;
use std::time::Duration;

pub(super) struct State<K> {
    pub(super) slots: Slots<K>,
    pub(super) ready: Ready,
    pub(super) delays: Delays,
    pub(super) holds: Holds,
    pub(super) waiters: Waiters,
    pub(super) phase: Phase,
    /// How many keys are handed out.
    pub(super) in_flight: usize,
    /// Which, the longest first; empty unless times are measured.
    pub(super) running: List,
    /// How many of them were added again.
    pub(super) dirty: usize,
    /// There is a gate, and so many of the keys that are handed out have not passed it yet.
    gated: bool,
    pub(super) asking: usize,
    /// How many hand-outs there were: they are numbered.
    hand_outs: u64,
    pub(super) counts: Counts,
    /// `None`: times are not measured.
    pub(super) timings: Option<Timings>,
    /// Entries are stamped with the time of their add: for timings, and once priorities are used.
    stamps: bool,
    backoff_holds: bool,
}

/// What a queue does beyond the plain rules.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // Independent choices of the user.
pub(super) struct Rules {
    pub(super) priorities: PriorityConfig,
    /// Tenants take turns.
    pub(super) by_tenant: bool,
    /// There is a gate.
    pub(super) gated: bool,
    pub(super) timings: bool,
    pub(super) backoff_holds: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// No adds; what is there is to be handled.
    Draining,
    /// No adds; what is ready can be taken; nobody waits for anything.
    ShutDown,
}

impl<K> State<K> {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            slots: Slots::new(),
            ready: Ready::new(rules.priorities, rules.by_tenant),
            delays: Delays::new(),
            holds: Holds::new(),
            waiters: Waiters::new(),
            phase: Phase::Open,
            in_flight: 0,
            running: List::new(),
            dirty: 0,
            gated: rules.gated,
            asking: 0,
            hand_outs: 0,
            counts: Counts::default(),
            timings: rules.timings.then(Timings::default),
            stamps: rules.timings,
            backoff_holds: rules.backoff_holds,
        }
    }

    /// Make every key ready whose time has come, in the order of the due times.
    #[inline]
    pub(super) fn deliver_due(&mut self, now: &mut Now<'_>, effects: &mut Effects<K>) {
        if self.delays.is_empty() {
            return;
        }
        let until = now.get();
        while let Some(id) = self.delays.pop_due(&mut self.slots, until) {
            self.counts.delivered += 1;
            let priority = self.slots.get(id).delayed_priority;
            self.mark(id, priority, now, effects);
        }
    }

    /// Add a key that the queue knows; false when it must be added as a new one.
    #[inline]
    pub(super) fn add_known(
        &mut self,
        hash: u64,
        key: &K,
        priority: Priority,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) -> bool
    where
        K: Eq,
    {
        if self.phase != Phase::Open {
            self.counts.refused += 1;
            return true;
        }
        self.deliver_due(now, effects);
        let Some(id) = self.slots.find(hash, key) else {
            return false;
        };
        let slot = self.slots.get(id);
        if self.backoff_holds && slot.stage == Stage::Idle && slot.backing_off {
            self.counts.collapsed += 1;
        } else {
            self.mark(id, priority, now, effects);
        }
        true
    }

    /// Add a key, taking it only if it is new to the queue.
    #[inline]
    pub(super) fn add(
        &mut self,
        keyed: &mut Keyed<K>,
        priority: Priority,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) where
        K: Eq,
    {
        let Some(key) = keyed.key.as_ref() else {
            return;
        };
        if self.add_known(keyed.hash, key, priority, now, effects) {
            return;
        }
        let id = self.slots.insert(keyed);
        self.mark(id, priority, now, effects);
    }

    /// There is something to do for this slot's key.
    #[inline]
    fn mark(
        &mut self,
        id: SlotId,
        priority: Priority,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) {
        if priority != Priority::Normal {
            self.stamps = true;
        }
        match self.slots.get(id).stage {
            Stage::Idle => {
                self.counts.adds += 1;
                let added_at = self.stamp(now);
                let slot = self.slots.get_mut(id);
                slot.priority = priority;
                slot.added_at = added_at;
                slot.passed = false;
                self.make_ready(id, effects);
            }
            Stage::Held => {
                self.counts.collapsed += 1;
                let slot = self.slots.get_mut(id);
                slot.priority = slot.priority.max(priority);
            }
            Stage::Ready => {
                self.counts.collapsed += 1;
                if priority > self.slots.get(id).priority {
                    self.ready.remove(&mut self.slots, id);
                    self.slots.get_mut(id).priority = priority;
                    self.ready.push(&mut self.slots, id);
                }
            }
            Stage::Running => {
                #[cfg(informant_mutant = "queue_hands_out_twice")]
                return self.make_ready(id, effects);
                self.counts.adds += 1;
                let added_at = self.stamp(now);
                let slot = self.slots.get_mut(id);
                slot.stage = Stage::RunningDirty;
                slot.next_priority = priority;
                slot.added_at = added_at;
                self.dirty += 1;
            }
            Stage::RunningDirty => {
                self.counts.collapsed += 1;
                let slot = self.slots.get_mut(id);
                slot.next_priority = slot.next_priority.max(priority);
            }
        }
    }

    #[inline]
    fn stamp(&self, now: &mut Now<'_>) -> Stamp {
        if self.stamps {
            Stamp::at(now.get())
        } else {
            Stamp::NONE
        }
    }

    #[inline]
    pub(super) fn make_ready(&mut self, id: SlotId, effects: &mut Effects<K>) {
        self.slots.get_mut(id).stage = Stage::Ready;
        self.ready.push(&mut self.slots, id);
        #[cfg(not(informant_mutant = "queue_add_wakes_nobody"))]
        self.wake_one(effects);
    }

    /// There is something to do for one waiter.
    #[inline]
    pub(super) fn wake_one(&mut self, effects: &mut Effects<K>) {
        if !self.waiters.is_empty() {
            self.waiters.wake_one(effects.wakes());
        }
    }

    /// Add a key once `due` has come; at once if it has.
    pub(super) fn add_at(
        &mut self,
        keyed: &mut Keyed<K>,
        due: Timestamp,
        delay: DelayOf,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) where
        K: Eq,
    {
        if self.phase != Phase::Open {
            self.counts.refused += 1;
            return;
        }
        self.deliver_due(now, effects);
        let Some(key) = keyed.key.as_ref() else {
            return;
        };
        let known = self.slots.find(keyed.hash, key);
        let id = known.unwrap_or_else(|| self.slots.insert(keyed));
        self.delay(id, due, delay, now, effects);
    }

    /// Let this slot's key be added at `due`.
    pub(super) fn delay(
        &mut self,
        id: SlotId,
        due: Timestamp,
        delay: DelayOf,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) {
        if self.phase != Phase::Open {
            return;
        }
        if due <= now.get() {
            if delay.conflict == Conflict::Replace {
                self.delays.cancel(&mut self.slots, id);
            }
            self.mark(id, delay.priority, now, effects);
            return;
        }
        let pending = self.delays.due(&self.slots, id);
        let slot = self.slots.get_mut(id);
        let wins = match pending {
            Some(pending) if delay.conflict == Conflict::EarliestWins => {
                slot.delayed_priority = slot.delayed_priority.max(delay.priority);
                due < pending
            }
            _ => {
                slot.delayed_priority = delay.priority;
                true
            }
        };
        if wins {
            slot.backing_off = delay.backing_off;
            self.delays.set(&mut self.slots, id, due);
            let next_due = self.delays.next_due();
            self.waiters.keep_time(next_due, effects.wakes());
        }
    }

    /// Drop the delay of this key; false when none is pending.
    pub(super) fn cancel_delayed(
        &mut self,
        id: SlotId,
        effects: &mut Effects<K>,
    ) -> (bool, Option<Retired<K>>) {
        if !self.delays.cancel(&mut self.slots, id) {
            return (false, None);
        }
        let retired = self.forget_if_unused(id, effects);
        self.settle(effects);
        (true, retired)
    }

    /// Hand out the next entry.
    #[inline]
    pub(super) fn take(
        &mut self,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) -> Found<HandOut<K>> {
        self.deliver_due(now, effects);
        let Some(id) = self.ready.pop(&mut self.slots, || now.get()) else {
            return if self.is_over() {
                Found::End
            } else {
                Found::Nothing
            };
        };
        self.hand_outs += 1;
        let number = self.hand_outs;
        self.in_flight += 1;
        let slot = self.slots.get_mut(id);
        debug_assert_eq!(
            slot.stage,
            Stage::Ready,
            "only ready entries are in the queue"
        );
        slot.stage = Stage::Running;
        slot.hand_out = number;
        let mut waited = None;
        if let Some(timings) = &mut self.timings {
            let now = now.get();
            slot.started_at = Stamp::at(now);
            let latency = slot
                .added_at
                .get()
                .map_or(Duration::ZERO, |at| now.since(at));
            timings.queue_latency.record(latency);
            waited = Some(latency);
            self.running.push_back(&mut self.slots, id);
        }
        let slot = self.slots.get(id);
        let hand_out = HandOut {
            slot: id,
            number,
            cell: self.slots.cell(id),
            priority: slot.priority,
            ask: self.gated && !slot.passed,
            waited,
        };
        if hand_out.ask {
            self.asking += 1;
        } else {
            self.counts.gets += 1;
            self.settle(effects);
        }
        Found::Work(hand_out)
    }

    /// Hand out up to `max` entries, one at least.
    pub(super) fn take_batch(
        &mut self,
        max: usize,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) -> Found<Vec<HandOut<K>>> {
        let first = match self.take(now, effects) {
            Found::Work(first) => first,
            Found::Nothing => return Found::Nothing,
            Found::End => return Found::End,
        };
        let mut batch = Vec::with_capacity(max.min(self.ready.len() + 1));
        batch.push(first);
        while batch.len() < max
            && let Found::Work(next) = self.take(now, effects)
        {
            batch.push(next);
        }
        Found::Work(batch)
    }

    /// Look for work as the waiter `waiter`, and wait if there is none.
    pub(super) fn look<R>(
        &mut self,
        take: impl FnOnce(&mut Self, &mut Now<'_>, &mut Effects<K>) -> Found<R>,
        waiter: &mut Option<WaiterId>,
        waker: Option<Waker>,
        poll_holds: bool,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) -> Next<R> {
        if poll_holds && self.holds.is_woken() {
            return Next::PollHolds;
        }
        let next = match take(self, now, effects) {
            Found::Work(work) => Next::Work(work),
            Found::End => Next::End,
            // A condition that wakes itself: nobody else will wake the caller.
            Found::Nothing if self.holds.is_woken() => return Next::LookAgain,
            Found::Nothing => {
                let Some(waker) = waker else {
                    return Next::BringWaker;
                };
                let next_due = self.delays.next_due();
                let (until, replaced) = self.waiters.wait(waiter, waker, next_due);
                effects.discard(replaced);
                return Next::Wait(until);
            }
        };
        if let Some(id) = waiter.take() {
            self.leave(id, true, effects);
        }
        next
    }

    /// The work that was handed out under this number has ended. Returns what is left of the key if
    /// there is nothing more to do for it.
    #[inline]
    pub(super) fn done(
        &mut self,
        id: SlotId,
        number: u64,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) -> Option<Retired<K>> {
        self.slots.running(id, number)?;
        let ran_for = self.end_run(id, now);
        self.counts.done += 1;
        if let (Some(timings), Some(ran_for)) = (&mut self.timings, ran_for) {
            timings.work_duration.record(ran_for);
            #[cfg(feature = "metrics")]
            {
                effects.worked_for = Some(ran_for);
            }
        }
        let slot = self.slots.get_mut(id);
        let dirty = slot.stage == Stage::RunningDirty;
        self.dirty -= usize::from(dirty);
        let mut again = dirty;
        if dirty && self.backoff_holds && slot.backing_off {
            // The retry sees what the add was about.
            self.counts.adds -= 1;
            self.counts.collapsed += 1;
            again = false;
        }
        again &= !cfg!(informant_mutant = "done_loses_the_dirty");
        let retired = if again {
            slot.priority = slot.next_priority;
            slot.passed = false;
            self.make_ready(id, effects);
            None
        } else {
            slot.stage = Stage::Idle;
            self.forget_if_unused(id, effects)
        };
        self.settle(effects);
        retired
    }

    /// This slot is not in a worker's hands any more. Returns how long it was, when times are
    /// measured.
    #[inline]
    pub(super) fn end_run(&mut self, id: SlotId, now: &mut Now<'_>) -> Option<Duration> {
        self.in_flight -= 1;
        self.timings?;
        self.running.remove(&mut self.slots, id);
        let started_at = self.slots.get(id).started_at.get()?;
        Some(now.get().since(started_at))
    }

    #[inline]
    fn forget_if_unused(&mut self, id: SlotId, effects: &mut Effects<K>) -> Option<Retired<K>> {
        let retired = self.slots.remove_unused(id)?;
        self.shrink(effects);
        Some(retired)
    }

    /// Give back the memory of a burst that is over.
    #[inline]
    pub(super) fn shrink(&mut self, effects: &mut Effects<K>) {
        if self.slots.is_sparse() {
            effects.release(self.slots.shrink());
            self.delays.shrink();
        }
    }

    /// The waiter `id` takes no more part. It may have been woken for an entry and not have looked:
    /// then somebody else must look.
    pub(super) fn leave(&mut self, id: WaiterId, looked: bool, effects: &mut Effects<K>) {
        let (left, waker) = self
            .waiters
            .leave(id, self.delays.next_due(), effects.wakes());
        effects.discard(waker);
        #[cfg(informant_mutant = "dropped_get_keeps_its_wake_up")]
        return;
        if left.unused && !looked && (!self.ready.is_empty() || self.holds.is_woken()) {
            self.wake_one(effects);
        }
    }
}
