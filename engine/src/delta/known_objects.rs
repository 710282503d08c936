//! What the consumer of the `pop` family holds, as far as the queue must know it.
use super::SourceId;
use crate::object::{Cached, KeyRef, ObjectKey};

/// The store of a consumer that pops (client-go's `KnownObjects`).
///
/// Asked on the consumer's side, outside any lock: to find what a relist deletes, what a resync
/// announces, and whether a deletion is about anything at all. Keys that are popped and not
/// acknowledged are judged by what was popped, so the answers may lag behind by those.
pub trait KnownObjects<T>: Send + Sync {
    /// The stored object of a key.
    fn get(&self, key: KeyRef<'_>) -> Option<Cached<T>>;

    /// The keys of what this source brought; where there is one source, all keys.
    fn keys(&self, source: SourceId) -> Vec<ObjectKey>;
}
