//! The work queue: deduplicated, delayed, rate-limited, drained. Every event ends here as a key.
//!
//! A key is in the queue once, however often it is added; no two workers ever hold the same key; a
//! key that is added while a worker holds it is handed out exactly once more afterwards.
mod item;
mod limiter;
mod queue;
mod state;

pub use item::{Item, OnPanic};
pub use limiter::{
    FastSlow, ItemExponential, Jittered, MaxOf, RateLimiter, TokenBucket, WithMaxWait,
};
pub use queue::{Delayed, ShutDown, WorkQueue, WorkQueueConfig};
pub use state::WorkQueueMetrics;

#[cfg(all(test, informant_loom))]
mod loom;
#[cfg(all(test, not(informant_loom)))]
mod tests;
