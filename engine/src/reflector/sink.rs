//! Where a reflector delivers.
use crate::object::{Incoming, Meta, ResourceVersion};
use crate::source::BadObject;
use std::future::Future;

/// The queue takes nothing more: the reflector ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delta queue is closed")]
pub struct QueueClosed;

/// One whole list, for the queue.
#[derive(Debug)]
pub struct ListSnapshot<T> {
    /// What the source holds; of a key that stands twice, the later one counts.
    pub items: Vec<Result<Incoming<T>, BadObject>>,
    /// The version of the list; never empty.
    pub resource_version: ResourceVersion,
    /// The source went back: versions start over.
    pub reset: bool,
}

/// What takes a reflector's findings: the producing side of the delta queue. `Ok` means accepted;
/// only then may the reflector's resume point move.
pub trait DeltaSink<T>: Send + Sync + 'static {
    /// The object appeared.
    fn added(&self, object: Incoming<T>) -> impl Future<Output = Result<(), QueueClosed>> + Send;
    /// The object changed.
    fn updated(&self, object: Incoming<T>) -> impl Future<Output = Result<(), QueueClosed>> + Send;
    /// The object is gone; this is its final state.
    fn deleted(&self, object: Incoming<T>) -> impl Future<Output = Result<(), QueueClosed>> + Send;
    /// The object is gone, and only this is known of it.
    fn deleted_meta(&self, meta: Meta) -> impl Future<Output = Result<(), QueueClosed>> + Send;
    /// The object cannot be used, and its key is known; `deleted`: the frame said that it is gone.
    fn bad(&self, object: BadObject, deleted: bool) -> Result<(), QueueClosed>;
    /// The source holds exactly this.
    fn replace(&self, list: ListSnapshot<T>) -> Result<(), QueueClosed>;
    /// Nothing changed up to this version.
    fn bookmark(&self, version: ResourceVersion) -> Result<(), QueueClosed>;
}

impl<T> ListSnapshot<T> {
    pub(super) fn empty() -> Self {
        Self {
            items: Vec::new(),
            resource_version: ResourceVersion::empty(),
            reset: false,
        }
    }
}
