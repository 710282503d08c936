//! What a relist makes of the inputs that its source queued before it.
use super::pending::Part;
use super::{Deleted, Delta, KeyDeltas, Replace, SourceId};
use crate::object::{Cached, Meta, ObjectKey, ResourceVersion, Uid};
use std::collections::HashSet;

/// How lives ended, as far as only superseded inputs told: what a handler must be able to learn
/// about the objects that the relist ends.
pub(super) struct Ends<T> {
    /// Final states that the source sent, oldest first.
    #[allow(clippy::vec_box)] // Moved in as they came, under the queue's lock.
    known: Vec<Box<Deleted<T>>>,
    /// States that were queued, oldest first: the last known ones of what the relist does not hold.
    seen: Vec<Cached<T>>,
}

/// What is not needed any more, to be dropped outside the lock.
pub(super) struct Superfluous<T> {
    items: Vec<Vec<Cached<T>>>,
    deltas: Vec<Delta<T>>,
}

/// A relist on its way into the queue.
pub(super) struct Relist<T> {
    replace: Replace<T>,
    /// A reset: what its source said before belongs to an abandoned epoch and is void.
    voids: bool,
    /// Keys whose objects in the list cannot be used: they keep the last good state that was queued.
    unusable: HashSet<ObjectKey>,
    ends: Ends<T>,
    superfluous: Superfluous<T>,
    pub(super) superseded_keys: usize,
    /// Keys that wait where none waited before.
    pub(super) kept_keys: usize,
    pub(super) superseded_inputs: u64,
}

impl<T> Superfluous<T> {
    /// An object's own `Drop` is foreign code.
    pub(super) fn discard(self) {
        drop(self.items);
        drop(self.deltas);
    }
}

impl<T> Clone for Ends<T> {
    fn clone(&self) -> Self {
        Self {
            known: self.known.clone(),
            seen: self.seen.clone(),
        }
    }
}

impl<T> Ends<T> {
    fn new() -> Self {
        Self {
            known: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty() && self.seen.is_empty()
    }

    /// One end and one state a life: the first known end is that of what the consumer holds, the
    /// last state is the newest. Keeps memory constant a key, however many relists follow.
    fn compact(&mut self) {
        let mut lives = Lives::default();
        self.known.retain(|end| lives.insert((&end.key, &end.uid)));
        self.seen.reverse();
        self.seen
            .retain(|object| lives.insert((object.key(), object.uid())));
        self.seen.reverse();
    }

    /// Known ends first, then last known states of lives whose end nobody saw.
    pub(super) fn into_deletes(mut self) -> Vec<Deleted<T>> {
        if self.is_empty() {
            return Vec::new();
        }
        self.compact();
        let known = self.known.into_iter().map(|end| *end);
        known
            .chain(self.seen.into_iter().map(Deleted::unknown))
            .collect()
    }
}

#[derive(Default)]
struct Lives(HashSet<(ObjectKey, Uid)>);

impl Lives {
    fn insert(&mut self, (key, uid): (&ObjectKey, &Uid)) -> bool {
        self.0.insert((key.clone(), uid.clone()))
    }
}

impl<T> Relist<T> {
    pub(super) fn new(replace: Replace<T>) -> Self {
        Self {
            voids: replace.reset,
            unusable: replace
                .bad
                .iter()
                .filter_map(|bad| bad.key.clone())
                .collect(),
            replace,
            ends: Ends::new(),
            superfluous: Superfluous {
                items: Vec::new(),
                deltas: Vec::new(),
            },
            superseded_keys: 0,
            kept_keys: 0,
            superseded_inputs: 0,
        }
    }

    pub(super) fn is_reset(&self) -> bool {
        self.voids
    }

    /// Take out what the source queued before; what others queued is left.
    pub(super) fn supersede(&mut self, earlier: Vec<Part<T>>) -> Vec<Part<T>> {
        earlier
            .into_iter()
            .flat_map(|part| self.supersede_part(part))
            .collect()
    }

    fn supersede_part(&mut self, part: Part<T>) -> Vec<Part<T>> {
        match part {
            Part::Replace { replace, ends } if self.is_mine(replace.source) => {
                let last_good = self.last_good(&replace, &ends);
                self.take_list(replace, ends);
                last_good
            }
            Part::Changes(groups) => {
                let (covered, kept): (Vec<_>, Vec<_>) =
                    groups.into_iter().partition(|group| self.covers(group));
                for group in covered {
                    self.take_group(group);
                }
                if kept.is_empty() {
                    return Vec::new();
                }
                vec![Part::Changes(kept)]
            }
            Part::Bad(source, _) if self.is_mine(source) => Vec::new(),
            other => vec![other],
        }
    }

    /// Take the place of the part before, if that is a list of the same source (and, if asked for, of
    /// the same version): nothing happened in between, and a list is a state, not an event.
    pub(super) fn supersede_last(&mut self, last: Part<T>, same_version: bool) -> Vec<Part<T>> {
        match last {
            Part::Replace { replace, ends }
                if self.is_mine(replace.source)
                    && (!same_version
                        || replace.resource_version == self.replace.resource_version) =>
            {
                let last_good = self.last_good(&replace, &ends);
                self.take_list(replace, ends);
                last_good
            }
            other => vec![other],
        }
    }

    /// What an older list says about the keys whose objects in this one cannot be used.
    fn last_good(&mut self, older: &Replace<T>, ends: &Ends<T>) -> Vec<Part<T>> {
        if self.unusable.is_empty() || self.voids {
            return Vec::new();
        }
        // Whatever is stored, it is gone by the list's authority: no version to be judged by.
        let gone = |key| {
            Delta::deleted(Deleted::of(Meta {
                key,
                uid: Uid::default(),
                resource_version: ResourceVersion::empty(),
            }))
        };
        let mut open = self.unusable.clone();
        let states: Vec<_> = older
            .items
            .iter()
            .filter(|item| open.remove(item.key()))
            .cloned()
            .collect();
        for bad in older.bad.iter().filter_map(|bad| bad.key.as_ref()) {
            open.remove(bad);
        }
        if older.reset {
            // The states are of a new epoch, so nothing that is stored may be newer.
            open.extend(states.iter().map(|state| state.key().clone()));
        }
        // The first end of a key is that of the stored life.
        let mut untold = self.unusable.clone();
        let known = ends.known.iter().filter(|end| untold.remove(&end.key));
        let known = known.cloned().map(Delta::Deleted).collect();
        let gone = open.into_iter().map(gone).collect();
        let states = states.into_iter().map(Delta::Replaced).collect();
        [known, gone, states]
            .map(|deltas: Vec<_>| {
                self.kept_keys += deltas.len();
                changes(older.source, deltas)
            })
            .into_iter()
            .flatten()
            .collect()
    }

    fn is_mine(&self, source: SourceId) -> bool {
        source == self.replace.source
    }

    fn covers(&self, group: &KeyDeltas<T>) -> bool {
        let keeps_last_good = !self.voids && self.unusable.contains(group.deltas[0].key());
        self.is_mine(group.source) && !keeps_last_good
    }

    fn take_list(&mut self, older: Replace<T>, mut ends: Ends<T>) {
        self.superseded_inputs += 1;
        self.replace.initial |= older.initial;
        self.replace.reset |= older.reset;
        self.superfluous.items.push(older.items);
        if !self.voids && !ends.is_empty() {
            ends.known.append(&mut self.ends.known);
            ends.seen.append(&mut self.ends.seen);
            ends.compact();
            self.ends = ends;
        }
    }

    fn take_group(&mut self, group: KeyDeltas<T>) {
        self.superseded_keys += 1;
        self.superseded_inputs += group.deltas.len() as u64;
        for delta in group.deltas {
            match delta {
                _ if self.voids => self.superfluous.deltas.push(delta),
                Delta::Deleted(end) if end.final_state_unknown => {
                    self.superfluous.deltas.push(Delta::Deleted(end));
                }
                Delta::Deleted(end) => self.ends.known.push(end),
                Delta::Added(object)
                | Delta::Updated(object)
                | Delta::Replaced(object)
                | Delta::Sync(object) => self.ends.seen.push(object),
            }
        }
    }

    pub(super) fn finish(self) -> (Part<T>, Superfluous<T>) {
        let part = Part::Replace {
            replace: self.replace,
            ends: self.ends,
        };
        (part, self.superfluous)
    }
}

/// One change a key.
fn changes<T>(source: SourceId, deltas: Vec<Delta<T>>) -> Option<Part<T>> {
    if deltas.is_empty() {
        return None;
    }
    let group = |delta| KeyDeltas {
        source,
        deltas: smallvec::smallvec![delta],
    };
    Some(Part::Changes(deltas.into_iter().map(group).collect()))
}
