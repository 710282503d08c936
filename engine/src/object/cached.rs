//! The handle to an object in the cache.
use super::{Incoming, KeyRef, Meta, ObjectKey, ResourceVersion, Uid};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A shared, immutable object of the cache: dereferences to the object, clones by counting.
///
/// Metadata and object live in one allocation, so a look-up that has found the key has found the
/// object. There is no way to change a cached object; holding one keeps that version alive for as
/// long as it is held, and nothing else.
///
/// ```
/// use informant::{Cached, Incoming, Meta};
/// let pod = Cached::from(Incoming::new(Meta::new("default", "web-0", "u1", "7")?, "a pod"));
/// assert_eq!(*pod, "a pod");
/// assert_eq!(pod.key().as_str(), "default/web-0");
/// assert_eq!(pod.resource_version().to_string(), "7");
/// # Ok::<_, informant::KeyError>(())
/// ```
pub struct Cached<T>(Arc<Entry<T>>);

/// The key comes first, which is what a look-up compares, and the object right behind it, which is
/// what it is for: together with the head of the `Arc`, neighbouring cache lines.
#[repr(C)]
struct Entry<T> {
    key: ObjectKey,
    object: T,
    resource_version: ResourceVersion,
    uid: Uid,
}

impl<T> Cached<T> {
    /// `namespace/name` of the object, as it was before any transform.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// The borrowed form of the key.
    #[must_use]
    #[inline]
    pub fn key_ref(&self) -> KeyRef<'_> {
        self.0.key.as_ref()
    }

    /// The namespace; empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.0.key.namespace()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.key.name()
    }

    /// The uid, as it was before any transform.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.0.uid
    }

    /// The version of this state of the object, as it was before any transform.
    #[must_use]
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.0.resource_version
    }

    /// A copy of key, uid and version.
    #[must_use]
    pub fn meta(&self) -> Meta {
        Meta {
            key: self.0.key.clone(),
            uid: self.0.uid.clone(),
            resource_version: self.0.resource_version.clone(),
        }
    }

    /// Read the ends of what the handle points to, so that it is near when it is looked at; the
    /// result means nothing.
    #[inline]
    pub(crate) fn read_ahead(&self) -> u64 {
        Arc::strong_count(&self.0) as u64 ^ self.0.resource_version.as_number().unwrap_or(0)
    }

    /// Where the object is in memory: as long as somebody holds it, nothing else is there.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// True when both handles are the same cached object, not merely equal ones.
    #[must_use]
    #[inline]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> From<Incoming<T>> for Cached<T> {
    fn from(Incoming { meta, object }: Incoming<T>) -> Self {
        Self(Arc::new(Entry {
            key: meta.key,
            resource_version: meta.resource_version,
            uid: meta.uid,
            object,
        }))
    }
}

impl<T> Clone for Cached<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Cached<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.object
    }
}

impl<T> AsRef<T> for Cached<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for Cached<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} ", self.0.key, self.0.resource_version)?;
        self.0.object.fmt(f)
    }
}
