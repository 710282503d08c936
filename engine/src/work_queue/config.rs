//! What a queue is made of.
#[cfg(feature = "metrics")]
use super::export::Exporter;
use super::hold::{self, Gate, Hold};
use super::item::OnPanic;
use super::limiter::{ItemExponential, RateLimiter};
use super::priority::PriorityConfig;
use super::shared::{Shared, TenantOf};
use super::state::{Rules, State};
use crate::clock::SharedClock;
use crate::sync::{Mutex, WaitSet};
use ahash::RandomState;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// What a [`WorkQueue`](super::WorkQueue) is made of.
#[must_use]
pub struct WorkQueueConfig<K> {
    name: Option<Arc<str>>,
    clock: SharedClock,
    limiter: Arc<dyn RateLimiter<K>>,
    on_panic: OnPanic,
    tenant_of: Option<TenantOf<K>>,
    gate: Option<Gate<K>>,
    rules: Rules,
}

impl<K: Hash + Eq + Clone + Send + 'static> WorkQueueConfig<K> {
    /// The default settings. The clock is read under the queue's lock, so it must not call the queue.
    pub fn new(clock: SharedClock) -> Self {
        Self {
            name: None,
            clock,
            limiter: Arc::new(ItemExponential::default()),
            on_panic: OnPanic::default(),
            tenant_of: None,
            gate: None,
            rules: Rules::default(),
        }
    }
}

impl<K> WorkQueueConfig<K> {
    /// The name in metrics and reports; only a queue with a name exports metrics. Default:
    /// `work_queue`.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
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
        self.rules.priorities = priorities;
        self
    }

    /// Within a priority, let the tenants take turns, so that one with many keys delays the others
    /// by one entry and not by all of its own. `tenant_of` names a key's tenant, a namespace for
    /// example. Default: no tenants, first come first served.
    pub fn tenants(
        mut self,
        tenant_of: impl for<'k> Fn(&'k K) -> &'k str + Send + Sync + 'static,
    ) -> Self {
        self.rules.by_tenant = true;
        self.tenant_of = Some(Box::new(move |key, hasher| {
            (hasher.hash_one(tenant_of(key)) >> 32) as u32
        }));
        self
    }

    /// Ask before a key is handed out whether it must wait for something: until the cache shows the
    /// own writes of that key, for example. While it is [held](super::WorkQueue::held) it stays one
    /// entry, however often it is added, and other keys pass it. Asked once for an entry, by the `get`
    /// that would take it and outside the queue's lock; when its hold ends, the key is ready, at the
    /// tail. A gate that panics lets the key through. Default: none.
    ///
    /// ```
    /// # use informant::{ObjectKey, SharedClock, informer::WriteTracker};
    /// # use informant::work_queue::{Hold, WorkQueue, WorkQueueConfig};
    /// # use std::sync::Arc;
    /// # fn f(clock: SharedClock, writes: Arc<WriteTracker<String>>) -> WorkQueue<ObjectKey> {
    /// WorkQueue::new(WorkQueueConfig::new(clock).gate(move |key: &ObjectKey| {
    ///     if writes.is_current(key) {
    ///         return None;
    ///     }
    ///     let (writes, key) = (writes.clone(), key.clone());
    ///     Some(Hold::new("the cache does not show the own write yet", async move {
    ///         // An error means that the cache has stopped: it will show no more.
    ///         writes.current(&key).await.ok();
    ///     }))
    /// }))
    /// # }
    /// ```
    pub fn gate(mut self, gate: impl Fn(&K) -> Option<Hold> + Send + Sync + 'static) -> Self
    where
        K: Send + Sync + 'static,
    {
        self.rules.gated = true;
        self.gate = Some(Gate {
            ask: Box::new(gate),
            waker: hold::waker,
        });
        self
    }

    /// Measure how long entries wait and how long work takes. Costs two or three looks at the clock
    /// for each hand-out. Default: no.
    pub fn timings(mut self, timings: bool) -> Self {
        self.rules.timings = timings;
        self
    }

    /// While a key backs off after a failure, let adds of it wait for the end of the backoff instead
    /// of making it ready at once. Default: no, an add is served at once and the retry comes too.
    pub fn backoff_holds(mut self, holds: bool) -> Self {
        self.rules.backoff_holds = holds;
        self
    }
}

impl<K> WorkQueueConfig<K> {
    pub(super) fn into_shared(self) -> Shared<K> {
        Shared {
            #[cfg(feature = "metrics")]
            exporter: self.name.as_ref().map(Exporter::new),
            name: self.name.unwrap_or_else(|| Arc::from("work_queue")),
            clock: self.clock,
            hasher: RandomState::new(),
            limiter: self.limiter,
            on_panic: self.on_panic,
            tenant_of: self.tenant_of,
            state: Mutex::new(State::new(&self.rules)),
            settled: WaitSet::new(),
            gate: self.gate,
        }
    }
}

impl<K> fmt::Debug for WorkQueueConfig<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueueConfig")
            .field("name", &self.name)
            .field("on_panic", &self.on_panic)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
