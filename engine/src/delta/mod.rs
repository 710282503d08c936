//! The delta queue: what the reflector learns, waiting to be applied.
//!
//! The types here are the contract between producer (reflector), queue and consumer (indexer).
mod batch;
mod types;

pub use batch::{Batch, KeyDeltas, Replace, ResyncTargets, Step};
pub use types::{Deleted, Delta, HandlerId, SourceId};
