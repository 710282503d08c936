//! `namespace/name` keys: stored once, looked up without allocating.
use super::key_hash;
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
#[derive(Clone, Copy)]
pub struct KeyRef<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    /// `namespace/name` or `name`, as it is stored.
    Joined(&'a str),
    /// A name without a namespace. A slash in it makes it no key, never a namespace.
    Name(&'a str),
    /// The parts, whose namespace is not empty.
    Parts(&'a str, &'a str),
    /// A key that is owned elsewhere: its bytes need no second look at whether they are text.
    Stored(&'a ObjectKey),
}

impl<'a> KeyRef<'a> {
    /// The key of `name` in `namespace`; an empty namespace means cluster-scoped.
    #[must_use]
    pub const fn new(namespace: &'a str, name: &'a str) -> Self {
        Self(if namespace.is_empty() {
            Form::Name(name)
        } else {
            Form::Parts(namespace, name)
        })
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

    #[inline]
    fn parts(&self) -> (&'a str, &'a str) {
        match self.0 {
            Form::Parts(namespace, name) => (namespace, name),
            Form::Name(name) => ("", name),
            Form::Joined(text) => match memchr::memchr(b'/', text.as_bytes()) {
                None | Some(0) => ("", text),
                Some(slash) => (&text[..slash], &text[slash + 1..]),
            },
            Form::Stored(key) => (key.namespace(), key.name()),
        }
    }

    /// The joined text, where it lies joined in memory.
    #[inline]
    pub(crate) fn joined(&self) -> Option<&'a [u8]> {
        match self.0 {
            Form::Joined(text) => Some(text.as_bytes()),
            Form::Stored(key) => Some(key.bytes()),
            Form::Name(_) | Form::Parts(..) => None,
        }
    }

    /// The namespace; empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &'a str {
        self.parts().0
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.parts().1
    }

    /// An owned copy.
    #[must_use]
    pub fn to_owned(&self) -> ObjectKey {
        if let Form::Stored(key) = self.0 {
            return key.clone();
        }
        let (namespace, name) = self.parts();
        ObjectKey(Text::join(namespace, name))
    }

    /// True when this is the key that is stored as `text`.
    #[inline]
    fn is_text(&self, text: &[u8]) -> bool {
        match self.0 {
            Form::Joined(joined) => joined.as_bytes() == text,
            Form::Stored(key) => key.bytes() == text,
            Form::Name(name) => name.as_bytes() == text && !name.contains('/'),
            Form::Parts(namespace, name) => {
                let slash = namespace.len();
                text.len() == slash + 1 + name.len()
                    && text[slash] == b'/'
                    && &text[..slash] == namespace.as_bytes()
                    && &text[slash + 1..] == name.as_bytes()
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), KeyError> {
        let (namespace, name) = self.parts();
        if name.is_empty() {
            return Err(KeyError::EmptyName);
        }
        if name.contains('/') || namespace.contains('/') {
            return Err(KeyError::Slash(self.to_string()));
        }
        Ok(())
    }
}

impl Hash for KeyRef<'_> {
    /// As the joined text, whatever the form.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            Form::Joined(text) | Form::Name(text) => key_hash::joined(text.as_bytes(), state),
            Form::Stored(key) => key_hash::joined(key.bytes(), state),
            Form::Parts(namespace, name) => {
                key_hash::parts(namespace.as_bytes(), name.as_bytes(), state);
            }
        }
    }
}

impl PartialEq for KeyRef<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self.joined(), other.joined()) {
            (Some(text), _) => other.is_text(text),
            (_, Some(text)) => self.is_text(text),
            (None, None) => self.parts() == other.parts(),
        }
    }
}

impl Eq for KeyRef<'_> {}

impl PartialOrd for KeyRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyRef<'_> {
    /// By namespace, then by name.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl<'a> From<&'a str> for KeyRef<'a> {
    /// Never fails: text that is no valid key becomes a key that equals no stored one.
    #[inline]
    fn from(text: &'a str) -> Self {
        Self(Form::Joined(text))
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
        match self.0 {
            Form::Joined(text) | Form::Name(text) => f.write_str(text),
            Form::Parts(namespace, name) => write!(f, "{namespace}/{name}"),
            Form::Stored(key) => f.write_str(key.as_str()),
        }
    }
}

impl fmt::Debug for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// The key of an object, owned: 48 bytes, of which 45 hold the text. A longer key has an
/// allocation of its own.
///
/// ```
/// use informant::ObjectKey;
/// let key = ObjectKey::new("default", "web-0")?;
/// assert_eq!((key.namespace(), key.name(), key.as_str()), ("default", "web-0", "default/web-0"));
/// # Ok::<_, informant::KeyError>(())
/// ```
#[derive(Clone)]
pub struct ObjectKey(Text);

/// Text that a key can hold in place.
const INLINE: usize = 45;

#[derive(Clone)]
enum Text {
    Inline {
        len: u8,
        /// Length of the namespace.
        slash: u8,
        bytes: [u8; INLINE],
    },
    Heap(Box<(usize, Box<str>)>),
}

impl Text {
    fn join(namespace: &str, name: &str) -> Self {
        let slash = namespace.len();
        let start = if slash == 0 { 0 } else { slash + 1 };
        let len = start + name.len();
        if len > INLINE {
            let text = KeyRef::new(namespace, name).to_string();
            return Self::Heap(Box::new((slash, text.into())));
        }
        let mut bytes = [0; INLINE];
        bytes[..slash].copy_from_slice(namespace.as_bytes());
        if slash > 0 {
            bytes[slash] = b'/';
        }
        bytes[start..len].copy_from_slice(name.as_bytes());
        #[allow(clippy::cast_possible_truncation)] // Neither is above `INLINE`.
        Self::Inline {
            len: len as u8,
            slash: slash as u8,
            bytes,
        }
    }
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

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Inline { len, bytes, .. } => &bytes[..usize::from(*len)],
            Text::Heap(text) => text.1.as_bytes(),
        }
    }

    fn slash(&self) -> usize {
        match &self.0 {
            Text::Inline { slash, .. } => usize::from(*slash),
            Text::Heap(text) => text.0,
        }
    }

    /// The bytes of namespace and name.
    #[inline]
    fn halves(&self) -> (&[u8], &[u8]) {
        let (bytes, slash) = (self.bytes(), self.slash());
        let start = if slash == 0 { 0 } else { slash + 1 };
        (&bytes[..slash], &bytes[start..])
    }

    /// `namespace/name`, or `name` for a cluster-scoped object.
    ///
    /// # Panics
    /// Never: a key is made of two strings, so it is valid UTF-8.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.bytes()).expect("a key is made of strings")
    }

    /// The namespace; empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.as_str()[..self.slash()]
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.slash() {
            0 => self.as_str(),
            slash => &self.as_str()[slash + 1..],
        }
    }

    /// The borrowed form, which every look-up takes.
    #[must_use]
    #[inline]
    pub fn as_ref(&self) -> KeyRef<'_> {
        KeyRef(Form::Stored(self))
    }

    /// True when this is the owned form of `key`.
    #[must_use]
    #[inline]
    pub fn is(&self, key: KeyRef<'_>) -> bool {
        key.is_text(self.bytes())
    }
}

impl PartialEq for ObjectKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for ObjectKey {}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    /// By namespace, then by name.
    /// As text compares: by bytes, which need no second look at whether they are text.
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.halves().cmp(&other.halves())
    }
}

impl Hash for ObjectKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        key_hash::joined(self.bytes(), state);
    }
}

impl hashbrown::Equivalent<ObjectKey> for KeyRef<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        key.is(*self)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
        assert!(matches!(ObjectKey::new("", "a/b"), Err(KeyError::Slash(_))));
        assert_ne!(KeyRef::new("", "ns1/node1"), namespaced.as_ref());
        assert_ne!(KeyRef::new("", "ns1/node1"), KeyRef::from("ns1/node1"));
        assert!(!namespaced.is(KeyRef::new("", "ns1/node1")));
        assert!(matches!(
            KeyRef::parse("/node1"),
            Err(KeyError::EmptyNamespace(_))
        ));
    }

    #[test]
    fn a_key_at_and_past_the_inline_size_reads_the_same() {
        assert_eq!(std::mem::size_of::<ObjectKey>(), 48);
        for name_len in [1, 40, 41, 42, 43, 44, 253, 400] {
            let name = "n".repeat(name_len);
            let key = ObjectKey::new("ns", &name).unwrap();
            assert_eq!((key.namespace(), key.name()), ("ns", name.as_str()));
            assert_eq!(key.as_ref().to_owned(), key);
            let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
            let parts = KeyRef::new("ns", &name);
            assert_eq!(hasher.hash_one(parts), hasher.hash_one(&key));
            assert_eq!(hasher.hash_one(key.as_ref()), hasher.hash_one(&key));
            assert!(key.is(parts) && key.is(key.as_ref()) && parts == key.as_ref());
        }
    }

    #[test]
    fn owned_and_borrowed_keys_are_in_one_order_by_namespace_then_by_name() {
        let long = "n".repeat(60);
        let mut keys = Vec::new();
        for namespace in ["", "a", "a-b", "a.b", "ab", "\u{e9}", &long] {
            for name in ["a", "a.b", "b", "\u{e9}", "\u{1f980}", &long] {
                keys.push(ObjectKey::new(namespace, name).unwrap());
            }
        }
        for a in &keys {
            for b in &keys {
                let parts = (a.namespace(), a.name()).cmp(&(b.namespace(), b.name()));
                assert_eq!(a.cmp(b), parts, "{a} {b}");
                assert_eq!(a.as_ref().cmp(&b.as_ref()), parts, "{a} {b}");
            }
        }
    }
}
