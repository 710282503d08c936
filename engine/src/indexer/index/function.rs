//! Index functions: what users declare.
use super::assignments::{ValueId, ValueIds};
use super::dictionary::Dictionary;
use crate::object::Cached;
use hashbrown::Equivalent;
use std::hash::Hash;

/// Where an index function puts the values of an object.
///
/// Values may be many, none or repeated. A value given by reference costs no allocation when the
/// index has seen it before.
pub struct Emit<'a, V> {
    dictionary: &'a mut Dictionary<V>,
    /// The first value: nearly always the only one.
    first: Option<ValueId>,
    others: ValueIds,
    /// The value that the object has had so far: nearly always it keeps it.
    expected: Option<ValueId>,
}

impl<'a, V: Hash + Eq> Emit<'a, V> {
    pub(super) fn new(dictionary: &'a mut Dictionary<V>, expected: Option<ValueId>) -> Self {
        Self {
            dictionary,
            first: None,
            others: ValueIds::new(),
            expected,
        }
    }

    /// What the function said.
    pub(super) fn finish(self) -> Said {
        let mut ids = self.others;
        match self.first {
            Some(only) if ids.is_empty() => return Said::One(only),
            first => ids.extend(first),
        }
        ids.sort_unstable();
        ids.dedup();
        Said::Many(ids)
    }

    /// The object has this value.
    pub fn value(&mut self, value: V) {
        let id = match self.expected {
            Some(id) if self.dictionary.get(id) == Some(&value) => id,
            _ => self.dictionary.intern_owned(value),
        };
        self.push(id);
    }

    /// The object has this value, which is copied only when the index does not know it yet.
    pub fn borrowed<Q>(&mut self, value: &Q)
    where
        Q: Hash + Equivalent<V> + ToOwned<Owned = V> + ?Sized,
    {
        self.known_as(value, Q::to_owned);
    }

    /// As [`Emit::borrowed`], of a value that is owned in another form.
    pub(crate) fn known_as<Q>(&mut self, value: &Q, own: impl FnOnce(&Q) -> V)
    where
        Q: Hash + Equivalent<V> + ?Sized,
    {
        let is_expected = |id: &ValueId| {
            let expected = self.dictionary.get(*id);
            expected.is_some_and(|expected| value.equivalent(expected))
        };
        let id = match self.expected.filter(is_expected) {
            Some(id) => id,
            None => self.dictionary.intern(value, || own(value)),
        };
        self.push(id);
    }

    #[inline]
    fn push(&mut self, id: ValueId) {
        if self.first.is_none() {
            self.first = Some(id);
        } else {
            self.others.push(id);
        }
    }
}

/// What an index function said of an object.
pub(super) enum Said {
    /// One value: nearly always.
    One(ValueId),
    Many(ValueIds),
    Failed(String),
}

/// An index function in the form in which the driver calls it.
pub(crate) type IndexFunction<T, V> =
    Box<dyn Fn(&Cached<T>, &mut Emit<'_, V>) -> Result<(), String> + Send>;
