//! The rules of ending.
use super::hold::DroppedHold;
use super::operation::Effects;
use super::slots::Retired;
use super::state::{Phase, State};
use crate::clock::Timestamp;
use std::time::Duration;

impl<K> State<K> {
    /// Nothing is ready, and nothing that counts will be.
    pub(super) fn is_over(&self) -> bool {
        self.ready.is_empty()
            && match self.phase {
                Phase::Open => false,
                Phase::Draining => {
                    self.dirty == 0
                        && self.asking == 0
                        && self.delays.is_empty()
                        && self.holds.is_empty()
                }
                Phase::ShutDown => true,
            }
    }

    /// A drain has nothing more to wait for.
    pub(super) fn is_drained(&self) -> bool {
        #[cfg(informant_mutant = "drain_forgets_the_queued")]
        return self.in_flight == 0;
        self.ready.is_empty()
            && self.in_flight == 0
            && self.delays.is_empty()
            && self.holds.is_empty()
    }

    /// While draining: tell everybody when the end is there.
    #[inline]
    pub(super) fn settle(&mut self, effects: &mut Effects<K>) {
        if self.phase == Phase::Open {
            return;
        }
        if self.is_over() {
            self.waiters.wake_all(effects.wakes());
        }
        #[cfg(not(informant_mutant = "drain_ends_in_silence"))]
        if self.is_drained() {
            effects.settled();
        }
    }

    /// Take no more adds, drop every delay, and let every waiting `get` end.
    pub(super) fn shut_down(
        &mut self,
        effects: &mut Effects<K>,
    ) -> (Vec<Retired<K>>, Vec<DroppedHold<K>>) {
        self.phase = Phase::ShutDown;
        let dropped = (self.drop_delays(effects), self.drop_holds());
        self.shrink(effects);
        #[cfg(informant_mutant = "shutdown_wakes_one")]
        {
            self.waiters.wake_one(effects.wakes());
            return dropped;
        }
        self.waiters.wake_all(effects.wakes());
        effects.settled();
        dropped
    }

    /// Take no more adds, and hand out what is there.
    pub(super) fn drain(
        &mut self,
        deliver_delayed: bool,
        effects: &mut Effects<K>,
    ) -> Vec<Retired<K>> {
        self.phase = Phase::Draining;
        let dropped = if deliver_delayed {
            Vec::new()
        } else {
            self.drop_delays(effects)
        };
        self.settle(effects);
        dropped
    }

    fn drop_delays(&mut self, effects: &mut Effects<K>) -> Vec<Retired<K>> {
        let always = Timestamp::new(Duration::MAX);
        let mut dropped = Vec::new();
        while let Some(id) = self.delays.pop_due(&mut self.slots, always) {
            self.counts.delays_dropped += 1;
            dropped.extend(self.slots.remove_unused(id));
        }
        self.shrink(effects);
        dropped
    }
}
