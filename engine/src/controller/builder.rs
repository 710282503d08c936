//! Declaring a controller.
use super::runner::{Action, Controller, ErrorHook, ReconcileError, Runner};
use crate::clock::{SharedClock, SystemClock};
use crate::informer::{AddHandlerError, Event, HandlerOptions, SharedInformer, handler_fn};
use crate::object::{Cached, ObjectKey};
use crate::work_queue::{RateLimiter, WorkQueue, WorkQueueConfig};
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;

/// A handler that a controller has registered, whatever the type of its objects.
pub(super) struct Watch {
    /// Ends when the handler's initial calls have returned.
    pub(super) synced: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Removes the handler and ends when no call of it runs.
    pub(super) remove: Pin<Box<dyn Future<Output = ()> + Send>>,
}

type MakeWatch<K> = Box<dyn FnOnce(WorkQueue<K>, &str) -> Result<Watch, AddHandlerError> + Send>;

/// Declares a [`Controller`]: see [`Controller::builder`].
#[must_use]
pub struct ControllerBuilder<K> {
    name: String,
    clock: Option<SharedClock>,
    limiter: Option<Arc<dyn RateLimiter<K>>>,
    workers: usize,
    watches: Vec<MakeWatch<K>>,
    on_error: Option<ErrorHook<K>>,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> ControllerBuilder<K> {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            clock: None,
            limiter: None,
            workers: 1,
            watches: Vec::new(),
            on_error: None,
        }
    }

    /// The clock of delays; the machine's by default.
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How long a key that failed waits; by default 5 ms, doubled at each failure up to 1000 s.
    pub fn limiter(mut self, limiter: Arc<dyn RateLimiter<K>>) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// How many keys are reconciled at once; one by default. The same key never is.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Called with every failure of a reconciliation, before the key is queued again.
    pub fn on_error(mut self, hook: impl Fn(&ReconcileError<K>) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(hook));
        self
    }

    /// Watch an informer, mapping each event to the keys that are to be reconciled.
    pub fn watch_events<T, I>(
        mut self,
        informer: &SharedInformer<T>,
        map: impl Fn(&Event<T>) -> I + Send + 'static,
    ) -> Self
    where
        T: Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        let informer = informer.clone();
        self.watches.push(Box::new(move |queue, name| {
            let handler = handler_fn(move |event: Event<T>| {
                map(&event).into_iter().for_each(|key| queue.add(key));
            });
            let registration = informer.add_handler_with(&HandlerOptions::named(name), handler)?;
            let registration = Arc::new(registration);
            let waiting = registration.clone();
            Ok(Watch {
                synced: Box::pin(async move {
                    waiting.synced().await;
                }),
                remove: Box::pin(async move {
                    // It cannot be one of its own calls that stops the controller: those only
                    // map and add.
                    registration.remove_and_wait().await.ok();
                }),
            })
        }));
        self
    }

    /// Watch an informer of dependent objects, mapping each object to the keys that are to be
    /// reconciled when it changes: its owners, say. Of an update both the old and the new state are
    /// mapped, so that a key which an object has left is reconciled too.
    pub fn owns<T, I>(
        self,
        informer: &SharedInformer<T>,
        map: impl Fn(&Cached<T>) -> I + Send + 'static,
    ) -> Self
    where
        T: Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        self.watch_events(informer, move |event| {
            let mut keys = Vec::new();
            if let Event::Updated { old, .. } = event {
                keys.extend(map(old));
            }
            if let Some(object) = event.object() {
                keys.extend(map(object));
            }
            keys
        })
    }

    /// Start the workers. They begin once the initial objects of every watched informer have been
    /// mapped, so that no reconciler sees a cache that is not filled yet. Must be called in a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`AddHandlerError`] when one of the informers has stopped; nothing runs then.
    pub fn run<F, R, E>(self, reconcile: F) -> Result<Controller<K>, AddHandlerError>
    where
        F: Fn(K) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send,
        E: fmt::Display + Send,
    {
        let clock = self.clock.unwrap_or_else(SystemClock::shared);
        let mut config = WorkQueueConfig::new(clock)
            .name(self.name.as_str())
            .timings(true);
        if let Some(limiter) = self.limiter {
            config = config.limiter(limiter);
        }
        let queue = WorkQueue::new(config);
        let watches = self
            .watches
            .into_iter()
            .map(|watch| watch(queue.clone(), &self.name))
            .collect::<Result<Vec<_>, _>>()?;
        let runner = Runner::new(queue, Arc::from(self.name), reconcile, self.on_error);
        Ok(Controller::start(runner, watches, self.workers))
    }
}

impl ControllerBuilder<ObjectKey> {
    /// Watch an informer, reconciling the key of each object that changes.
    pub fn watch<T: Send + Sync + 'static>(self, informer: &SharedInformer<T>) -> Self {
        self.watch_events(informer, |event| event.key().cloned())
    }
}

impl<K> fmt::Debug for ControllerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("name", &self.name)
            .field("workers", &self.workers)
            .field("watches", &self.watches.len())
            .finish_non_exhaustive()
    }
}
