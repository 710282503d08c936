//! The shared informer itself.
use super::builder::InformerBuilder;
use super::crew::Job;
use super::handler::{AsyncHandler, Awaited, Direct, Handler};
use super::hub::{AddHandlerError, Hub, Phase};
use super::options::HandlerOptions;
use super::pump::{Pump, Request};
use super::registration::{HandlerStatus, Registration};
use super::report::{NotSynced, NotSyncedReason, SourceReport};
use super::stream::EventStream;
use super::write_tracker::WriteTracker;
use crate::clock::Timestamp;
use crate::delta::{Batch, QueueMetrics, SourceId};
use crate::indexer::{IndexConflict, IndexDeclaration, IndexFailure, Indexer, Snapshot, WaitError};
use crate::object::{Cached, KeyRef, ResourceVersion, Versioning};
use crate::reflector::{ReflectorHandle, ReflectorStatus};
use crate::source::{ListWatch, Selectors};
use crate::stop::StopToken;
use crate::sync::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// One cache of one collection, kept up to date, and everyone who wants to know of changes.
///
/// Created, [started](SharedInformer::start) once, [stopped](SharedInformer::stop) once. A clone is
/// another handle of the same informer; when the last handle is dropped, the informer stops by
/// itself. Registrations, listers and snapshots do not keep it running; what they show stays
/// readable, as it was last.
///
/// # Order
/// Objects and indexes are published before any handler is told, so whatever a handler is told, the
/// cache shows that or something newer. No lock is held while user code runs: handlers, index
/// functions, transforms and hooks may read the cache and add or remove handlers.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use informant::informer::{HandlerFuncs, SharedInformer};
/// use informant::source::{ListWatch, ListOptions, ListPage, SourceError, WatchOptions, WatchStream};
/// use informant::{Incoming, Meta};
/// use std::time::Duration;
///
/// struct OnePod;
/// impl ListWatch for OnePod {
///     type Object = String;
///     async fn list(&self, _: ListOptions) -> Result<ListPage<String>, SourceError> {
///         let meta = Meta::new("default", "web-0", "u1", "7").expect("a valid key");
///         Ok(ListPage {
///             resource_version: "7".into(),
///             continue_token: None,
///             items: vec![Ok(Incoming::new(meta, "a pod".to_owned()))],
///         })
///     }
///     async fn watch(&self, _: WatchOptions) -> Result<WatchStream<String>, SourceError> {
///         Ok(Box::pin(futures_util::stream::pending()))
///     }
/// }
///
/// let informer = SharedInformer::builder(OnePod).build();
/// let handler = HandlerFuncs::<String>::new().on_add(|pod, _initial| println!("{} is there", pod.key()));
/// let registration = informer.add_handler(handler)?;
/// informer.start()?;
/// informer.wait_for_sync(Duration::from_secs(5)).await?;
/// assert_eq!(*informer.lister().get("default/web-0").unwrap(), "a pod");
/// assert!(registration.synced().await);
/// informer.stop().await;
/// # Ok(()) }
/// ```
pub struct SharedInformer<T: Send + Sync + 'static> {
    inner: Arc<Inner<T>>,
}

/// What the handles share, and what ends when the last of them is dropped.
pub(super) struct Inner<T: Send + Sync + 'static> {
    pub(super) hub: Arc<Hub<T>>,
    pub(super) requests: mpsc::UnboundedSender<Request<T>>,
    pub(super) reflectors: Vec<(SourceId, ReflectorHandle)>,
    pub(super) unstarted: Mutex<Option<Unstarted<T>>>,
    pub(super) versioning: Versioning,
}

/// What runs once the informer is started.
pub(super) struct Unstarted<T: Send + Sync + 'static> {
    pub(super) pump: Pump<T>,
    pub(super) jobs: Vec<Job>,
}

/// An informer was not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It runs already; that run goes on undisturbed.
    #[error("informer {informer:?} is running already")]
    AlreadyStarted {
        /// The informer's name.
        informer: Arc<str>,
    },
    /// It has stopped; an informer runs once. Build another.
    #[error("informer {informer:?} has stopped already and does not start again")]
    Stopped {
        /// The informer's name.
        informer: Arc<str>,
    },
    /// There is no tokio runtime here to run it; it can still be started from inside one.
    #[error("informer {informer:?} needs a tokio runtime to start on")]
    NoRuntime {
        /// The informer's name.
        informer: Arc<str>,
    },
}

/// An index was not added; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddIndexError {
    /// The name is taken.
    #[error(transparent)]
    Conflict(#[from] IndexConflict),
    /// The informer takes no indexes any more. What it holds can still be read.
    #[error("the index was not added: informer {informer:?} has stopped already")]
    Stopped {
        /// The informer's name.
        informer: Arc<str>,
    },
}

/// The informer was told to stop, and these handlers are still inside a call that neither ends nor
/// can be cancelled. Everything else has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("informer {informer:?} has stopped, but handlers {handlers:?} are still inside a call")]
pub struct StillRunning {
    /// The informer's name.
    pub informer: Arc<str>,
    /// The names of the handlers.
    pub handlers: Vec<Arc<str>>,
}

/// The cache stands still until this is dropped: see [`SharedInformer::hold`].
#[derive(Debug)]
#[must_use = "the cache goes on as soon as this is dropped"]
pub struct Hold {
    _released: oneshot::Sender<()>,
}

/// A copy of where an informer stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// It was started and has not stopped.
    pub running: bool,
    /// It has stopped, or is about to.
    pub stopped: bool,
    /// Its first list is in the cache.
    pub synced: bool,
    /// How many objects the cache holds.
    pub objects: usize,
    /// How many objects are in quarantine.
    pub quarantined: usize,
    /// The version that the cache has reached, for each source that has brought something.
    pub versions: Vec<(SourceId, ResourceVersion)>,
    /// What waits for the cache.
    pub queue: QueueMetrics,
    /// What each source's reflector is doing.
    pub sources: Vec<(SourceId, ReflectorStatus)>,
    /// The handlers.
    pub handlers: Vec<HandlerStatus>,
    /// The shortest resync period that is served; `None`: no resyncs, or not started.
    pub resync_tick: Option<Duration>,
}

impl<T: Send + Sync + 'static> SharedInformer<T> {
    /// Declare an informer that is fed from `source`.
    pub fn builder<S: ListWatch<Object = T>>(source: S) -> InformerBuilder<T> {
        InformerBuilder::new().add_source(source, Selectors::default())
    }

    pub(super) fn new(inner: Inner<T>) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    fn hub(&self) -> &Arc<Hub<T>> {
        &self.inner.hub
    }

    /// The informer's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.hub().reporter.name
    }

    /// Begin to list and watch, on the current tokio runtime. Returns at once, long before the cache
    /// is filled: see [`SharedInformer::wait_for_sync`].
    ///
    /// # Errors
    /// [`StartError`]: a second start changes nothing.
    pub fn start(&self) -> Result<(), StartError> {
        let informer = self.name().clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return Err(StartError::NoRuntime { informer });
        };
        let hub = self.hub().clone();
        match hub.life.advance(&[Phase::Created], Phase::Running) {
            Ok(()) => {}
            Err(Phase::Running) => return Err(StartError::AlreadyStarted { informer }),
            Err(_) => return Err(StartError::Stopped { informer }),
        }
        let Some(Unstarted { pump, mut jobs }) = self.inner.unstarted.lock().take() else {
            return Err(StartError::AlreadyStarted { informer });
        };
        hub.schedule.lock().start(hub.clock.now());
        jobs.push(Box::pin(pump.run()));
        hub.crew.start(&runtime, jobs);
        runtime.spawn(supervise(hub));
        Ok(())
    }

    /// Start, run until `stop` is given, and stop: the form for a task of its own.
    ///
    /// # Errors
    /// As [`SharedInformer::start`].
    pub async fn run(&self, stop: StopToken) -> Result<(), StartError> {
        self.start()?;
        stop.stopped().await;
        self.stop().await;
        Ok(())
    }

    /// Stop and wait until nothing of it runs: calls to the source are dropped, no further call of a
    /// handler begins, and those in flight run to their ends. What handlers have waiting is not
    /// delivered. Safe to call from several places, and again. The cache stays readable.
    ///
    /// Inside a call of one of its own handlers this never ends, since it waits for that call.
    pub async fn stop(&self) {
        self.shut_down();
        let life = &self.hub().life;
        life.until(|| (life.phase() == Phase::Stopped).then_some(()))
            .await;
    }

    /// [`SharedInformer::stop`], but handlers that are inside a call after `patience` are cancelled:
    /// the future of an asynchronous call is dropped.
    ///
    /// # Errors
    /// [`StillRunning`] names handlers inside a synchronous call that does not end; those end with
    /// it.
    pub async fn stop_within(&self, patience: Duration) -> Result<(), StillRunning> {
        let hub = self.hub();
        let members = hub.registry.members();
        self.shut_down();
        let stopped = || (hub.life.phase() == Phase::Stopped).then_some(());
        let deadline = hub.clock.now() + patience;
        tokio::select! {
            biased;
            () = hub.life.until(stopped) => return Ok(()),
            () = hub.clock.sleep_until(deadline) => {}
        }
        hub.life.abort.stop();
        // What can be cancelled ends as soon as its task is polled.
        let grace = hub.clock.now() + Duration::from_millis(100);
        tokio::select! {
            biased;
            () = hub.life.until(stopped) => {}
            () = hub.clock.sleep_until(grace) => {}
        }
        let handlers: Vec<_> = members
            .into_iter()
            .filter(|member| !member.mailbox.has_ended())
            .map(|member| member.name)
            .collect();
        if handlers.is_empty() {
            return Ok(());
        }
        Err(StillRunning {
            informer: self.name().clone(),
            handlers,
        })
    }

    fn shut_down(&self) {
        self.hub().shut_down();
        // Without a start the writer is still here; whoever waits for a version is told by its end.
        let _unstarted = self.inner.unstarted.lock().take();
    }

    /// Register a handler with the default options: before, during or after the start. It is told
    /// of what the cache holds now, then of every change after that. Nobody else is held up.
    ///
    /// # Errors
    /// [`AddHandlerError`] when the informer has stopped.
    pub fn add_handler(
        &self,
        handler: impl Handler<T>,
    ) -> Result<Registration<T>, AddHandlerError> {
        self.add_handler_with(&HandlerOptions::default(), handler)
    }

    /// Register a handler.
    ///
    /// # Errors
    /// As [`SharedInformer::add_handler`], and when the thread it asks for cannot be started.
    pub fn add_handler_with(
        &self,
        options: &HandlerOptions,
        handler: impl Handler<T>,
    ) -> Result<Registration<T>, AddHandlerError> {
        self.hub().employ(options, Direct(handler))
    }

    /// Register an asynchronous handler.
    ///
    /// # Errors
    /// As [`SharedInformer::add_handler_with`].
    pub fn add_async_handler(
        &self,
        options: &HandlerOptions,
        handler: impl AsyncHandler<T>,
    ) -> Result<Registration<T>, AddHandlerError> {
        self.hub().employ(options, Awaited(handler))
    }

    /// Register a subscriber that reads events when it likes.
    ///
    /// # Errors
    /// As [`SharedInformer::add_handler`].
    pub fn subscribe(&self, options: &HandlerOptions) -> Result<EventStream<T>, AddHandlerError> {
        Ok(EventStream::new(self.hub().register(options)?))
    }

    /// The read handle of the cache: lock-free, cheap to clone, usable before the start and after
    /// the stop.
    #[must_use]
    #[doc(alias = "indexer")]
    pub fn lister(&self) -> Indexer<T> {
        self.hub().indexer.clone()
    }

    /// What makes reads wait for the program's own writes.
    #[must_use]
    pub fn write_tracker(&self) -> WriteTracker<T> {
        WriteTracker::with_versioning(self.lister(), self.inner.versioning)
    }

    /// Everything the cache holds, at this moment. See [`Snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<T> {
        self.hub().indexer.snapshot()
    }

    /// The object of this key.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Cached<T>> {
        self.hub().indexer.get(key)
    }

    /// True once the first list of every source is in the cache and its indexes. Handlers may not
    /// have been called yet: see [`Registration::has_synced`]. It stays true after the stop.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.hub().life.has_synced()
    }

    /// Wait until the first list of every source is in the cache. It may be called before the start.
    ///
    /// # Errors
    /// [`NotSynced`] after `deadline`, or when the informer stops, says what it hangs on.
    pub async fn wait_for_sync(&self, deadline: Duration) -> Result<(), NotSynced> {
        let hub = self.hub();
        let since = hub.clock.now();
        let outcome = || match (hub.life.has_synced(), hub.life.phase()) {
            (true, _) => Some(true),
            (false, Phase::Stopping | Phase::Stopped) => Some(false),
            (false, Phase::Created | Phase::Running) => None,
        };
        let synced = tokio::select! {
            biased;
            synced = hub.life.until(outcome) => synced,
            () = hub.clock.sleep_until(since + deadline) => hub.life.has_synced(),
        };
        if synced {
            return Ok(());
        }
        Err(self.not_synced(since))
    }

    fn not_synced(&self, since: Timestamp) -> NotSynced {
        let hub = self.hub();
        let reason = match hub.life.phase() {
            Phase::Created => NotSyncedReason::NotStarted,
            Phase::Stopping | Phase::Stopped => NotSyncedReason::Stopped,
            Phase::Running => NotSyncedReason::Sources(self.unsynced_sources()),
        };
        NotSynced {
            informer: self.name().clone(),
            waited: hub.clock.now().since(since),
            reason,
        }
    }

    fn unsynced_sources(&self) -> Vec<SourceReport> {
        let view = self.hub().indexer.load();
        let reached = |id: SourceId| view.versions().iter().any(|(source, _)| *source == id);
        self.inner
            .reflectors
            .iter()
            .filter(|(id, _)| !reached(*id))
            .map(|(id, handle)| {
                let status = handle.status();
                SourceReport {
                    source_id: *id,
                    state: status.state,
                    last_error: status.last_error,
                }
            })
            .collect()
    }

    /// Wait until the cache shows `version`, or a later one. See [`Indexer::wait_for`].
    ///
    /// # Errors
    /// [`WaitError`]
    pub async fn wait_for(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        self.hub().indexer.wait_for(version).await
    }

    /// Add an index to the cache, which may be filled and in use; nobody sees it half built. Returns
    /// the objects on which its function failed.
    ///
    /// # Errors
    /// [`AddIndexError`]: nothing has changed then.
    pub async fn add_index(
        &self,
        index: IndexDeclaration<T>,
    ) -> Result<Vec<IndexFailure>, AddIndexError> {
        // Before the start the cache is empty, so no index function runs under this lock.
        if let Some(unstarted) = &mut *self.inner.unstarted.lock() {
            if self.is_stopped() {
                return Err(self.index_refused());
            }
            return Ok(unstarted.pump.writer.add_index(index)?);
        }
        let (reply, answer) = oneshot::channel();
        let asked = self.inner.requests.send(Request::AddIndex { index, reply });
        match (asked, self.is_stopped()) {
            (Ok(()), false) => {}
            _ => return Err(self.index_refused()),
        }
        match answer.await {
            Ok(added) => Ok(added?),
            Err(_gone) => Err(self.index_refused()),
        }
    }

    /// Hold the cache: no batch is applied, and so no handler is told of anything new, until the
    /// returned value is dropped or the informer stops. What arrives waits in the delta queue
    /// ([`SharedInformer::pending`]), where it is coalesced. It takes effect before the next batch
    /// begins; before the start, before the first.
    pub fn hold(&self) -> Hold {
        let (sender, released) = oneshot::channel();
        // A pump that is gone applies nothing either.
        let _gone = self.inner.requests.send(Request::Hold { released });
        Hold { _released: sender }
    }

    /// A copy of what waits to be applied. See [`DeltaQueue::pending`](crate::delta::DeltaQueue::pending).
    #[must_use]
    pub fn pending(&self) -> Batch<T> {
        self.hub().queue.pending()
    }

    fn index_refused(&self) -> AddIndexError {
        AddIndexError::Stopped {
            informer: self.name().clone(),
        }
    }

    /// True when both are handles of one informer.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// True from the stop on.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.hub().life.phase(), Phase::Stopping | Phase::Stopped)
    }

    /// Where it stands: sources, versions, handlers.
    #[must_use]
    pub fn status(&self) -> InformerStatus {
        let hub = self.hub();
        let phase = hub.life.phase();
        let view = hub.indexer.load();
        InformerStatus {
            name: self.name().clone(),
            running: phase == Phase::Running,
            stopped: matches!(phase, Phase::Stopping | Phase::Stopped),
            synced: hub.life.has_synced(),
            objects: view.len(),
            quarantined: view.quarantine().count(),
            versions: view.versions().to_vec(),
            queue: hub.queue.metrics(),
            sources: self
                .inner
                .reflectors
                .iter()
                .map(|(id, handle)| (*id, handle.status()))
                .collect(),
            handlers: hub.handlers(),
            resync_tick: hub.schedule.lock().tick(),
        }
    }

    /// Tasks and threads that run.
    #[cfg(test)]
    pub(super) fn crew_size(&self) -> usize {
        self.hub().crew.size()
    }

    /// What watches the reflectors: status, counters, relist on demand.
    #[must_use]
    pub fn reflectors(&self) -> &[(SourceId, ReflectorHandle)] {
        &self.inner.reflectors
    }
}

/// Waits for the stop, then sees everything to its end. It is the last to end.
async fn supervise<T: Send + Sync + 'static>(hub: Arc<Hub<T>>) {
    /// Also when the runtime is shut down first and takes this task with it.
    struct MarkStopped<T: Send + Sync + 'static>(Arc<Hub<T>>);
    impl<T: Send + Sync + 'static> Drop for MarkStopped<T> {
        fn drop(&mut self) {
            self.0.registry.close();
            let _ = self
                .0
                .life
                .advance(&[Phase::Running, Phase::Stopping], Phase::Stopped);
        }
    }
    let hub = MarkStopped(hub);
    let life = &hub.0.life;
    life.stop.stopped().await;
    let members = hub.0.registry.close();
    hub.0.queue.close();
    for member in members {
        tokio::select! {
            () = member.mailbox.ended() => {}
            () = life.abort.stopped() => {}
        }
    }
    hub.0.crew.end(&life.abort).await;
}

impl<T: Send + Sync + 'static> Drop for Inner<T> {
    fn drop(&mut self) {
        self.hub.shut_down();
    }
}

impl<T: Send + Sync + 'static> Clone for SharedInformer<T> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for SharedInformer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("name", self.name())
            .field("phase", &self.hub().life.phase())
            .field("objects", &self.hub().indexer.len())
            .finish_non_exhaustive()
    }
}
