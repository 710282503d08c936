//! Uids: what tells two objects of the same key apart.
use std::fmt;

/// The uid of an object: 16 bytes when it is a canonical UUID (as the API server's are), the text
/// otherwise, or nothing when the source gave none.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Uid(Repr);

#[derive(Clone, PartialEq, Eq, Hash, Default)]
enum Repr {
    #[default]
    Missing,
    Uuid([u8; 16]),
    Text(Box<str>),
}

impl Uid {
    /// The uid with this text; empty text means that the object has none.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(match text {
            "" => Repr::Missing,
            text => parse_uuid(text.as_bytes()).map_or_else(|| Repr::Text(text.into()), Repr::Uuid),
        })
    }

    /// True when the object has no uid: such an object equals any other of its key.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.0, Repr::Missing)
    }

    /// True unless both are known and differ: a missing uid may be anyone's.
    #[must_use]
    #[inline]
    pub fn may_equal(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Uuid(a), Repr::Uuid(b)) => a == b,
            (Repr::Missing, _) | (_, Repr::Missing) => true,
            (a, b) => a == b,
        }
    }
}

/// Only the canonical form (lower-case, hyphens at their places) is packed, so that text always
/// survives a round trip.
fn parse_uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return None;
    }
    let mut bytes = [0; 16];
    let mut digits = 0;
    for (at, &byte) in text.iter().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let nibble = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        bytes[digits / 2] = bytes[digits / 2] << 4 | nibble;
        digits += 1;
    }
    Some(bytes)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Missing => Ok(()),
            Repr::Text(text) => f.write_str(text),
            Repr::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_a_round_trip_whether_packed_or_not() {
        for text in [
            "94d30ac7-7732-598c-84fa-13bfe6b3a220",
            "94D30AC7-7732-598C-84FA-13BFE6B3A220",
            "94d30ac7-7732-598c-84fa-13bfe6b3a22",
            "94d30ac77732-598c-84fa-13bfe6b3a220-",
            "u1",
            "",
        ] {
            assert_eq!(Uid::new(text).to_string(), text);
        }
        assert_ne!(
            Uid::new("94d30ac7-7732-598c-84fa-13bfe6b3a220"),
            Uid::new("94D30AC7-7732-598C-84FA-13BFE6B3A220"),
            "uids are opaque: another spelling is another uid"
        );
    }

    #[test]
    fn a_missing_uid_may_be_anyones() {
        assert!(Uid::new("").may_equal(&Uid::new("u1")));
        assert!(!Uid::new("u1").may_equal(&Uid::new("u2")));
    }
}
