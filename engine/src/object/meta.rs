//! An object on its way in: its metadata beside it.
use super::{KeyError, KeyRef, ObjectKey, ResourceVersion, Uid};

/// What the engine can ask of an object type whose metadata is inside it.
///
/// Sources need not use it: they may build [`Meta`] from wherever they know it (a slim projection
/// has no metadata left). It makes [`Incoming::of`] and test sources convenient.
///
/// ```
/// struct Pod { namespace: String, name: String, version: String }
/// impl informant::Object for Pod {
///     fn namespace(&self) -> Option<&str> { Some(&self.namespace) }
///     fn name(&self) -> Option<&str> { Some(&self.name) }
///     fn uid(&self) -> Option<&str> { None }
///     fn resource_version(&self) -> Option<&str> { Some(&self.version) }
/// }
/// ```
pub trait Object {
    /// `metadata.namespace`; `None` or empty for a cluster-scoped object.
    fn namespace(&self) -> Option<&str>;
    /// `metadata.name`; an object without one cannot be stored.
    fn name(&self) -> Option<&str>;
    /// `metadata.uid`.
    fn uid(&self) -> Option<&str>;
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> Option<&str>;
}

/// Key, uid and resourceVersion of an object, read before any transform and kept beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// `namespace/name`.
    pub key: ObjectKey,
    /// What tells two objects of one key apart.
    pub uid: Uid,
    /// The version of this state of the object.
    pub resource_version: ResourceVersion,
}

impl Meta {
    /// Metadata from its parts.
    ///
    /// # Errors
    /// [`KeyError`] when namespace and name make no key.
    pub fn new(
        namespace: &str,
        name: &str,
        uid: &str,
        resource_version: &str,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            key: ObjectKey::new(namespace, name)?,
            uid: Uid::new(uid),
            resource_version: ResourceVersion::new(resource_version),
        })
    }

    /// The metadata inside `object`.
    ///
    /// # Errors
    /// [`MetaError`] when the object has no usable key.
    pub fn of<T: Object + ?Sized>(object: &T) -> Result<Self, MetaError> {
        let (namespace, name) = (
            object.namespace().unwrap_or(""),
            object.name().unwrap_or(""),
        );
        KeyRef::new(namespace, name)
            .check()
            .map_err(|source| MetaError {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                resource_version: ResourceVersion::new(object.resource_version().unwrap_or("")),
                source,
            })?;
        Ok(Self {
            key: KeyRef::new(namespace, name).to_owned(),
            uid: Uid::new(object.uid().unwrap_or("")),
            resource_version: ResourceVersion::new(object.resource_version().unwrap_or("")),
        })
    }
}

/// An object whose metadata makes no key: it is reported and cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "object {name:?} in namespace {namespace:?} at version {resource_version:?} cannot be stored"
)]
pub struct MetaError {
    /// The namespace found, possibly empty.
    pub namespace: String,
    /// The name found, possibly empty.
    pub name: String,
    /// The version found, possibly empty.
    pub resource_version: ResourceVersion,
    /// What is wrong with them.
    #[source]
    pub source: KeyError,
}

/// An object on its way into the cache: what a source yields and a transform may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming<T> {
    /// Read before any transform; a transform cannot change it.
    pub meta: Meta,
    /// The object itself.
    pub object: T,
}

impl<T> Incoming<T> {
    /// An object with metadata from elsewhere.
    pub fn new(meta: Meta, object: T) -> Self {
        Self { meta, object }
    }

    /// An object whose metadata is inside it.
    ///
    /// # Errors
    /// [`MetaError`] when the object has no usable key.
    pub fn of(object: T) -> Result<Self, MetaError>
    where
        T: Object,
    {
        Ok(Self {
            meta: Meta::of(&object)?,
            object,
        })
    }

    /// Turn the object into another type (a projection), keeping the metadata.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Incoming<U> {
        Incoming {
            meta: self.meta,
            object: convert(self.object),
        }
    }
}
