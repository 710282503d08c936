//! `namespace/name` keys: stored once, looked up without allocating.
use smallstr::SmallString;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The key of an object, borrowed: what every look-up takes.
///
/// Two keys are equal when namespace and name are; an empty namespace means a cluster-scoped
/// object. `"ns/name"`, `"name"`, `("ns", "name")` and `&ObjectKey` all convert into one, so a
/// look-up builds no string.
///
/// ```
/// use informant::KeyRef;
/// assert_eq!(KeyRef::from("default/web-0"), KeyRef::from(("default", "web-0")));
/// assert_eq!(KeyRef::from("node-1").namespace(), "");
/// // A leading slash is part of no stored key: this never equals the cluster-scoped "node-1".
/// assert_ne!(KeyRef::from("/node-1"), KeyRef::from("node-1"));
/// assert!(KeyRef::parse("a/b/c").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRef<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl<'a> KeyRef<'a> {
    /// The key of `name` in `namespace`; an empty namespace means cluster-scoped.
    #[must_use]
    pub const fn new(namespace: &'a str, name: &'a str) -> Self {
        Self { namespace, name }
    }

    /// Split `"namespace/name"` or `"name"`, refusing what cannot be a key (client-go's
    /// `SplitMetaNamespaceKey`, but strict about empty parts).
    ///
    /// # Errors
    /// [`KeyError`] when there is more than one slash or an empty part.
    pub fn parse(text: &'a str) -> Result<Self, KeyError> {
        let key = match text.split_once('/') {
            None => Self::new("", text),
            Some(("", _)) => return Err(KeyError::EmptyNamespace(text.to_owned())),
            Some((namespace, name)) => Self::new(namespace, name),
        };
        key.check()?;
        Ok(key)
    }

    /// The namespace; empty for a cluster-scoped object.
    #[must_use]
    pub const fn namespace(&self) -> &'a str {
        self.namespace
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// An owned copy.
    #[must_use]
    pub fn to_owned(&self) -> ObjectKey {
        let mut text = SmallString::with_capacity(self.namespace.len() + 1 + self.name.len());
        if !self.namespace.is_empty() {
            text.push_str(self.namespace);
            text.push('/');
        }
        text.push_str(self.name);
        ObjectKey {
            text,
            namespace_len: self.namespace.len(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), KeyError> {
        if self.name.is_empty() {
            return Err(KeyError::EmptyName);
        }
        if self.name.contains('/') || self.namespace.contains('/') {
            return Err(KeyError::Slash(self.to_string()));
        }
        Ok(())
    }
}

impl Hash for KeyRef<'_> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The separator keeps ("a", "bc") and ("ab", "c") apart. A name or namespace never holds
        // a slash, so this is injective on valid keys.
        state.write(self.namespace.as_bytes());
        state.write_u8(b'/');
        state.write(self.name.as_bytes());
    }
}

impl<'a> From<&'a str> for KeyRef<'a> {
    /// Never fails: text that is no valid key becomes a key that equals no stored one.
    fn from(text: &'a str) -> Self {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() => Self::new(namespace, name),
            _ => Self::new("", text),
        }
    }
}

impl<'a> From<(&'a str, &'a str)> for KeyRef<'a> {
    fn from((namespace, name): (&'a str, &'a str)) -> Self {
        Self::new(namespace, name)
    }
}

impl<'a> From<&'a ObjectKey> for KeyRef<'a> {
    fn from(key: &'a ObjectKey) -> Self {
        key.as_ref()
    }
}

impl<'a> From<&'a String> for KeyRef<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}

impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Debug for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// The key of an object, owned. Keys of up to 40 bytes need no allocation of their own.
///
/// ```
/// use informant::ObjectKey;
/// let key = ObjectKey::new("default", "web-0")?;
/// assert_eq!((key.namespace(), key.name(), key.as_str()), ("default", "web-0", "default/web-0"));
/// # Ok::<_, informant::KeyError>(())
/// ```
#[derive(Clone)]
pub struct ObjectKey {
    text: SmallString<[u8; 40]>,
    namespace_len: usize,
}

impl ObjectKey {
    /// The key of `name` in `namespace`; an empty namespace means cluster-scoped.
    ///
    /// # Errors
    /// [`KeyError`] when the name is empty or either part holds a slash.
    pub fn new(namespace: &str, name: &str) -> Result<Self, KeyError> {
        let key = KeyRef::new(namespace, name);
        key.check()?;
        Ok(key.to_owned())
    }

    /// `namespace/name`, or `name` for a cluster-scoped object.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The namespace; empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.text[..self.namespace_len]
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.namespace_len {
            0 => &self.text,
            len => &self.text[len + 1..],
        }
    }

    /// The borrowed form, which every look-up takes.
    #[must_use]
    #[inline]
    pub fn as_ref(&self) -> KeyRef<'_> {
        KeyRef::new(self.namespace(), self.name())
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ObjectKey {}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_ref().cmp(&other.as_ref())
    }
}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().hash(state);
    }
}

impl hashbrown::Equivalent<ObjectKey> for KeyRef<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        *self == key.as_ref()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// Why a namespace and a name make no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The object has no name; such an object cannot be stored and is reported.
    #[error("the object has no metadata.name")]
    EmptyName,
    /// A part holds a slash, which would make the key ambiguous.
    #[error("{0:?} is no key: a namespace or name must not contain a slash")]
    Slash(String),
    /// The text begins with a slash; a cluster-scoped key has no slash at all.
    #[error("{0:?} is no key: the namespace before the slash is empty")]
    EmptyNamespace(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c027_objects_with_an_empty_namespace_have_a_plain_name_key() {
        let cluster = ObjectKey::new("", "node1").unwrap();
        let namespaced = ObjectKey::new("ns1", "node1").unwrap();
        assert_eq!(
            (cluster.as_str(), namespaced.as_str()),
            ("node1", "ns1/node1")
        );
        assert_ne!(cluster, namespaced);
        assert_eq!(KeyRef::from("node1"), cluster.as_ref());
        assert_ne!(KeyRef::from("/node1"), cluster.as_ref());
        assert!(matches!(KeyRef::parse("a/b/c"), Err(KeyError::Slash(_))));
        assert!(matches!(
            KeyRef::parse("/node1"),
            Err(KeyError::EmptyNamespace(_))
        ));
    }

    #[test]
    fn a_key_at_and_past_the_inline_size_reads_the_same() {
        for name_len in [1, 36, 37, 38, 39, 253] {
            let name = "n".repeat(name_len);
            let key = ObjectKey::new("ns", &name).unwrap();
            assert_eq!((key.namespace(), key.name()), ("ns", name.as_str()));
            assert_eq!(key.as_ref().to_owned(), key);
        }
    }
}
