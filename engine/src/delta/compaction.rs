//! Coalescing the deltas of one key, so that what they say in the end stays the same.
//!
//! The rules are those by which the indexer judges what is stored. A pending delta is dropped only
//! where the ones beside it say the same about *every* state that the consumer may hold:
//!
//! - An upsert that is older than, or the same as, the upsert before it finds that one stored, or
//!   something newer still: it would be dropped then, so it is dropped now.
//! - An upsert that is not older than the upsert before it overwrites whatever that one would have
//!   overwritten. (Not so when only the earlier one overwrites unconditionally, because its version
//!   does not compare: then both stay.)
//! - A deletion stays beside the upsert before it: that upsert may have been what it is about.
//! - Deletions of one life in a row are one.
//! - Of a long list the middle goes, where a later upsert overwrites all that it left behind. How
//!   the first life ended and the newest state stay: that is what a handler must be able to tell.
use super::{Deleted, Delta};
use crate::indexer::identity::{Delete, Upsert, judge_delete, judge_upsert};
use crate::object::{Cached, ResourceVersion, Uid, Versioning};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// How much of what is pending for one key is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compaction {
    /// Every delta that says something, as client-go's `DeltaFIFO` does: deletions in a row
    /// collapse, and an upsert that is the same as the one before it, or older, is none. On while
    /// a lossless handler is registered.
    KeepAll,
    /// How the first life ended (if it did), how the last one ended (if another did), and the
    /// newest state: [`Compaction::DELTAS_PER_KEY`] at the most, whatever arrives.
    #[default]
    FirstAndLast,
}

impl Compaction {
    /// Deltas that [`Compaction::FirstAndLast`] keeps of one key at the most.
    pub const DELTAS_PER_KEY: usize = 4;
}

/// What became of a delta that was pushed.
pub(super) enum Pushed<T> {
    /// It stands for itself.
    Kept,
    /// It took the place of another one, or added nothing to what is pending. What is not needed
    /// any more comes back, so that the caller drops it outside its lock.
    Merged(Delta<T>),
}

pub(super) type Deltas<T> = SmallVec<[Delta<T>; 2]>;

/// Add a delta to the pending ones of its key.
pub(super) fn push<T>(
    pending: &mut Deltas<T>,
    delta: Delta<T>,
    compaction: Compaction,
    versioning: Versioning,
) -> Pushed<T> {
    let compacts = compaction == Compaction::FirstAndLast;
    let merged = match (pending.last_mut(), delta) {
        (Some(Delta::Deleted(_)), Delta::Deleted(new)) => {
            collapse_into(pending, new, versioning).map(Delta::Deleted)
        }
        (Some(Delta::Deleted(_)) | None, delta) => Err(delta),
        (Some(known), Delta::Deleted(new)) if compacts => {
            if adds_nothing(known, &new, versioning) {
                Ok(Delta::Deleted(new))
            } else {
                Err(Delta::Deleted(new))
            }
        }
        (Some(known), new) if compacts => upsert(known, new, versioning),
        (Some(known), new) if says_nothing(known, &new, versioning) => Ok(new),
        (_, delta) => Err(delta),
    };
    let delta = match merged {
        Ok(superfluous) => return Pushed::Merged(superfluous),
        Err(delta) => delta,
    };
    pending.push(delta);
    if compacts && pending.len() > Compaction::DELTAS_PER_KEY {
        return Pushed::Merged(pending.remove(least_needed(pending, versioning)));
    }
    Pushed::Kept
}

/// Merge an upsert into the one before it. The superfluous one comes back, or the new one as an
/// error when both are needed.
fn upsert<T>(
    known: &mut Delta<T>,
    new: Delta<T>,
    versioning: Versioning,
) -> Result<Delta<T>, Delta<T>> {
    let (Some(before), Some(after)) = (known.object(), new.object()) else {
        unreachable!("an upsert carries its object");
    };
    match judge_upsert(identity(before), identity(after), versioning, true) {
        Upsert::Stale | Upsert::Unchanged => Ok(new),
        Upsert::Update if overwrites_as_much(after, before, versioning) => {
            let new = match (&known, new) {
                // The object is still one that the consumer has not seen.
                (Delta::Added(_), Delta::Updated(object)) => Delta::Added(object),
                (_, new) => new,
            };
            Ok(std::mem::replace(known, new))
        }
        // The end of the known life shows only by the new one, and its last state is the known one.
        Upsert::Update | Upsert::Recreate => Err(new),
    }
}

/// True when an upsert behind another is the same, or older: whoever applies both drops it.
fn says_nothing<T>(known: &Delta<T>, new: &Delta<T>, versioning: Versioning) -> bool {
    let (Some(before), Some(after)) = (known.object(), new.object()) else {
        return false;
    };
    !matches!(new, Delta::Deleted(_))
        && matches!(
            judge_upsert(identity(before), identity(after), versioning, true),
            Upsert::Stale | Upsert::Unchanged
        )
}

/// True when no stored state is overwritten by `before` that `after`, which is not older, leaves.
fn overwrites_as_much<T>(after: &Cached<T>, before: &Cached<T>, versioning: Versioning) -> bool {
    !compares(after.resource_version(), versioning)
        || compares(before.resource_version(), versioning)
}

/// True when a deletion behind an upsert is about an earlier life or state, whatever is stored.
fn adds_nothing<T>(known: &Delta<T>, deleted: &Deleted<T>, versioning: Versioning) -> bool {
    let Some(known) = known.object() else {
        unreachable!("an upsert carries its object");
    };
    let arriving = (&deleted.uid, &deleted.resource_version);
    judge_delete(identity(known), arriving, versioning) == Delete::Stale
        // The upsert may be dropped in favour of a newer state, and that one may be meant.
        && (compares(&deleted.resource_version, versioning)
            || !compares(known.resource_version(), versioning))
}

/// Collapse a deletion with one of those in a row that are pending, whose order does not matter.
fn collapse_into<T>(
    pending: &mut Deltas<T>,
    mut new: Box<Deleted<T>>,
    versioning: Versioning,
) -> Result<Box<Deleted<T>>, Delta<T>> {
    for delta in pending.iter_mut().rev() {
        let Delta::Deleted(known) = delta else { break };
        match collapse(known, new, versioning) {
            Ok(other) => return Ok(other),
            Err(kept) => new = kept,
        }
    }
    Err(Delta::Deleted(new))
}

/// Deletions in a row are one: the one that knows more (I-DF4). Those of different lives are two,
/// and so are those of which only one has a version: which states they mean differs.
fn collapse<T>(
    last: &mut Box<Deleted<T>>,
    mut new: Box<Deleted<T>>,
    versioning: Versioning,
) -> Result<Box<Deleted<T>>, Box<Deleted<T>>> {
    let order = new
        .resource_version
        .compare(&last.resource_version, versioning);
    let comparable = |deleted: &Deleted<T>| compares(&deleted.resource_version, versioning);
    if last.uid != new.uid || (order.is_none() && (comparable(last) || comparable(&new))) {
        return Err(new);
    }
    if last.final_state_unknown {
        std::mem::swap(last, &mut new);
    }
    // It ends what either of them ends.
    if new
        .resource_version
        .compare(&last.resource_version, versioning)
        == Some(Ordering::Greater)
    {
        last.resource_version = new.resource_version.clone();
    }
    Ok(new)
}

/// Which of too many deltas goes.
fn least_needed<T>(pending: &Deltas<T>, versioning: Versioning) -> usize {
    // The first two tell how the first life ended, the last one is the newest.
    let by_need = || (2..pending.len()).chain([1, 0]);
    by_need()
        .find(|&at| is_overwritten(at, pending, versioning))
        .or_else(|| by_need().find(|&at| is_outdone(at, pending, versioning)))
        .or_else(|| by_need().find(|&at| is_undone(at, pending, versioning)))
        // Only versions of which some compare and some do not, or a version of more than one life,
        // leave none. No source that keeps its contract says such, and memory stays bounded.
        .unwrap_or(2)
}

/// True when a deletion stands in a row with one that ends whatever it ends. (Where every version
/// compares; one that does not would have to be that of the very life.)
fn is_outdone<T>(at: usize, pending: &Deltas<T>, versioning: Versioning) -> bool {
    let ends_more = |other: &Delta<T>| {
        let version = pending[at].resource_version();
        version.is_older_than(other.resource_version(), versioning)
    };
    let is_end = |delta: &&Delta<T>| matches!(delta, Delta::Deleted(_));
    let before = pending[..at].iter().rev().take_while(is_end);
    let after = pending[at + 1..].iter().take_while(is_end);
    is_end(&&pending[at]) && before.chain(after).any(ends_more)
}

/// True when an upsert comes late between two deletions: nothing older than the first is left for it
/// to overwrite, and the second ends it again.
fn is_undone<T>(at: usize, pending: &Deltas<T>, versioning: Versioning) -> bool {
    let (Some(Delta::Deleted(before)), Some(Delta::Deleted(after))) = (
        at.checked_sub(1).and_then(|before| pending.get(before)),
        pending.get(at + 1),
    ) else {
        return false;
    };
    let Some(object) = pending[at].object() else {
        return false;
    };
    let ending = (&after.uid, &after.resource_version);
    object
        .resource_version()
        .is_older_than(&before.resource_version, versioning)
        && judge_delete(identity(object), ending, versioning) != Delete::Stale
}

/// True when a later upsert overwrites whatever the delta at `at` left behind.
fn is_overwritten<T>(at: usize, pending: &Deltas<T>, versioning: Versioning) -> bool {
    let version = pending[at].resource_version();
    pending[at + 1..].iter().any(|later| {
        let overwriting = later.resource_version();
        !matches!(later, Delta::Deleted(_))
            && (!compares(overwriting, versioning)
                || (compares(version, versioning)
                    && !overwriting.is_older_than(version, versioning)))
    })
}

/// True when the version has a place in the order of versions. One that has none overwrites
/// anything, and anything overwrites it.
fn compares(version: &ResourceVersion, versioning: Versioning) -> bool {
    versioning == Versioning::Decimal
        && version
            .compare(&ResourceVersion::zero(), versioning)
            .is_some()
}

fn identity<T>(object: &Cached<T>) -> (&Uid, &ResourceVersion) {
    (object.uid(), object.resource_version())
}
