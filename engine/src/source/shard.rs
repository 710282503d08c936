//! Shards of a collection: ranges of hashes, as Kubernetes' `shardSelector` names them (KEP-5866).
use std::fmt;
use std::str::FromStr;

/// The hash by which objects are spread over shards: 64-bit FNV-1a of a field's text.
///
/// ```
/// use informant::source::shard_hash;
/// assert_eq!(shard_hash(""), 0xcbf2_9ce4_8422_2325);
/// assert_eq!(shard_hash("a"), 0xaf63_dc4c_8601_ec8c);
/// ```
#[must_use]
pub fn shard_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The field whose hash decides on the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardField {
    /// `object.metadata.uid`.
    Uid,
    /// `object.metadata.namespace`.
    Namespace,
}

impl ShardField {
    fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

/// One range of hashes of one field: from `start` up to, but without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardRange {
    /// The field that is hashed.
    pub field: ShardField,
    /// The first hash of the range; at most 2^64.
    pub start: u128,
    /// The first hash past the range; at most 2^64.
    pub end: u128,
}

/// A part of a collection: the objects whose hash is in one of the ranges.
///
/// Every object is in exactly one of the [`ShardSelector::shards`] of a collection, so several
/// caches can each hold a part. The same selector works on both sides: as the text that travels to
/// the server in [`Selectors::shard`](super::Selectors), and as a filter for servers without it.
///
/// ```
/// use informant::source::ShardSelector;
/// let shards = ShardSelector::shards(2);
/// assert_eq!(
///     shards[1].to_string(),
///     "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')",
/// );
/// let uid = "94d30ac7-7732-598c-84fa-13bfe6b3a220";
/// assert_ne!(shards[0].matches(uid, "default"), shards[1].matches(uid, "default"));
/// assert_eq!(shards[0].to_string().parse(), Ok(shards[0].clone()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardSelector {
    ranges: Vec<ShardRange>,
}

/// One past the largest hash.
const END: u128 = 1 << 64;

impl ShardSelector {
    /// Split all hashes of uids into `count` parts of equal size (the last may be a little larger).
    ///
    /// # Panics
    /// When `count` is zero.
    #[must_use]
    pub fn shards(count: u32) -> Vec<Self> {
        assert!(count > 0, "a collection has at least one shard");
        let step = END / u128::from(count);
        let bound = |at: u32| {
            if at == count {
                END
            } else {
                step * u128::from(at)
            }
        };
        let shard = |at: u32| ShardRange {
            field: ShardField::Uid,
            start: bound(at),
            end: bound(at + 1),
        };
        (0..count)
            .map(|at| Self {
                ranges: vec![shard(at)],
            })
            .collect()
    }

    /// The ranges, in the order of the text.
    #[must_use]
    pub fn ranges(&self) -> &[ShardRange] {
        &self.ranges
    }

    /// True when an object with this uid and namespace is in the part.
    #[must_use]
    pub fn matches(&self, uid: &str, namespace: &str) -> bool {
        self.ranges.iter().any(|range| {
            let hash = u128::from(shard_hash(match range.field {
                ShardField::Uid => uid,
                ShardField::Namespace => namespace,
            }));
            range.start <= hash && hash < range.end
        })
    }
}

impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.ranges.iter().enumerate() {
            if at > 0 {
                f.write_str(" || ")?;
            }
            let (path, start, end) = (range.field.path(), range.start, range.end);
            write!(f, "shardRange({path}, '{start:#018x}', '{end:#018x}')")?;
        }
        Ok(())
    }
}

impl FromStr for ShardSelector {
    type Err = ShardSelectorError;

    fn from_str(text: &str) -> Result<Self, ShardSelectorError> {
        let ranges: Result<_, _> = text.split("||").map(|part| range(part.trim())).collect();
        Ok(Self { ranges: ranges? })
    }
}

/// Why a text is no shard selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part:?} is no range of a shard: {reason}")]
pub struct ShardSelectorError {
    /// The part of the text, between two `||`.
    pub part: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

fn range(part: &str) -> Result<ShardRange, ShardSelectorError> {
    let fail = |reason| ShardSelectorError {
        part: part.to_owned(),
        reason,
    };
    let arguments = part
        .strip_prefix("shardRange")
        .and_then(|rest| rest.trim_start().strip_prefix('('))
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or_else(|| fail("expected shardRange(field, 'start', 'end')"))?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [path, start, end] = arguments[..] else {
        return Err(fail("expected a field and two bounds"));
    };
    let field = [ShardField::Uid, ShardField::Namespace]
        .into_iter()
        .find(|field| field.path() == path)
        .ok_or_else(|| {
            fail("the field must be object.metadata.uid or object.metadata.namespace")
        })?;
    let (start, end) = (bound(start).map_err(&fail)?, bound(end).map_err(&fail)?);
    if start >= end {
        return Err(fail("the start must be below the end"));
    }
    Ok(ShardRange { field, start, end })
}

fn bound(text: &str) -> Result<u128, &'static str> {
    let digits = text
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .ok_or("a bound stands in single quotes")?
        .strip_prefix("0x")
        .ok_or("a bound begins with 0x")?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err("a bound is a hexadecimal number");
    }
    match u128::from_str_radix(digits, 16) {
        Ok(bound) if bound <= END => Ok(bound),
        Ok(_) => Err("a bound is at most 0x10000000000000000"),
        Err(_) => Err("a bound is a hexadecimal number of at most 17 digits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_uid_is_in_exactly_one_shard() {
        for count in [1, 2, 3, 7] {
            let shards = ShardSelector::shards(count);
            for uid in (0..200).map(|n| format!("uid-{n}")) {
                let owners = shards
                    .iter()
                    .filter(|shard| shard.matches(&uid, ""))
                    .count();
                assert_eq!(owners, 1, "{uid} in {count} shards");
            }
        }
    }

    #[test]
    fn the_start_belongs_to_the_range_and_the_end_does_not() {
        let hash = u128::from(shard_hash("u1"));
        let of = |start, end| {
            let text = format!("shardRange(object.metadata.uid,'{start:#x}','{end:#x}')");
            text.parse::<ShardSelector>().unwrap().matches("u1", "")
        };
        assert!(of(hash, hash + 1));
        assert!(!of(hash + 1, hash + 2));
        assert!(!of(hash - 1, hash));
        assert!(of(0, END));
    }

    #[test]
    fn several_ranges_and_the_namespace_as_the_field() {
        let text = "shardRange(object.metadata.namespace, '0x0', '0x8000000000000000')\
                    ||shardRange( object.metadata.namespace , '0x8000000000000000', '0x10000000000000000' )";
        let all: ShardSelector = text.parse().unwrap();
        assert_eq!(all.ranges().len(), 2);
        assert!(all.matches("any", "ns"));
        assert_eq!(all.to_string().parse(), Ok(all));
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in [
            "",
            "everything",
            "shardRange(object.metadata.uid, '0x0')",
            "shardRange(object.metadata.uid, 0x0, 0x1)",
            "shardRange(object.metadata.uid, '0', '0x1')",
            "shardRange(object.metadata.uid, '0x', '0x1')",
            "shardRange(object.metadata.uid, '0x+1', '0x2')",
            "shardRange(object.metadata.uid, '0x2', '0x2')",
            "shardRange(object.metadata.uid, '0x0', '0x10000000000000001')",
            "shardRange(object.metadata.uid, '0x0', '0x100000000000000000000000000000000')",
            "shardRange(metadata.uid, '0x0', '0x1')",
            "shardRange(object.metadata.uid, '0x0', '0x1') ||",
        ] {
            assert!(text.parse::<ShardSelector>().is_err(), "{text:?}");
        }
    }
}
