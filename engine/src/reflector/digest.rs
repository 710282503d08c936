//! A digest of who is in the cache, kept up with every change.
use crate::indexer::Applied;
use crate::object::{KeyRef, ResourceVersion, Uid};
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// A digest of the set of (namespace, name, uid, version) of all objects: the same whatever the
/// order in which they came, and updated by a change in constant time.
///
/// It is a sum of 128-bit hashes, so it tells two different sets apart but for an accident of about
/// one in 2^128. It is meant for comparisons within one process: another build may hash otherwise.
///
/// ```
/// use informant::reflector::Digest;
/// let (uid, version) = ("u1".into(), "7".into());
/// let mut digest = Digest::default();
/// digest.add("default/a".into(), &uid, &version);
/// digest.add("default/b".into(), &uid, &version);
/// digest.remove("default/a".into(), &uid, &version);
/// let mut other = Digest::default();
/// other.add("default/b".into(), &uid, &version);
/// assert_eq!(digest, other);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest {
    sum: u128,
    objects: u64,
}

impl Digest {
    /// An object is there.
    pub fn add(&mut self, key: KeyRef<'_>, uid: &Uid, version: &ResourceVersion) {
        self.sum = self.sum.wrapping_add(hash(key, uid, version));
        self.objects = self.objects.wrapping_add(1);
    }

    /// An object that was added before is no longer there.
    pub fn remove(&mut self, key: KeyRef<'_>, uid: &Uid, version: &ResourceVersion) {
        self.sum = self.sum.wrapping_sub(hash(key, uid, version));
        self.objects = self.objects.wrapping_sub(1);
    }

    /// Follow an applied batch. O(changes).
    pub fn apply<T>(&mut self, applied: &Applied<T>) {
        for change in &applied.changes {
            if let Some(old) = &change.old {
                self.remove(old.key_ref(), old.uid(), old.resource_version());
            }
            if let Some(new) = &change.new {
                self.add(new.key_ref(), new.uid(), new.resource_version());
            }
        }
    }

    /// How many objects it covers.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.objects
    }
}

/// Two independent 64-bit hashes, with fixed keys so that all digests of a process agree.
fn hash(key: KeyRef<'_>, uid: &Uid, version: &ResourceVersion) -> u128 {
    let half = |seed| {
        let state = ahash::RandomState::with_seeds(seed, 2, 3, 4);
        let mut hasher = state.build_hasher();
        (key, uid, version).hash(&mut hasher);
        u128::from(std::hash::Hasher::finish(&hasher))
    };
    half(1) << 64 | half(5)
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({} objects, {:032x})", self.objects, self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equal_sets_have_equal_digests_and_others_do_not(
            steps in prop::collection::vec((any::<bool>(), 0_u8..4, 0_u8..3), 0..40),
            other in prop::collection::btree_set((0_u8..4, 0_u8..3), 0..6),
        ) {
            let show = |(key, version): (u8, u8)| (format!("ns/k{key}"), version.to_string());
            let mut set = BTreeSet::new();
            let mut digest = Digest::default();
            for (add, key, version) in steps {
                let (name, text) = show((key, version));
                let (uid, version_) = ("u".into(), text.as_str().into());
                if add && set.insert((key, version)) {
                    digest.add(name.as_str().into(), &uid, &version_);
                } else if !add && set.remove(&(key, version)) {
                    digest.remove(name.as_str().into(), &uid, &version_);
                }
            }
            let of = |set: &BTreeSet<(u8, u8)>| {
                let mut digest = Digest::default();
                for &entry in set.iter().rev() {
                    let (name, text) = show(entry);
                    digest.add(name.as_str().into(), &"u".into(), &text.as_str().into());
                }
                digest
            };
            prop_assert_eq!(digest, of(&set));
            prop_assert_eq!(digest == of(&other), set == other);
            prop_assert_eq!(digest.objects(), set.len() as u64);
        }
    }
}
