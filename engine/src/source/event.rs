//! What a list or a watch answers.
use super::SourceError;
use crate::object::{Incoming, KeyError, ObjectKey, ResourceVersion, Uid};
use futures_core::Stream;
use std::pin::Pin;

/// An object that the source sent and that cannot be used: undecodable, or without a usable key.
///
/// It is reported and, when its key is known, stands in the snapshot's quarantine; it never takes
/// other objects down with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("object {} at version {resource_version:?} cannot be used: {reason}", .key.as_ref().map_or("of unknown key", ObjectKey::as_str))]
pub struct BadObject {
    /// The key, where it could be read.
    pub key: Option<ObjectKey>,
    /// The uid, where it could be read.
    pub uid: Uid,
    /// The version, where it could be read; else empty.
    pub resource_version: ResourceVersion,
    /// What is wrong with it.
    pub reason: String,
}

impl BadObject {
    /// An object whose metadata makes no key.
    #[must_use]
    pub fn without_key(resource_version: ResourceVersion, error: &KeyError) -> Self {
        Self {
            key: None,
            uid: Uid::default(),
            resource_version,
            reason: error.to_string(),
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage<T> {
    /// The version of the list; the same on every page. Empty is an error of the source.
    pub resource_version: ResourceVersion,
    /// The token for the next page. `None` and empty both mean that this is the last one.
    pub continue_token: Option<String>,
    /// The objects; each may fail on its own.
    pub items: Vec<Result<Incoming<T>, BadObject>>,
}

/// One frame of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent<T> {
    /// The object appeared.
    Added(Incoming<T>),
    /// The object changed.
    Modified(Incoming<T>),
    /// The object is gone; this is its final state, at the version of the deletion.
    Deleted(Incoming<T>),
    /// Nothing changed up to this version.
    Bookmark {
        /// The version that the watch has reached.
        resource_version: ResourceVersion,
        /// This bookmark ends the initial objects of a streaming list.
        initial_events_end: bool,
    },
    /// A frame whose object cannot be used. The stream goes on.
    Bad {
        /// The object that the frame was about.
        object: BadObject,
        /// The frame said that the object is gone (then its content does not matter, if its key is known).
        deleted: bool,
    },
    /// A frame that is no event of this collection (a `Table`, another kind): reported, skipped,
    /// and no progress is made by it.
    Foreign {
        /// What it was, for the report.
        description: String,
    },
}

/// The frames of one watch. The stream's end is the ordinary end of the watch; an `Err` is an
/// error frame or a broken transport, and the last item.
pub type WatchStream<T> = Pin<Box<dyn Stream<Item = Result<WatchEvent<T>, SourceError>> + Send>>;
