//! The workers of a controller.
use super::builder::{ControllerBuilder, Watch};
use crate::indexer::panic_message;
use crate::sync::{AtomicU64, Ordering};
use crate::work_queue::{Delayed, Item, WorkQueue, WorkQueueMetrics};
use futures_util::FutureExt;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// What a reconciler wants to happen next with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[must_use]
pub enum Action {
    /// Nothing, until something about the key changes.
    #[default]
    AwaitChange,
    /// Reconcile it again after this long, even if nothing changes.
    RequeueAfter(Duration),
}

/// A reconciliation failed. The key is queued again, after the delay of the rate limiter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "controller {controller:?} failed to reconcile its key ({retries} times in a row): {reason}; it will be tried again"
)]
pub struct ReconcileError<K> {
    /// The controller.
    pub controller: Arc<str>,
    /// The key.
    pub key: K,
    /// Failures of the key in a row, this one included.
    pub retries: u32,
    /// The error, or the panic's message.
    pub reason: String,
}

pub(super) type ErrorHook<K> = Arc<dyn Fn(&ReconcileError<K>) + Send + Sync>;

/// What a controller counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ControllerMetrics {
    /// Reconciliations that ended well.
    pub succeeded: u64,
    /// Reconciliations that failed, panics included.
    pub failed: u64,
    /// Those that panicked.
    pub panicked: u64,
    /// What its queue counts.
    pub queue: WorkQueueMetrics,
}

#[derive(Default)]
struct Counts {
    succeeded: AtomicU64,
    failed: AtomicU64,
    panicked: AtomicU64,
}

type Outcome = Pin<Box<dyn Future<Output = Result<Action, String>> + Send>>;

/// What every worker of a controller shares.
pub(super) struct Runner<K> {
    queue: WorkQueue<K>,
    name: Arc<str>,
    reconcile: Box<dyn Fn(K) -> Outcome + Send + Sync>,
    on_error: Option<ErrorHook<K>>,
    counts: Counts,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Runner<K> {
    pub(super) fn new<F, R, E>(
        queue: WorkQueue<K>,
        name: Arc<str>,
        reconcile: F,
        on_error: Option<ErrorHook<K>>,
    ) -> Self
    where
        F: Fn(K) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send,
        E: fmt::Display + Send,
    {
        let reconcile = Arc::new(reconcile);
        Self {
            queue,
            name,
            reconcile: Box::new(move |key| {
                let reconcile = reconcile.clone();
                Box::pin(async move { reconcile(key).await.map_err(|error| error.to_string()) })
            }),
            on_error,
            counts: Counts::default(),
        }
    }

    async fn work(&self) {
        while let Ok(item) = self.queue.get().await {
            let attempt = AssertUnwindSafe((self.reconcile)((*item).clone()));
            match attempt.catch_unwind().await {
                Ok(Ok(action)) => {
                    self.counts.succeeded.fetch_add(1, Ordering::Relaxed);
                    self.queue.forget(&item);
                    match action {
                        Action::AwaitChange => item.done(),
                        Action::RequeueAfter(delay) => item.requeue_after(delay),
                    }
                }
                Ok(Err(reason)) => self.fail(item, reason),
                Err(panic) => {
                    self.counts.panicked.fetch_add(1, Ordering::Relaxed);
                    self.fail(item, panic_message(&*panic));
                }
            }
        }
    }

    fn fail(&self, item: Item<K>, reason: String) {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(controller = %self.name, reason, "reconciliation failed");
        if let Some(hook) = &self.on_error {
            let error = ReconcileError {
                controller: self.name.clone(),
                key: (*item).clone(),
                retries: self.queue.retries(&item) + 1,
                reason,
            };
            // A hook that panics must not take the worker down.
            std::panic::catch_unwind(AssertUnwindSafe(|| hook(&error))).ok();
        }
        item.retry();
    }
}

/// A running controller.
///
/// ```
/// use informant::controller::{Action, Controller};
/// use informant::source::memory::MemorySource;
/// use informant::{ObjectKey, SharedInformer};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pods = MemorySource::<String>::new();
/// pods.create(ObjectKey::new("default", "web-0")?, "nginx".to_owned())?;
/// let informer = SharedInformer::builder(pods).build();
/// informer.start()?;
/// let cache = informer.lister();
/// let (seen, mut reconciled) = tokio::sync::mpsc::unbounded_channel();
/// let controller = Controller::builder("greeter").watch(&informer).workers(2).run(move |key| {
///     let (cache, seen) = (cache.clone(), seen.clone());
///     async move {
///         let image = cache.get(&key).map(|pod| pod.to_string());
///         seen.send((key, image)).map_err(|_| "nobody listens")?;
///         Ok::<_, &str>(Action::AwaitChange)
///     }
/// })?;
/// let (key, image) = reconciled.recv().await.expect("the pod is reconciled");
/// assert_eq!((key.as_str(), image.as_deref()), ("default/web-0", Some("nginx")));
/// controller.stop().await;
/// informer.stop().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a controller ends its workers"]
pub struct Controller<K: Hash + Eq + Clone + Send + Sync + 'static> {
    runner: Arc<Runner<K>>,
    watches: Vec<Watch>,
    workers: JoinSet<()>,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Controller<K> {
    /// Declare a controller.
    pub fn builder(name: &str) -> ControllerBuilder<K> {
        ControllerBuilder::new(name)
    }

    pub(super) fn start(runner: Runner<K>, mut watches: Vec<Watch>, count: usize) -> Self {
        let runner = Arc::new(runner);
        let mut workers = JoinSet::new();
        let (filled, _) = tokio::sync::watch::channel(false);
        for _ in 0..count {
            let (runner, mut filled) = (runner.clone(), filled.subscribe());
            workers.spawn(async move {
                // An error means that the task below is gone, because the runtime ends.
                if filled.wait_for(|filled| *filled).await.is_ok() {
                    runner.work().await;
                }
            });
        }
        let waits: Vec<_> = watches
            .iter_mut()
            .map(|watch| std::mem::replace(&mut watch.synced, Box::pin(async {})))
            .collect();
        workers.spawn(async move {
            for wait in waits {
                wait.await;
            }
            filled.send_replace(true);
        });
        Self {
            runner,
            watches,
            workers,
        }
    }

    /// The controller's queue: keys can be added to it by hand.
    #[must_use]
    pub fn queue(&self) -> &WorkQueue<K> {
        &self.runner.queue
    }

    /// What the controller counts.
    #[must_use]
    pub fn metrics(&self) -> ControllerMetrics {
        let counts = &self.runner.counts;
        ControllerMetrics {
            succeeded: counts.succeeded.load(Ordering::Relaxed),
            failed: counts.failed.load(Ordering::Relaxed),
            panicked: counts.panicked.load(Ordering::Relaxed),
            queue: self.runner.queue.metrics(),
        }
    }

    /// Stop gracefully: take no more events, reconcile what is queued and in flight to its end,
    /// drop what waits for its time, and end when every task has ended.
    pub async fn stop(mut self) {
        for watch in self.watches.drain(..) {
            watch.remove.await;
        }
        self.runner.queue.shut_down_with_drain(Delayed::Drop).await;
        while self.workers.join_next().await.is_some() {}
    }
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Drop for Controller<K> {
    fn drop(&mut self) {
        // The workers are aborted with the set; whoever still adds is told nothing is wanted.
        self.runner.queue.shut_down();
    }
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.runner.name)
            .field("metrics", &self.metrics())
            .finish_non_exhaustive()
    }
}
