//! Where a reflector delivers.
use crate::delta::{PreparedList, Producer, PushError};
use crate::object::{Cached, Incoming, Meta, ResourceVersion};
use crate::source::BadObject;
use std::future::Future;

/// What takes a reflector's findings: the producing side of the delta queue, or a stand-in for it.
///
/// `Ok` and [`PushError::Transform`] mean accepted, and only then may the resume point move; the
/// other errors end the reflector.
pub trait DeltaSink<T>: Send + Sync + 'static {
    /// The object as it will be stored. Nothing is delivered yet.
    ///
    /// # Errors
    /// The object, when it cannot be stored.
    fn prepare(&self, object: Incoming<T>) -> Result<Cached<T>, BadObject>;
    /// The object appeared.
    fn added(&self, object: Incoming<T>) -> impl Future<Output = Result<(), PushError>> + Send;
    /// The object changed.
    fn updated(&self, object: Incoming<T>) -> impl Future<Output = Result<(), PushError>> + Send;
    /// The object is gone; this is its final state.
    fn deleted(&self, object: Incoming<T>) -> impl Future<Output = Result<(), PushError>> + Send;
    /// The object is gone, and only this is known of it.
    fn deleted_meta(&self, meta: Meta) -> impl Future<Output = Result<(), PushError>> + Send;
    /// The object cannot be used; its key is known.
    fn bad(&self, object: BadObject) -> Result<(), PushError>;
    /// The source holds exactly this.
    fn replace(&self, list: PreparedList<T>) -> Result<(), PushError>;
    /// Nothing changed up to this version.
    fn bookmark(&self, version: ResourceVersion) -> Result<(), PushError>;
}

impl<T: Send + Sync + 'static> DeltaSink<T> for Producer<T> {
    fn prepare(&self, object: Incoming<T>) -> Result<Cached<T>, BadObject> {
        Producer::prepare(self, object)
    }

    async fn added(&self, object: Incoming<T>) -> Result<(), PushError> {
        Producer::added(self, object).await
    }

    async fn updated(&self, object: Incoming<T>) -> Result<(), PushError> {
        Producer::updated(self, object).await
    }

    async fn deleted(&self, object: Incoming<T>) -> Result<(), PushError> {
        Producer::deleted(self, object).await
    }

    async fn deleted_meta(&self, meta: Meta) -> Result<(), PushError> {
        Producer::deleted_meta(self, meta).await
    }

    fn bad(&self, object: BadObject) -> Result<(), PushError> {
        Producer::bad(self, object, false)
    }

    fn replace(&self, list: PreparedList<T>) -> Result<(), PushError> {
        self.replace_prepared(list)
    }

    fn bookmark(&self, version: ResourceVersion) -> Result<(), PushError> {
        Producer::bookmark(self, version)
    }
}
