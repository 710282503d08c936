//! The indexer: the cache itself, with lock-free snapshot reads.
mod applied;
mod identity;

pub use applied::{Applied, Change, DropCounts, Effective, IndexFailure, Quarantined};
