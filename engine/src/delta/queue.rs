//! The queue itself: producers push, one consumer drains.
use super::compaction::Compaction;
use super::config::{HighWater, QueueConfig, Transform, WhenFull};
use super::pending::Pending;
use super::producer::Producer;
use super::state::{FirstList, Source, State};
use super::{Batch, SourceId};
use crate::clock::SharedClock;
use crate::sync::{Mutex, WaitSet, block_on};
use ahash::RandomState;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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
    /// Inputs in the largest drained batch.
    pub largest_batch: usize,
}

pub(super) struct Shared<T> {
    pub(super) hasher: RandomState,
    pub(super) transform: Option<Transform<T>>,
    pub(super) clock: Option<SharedClock>,
    pub(super) bound: Option<usize>,
    pub(super) when_full: WhenFull,
    pub(super) high_water: Option<HighWater>,
    pub(super) state: Mutex<State<T>>,
    /// The consumer, when it waits for something to drain.
    pub(super) arrivals: WaitSet,
    /// Producers that wait for room.
    pub(super) room: WaitSet,
    /// Those who wait for the first lists to be applied.
    pub(super) sync: WaitSet,
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
        let pending = Pending::new(config.mode, config.versioning);
        Self {
            shared: Arc::new(Shared {
                hasher: RandomState::new(),
                state: Mutex::new(State::new(pending, config.compaction)),
                transform: config.transform,
                clock: config.clock,
                bound: config.bound,
                when_full: config.when_full,
                high_water: config.high_water,
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
        let taken = {
            let mut state = self.shared.state.lock();
            let Some(taken) = state.take() else {
                return state.closed.then_some(Err(Closed));
            };
            state.is_out = true;
            state.is_high = false;
            taken
        };
        if self.shared.bound.is_some() {
            self.shared.room.notify_all();
        }
        Some(Ok(taken.into_batch()))
    }

    /// The last drained batch was applied: the first lists in it count from now on.
    pub fn acknowledge(&self) {
        let synced = {
            let mut state = self.shared.state.lock();
            let mut any = false;
            state.is_out = false;
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
        self.shared.state.lock().has_synced()
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

    /// Change how much is kept for each key. Takes effect at the next drain: what a batch holds
    /// was coalesced by one rule. (Where nothing is pending, that is at once.)
    pub fn set_compaction(&self, compaction: Compaction) {
        let mut state = self.shared.state.lock();
        state.next_compaction = compaction;
        if state.pending.is_empty() {
            state.compaction = compaction;
        }
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

    /// Keys that wait (in ordered mode: inputs), not counting those inside a relist.
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
        let copy = self.shared.state.lock().pending.copy();
        copy.into_batch()
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
            largest_batch: state.largest_batch,
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
