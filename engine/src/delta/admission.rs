//! How an input gets into the queue: checked, admitted or made to wait, and announced.
use super::pending::hash_of;
use super::queue::Shared;
use super::state::State;
use super::{Delta, Producer, PushError, SourceId, WhenFull};
use crate::object::ResourceVersion;
use crate::source::BadObject;
use crate::sync::Ordering;
use std::collections::VecDeque;

/// Inputs that enter under one lock at the most: a longer one would hold the consumer up.
const INPUTS_PER_LOCK: usize = 64;

/// An input that is ready to be queued: all that can be done outside the lock is done.
pub(super) enum Prepared<T> {
    Delta { hash: u64, delta: Delta<T> },
    Bad(BadObject),
    Bookmark(ResourceVersion),
}

/// What an entry leads to once the lock is released.
struct Outcome {
    was_empty: bool,
    /// The depth, when it reached the high-water mark.
    high: Option<usize>,
}

impl<T> Shared<T> {
    pub(super) fn delta(&self, delta: Delta<T>) -> Prepared<T> {
        let hash = hash_of(&self.hasher, delta.key());
        Prepared::Delta { hash, delta }
    }

    /// True when the bound keeps a delta out.
    fn keeps_out(&self, state: &State<T>, input: &Prepared<T>) -> bool {
        match (self.bound, input) {
            (Some(bound), Prepared::Delta { hash, delta }) => {
                state.pending.keys() >= bound && !state.pending.has_key(*hash, delta.key())
            }
            _ => false,
        }
    }

    /// Foreign code runs here, outside the lock.
    fn announce(&self, outcome: &Outcome) {
        if outcome.was_empty {
            if let Some(clock) = &self.clock {
                let now = clock.now();
                let mut state = self.state.lock();
                if !state.pending.is_empty() {
                    state.first_at.get_or_insert(now);
                }
            }
            self.arrivals.notify_all();
        }
        if let (Some(depth), Some(high_water)) = (outcome.high, &self.high_water) {
            (high_water.call)(depth);
        }
    }
}

impl<T> Producer<T> {
    /// Queue one input. The forms that wait do so while the queue is full.
    pub(super) async fn push(&self, input: Prepared<T>) -> Result<(), PushError> {
        match self.enter_one(input) {
            Err((input, PushError::Full)) if self.shared.when_full == WhenFull::Wait => {
                self.push_all(VecDeque::from([input])).await
            }
            entered => entered.map_err(|(_, error)| error),
        }
    }

    /// Queue inputs in their order, waiting for room as often as it takes.
    pub(super) async fn push_all(
        &self,
        mut inputs: VecDeque<Prepared<T>>,
    ) -> Result<(), PushError> {
        while !inputs.is_empty() {
            match self.enter(&mut inputs) {
                Err(PushError::Full) if self.shared.when_full == WhenFull::Wait => (),
                entered => {
                    entered?;
                    continue;
                }
            }
            let has_room = || match self.enter(&mut inputs) {
                Err(PushError::Full) => None,
                entered => Some(entered),
            };
            self.shared.room.until(has_room).await?;
        }
        Ok(())
    }

    pub(super) fn try_push(&self, input: Prepared<T>) -> Result<(), PushError> {
        self.enter_one(input).map_err(|(_, error)| error)
    }

    /// Let in as many inputs as one lock is for, oldest first; `Full` when there is room for none.
    fn enter(&self, inputs: &mut VecDeque<Prepared<T>>) -> Result<(), PushError> {
        let mut superfluous = smallvec::SmallVec::<[Delta<T>; 1]>::new();
        let outcome = {
            let mut state = self.shared.state.lock();
            self.check(&mut state)?;
            let mut outcome = None;
            for _ in 0..INPUTS_PER_LOCK {
                match inputs.front() {
                    Some(input) if !self.shared.keeps_out(&state, input) => (),
                    _ => break,
                }
                let Some(input) = inputs.pop_front() else {
                    break;
                };
                let arrived = arrive(&mut state);
                superfluous.extend(self.put(&mut state, input));
                let outcome = outcome.get_or_insert(Outcome {
                    was_empty: arrived,
                    high: None,
                });
                outcome.high = outcome.high.or_else(|| self.rises(&mut state));
            }
            outcome.ok_or(PushError::Full)?
        };
        self.shared.announce(&outcome);
        // An object's own `Drop` is foreign code too.
        drop(superfluous);
        Ok(())
    }

    /// [`Producer::enter`] for one input, which comes back when it was not taken.
    // The caller gets its input back without an allocation; nothing else is in the error.
    #[allow(clippy::result_large_err)]
    pub(super) fn enter_one(&self, input: Prepared<T>) -> Result<(), (Prepared<T>, PushError)> {
        let (outcome, superfluous) = {
            let mut state = self.shared.state.lock();
            if let Err(error) = self.check(&mut state) {
                return Err((input, error));
            }
            if self.shared.keeps_out(&state, &input) {
                return Err((input, PushError::Full));
            }
            let was_empty = arrive(&mut state);
            let superfluous = self.put(&mut state, input);
            let high = self.rises(&mut state);
            (Outcome { was_empty, high }, superfluous)
        };
        self.shared.announce(&outcome);
        drop(superfluous);
        Ok(())
    }

    /// Queue something that is always admitted.
    pub(super) fn control<R>(
        &self,
        input: impl FnOnce(&mut State<T>, SourceId) -> R,
    ) -> Result<R, PushError> {
        let (outcome, result) = {
            let mut state = self.shared.state.lock();
            self.check(&mut state)?;
            let was_empty = arrive(&mut state);
            let result = input(&mut state, self.source());
            let high = self.rises(&mut state);
            (Outcome { was_empty, high }, result)
        };
        self.shared.announce(&outcome);
        Ok(result)
    }

    fn check(&self, state: &mut State<T>) -> Result<(), PushError> {
        if state.closed {
            return Err(PushError::Closed);
        }
        if state.source(self.source()).epoch != self.epoch.load(Ordering::Acquire) {
            return Err(PushError::AbandonedEpoch);
        }
        Ok(())
    }

    fn put(&self, state: &mut State<T>, input: Prepared<T>) -> Option<Delta<T>> {
        let (source, compaction) = (self.source(), state.compaction);
        match input {
            Prepared::Delta { hash, delta } => state.pending.push(source, hash, delta, compaction),
            Prepared::Bad(object) => {
                state.pending.bad(source, object);
                None
            }
            Prepared::Bookmark(version) => {
                state.pending.bookmark(source, &version);
                None
            }
        }
    }

    /// The depth, when it has just reached the high-water mark.
    fn rises(&self, state: &mut State<T>) -> Option<usize> {
        let mark = self.shared.high_water.as_ref()?.mark;
        let depth = state.pending.keys();
        let rises = depth >= mark && !state.is_high;
        state.is_high |= rises;
        rises.then_some(depth)
    }
}

/// Count an input; true when nothing was pending before. The consumer sleeps only then, so only the
/// first input after a drain has to wake it.
fn arrive<T>(state: &mut State<T>) -> bool {
    state.inputs += 1;
    state.pending.is_empty()
}
