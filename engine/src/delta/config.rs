//! What a delta queue is made of.
use super::compaction::Compaction;
use crate::clock::SharedClock;
use crate::object::Versioning;
use std::fmt;
use std::sync::Arc;

/// Changes an object before anyone sees it, or refuses it; runs on the producer's side, outside
/// any lock, once for each object.
pub type Transform<T> = Arc<dyn Fn(&mut T) -> Result<(), String> + Send + Sync>;

/// Whether what is pending is coalesced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum QueueMode {
    /// Inputs are grouped by key (client-go's `DeltaFIFO`), as far as [`Compaction`] says. A batch
    /// still ends at one exact version, since nothing inside of it is ever shown.
    #[default]
    Coalescing,
    /// Every input stands for itself, in order (client-go's `RealFIFO`).
    Ordered,
}

/// What happens to a producer whose input finds the queue full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// It waits for the next drain, and the source behind it with it.
    #[default]
    Wait,
    /// It is told [`PushError::Full`](super::PushError::Full) also by the forms that could wait.
    Refuse,
}

/// A call when many keys wait. It runs on the thread of the producer whose input reached the mark,
/// outside any lock, and again only after the depth was below the mark.
#[derive(Clone)]
pub struct HighWater {
    /// The depth from which on it is called.
    pub mark: usize,
    /// Is given the depth.
    pub call: Arc<dyn Fn(usize) + Send + Sync>,
}

/// What a [`DeltaQueue`](super::DeltaQueue) is made of.
pub struct QueueConfig<T> {
    /// Whether what is pending is coalesced.
    pub mode: QueueMode,
    /// Whether versions of the sources can be compared.
    pub versioning: Versioning,
    /// How much is kept of what is pending for one key. Means nothing in ordered mode.
    pub compaction: Compaction,
    /// Keys (in ordered mode: inputs) that may wait; a producer that would add another one waits,
    /// or is told `Full`. Relists, bookmarks, resyncs and unusable objects are always admitted, and
    /// so is a delta of a key that waits already. `None`: no bound.
    pub bound: Option<usize>,
    /// What happens at the bound.
    pub when_full: WhenFull,
    /// A call when many keys wait.
    pub high_water: Option<HighWater>,
    /// Runs on each object before it is queued; never on tombstones or resyncs.
    pub transform: Option<Transform<T>>,
    /// For the age of what waits. Without one, ages are not known.
    pub clock: Option<SharedClock>,
}

impl<T> Default for QueueConfig<T> {
    fn default() -> Self {
        Self {
            mode: QueueMode::Coalescing,
            versioning: Versioning::Decimal,
            compaction: Compaction::FirstAndLast,
            bound: None,
            when_full: WhenFull::Wait,
            high_water: None,
            transform: None,
            clock: None,
        }
    }
}

impl fmt::Debug for HighWater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HighWater({})", self.mark)
    }
}

impl<T> fmt::Debug for QueueConfig<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueConfig")
            .field("mode", &self.mode)
            .field("versioning", &self.versioning)
            .field("compaction", &self.compaction)
            .field("bound", &self.bound)
            .field("when_full", &self.when_full)
            .field("high_water", &self.high_water)
            .field("transform", &self.transform.is_some())
            .finish_non_exhaustive()
    }
}
