//! The keyed pending map: what a handler has still to be told, one entry per changed key.
use crate::delta::{Deleted, SourceId};
use crate::indexer::{Change, Effective};
use crate::object::{Cached, ObjectKey};
use ahash::RandomState;
use hashbrown::HashTable;
use std::collections::VecDeque;

/// What one handler has still to be told of one key.
///
/// `seen` is what this handler was last given (or will have been, by what is ahead of the map), so
/// the `old` of an update is always that. A key that was created and deleted without the handler
/// ever seeing it has no entry.
pub(crate) struct Entry<T> {
    hash: u64,
    pub(crate) seen: Option<Cached<T>>,
    pub(crate) new: Option<Cached<T>>,
    /// How the life of `seen` ended, if it did.
    pub(crate) deleted: Option<Box<Deleted<T>>>,
    pub(crate) initial: bool,
}

impl<T> Entry<T> {
    fn key(&self) -> &ObjectKey {
        let object = self.new.as_ref().or(self.seen.as_ref());
        object
            .expect("an entry without any state is removed at once")
            .key()
    }
}

/// A change on its way into the map, borrowed from wherever it is kept.
struct Step<'a, T> {
    old: Option<&'a Cached<T>>,
    new: Option<&'a Cached<T>>,
    deleted: Option<&'a Deleted<T>>,
    initial: bool,
}

/// Pending entries, in the order of each key's first undelivered change.
///
/// Entries are numbered; `first` is the number of the front one. A cancelled entry leaves a hole,
/// so numbers stay valid; holes are squeezed out when they outnumber the entries.
pub(crate) struct PendingMap<T> {
    entries: VecDeque<Option<Entry<T>>>,
    first: usize,
    numbers: HashTable<usize>,
    hasher: RandomState,
    resets: Vec<SourceId>,
    /// Objects that are pending no longer; the owner drops them outside any lock.
    released: Vec<Cached<T>>,
    /// Entries that were flagged initial and no longer are.
    released_initial: usize,
    /// Changes that went into an entry that was there already.
    coalesced: u64,
}

impl<T> PendingMap<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            numbers: HashTable::new(),
            hasher: RandomState::new(),
            resets: Vec::new(),
            released: Vec::new(),
            released_initial: 0,
            coalesced: 0,
        }
    }

    /// Keys with something pending.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.resets.is_empty()
    }

    /// Whether anything is pending for the key of `object`.
    pub(crate) fn contains(&self, object: &Cached<T>) -> bool {
        let hash = self.hasher.hash_one(object.key());
        self.find(hash, object.key()).is_some()
    }

    pub(crate) fn fold_change(&mut self, change: &Change<T>) {
        self.fold(&Step {
            old: change.old.as_ref(),
            new: change.new.as_ref(),
            deleted: change.deleted.as_deref(),
            initial: change.initial,
        });
    }

    pub(crate) fn fold_effective(&mut self, delta: &Effective<T>) {
        self.fold(&match delta {
            Effective::Added { new, initial } => Step {
                old: None,
                new: Some(new),
                deleted: None,
                initial: *initial,
            },
            Effective::Updated { old, new } => Step {
                old: Some(old),
                new: Some(new),
                deleted: None,
                initial: false,
            },
            Effective::Deleted { deleted } => Step {
                old: deleted.last.as_ref(),
                new: None,
                deleted: Some(deleted),
                initial: false,
            },
        });
    }

    /// An object of the snapshot that a late handler starts from.
    pub(crate) fn fold_joined(&mut self, object: &Cached<T>) {
        self.fold(&Step {
            old: None,
            new: Some(object),
            deleted: None,
            initial: true,
        });
    }

    /// An unchanged object that a resync announces again. A pending change already does.
    pub(crate) fn fold_resynced(&mut self, object: &Cached<T>) {
        if !self.contains(object) {
            self.fold(&Step {
                old: Some(object),
                new: Some(object),
                deleted: None,
                initial: false,
            });
        }
    }

    /// A reset of `source`: the handler is told once, before whatever else is pending.
    pub(crate) fn fold_reset(&mut self, source: SourceId) {
        if !self.resets.contains(&source) {
            self.resets.push(source);
        }
    }

    fn fold(&mut self, step: &Step<'_, T>) {
        let Some(key) = step
            .new
            .or(step.old)
            .map(Cached::key)
            .or(step.deleted.map(|d| &d.key))
        else {
            return;
        };
        let hash = self.hasher.hash_one(key);
        let Some(number) = self.find(hash, key) else {
            if step.new.is_some() || step.old.is_some() {
                self.push(Entry {
                    hash,
                    seen: step.old.cloned(),
                    new: step.new.cloned(),
                    deleted: step.deleted.cloned().map(Box::new),
                    initial: step.initial,
                });
            }
            return;
        };
        self.coalesced += 1;
        let entry = self.entries[number - self.first]
            .as_mut()
            .expect("only living entries are numbered in the table");
        // The end of a life that this handler never saw is nobody's news. Of the lives between what
        // it saw and now, the end of the one it saw is the one to tell.
        if let Some(deleted) = step.deleted
            && entry.seen.is_some()
            && entry.deleted.is_none()
        {
            entry.deleted = Some(Box::new(deleted.clone()));
        }
        #[cfg(informant_mutant = "mailbox_old_of_the_last_change")]
        if step.old.is_some() {
            entry.seen = step.old.cloned();
        }
        let superseded = std::mem::replace(&mut entry.new, step.new.cloned());
        let was_initial = entry.initial;
        entry.initial = step.initial || (was_initial && step.deleted.is_none());
        self.released_initial +=
            usize::from(was_initial && step.initial) + usize::from(was_initial && !entry.initial);
        self.released.extend(superseded);
        let entry_is_void = entry.seen.is_none() && entry.new.is_none();
        #[cfg(informant_mutant = "mailbox_keeps_the_unseen")]
        let entry_is_void = false;
        if entry_is_void {
            self.remove(hash, number);
        }
    }

    fn find(&self, hash: u64, key: &ObjectKey) -> Option<usize> {
        let same_key = |&number: &usize| {
            self.entries[number - self.first]
                .as_ref()
                .is_some_and(|entry| entry.hash == hash && entry.key() == key)
        };
        self.numbers.find(hash, same_key).copied()
    }

    fn push(&mut self, entry: Entry<T>) {
        let (number, hash) = (self.first + self.entries.len(), entry.hash);
        self.entries.push_back(Some(entry));
        let (entries, first) = (&self.entries, self.first);
        self.numbers.insert_unique(hash, number, |&number| {
            entries[number - first].as_ref().map_or(0, |e| e.hash)
        });
    }

    fn remove(&mut self, hash: u64, number: usize) {
        if let Ok(found) = self.numbers.find_entry(hash, |&n| n == number) {
            found.remove();
        }
        let cancelled = self.entries[number - self.first].take();
        self.released_initial += usize::from(cancelled.is_some_and(|entry| entry.initial));
        if self.entries.len() > 32 && self.entries.len() > 2 * self.numbers.len() {
            self.squeeze();
        }
    }

    fn squeeze(&mut self) {
        self.entries.retain(Option::is_some);
        self.first = 0;
        self.numbers.clear();
        let entries = &self.entries;
        for (number, entry) in entries.iter().enumerate() {
            let hash = entry.as_ref().map_or(0, |e| e.hash);
            self.numbers.insert_unique(hash, number, |&number| {
                entries[number].as_ref().map_or(0, |e| e.hash)
            });
        }
    }

    /// Take up to `limit` entries from the front.
    pub(crate) fn take(&mut self, limit: usize) -> Vec<Entry<T>> {
        let mut taken = Vec::with_capacity(limit.min(self.numbers.len()));
        while taken.len() < limit {
            let Some(front) = self.entries.pop_front() else {
                break;
            };
            let number = self.first;
            self.first += 1;
            if let Some(entry) = front {
                if let Ok(found) = self.numbers.find_entry(entry.hash, |&n| n == number) {
                    found.remove();
                }
                taken.push(entry);
            }
        }
        if self.numbers.is_empty() {
            // What a burst allocated does not outlive it.
            self.entries = VecDeque::new();
            self.numbers = HashTable::new();
            self.first = 0;
        }
        taken
    }

    pub(crate) fn take_resets(&mut self) -> Vec<SourceId> {
        std::mem::take(&mut self.resets)
    }

    /// What the folds since the last call let go of, and how many initial flags with it.
    pub(crate) fn take_released(&mut self) -> (Vec<Cached<T>>, usize) {
        let initial = std::mem::take(&mut self.released_initial);
        (std::mem::take(&mut self.released), initial)
    }

    /// How many changes were folded into one another since the last call.
    pub(crate) fn take_coalesced(&mut self) -> u64 {
        std::mem::take(&mut self.coalesced)
    }
}
