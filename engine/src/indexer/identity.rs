//! Which of two states of one key is the truth: the identity rules, in one place.
//!
//! Used by the indexer on what is stored, and by the delta queue on what is pending.
use crate::object::{ResourceVersion, Uid, Versioning};
use std::cmp::Ordering;

/// What an arriving state of a key means beside the one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upsert {
    /// Older than what is known: drop it.
    Stale,
    /// The same version of the same object: no change.
    Unchanged,
    /// A new state of the same object.
    Update,
    /// Another object of the same key: the known one is gone, its final state was not seen.
    Recreate,
}

/// What an arriving deletion means beside the known state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delete {
    /// It is about an earlier life or state: the known object lives.
    Stale,
    /// The known object is gone; the deletion carries its final state.
    Remove,
    /// A later life of the key is gone, so the known one is gone too; its final state was not seen.
    RemoveUnseen,
}

/// Judge an upsert beside the known state. `guard` is false after a declared reset, when versions
/// may go back.
#[inline]
pub(crate) fn judge_upsert(
    known: (&Uid, &ResourceVersion),
    arriving: (&Uid, &ResourceVersion),
    versioning: Versioning,
    guard: bool,
) -> Upsert {
    let order = arriving.1.compare(known.1, versioning).filter(|_| guard);
    if order == Some(Ordering::Less) {
        return Upsert::Stale;
    }
    if !known.0.may_equal(arriving.0) {
        return Upsert::Recreate;
    }
    if order == Some(Ordering::Equal) {
        return Upsert::Unchanged;
    }
    Upsert::Update
}

/// Judge a deletion beside the known state.
pub(crate) fn judge_delete(
    known: (&Uid, &ResourceVersion),
    arriving: (&Uid, &ResourceVersion),
    versioning: Versioning,
) -> Delete {
    let order = arriving.1.compare(known.1, versioning);
    if order == Some(Ordering::Less) {
        return Delete::Stale;
    }
    if known.0.may_equal(arriving.0) {
        return Delete::Remove;
    }
    // Another life of the key: only one known to be newer tells that the stored one is over.
    if order == Some(Ordering::Greater) {
        Delete::RemoveUnseen
    } else {
        Delete::Stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Versioning::{Decimal, Opaque};

    fn state(uid: &str, version: &str) -> (Uid, ResourceVersion) {
        (Uid::new(uid), ResourceVersion::new(version))
    }

    #[test]
    fn upserts_follow_the_identity_order() {
        let judge = |known: (&str, &str), arriving: (&str, &str), versioning| {
            let (known, arriving) = (state(known.0, known.1), state(arriving.0, arriving.1));
            judge_upsert(
                (&known.0, &known.1),
                (&arriving.0, &arriving.1),
                versioning,
                true,
            )
        };
        assert_eq!(judge(("u1", "5"), ("u1", "6"), Decimal), Upsert::Update);
        assert_eq!(judge(("u1", "5"), ("u1", "4"), Decimal), Upsert::Stale);
        assert_eq!(judge(("u1", "5"), ("u1", "5"), Decimal), Upsert::Unchanged);
        assert_eq!(judge(("u1", "5"), ("u2", "6"), Decimal), Upsert::Recreate);
        assert_eq!(judge(("u1", "5"), ("u2", "4"), Decimal), Upsert::Stale);
        assert_eq!(judge(("u1", "5"), ("u1", "4"), Opaque), Upsert::Update);
        assert_eq!(
            judge(("u1", ""), ("u1", ""), Decimal),
            Upsert::Update,
            "no version is a change"
        );
        assert_eq!(
            judge(("u1", "x"), ("u1", "4"), Decimal),
            Upsert::Update,
            "unknown never blocks"
        );
    }

    #[test]
    fn a_late_delete_never_removes_the_living() {
        let judge = |known: (&str, &str), arriving: (&str, &str), versioning| {
            let (known, arriving) = (state(known.0, known.1), state(arriving.0, arriving.1));
            judge_delete((&known.0, &known.1), (&arriving.0, &arriving.1), versioning)
        };
        assert_eq!(judge(("u2", "9"), ("u1", "8"), Decimal), Delete::Stale);
        assert_eq!(judge(("u2", "9"), ("u2", "8"), Decimal), Delete::Stale);
        assert_eq!(judge(("u2", "9"), ("u2", "10"), Decimal), Delete::Remove);
        assert_eq!(judge(("u2", "9"), ("", "10"), Decimal), Delete::Remove);
        assert_eq!(
            judge(("u1", "9"), ("u2", "12"), Decimal),
            Delete::RemoveUnseen
        );
        assert_eq!(judge(("u1", "9"), ("u2", "12"), Opaque), Delete::Stale);
        assert_eq!(judge(("u1", "9"), ("u1", "8"), Opaque), Delete::Remove);
    }
}
