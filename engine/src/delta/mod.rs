//! The delta queue: what the reflector learns, waiting to be applied.
//!
//! One [`Producer`] for each source pushes; one consumer drains everything that is pending as one
//! [`Batch`], which ends at one version of each source. Deltas are coalesced by key inside a batch;
//! nothing in between two batches is ever shown, so coalescing and an exact version live together.
mod admission;
mod batch;
mod compaction;
mod config;
mod pending;
mod producer;
mod queue;
mod state;
mod superseded;
mod types;

pub use batch::{Batch, KeyDeltas, Replace, ResyncTargets, Step};
pub use compaction::Compaction;
pub use config::{HighWater, QueueConfig, QueueMode, Transform, WhenFull};
pub use producer::{ListSnapshot, PreparedList, Producer, PushError};
pub use queue::{Closed, DeltaQueue, QueueMetrics};
pub use types::{Deleted, Delta, HandlerId, SourceId};

#[cfg(all(test, not(informant_loom)))]
mod tests;
