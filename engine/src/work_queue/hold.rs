//! Keys that wait for a condition before they are worked on.
use super::operation::{Effects, HandOut, Now};
use super::shared::Shared;
use super::slots::{Retired, SlotId, Stage, Stamp};
use super::state::{Phase, State};
use crate::clock::Timestamp;
use ahash::RandomState;
use hashbrown::HashMap;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

type Condition = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why a key is not to be worked on yet, and until when.
///
/// Returned by the [gate](super::WorkQueueConfig::gate) of a queue, or given to
/// [`Item::hold`](super::Item::hold).
#[must_use]
pub struct Hold {
    reason: Cow<'static, str>,
    until: Condition,
}

impl Hold {
    /// Hold a key until this future ends. It is polled by the workers' `get`s, outside the queue's
    /// lock, so it must not block; one that panics has ended. The reason is what
    /// [`held`](super::WorkQueue::held) shows.
    pub fn new(
        reason: impl Into<Cow<'static, str>>,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self {
            reason: reason.into(),
            until: Box::pin(until),
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.reason).finish()
    }
}

/// What is asked before a key is handed out.
pub(super) struct Gate<K> {
    pub(super) ask: Ask<K>,
    pub(super) waker: MakeWaker<K>,
}

pub(super) type Ask<K> = Box<dyn Fn(&K) -> Option<Hold> + Send + Sync>;

/// Makes the waker of a hold; a function where the bounds of a waker are known to hold.
pub(super) type MakeWaker<K> = fn(&Arc<Shared<K>>, SlotId, u64) -> Waker;

/// The keys that are held.
pub(super) struct Holds {
    held: HashMap<SlotId, Held, RandomState>,
    /// Those whose conditions are to be polled.
    woken: VecDeque<SlotId>,
}

pub(super) struct Held {
    /// The hand-out that it was.
    number: u64,
    pub(super) reason: Cow<'static, str>,
    pub(super) since: Timestamp,
    progress: Progress,
    waker: Waker,
}

enum Progress {
    Waiting(Condition),
    /// Among the woken.
    ToPoll(Condition),
    Polling {
        woken: bool,
    },
}

/// A condition that is being polled, and whose it is.
pub(super) struct ToPoll {
    slot: SlotId,
    number: u64,
    condition: Condition,
    waker: Waker,
}

impl Holds {
    pub(super) fn new() -> Self {
        Self {
            held: HashMap::with_hasher(RandomState::new()),
            woken: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Some condition is to be polled.
    #[inline]
    pub(super) fn is_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotId, &Held)> {
        self.held.iter().map(|(&slot, held)| (slot, held))
    }

    /// End them all: the slots, and what is left of them.
    pub(super) fn clear(&mut self) -> Vec<(SlotId, Held)> {
        self.woken.clear();
        self.held.drain().collect()
    }

    /// The condition of this hold has progressed; true when it must be polled.
    fn wake(&mut self, slot: SlotId, number: u64) -> bool {
        let Some(held) = self
            .held
            .get_mut(&slot)
            .filter(|held| held.number == number)
        else {
            return false;
        };
        match std::mem::replace(&mut held.progress, Progress::Polling { woken: true }) {
            Progress::Waiting(condition) => {
                held.progress = Progress::ToPoll(condition);
                self.woken.push_back(slot);
                true
            }
            progress @ Progress::ToPoll(_) => {
                held.progress = progress;
                false
            }
            Progress::Polling { .. } => false,
        }
    }

    fn next_to_poll(&mut self) -> Option<ToPoll> {
        let slot = self.woken.pop_front()?;
        let held = self.held.get_mut(&slot)?;
        match std::mem::replace(&mut held.progress, Progress::Polling { woken: false }) {
            Progress::ToPoll(condition) => Some(ToPoll {
                slot,
                number: held.number,
                condition,
                waker: held.waker.clone(),
            }),
            // Only what is to be polled is among the woken.
            other => {
                held.progress = other;
                None
            }
        }
    }
}

impl<K> State<K> {
    /// Hold a key that was handed out, instead of having it worked on.
    pub(super) fn hold(
        &mut self,
        slot: SlotId,
        number: u64,
        hold: Hold,
        waker: Waker,
        now: &mut Now<'_>,
    ) -> Option<Hold> {
        if self.slots.running(slot, number).is_none() || self.phase == Phase::ShutDown {
            return Some(hold);
        }
        self.end_run(slot, now);
        let entry = self.slots.get_mut(slot);
        if entry.stage == Stage::RunningDirty {
            entry.priority = entry.priority.max(entry.next_priority);
            self.dirty -= 1;
            self.counts.adds -= 1;
            self.counts.collapsed += 1;
        }
        entry.stage = Stage::Held;
        self.holds.woken.push_back(slot);
        let kept = Held {
            number,
            reason: hold.reason,
            since: now.get(),
            progress: Progress::ToPoll(hold.until),
            waker,
        };
        self.holds.held.insert(slot, kept);
        None
    }

    /// A condition was polled. Returns it when nobody waits for it any more.
    fn polled(
        &mut self,
        polled: ToPoll,
        ended: bool,
        now: &mut Now<'_>,
        effects: &mut Effects<K>,
    ) -> Option<ToPoll> {
        let ToPoll { slot, number, .. } = polled;
        let same = |held: &&mut Held| held.number == number;
        let Some(held) = self.holds.held.get_mut(&slot).filter(same) else {
            return Some(polled);
        };
        if ended {
            self.holds.held.remove(&slot);
            let entry = self.slots.get_mut(slot);
            entry.passed = true;
            if entry.added_at.get().is_some() {
                // The time that it was held is not the queue's latency.
                entry.added_at = Stamp::at(now.get());
            }
            self.make_ready(slot, effects);
            return Some(polled);
        }
        let woken = matches!(held.progress, Progress::Polling { woken: true });
        held.progress = Progress::Waiting(polled.condition);
        #[cfg(informant_mutant = "hold_forgets_a_wake_up")]
        let woken = woken && false;
        if woken && self.holds.wake(slot, number) {
            self.wake_one(effects);
        }
        None
    }

    /// The plain shutdown: nobody waits for conditions any more.
    pub(super) fn drop_holds(&mut self) -> Vec<DroppedHold<K>> {
        let ended = self.holds.clear().into_iter();
        let dropped = ended.map(|(slot, held)| {
            self.slots.get_mut(slot).stage = Stage::Idle;
            DroppedHold {
                _held: held,
                _retired: self.slots.remove_unused(slot),
            }
        });
        dropped.collect()
    }
}

/// What is left of a hold: to be dropped when no lock is held.
pub(super) struct DroppedHold<K> {
    _held: Held,
    _retired: Option<Retired<K>>,
}

impl<K> Shared<K> {
    /// Poll the conditions that have progressed, each once: some wake themselves.
    #[cold]
    pub(super) fn poll_holds(&self) {
        let woken = self.locked(|state, _, _| state.holds.woken.len());
        for _ in 0..woken {
            let Some(mut next) = self.locked(|state, _, _| state.holds.next_to_poll()) else {
                return;
            };
            let waker = next.waker.clone();
            let condition = next.condition.as_mut();
            let poll = AssertUnwindSafe(|| condition.poll(&mut Context::from_waker(&waker)));
            let ended = catch_unwind(poll).map_or_else(
                |_| {
                    tracing::error!(queue = %self.name, "a hold panicked; its key is handed out");
                    true
                },
                |poll| poll == Poll::Ready(()),
            );
            let _over = self.locked(|state, now, effects| state.polled(next, ended, now, effects));
        }
    }

    /// Hold what was handed out. Returns what cannot be held, since the queue has shut down.
    pub(super) fn hold(&self, slot: SlotId, number: u64, hold: Hold, waker: Waker) -> Option<Hold> {
        self.locked(|state, now, _| state.hold(slot, number, hold, waker, now))
    }

    /// Ask the gate about what was handed out; `None` when it is held.
    #[inline]
    pub(super) fn admit(self: &Arc<Self>, hand_out: HandOut<K>) -> Option<HandOut<K>> {
        match &self.gate {
            Some(gate) if hand_out.ask => self.ask(gate, hand_out),
            _ => Some(hand_out),
        }
    }

    #[cold]
    fn ask(self: &Arc<Self>, gate: &Gate<K>, hand_out: HandOut<K>) -> Option<HandOut<K>> {
        let ask = AssertUnwindSafe(|| (gate.ask)(hand_out.cell.key()));
        let hold = catch_unwind(ask).unwrap_or_else(|_| {
            tracing::error!(queue = %self.name, "the gate panicked; the key is handed out");
            None
        });
        let (slot, number) = (hand_out.slot, hand_out.number);
        let Some(hold) = hold else {
            self.locked(|state, _, effects| {
                state.asking -= 1;
                state.counts.gets += 1;
                state.settle(effects);
            });
            return Some(hand_out);
        };
        drop(hand_out);
        let waker = (gate.waker)(self, slot, number);
        let (_refused, _retired) = self.locked(|state, now, effects| {
            state.asking -= 1;
            let refused = state.hold(slot, number, hold, waker, now)?;
            // By a shutdown: nobody waits for conditions any more.
            let retired = state.done(slot, number, now, effects);
            state.counts.done -= 1;
            Some((refused, retired))
        })?;
        None
    }
}

/// Wakes a worker to poll the condition of one hold.
struct HoldWaker<K> {
    queue: Weak<Shared<K>>,
    slot: SlotId,
    number: u64,
}

pub(super) fn waker<K: Send + Sync + 'static>(
    queue: &Arc<Shared<K>>,
    slot: SlotId,
    number: u64,
) -> Waker {
    Waker::from(Arc::new(HoldWaker {
        queue: Arc::downgrade(queue),
        slot,
        number,
    }))
}

impl<K: Send + Sync + 'static> Wake for HoldWaker<K> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(queue) = self.queue.upgrade() else {
            return;
        };
        queue.locked(|state, _, effects| {
            if state.holds.wake(self.slot, self.number) {
                state.wake_one(effects);
            }
        });
    }
}
