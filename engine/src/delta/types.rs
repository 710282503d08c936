//! One change of one object, and who it came from.
use crate::object::{Cached, Meta, ObjectKey, ResourceVersion, Uid};
use std::fmt;

/// One of the sources that feed one store. Sources are disjoint by declaration: each owns the
/// objects it brought, and a relist of one never deletes an object of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SourceId(pub u32);

/// One registered handler, as the target of a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(pub u64);

/// One change of one object (client-go's `Delta`).
pub enum Delta<T> {
    /// The object appeared.
    Added(Cached<T>),
    /// The object changed.
    Updated(Cached<T>),
    /// The object was in a relist.
    Replaced(Cached<T>),
    /// The object is announced again because of a resync; nothing changed.
    Sync(Cached<T>),
    /// The object is gone. Boxed, so that the other changes stay two words wide: most of what a queue
    /// holds are changes, and few are ends.
    Deleted(Box<Deleted<T>>),
}

/// The end of an object.
pub struct Deleted<T> {
    /// Which object.
    pub key: ObjectKey,
    /// Which life of the key ended; missing when the source did not say.
    pub uid: Uid,
    /// The version of the deletion; empty when only a relist showed it.
    pub resource_version: ResourceVersion,
    /// The final state, or the last known one; `None` when the object was never known.
    pub last: Option<Cached<T>>,
    /// True when `last` may be older than the object's true final state (client-go's
    /// `DeletedFinalStateUnknown`): a relist or a later life of the key showed the deletion.
    pub final_state_unknown: bool,
}

impl<T> Deleted<T> {
    /// A deletion whose final state the source sent.
    #[must_use]
    pub fn known(last: Cached<T>) -> Self {
        let Meta {
            key,
            uid,
            resource_version,
        } = last.meta();
        Self {
            key,
            uid,
            resource_version,
            last: Some(last),
            final_state_unknown: false,
        }
    }

    /// A deletion that shows only by the object's absence: `last` is the last known state.
    #[must_use]
    pub fn unknown(last: Cached<T>) -> Self {
        Self {
            key: last.key().clone(),
            uid: last.uid().clone(),
            resource_version: ResourceVersion::empty(),
            last: Some(last),
            final_state_unknown: true,
        }
    }

    /// A deletion of which only the metadata is known: `last` could not be decoded.
    #[must_use]
    pub fn of(meta: Meta) -> Self {
        Self {
            key: meta.key,
            uid: meta.uid,
            resource_version: meta.resource_version,
            last: None,
            final_state_unknown: true,
        }
    }
}

impl<T> Delta<T> {
    /// The end of an object.
    #[must_use]
    pub fn deleted(deleted: Deleted<T>) -> Self {
        Self::Deleted(Box::new(deleted))
    }

    /// The version that the change brings its key to; for a deletion, the deletion's own.
    #[must_use]
    pub fn resource_version(&self) -> &ResourceVersion {
        match self {
            Self::Added(o) | Self::Updated(o) | Self::Replaced(o) | Self::Sync(o) => {
                o.resource_version()
            }
            Self::Deleted(deleted) => &deleted.resource_version,
        }
    }

    /// The key that the change is about.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added(o) | Self::Updated(o) | Self::Replaced(o) | Self::Sync(o) => o.key(),
            Self::Deleted(deleted) => &deleted.key,
        }
    }

    /// The state that the change carries: for a deletion, the last one, where known.
    #[must_use]
    pub fn object(&self) -> Option<&Cached<T>> {
        match self {
            Self::Added(o) | Self::Updated(o) | Self::Replaced(o) | Self::Sync(o) => Some(o),
            Self::Deleted(deleted) => deleted.last.as_ref(),
        }
    }
}

impl<T> Clone for Deleted<T> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            last: self.last.clone(),
            final_state_unknown: self.final_state_unknown,
        }
    }
}

impl<T> Clone for Delta<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(o) => Self::Added(o.clone()),
            Self::Updated(o) => Self::Updated(o.clone()),
            Self::Replaced(o) => Self::Replaced(o.clone()),
            Self::Sync(o) => Self::Sync(o.clone()),
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
        }
    }
}

/// Prints keys and versions, never the objects: `Updated(default/a@6)`.
impl<T> fmt::Debug for Delta<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, object) = match self {
            Self::Added(o) => ("Added", o),
            Self::Updated(o) => ("Updated", o),
            Self::Replaced(o) => ("Replaced", o),
            Self::Sync(o) => ("Sync", o),
            Self::Deleted(deleted) => return deleted.fmt(f),
        };
        write!(f, "{name}({}@{})", object.key(), object.resource_version())
    }
}

impl<T> fmt::Debug for Deleted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.final_state_unknown { "?" } else { "" };
        write!(f, "Deleted{mark}({}@{}", self.key, self.resource_version)?;
        match &self.last {
            Some(last) => write!(f, ", last @{})", last.resource_version()),
            None => f.write_str(")"),
        }
    }
}
