//! The queue itself: producers push, one consumer drains.
use super::compaction::Compaction;
use super::pending::Pending;
use super::producer::Producer;
use super::{Batch, SourceId};
use crate::clock::{SharedClock, Timestamp};
use crate::object::Versioning;
use crate::sync::{Mutex, WaitSet, block_on};
use ahash::RandomState;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Changes an object before anyone sees it, or refuses it; runs on the producer's side, outside
/// any lock, once for each object.
pub type Transform<T> = Arc<dyn Fn(&mut T) -> Result<(), String> + Send + Sync>;

/// What a [`DeltaQueue`] is made of.
pub struct QueueConfig<T> {
    /// Whether versions of the sources can be compared.
    pub versioning: Versioning,
    /// How much is kept of what is pending for one key.
    pub compaction: Compaction,
    /// Keys that may wait; a producer that would add another one waits (or is told `Full`).
    /// Relists, bookmarks and resyncs are always admitted, and so is a delta of a key that waits
    /// already. `None`: no bound.
    pub bound: Option<usize>,
    /// Runs on each object before it is queued; never on tombstones.
    pub transform: Option<Transform<T>>,
    /// For the age of what waits. Without one, ages are not known.
    pub clock: Option<SharedClock>,
}

impl<T> Default for QueueConfig<T> {
    fn default() -> Self {
        Self {
            versioning: Versioning::Decimal,
            compaction: Compaction::FirstAndLast,
            bound: None,
            transform: None,
            clock: None,
        }
    }
}

impl<T> fmt::Debug for QueueConfig<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueConfig")
            .field("versioning", &self.versioning)
            .field("compaction", &self.compaction)
            .field("bound", &self.bound)
            .field("transform", &self.transform.is_some())
            .finish_non_exhaustive()
    }
}

/// The queue is closed: nothing more comes in, and everything that was in it has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delta queue is closed")]
pub struct Closed;

/// What a [`DeltaQueue`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueMetrics {
    /// Keys that wait.
    pub depth: usize,
    /// How long the oldest input has waited; zero when nothing does, or without a clock.
    pub oldest_age: Duration,
    /// Inputs that took no place of their own, since the queue was made.
    pub coalesced: u64,
    /// Inputs since the queue was made.
    pub inputs: u64,
    /// Batches that were drained.
    pub drains: u64,
    /// Inputs in the last drained batch.
    pub last_batch: usize,
}

pub(super) struct Shared<T> {
    pub(super) hasher: RandomState,
    pub(super) transform: Option<Transform<T>>,
    pub(super) clock: Option<SharedClock>,
    pub(super) bound: Option<usize>,
    pub(super) state: Mutex<State<T>>,
    /// The consumer, when it waits for something to drain.
    pub(super) arrivals: WaitSet,
    /// Producers that wait for room.
    pub(super) room: WaitSet,
    /// Those who wait for the first lists to be applied.
    pub(super) sync: WaitSet,
}

pub(super) struct State<T> {
    pub(super) pending: Pending<T>,
    pub(super) compaction: Compaction,
    pub(super) closed: bool,
    pub(super) sources: Vec<Source>,
    pub(super) first_at: Option<Timestamp>,
    pub(super) inputs: u64,
    drains: u64,
    last_batch: usize,
}

/// How far a source's first list is.
pub(super) struct Source {
    pub(super) id: SourceId,
    pub(super) epoch: u64,
    pub(super) first_list: FirstList,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstList {
    Awaited,
    Queued,
    Drained,
    Applied,
}

impl<T> State<T> {
    /// The state of a source. A producer registered it, so it is there.
    pub(super) fn source(&mut self, id: SourceId) -> &mut Source {
        self.sources
            .iter_mut()
            .find(|source| source.id == id)
            .expect("a producer's source is registered")
    }
}

/// The delta queue (client-go's `DeltaFIFO`, drained in batches). Clones are handles of one queue.
///
/// Producers never wait for the consumer's work, nor the consumer for theirs, beyond the exchange
/// of what is pending: both hold the one lock for a few instructions, and nothing foreign runs
/// under it. There is one consumer.
///
/// ```
/// use informant::delta::{DeltaQueue, QueueConfig, SourceId, Step};
/// use informant::{Incoming, Meta};
///
/// let queue = DeltaQueue::<u32>::new(QueueConfig::default());
/// let producer = queue.producer(SourceId(0));
/// for version in ["5", "6", "7"] {
///     producer.try_updated(Incoming::new(Meta::new("ns", "a", "u1", version)?, 1))?;
/// }
/// let batch = queue.try_drain().expect("something is pending");
/// assert_eq!(batch.inputs, 3);
/// let Step::Changes(groups) = &batch.steps[0] else { panic!() };
/// assert_eq!(format!("{:?}", groups[0].deltas), "[Updated(ns/a@7)]");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct DeltaQueue<T> {
    pub(super) shared: Arc<Shared<T>>,
}

impl<T> Clone for DeltaQueue<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T> DeltaQueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(config: QueueConfig<T>) -> Self {
        let hasher = RandomState::new();
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    pending: Pending::new(hasher.clone(), config.versioning),
                    compaction: config.compaction,
                    closed: false,
                    sources: Vec::new(),
                    first_at: None,
                    inputs: 0,
                    drains: 0,
                    last_batch: 0,
                }),
                hasher,
                transform: config.transform,
                clock: config.clock,
                bound: config.bound,
                arrivals: WaitSet::new(),
                room: WaitSet::new(),
                sync: WaitSet::new(),
            }),
        }
    }

    /// The producer's end for one source. The queue counts as synced only once the first list of
    /// every source that has a producer was applied.
    #[must_use]
    pub fn producer(&self, source: SourceId) -> Producer<T> {
        let epoch = {
            let mut state = self.shared.state.lock();
            if let Some(known) = state.sources.iter().find(|known| known.id == source) {
                known.epoch
            } else {
                state.sources.push(Source {
                    id: source,
                    epoch: 0,
                    first_list: FirstList::Awaited,
                });
                0
            }
        };
        Producer::new(self.shared.clone(), source, epoch)
    }

    /// Take everything that is pending, as one batch; `None` when nothing is.
    #[must_use]
    pub fn try_drain(&self) -> Option<Batch<T>> {
        self.poll_drain()?.ok()
    }

    /// Wait for something to be pending, and take all of it.
    ///
    /// # Errors
    /// [`Closed`] once the queue is closed and empty.
    pub async fn drain(&self) -> Result<Batch<T>, Closed> {
        self.shared.arrivals.until(|| self.poll_drain()).await
    }

    /// [`DeltaQueue::drain`], blocking this thread.
    ///
    /// # Errors
    /// As [`DeltaQueue::drain`].
    pub fn drain_blocking(&self) -> Result<Batch<T>, Closed> {
        block_on(self.drain())
    }

    fn poll_drain(&self) -> Option<Result<Batch<T>, Closed>> {
        let batch = {
            let mut state = self.shared.state.lock();
            if state.pending.is_empty() {
                return state.closed.then_some(Err(Closed));
            }
            let batch = state.pending.take();
            state.first_at = None;
            state.drains += 1;
            state.last_batch = batch.inputs;
            for source in &mut state.sources {
                if source.first_list == FirstList::Queued {
                    source.first_list = FirstList::Drained;
                }
            }
            batch
        };
        self.shared.room.notify_all();
        Some(Ok(batch))
    }

    /// The last drained batch was applied: the first lists in it count from now on.
    pub fn acknowledge(&self) {
        let synced = {
            let mut state = self.shared.state.lock();
            let mut any = false;
            for source in &mut state.sources {
                if source.first_list == FirstList::Drained {
                    source.first_list = FirstList::Applied;
                    any = true;
                }
            }
            any
        };
        if synced {
            self.shared.sync.notify_all();
        }
    }

    /// True once the first list of every source was applied, to the last item. Items that could
    /// not be used are in the quarantine and have been reported. Never turns false again, unless
    /// another source is added.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        let state = self.shared.state.lock();
        !state.sources.is_empty()
            && state
                .sources
                .iter()
                .all(|source| source.first_list == FirstList::Applied)
    }

    /// Ends when [`DeltaQueue::has_synced`] is true.
    ///
    /// # Errors
    /// [`Closed`] when the queue is closed before that.
    pub async fn synced(&self) -> Result<(), Closed> {
        let poll = || {
            if self.has_synced() {
                return Some(Ok(()));
            }
            self.is_closed().then_some(Err(Closed))
        };
        self.shared.sync.until(poll).await
    }

    /// Change how much is kept for each key; what is pending already stays as it is.
    pub fn set_compaction(&self, compaction: Compaction) {
        self.shared.state.lock().compaction = compaction;
    }

    /// Let nothing more in. What is pending can still be drained; every wait ends.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.arrivals.notify_all();
        self.shared.room.notify_all();
        self.shared.sync.notify_all();
    }

    /// True once the queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.state.lock().closed
    }

    /// Keys that wait, not counting those inside a relist.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().pending.keys()
    }

    /// True when a drain would give nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.state.lock().pending.is_empty()
    }

    /// A copy of what a drain would give now; nothing is taken. To find out why a cache lags: it
    /// copies a handle of everything that waits, under the lock.
    #[must_use]
    pub fn pending(&self) -> Batch<T> {
        self.shared.state.lock().pending.copy()
    }

    /// What the queue counts.
    #[must_use]
    pub fn metrics(&self) -> QueueMetrics {
        let now = self.shared.clock.as_ref().map(|clock| clock.now());
        let state = self.shared.state.lock();
        QueueMetrics {
            depth: state.pending.keys(),
            oldest_age: match (now, state.first_at) {
                (Some(now), Some(first)) => now.since(first),
                _ => Duration::ZERO,
            },
            coalesced: state.pending.coalesced(),
            inputs: state.inputs,
            drains: state.drains,
            last_batch: state.last_batch,
        }
    }
}

impl<T> fmt::Debug for DeltaQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaQueue")
            .field("metrics", &self.metrics())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
