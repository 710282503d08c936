//! What a queue is made of.
use super::item::OnPanic;
use super::limiter::{ItemExponential, RateLimiter};
use super::priority::PriorityConfig;
use super::shared::{Shared, TenantOf};
use super::state::State;
use crate::clock::SharedClock;
use crate::sync::{Mutex, WaitSet};
use ahash::RandomState;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// What a [`WorkQueue`](super::WorkQueue) is made of.
#[must_use]
pub struct WorkQueueConfig<K> {
    name: Arc<str>,
    clock: SharedClock,
    limiter: Arc<dyn RateLimiter<K>>,
    on_panic: OnPanic,
    priorities: PriorityConfig,
    tenant_of: Option<TenantOf<K>>,
    timings: bool,
    backoff_holds: bool,
}

impl<K: Hash + Eq + Clone + Send + 'static> WorkQueueConfig<K> {
    /// The default settings. The clock is read under the queue's lock, so it must not call the queue.
    pub fn new(clock: SharedClock) -> Self {
        Self {
            name: Arc::from("work_queue"),
            clock,
            limiter: Arc::new(ItemExponential::default()),
            on_panic: OnPanic::default(),
            priorities: PriorityConfig::default(),
            tenant_of: None,
            timings: false,
            backoff_holds: false,
        }
    }
}

impl<K> WorkQueueConfig<K> {
    /// The name in metrics and reports. Default: `work_queue`.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// How long failed keys wait. Default: [`ItemExponential::default`], 5 ms to 1000 s: client-go's
    /// limiter for controllers without the bucket that ties all keys together.
    pub fn limiter(mut self, limiter: Arc<dyn RateLimiter<K>>) -> Self {
        self.limiter = limiter;
        self
    }

    /// What happens to an item that is dropped by a panic. Default: it is retried.
    pub fn on_panic(mut self, on_panic: OnPanic) -> Self {
        self.on_panic = on_panic;
        self
    }

    /// What less urgent entries get while more urgent ones wait.
    pub fn priorities(mut self, priorities: PriorityConfig) -> Self {
        self.priorities = priorities;
        self
    }

    /// Within a priority, let the tenants take turns, so that one with many keys delays the others
    /// by one entry and not by all of its own. `tenant_of` names a key's tenant, a namespace for
    /// example. Default: no tenants, first come first served.
    pub fn tenants(
        mut self,
        tenant_of: impl for<'k> Fn(&'k K) -> &'k str + Send + Sync + 'static,
    ) -> Self {
        self.tenant_of = Some(Box::new(move |key, hasher| {
            (hasher.hash_one(tenant_of(key)) >> 32) as u32
        }));
        self
    }

    /// Measure how long entries wait and how long work takes. Costs two or three looks at the clock
    /// for each hand-out. Default: no.
    pub fn timings(mut self, timings: bool) -> Self {
        self.timings = timings;
        self
    }

    /// While a key backs off after a failure, let adds of it wait for the end of the backoff instead
    /// of making it ready at once. Default: no, an add is served at once and the retry comes too.
    pub fn backoff_holds(mut self, holds: bool) -> Self {
        self.backoff_holds = holds;
        self
    }
}

impl<K> WorkQueueConfig<K> {
    pub(super) fn into_shared(self) -> Shared<K> {
        let by_tenant = self.tenant_of.is_some();
        Shared {
            name: self.name,
            clock: self.clock,
            hasher: RandomState::new(),
            limiter: self.limiter,
            on_panic: self.on_panic,
            tenant_of: self.tenant_of,
            state: Mutex::new(State::new(
                self.priorities,
                by_tenant,
                self.timings,
                self.backoff_holds,
            )),
            settled: WaitSet::new(),
        }
    }
}

impl<K> fmt::Debug for WorkQueueConfig<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueueConfig")
            .field("name", &self.name)
            .field("on_panic", &self.on_panic)
            .field("priorities", &self.priorities)
            .field("timings", &self.timings)
            .field("backoff_holds", &self.backoff_holds)
            .finish_non_exhaustive()
    }
}
