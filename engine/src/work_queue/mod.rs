//! The work queue: deduplicated, delayed, rate-limited, drained. Every event ends here as a key.
//!
//! Handlers [`add`](WorkQueue::add) keys; workers [`get`](WorkQueue::get) them. A key that is added
//! many times before it is taken is handed out once. No two workers have the same key at once; one
//! that is added while in work is handed out once more afterwards. First come, first served, unless
//! [priorities](Priority) or [tenants](WorkQueueConfig::tenants) say otherwise.
//!
//! It needs no runtime, starts no thread and no task: a `get` is a plain future, with a blocking form,
//! and one of the waiting `get`s keeps the time for delayed keys.
//!
//! What it costs: one short lock and one look into one table for each call; a key is stored and
//! hashed once, and nothing is allocated per add once the queue has seen its usual size. The memory
//! of a burst is given back when the queue knows no key any more.
//!
//! ```
//! use informant::ManualClock;
//! use informant::work_queue::{Delayed, WorkQueue, WorkQueueConfig};
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! let clock = ManualClock::new();
//! let queue = WorkQueue::new(WorkQueueConfig::new(Arc::new(clock.clone())));
//! queue.add("a");
//! queue.add_after("b", Duration::from_secs(1));
//! let item = queue.get_blocking()?;
//! assert_eq!(*item, "a");
//! item.retry(); // it failed: again in 5 ms
//! clock.advance(Duration::from_secs(1));
//! assert_eq!(queue.len(), 2);
//!
//! let drained = queue.shut_down_with_drain(Delayed::Drop);
//! while let Ok(item) = queue.get_blocking() {
//!     item.done();
//! }
//! # drop(drained);
//! # Ok::<_, informant::work_queue::ShutDown>(())
//! ```
//!
//! # Metrics
//! [`WorkQueue::metrics`] and [`WorkQueue::stuck`] tell where a queue stands. With the feature
//! `metrics`, a [named](WorkQueueConfig::name) queue also exports, at each of its operations:
//!
//! | name | type | unit | client-go's |
//! |---|---|---|---|
//! | `informant_work_queue_adds_total` | counter | entries | `workqueue_adds_total` |
//! | `informant_work_queue_gets_total` | counter | hand-outs | |
//! | `informant_work_queue_retries_total` | counter | rate-limited adds | `workqueue_retries_total` |
//! | `informant_work_queue_panics_total` | counter | items dropped by a panic | |
//! | `informant_work_queue_depth` | gauge | keys | `workqueue_depth` |
//! | `informant_work_queue_delayed` | gauge | keys | |
//! | `informant_work_queue_held` | gauge | keys | |
//! | `informant_work_queue_in_flight` | gauge | keys | |
//! | `informant_work_queue_queue_seconds` | histogram | seconds | `workqueue_queue_duration_seconds` |
//! | `informant_work_queue_work_seconds` | histogram | seconds | `workqueue_work_duration_seconds` |
//!
//! Each has the label `queue`. The histograms need [`WorkQueueConfig::timings`].
mod closing;
mod config;
mod delays;
mod drain;
#[cfg(feature = "metrics")]
mod export;
mod get;
mod hold;
mod item;
mod limiter;
mod links;
#[cfg(all(test, informant_loom))]
mod loom;
mod metrics;
mod operation;
mod priority;
mod queue;
mod ready;
mod report;
mod shared;
mod slots;
mod state;
#[cfg(all(test, feature = "tokio", not(informant_loom)))]
mod tests;
mod waiters;

pub use config::WorkQueueConfig;
pub use drain::{Delayed, Drained};
pub use get::{Get, GetBatch};
pub use hold::Hold;
pub use item::{Item, OnPanic};
pub use limiter::{
    DEFAULT_CAPACITY, FastSlow, ItemExponential, Jittered, MaxOf, RateLimiter, TokenBucket,
    WithMaxWait,
};
pub use metrics::{DurationSummary, WorkQueueMetrics};
pub use priority::{Priority, PriorityConfig};
pub use queue::{ShutDown, WorkQueue};
pub use report::{DelayedKey, HeldKey, RunningKey};
