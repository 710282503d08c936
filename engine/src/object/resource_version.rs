//! resourceVersion: an opaque string, ordered only where the server's contract allows it.
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A resourceVersion as the source sent it; it goes back to the source unchanged.
///
/// Equality is equality of the text. Order exists only under [`Versioning::Decimal`], which is
/// the contract of Kubernetes since 1.35 (KEP-5504); see [`ResourceVersion::compare`].
///
/// ```
/// use informant::{ResourceVersion, Versioning::{Decimal, Opaque}};
/// use std::cmp::Ordering::Less;
/// let (old, new) = (ResourceVersion::new("9"), ResourceVersion::new("10"));
/// assert_eq!(old.compare(&new, Decimal), Some(Less));
/// assert_eq!(old.compare(&new, Opaque), None);
/// assert_ne!(ResourceVersion::new("010"), new, "versions are text, not numbers");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceVersion(Repr);

/// `Number` holds exactly the texts that `u64` prints, so equal text means equal representation.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
enum Repr {
    #[default]
    Empty,
    Number(u64),
    // A thin pointer keeps the whole type at 16 bytes: every cached object holds one.
    Text(Arc<Box<str>>),
}

/// Whether versions of one source can be compared, stated by the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Versioning {
    /// Versions are decimal numbers that rise; the order guards against going back in time.
    #[default]
    Decimal,
    /// Versions can only be told equal or different: no guard, and a wait for a version completes
    /// only when exactly that version is applied.
    Opaque,
}

impl ResourceVersion {
    /// The version with this text; empty text means "none".
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(match text {
            "" => Repr::Empty,
            text if is_canonical(text) => text
                .parse()
                .map_or_else(|_| Repr::Text(Arc::new(text.into())), Repr::Number),
            text => Repr::Text(Arc::new(text.into())),
        })
    }

    /// No version: what a list asks for when it wants the most recent state.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Repr::Empty)
    }

    /// The version "0": what a list asks for when any state will do.
    #[must_use]
    pub const fn zero() -> Self {
        Self(Repr::Number(0))
    }

    /// True when there is no version.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Repr::Empty)
    }

    /// The order of two versions, or `None` when it is unknown: under [`Versioning::Opaque`]
    /// (unless they are equal), and when either is no canonical decimal number. Numbers may have
    /// any length. Unknown never blocks an overwrite.
    #[must_use]
    #[inline]
    pub fn compare(&self, other: &Self, versioning: Versioning) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) if versioning == Versioning::Decimal => {
                Some(a.cmp(b))
            }
            _ => self.compare_rare(other, versioning),
        }
    }

    fn compare_rare(&self, other: &Self, versioning: Versioning) -> Option<Ordering> {
        if self == other && !self.is_empty() {
            return Some(Ordering::Equal);
        }
        if versioning == Versioning::Opaque {
            return None;
        }
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            // A canonical number that is kept as text does not fit 64 bits, so it is the larger.
            (Repr::Number(_), Repr::Text(b)) => is_canonical(b).then_some(Ordering::Less),
            (Repr::Text(a), Repr::Number(_)) => is_canonical(a).then_some(Ordering::Greater),
            (Repr::Text(a), Repr::Text(b)) => (is_canonical(a) && is_canonical(b)).then(|| {
                a.len()
                    .cmp(&b.len())
                    .then_with(|| a.as_bytes().cmp(b.as_bytes()))
            }),
            (Repr::Empty, _) | (_, Repr::Empty) => None,
        }
    }

    /// True when `self` is known to be older than `other`.
    #[must_use]
    #[inline]
    pub fn is_older_than(&self, other: &Self, versioning: Versioning) -> bool {
        self.compare(other, versioning) == Some(Ordering::Less)
    }

    /// The number, where the version is a decimal number that fits 64 bits: for metrics and lag.
    #[must_use]
    pub fn as_number(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(number) => Some(number),
            Repr::Empty | Repr::Text(_) => None,
        }
    }
}

fn is_canonical(text: &str) -> bool {
    text == "0"
        || (!text.starts_with('0') && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Empty => Ok(()),
            Repr::Number(number) => write!(f, "{number}"),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Number(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Versioning::{Decimal, Opaque};

    fn version(text: &str) -> ResourceVersion {
        ResourceVersion::new(text)
    }

    #[test]
    fn c035_versions_are_opaque_strings() {
        let forty = "1234567890123456789012345678901234567890";
        for text in [
            "z9-17",
            "~",
            "010",
            "10",
            forty,
            "18446744073709551615",
            "18446744073709551616",
        ] {
            assert_eq!(version(text).to_string(), text);
        }
        assert_ne!(version("010"), version("10"));
        assert_eq!(version("k1").compare(&version("b0"), Decimal), None);
        assert_eq!(version("10").compare(&version("9"), Opaque), None);
        assert_eq!(
            version("").compare(&version(""), Decimal),
            None,
            "no version is no order"
        );
    }

    #[test]
    fn decimal_numbers_of_any_length_compare_as_numbers() {
        let ascending = [
            "0",
            "9",
            "10",
            "18446744073709551615",
            "18446744073709551616",
            "99999999999999999999999",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(
                    version(a).compare(&version(b), Decimal),
                    Some(i.cmp(&j)),
                    "{a} {b}"
                );
            }
        }
        assert_eq!(
            version("010").compare(&version("9"), Decimal),
            None,
            "unknown, not smaller"
        );
    }
}
