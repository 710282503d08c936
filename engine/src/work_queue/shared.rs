//! The queue behind its handles: the lock, and everything that must happen outside of it.
#[cfg(feature = "metrics")]
use super::export::{Exporter, Moment};
use super::hold::Gate;
use super::item::OnPanic;
use super::limiter::RateLimiter;
use super::operation::{Conflict, DelayOf, Effects, Keyed, Now};
use super::slots::SlotId;
use super::state::State;
use crate::clock::SharedClock;
use crate::sync::{Mutex, WaitSet};
use ahash::RandomState;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// How a key's tenant is told: a hash of its name. Two tenants with the same hash share their turns.
pub(super) type TenantOf<K> = Box<dyn Fn(&K, &RandomState) -> u32 + Send + Sync>;

/// What a retry waits when the limiter itself fails.
const WITHOUT_LIMITER: Duration = Duration::from_secs(1);

pub(super) struct Shared<K> {
    pub(super) name: Arc<str>,
    pub(super) clock: SharedClock,
    pub(super) hasher: RandomState,
    pub(super) limiter: Arc<dyn RateLimiter<K>>,
    pub(super) on_panic: OnPanic,
    pub(super) tenant_of: Option<TenantOf<K>>,
    pub(super) gate: Option<Gate<K>>,
    pub(super) state: Mutex<State<K>>,
    #[cfg(feature = "metrics")]
    pub(super) exporter: Option<Exporter>,
    /// Those who wait for the end of a drain.
    pub(super) settled: WaitSet,
}

impl<K> Shared<K> {
    /// Do something under the lock, and what follows from it after.
    #[inline]
    pub(super) fn locked<R>(
        &self,
        operation: impl FnOnce(&mut State<K>, &mut Now<'_>, &mut Effects<K>) -> R,
    ) -> R {
        let mut effects = Effects::new();
        let mut now = Now::of(&*self.clock);
        let mut state = self.state.lock();
        let result = operation(&mut state, &mut now, &mut effects);
        #[cfg(feature = "metrics")]
        let moment = self.exporter.as_ref().map(|_| Moment::of(&state));
        drop(state);
        #[cfg(feature = "metrics")]
        if let (Some(exporter), Some(moment)) = (&self.exporter, moment) {
            exporter.export(&moment);
            if let Some(duration) = effects.worked_for {
                exporter.worked(duration);
            }
        }
        effects.happen(&self.settled);
        result
    }

    /// How long this key must wait by the limiter's word.
    pub(super) fn limit(&self, key: &K) -> Duration {
        let now = self.clock.now();
        let when = catch_unwind(AssertUnwindSafe(|| self.limiter.when(key, now)));
        when.unwrap_or_else(|_| {
            tracing::error!(queue = %self.name, "the rate limiter panicked; the key waits a second");
            WITHOUT_LIMITER
        })
    }

    /// Put the running key of this hand-out back, to be due after `delay`.
    pub(super) fn put_back(&self, slot: SlotId, number: u64, delay: Duration, backing_off: bool) {
        let _retired = self.locked(|state, now, effects| {
            let running = state.slots.running(slot, number)?;
            let delay_of = DelayOf {
                priority: running.priority,
                backing_off,
                conflict: Conflict::EarliestWins,
            };
            let due = now.get() + delay;
            state.delay(slot, due, delay_of, now, effects);
            state.counts.retries += u64::from(backing_off);
            state.done(slot, number, now, effects)
        });
    }
}

impl<K: Hash> Shared<K> {
    /// The key with what is computed from it outside the lock.
    #[inline]
    pub(super) fn keyed(&self, key: K) -> Keyed<K> {
        let tenant_of = self.tenant_of.as_ref();
        Keyed {
            hash: self.hasher.hash_one(&key),
            tenant: tenant_of.map_or(0, |tenant_of| tenant_of(&key, &self.hasher)),
            key: Some(key),
        }
    }
}
