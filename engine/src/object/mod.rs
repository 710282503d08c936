//! What the engine needs to know of an object: its key, its uid and its resourceVersion.
//!
//! The engine never looks inside the object itself. Whatever a source yields comes as an
//! [`Incoming`]: the metadata, read *before* any transform, beside the object. It becomes a
//! [`Cached`] handle when it is queued: one allocation that holds the metadata and the object
//! inline, shared by the cache, its readers and the handlers from then on.
mod cached;
mod key;
mod key_hash;
mod meta;
mod resource_version;
mod uid;

pub use cached::Cached;
pub use key::{KeyError, KeyRef, ObjectKey};
pub use meta::{Incoming, Meta, MetaError, Object};
pub use resource_version::{ResourceVersion, Versioning};
pub use uid::Uid;
