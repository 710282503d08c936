//! What a handler is told.
use crate::delta::{Deleted, SourceId};
use crate::object::{Cached, ObjectKey};
use std::fmt;

/// One thing that a handler is told, owned: the item of an [`EventStream`](super::EventStream) and
/// the argument of closure handlers.
///
/// Per key the order is `Added`, any number of `Updated`, `Deleted`, and so on; the `old` of an
/// `Updated` is the object that this same handler was given last.
pub enum Event<T> {
    /// The object appeared.
    Added {
        /// The object.
        object: Cached<T>,
        /// It was in the first list, or in the snapshot that a late handler starts from.
        initial: bool,
    },
    /// The object changed; or, when both are the same object, it is announced again by a resync.
    Updated {
        /// What this handler was given before.
        old: Cached<T>,
        /// What the object is now.
        new: Cached<T>,
    },
    /// The object is gone.
    Deleted(Deleted<T>),
    /// The source was reset and its versions may have gone back; the differences follow.
    Reset(SourceId),
    /// This handler fell too far behind and its policy is to start over: what it knows is void,
    /// and `Added` follows for everything that exists.
    Replay,
}

impl<T> Event<T> {
    /// The key that the event is about; `None` for those that are about all of them.
    #[must_use]
    pub fn key(&self) -> Option<&ObjectKey> {
        self.borrow().key()
    }

    /// The object as it is now, or, for a deletion, as it was last known.
    #[must_use]
    pub fn object(&self) -> Option<&Cached<T>> {
        match self {
            Self::Added { object, .. } => Some(object),
            Self::Updated { new, .. } => Some(new),
            Self::Deleted(deleted) => deleted.last.as_ref(),
            Self::Reset(_) | Self::Replay => None,
        }
    }

    pub(crate) fn borrow(&self) -> Notice<'_, T> {
        match self {
            Self::Added { object, initial } => Notice::Added {
                object,
                initial: *initial,
            },
            Self::Updated { old, new } => Notice::Updated { old, new },
            Self::Deleted(deleted) => Notice::Deleted(deleted),
            Self::Reset(source) => Notice::Reset(*source),
            Self::Replay => Notice::Replay,
        }
    }
}

impl<T> Clone for Event<T> {
    fn clone(&self) -> Self {
        self.borrow().to_owned()
    }
}

impl<T> fmt::Debug for Event<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.borrow().fmt(f)
    }
}

/// The borrowed form: points into the batch that all handlers share.
pub(crate) enum Notice<'a, T> {
    Added {
        object: &'a Cached<T>,
        initial: bool,
    },
    Updated {
        old: &'a Cached<T>,
        new: &'a Cached<T>,
    },
    Deleted(&'a Deleted<T>),
    Reset(SourceId),
    Replay,
}

impl<T> Clone for Notice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Notice<'_, T> {}

impl<'a, T> Notice<'a, T> {
    pub(crate) fn to_owned(self) -> Event<T> {
        match self {
            Self::Added { object, initial } => Event::Added {
                object: object.clone(),
                initial,
            },
            Self::Updated { old, new } => Event::Updated {
                old: old.clone(),
                new: new.clone(),
            },
            Self::Deleted(deleted) => Event::Deleted(deleted.clone()),
            Self::Reset(source) => Event::Reset(source),
            Self::Replay => Event::Replay,
        }
    }

    pub(crate) fn key(&self) -> Option<&'a ObjectKey> {
        match self {
            Self::Added { object, .. } => Some(object.key()),
            Self::Updated { new, .. } => Some(new.key()),
            Self::Deleted(deleted) => Some(&deleted.key),
            Self::Reset(_) | Self::Replay => None,
        }
    }
}

/// Prints keys and versions, never the objects: `Updated(default/a: 5 -> 6)`.
impl<T> fmt::Debug for Notice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { object, initial } => {
                let mark = if *initial { "*" } else { "" };
                write!(
                    f,
                    "Added{mark}({}@{})",
                    object.key(),
                    object.resource_version()
                )
            }
            Self::Updated { old, new } => write!(
                f,
                "Updated({}: {} -> {})",
                new.key(),
                old.resource_version(),
                new.resource_version()
            ),
            Self::Deleted(deleted) => deleted.fmt(f),
            Self::Reset(source) => write!(f, "Reset({})", source.0),
            Self::Replay => f.write_str("Replay"),
        }
    }
}
