//! Coalescing the deltas of one key, so that what they say in the end stays the same.
use super::{Deleted, Delta};
use crate::indexer::identity::{Delete, Upsert, judge_delete, judge_upsert};
use crate::object::{Cached, ResourceVersion, Uid, Versioning};
use smallvec::SmallVec;

/// How much of what is pending for one key is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compaction {
    /// Every delta, as client-go's `DeltaFIFO` does; only deletions in a row collapse. On while a
    /// lossless handler is registered.
    KeepAll,
    /// How the first life ended (if it did), how the last one ended (if another did), and the
    /// newest state: three deltas at the most, whatever arrives.
    #[default]
    FirstAndLast,
}

/// What became of a delta that was pushed.
pub(super) enum Pushed<T> {
    /// It stands for itself.
    Kept,
    /// It took the place of another one, or added nothing to what is pending. What is not needed
    /// any more comes back, so that the caller drops it outside its lock.
    Merged(Delta<T>),
}

type Deltas<T> = SmallVec<[Delta<T>; 2]>;

/// Add a delta to the non-empty pending ones of its key.
///
/// The rules are those by which the indexer judges what is stored, so folding the compacted deltas
/// ends in the same state as folding all of them.
pub(super) fn push<T>(
    pending: &mut Deltas<T>,
    delta: Delta<T>,
    compaction: Compaction,
    versioning: Versioning,
) -> Pushed<T> {
    if compaction == Compaction::KeepAll {
        return collapse_deletes(pending, delta);
    }
    let last = pending
        .pop()
        .expect("pending deltas of a key are never empty");
    match (last, delta) {
        (Delta::Deleted(last), delta @ Delta::Deleted(_)) => {
            pending.push(Delta::Deleted(last));
            let pushed = collapse_deletes(pending, delta);
            if pending.len() > 2 {
                pending.remove(1);
            }
            pushed
        }
        (last @ Delta::Deleted(_), delta) => {
            pending.push(last);
            pending.push(delta);
            Pushed::Kept
        }
        (known, Delta::Deleted(deleted)) => delete(pending, known, deleted, versioning),
        (known, new) => upsert(pending, known, new, versioning),
    }
}

fn upsert<T>(
    pending: &mut Deltas<T>,
    known: Delta<T>,
    new: Delta<T>,
    versioning: Versioning,
) -> Pushed<T> {
    let (Some(before), Some(after)) = (known.object(), new.object()) else {
        unreachable!("an upsert carries its object");
    };
    match judge_upsert(identity(before), identity(after), versioning, true) {
        Upsert::Stale | Upsert::Unchanged => {
            pending.push(known);
            Pushed::Merged(new)
        }
        Upsert::Update => {
            let appeared = matches!(known, Delta::Added(_));
            pending.push(match new {
                Delta::Updated(object) if appeared => Delta::Added(object),
                new => new,
            });
            Pushed::Merged(known)
        }
        Upsert::Recreate => {
            let ended = Deleted::unknown(before.clone());
            end(pending, ended);
            pending.push(new);
            Pushed::Kept
        }
    }
}

fn delete<T>(
    pending: &mut Deltas<T>,
    known: Delta<T>,
    deleted: Deleted<T>,
    versioning: Versioning,
) -> Pushed<T> {
    let Some(before) = known.object() else {
        unreachable!("an upsert carries its object");
    };
    let arriving = (&deleted.uid, &deleted.resource_version);
    match judge_delete(identity(before), arriving, versioning) {
        Delete::Stale => {
            pending.push(known);
            return Pushed::Merged(Delta::Deleted(deleted));
        }
        Delete::Remove => {
            let last = deleted.last.clone().or_else(|| Some(before.clone()));
            end(pending, Deleted { last, ..deleted });
        }
        // A later life is gone, so the known one is too; the consumer must be able to judge by the
        // later one's identity.
        Delete::RemoveUnseen => end(pending, deleted),
    }
    Pushed::Merged(known)
}

/// Note the end of a life behind at most one other: the first tells how what the consumer has
/// ended, the last how the newest did.
fn end<T>(pending: &mut Deltas<T>, deleted: Deleted<T>) {
    pending.truncate(1);
    pending.push(Delta::Deleted(deleted));
}

/// Deletions in a row are one: the one that knows more (I-DF4). Those of different lives are two.
fn collapse_deletes<T>(pending: &mut Deltas<T>, delta: Delta<T>) -> Pushed<T> {
    let Some(Delta::Deleted(last)) = pending.last_mut() else {
        pending.push(delta);
        return Pushed::Kept;
    };
    match delta {
        Delta::Deleted(new) if last.uid.may_equal(&new.uid) => {
            let other = if last.final_state_unknown {
                std::mem::replace(last, new)
            } else {
                new
            };
            Pushed::Merged(Delta::Deleted(other))
        }
        delta => {
            pending.push(delta);
            Pushed::Kept
        }
    }
}

fn identity<T>(object: &Cached<T>) -> (&Uid, &ResourceVersion) {
    (object.uid(), object.resource_version())
}
