//! The net change of each key: several steps of one key in one batch make one change.
use crate::delta::Deleted;
use crate::indexer::applied::Change;
use crate::object::Cached;
use hashbrown::HashTable;

/// Changes that are searched one by one for a key before there is a table of them.
const SEARCHED: usize = 8;

/// Where the change of a key is.
struct Position {
    hash: u64,
    at: usize,
}

/// Room for positions, empty between batches.
#[derive(Default)]
pub(in crate::indexer) struct Positions {
    by_key: HashTable<Position>,
    /// The hash of each change's key.
    hashes: Vec<u64>,
}

/// The changes of one batch so far.
pub(super) struct NetChanges<T> {
    changes: Vec<Change<T>>,
    positions: Positions,
    /// Some change is none any more: its key came and went.
    has_void: bool,
}

impl<T> NetChanges<T> {
    pub(super) fn new(positions: Positions) -> Self {
        Self {
            changes: Vec::new(),
            positions,
            has_void: false,
        }
    }

    /// So many more changes may come.
    pub(super) fn expect(&mut self, count: usize) {
        self.changes.reserve(count);
    }

    /// Merge a transition into the net change of its key, whose hash is `hash`.
    pub(super) fn note(
        &mut self,
        hash: u64,
        old: Option<Cached<T>>,
        new: Option<Cached<T>>,
        ended: Option<Box<Deleted<T>>>,
        initial: bool,
    ) {
        let Some(at) = self.find(hash, new.as_ref().or(old.as_ref())) else {
            self.positions.add(hash);
            self.changes.push(Change {
                deleted: ended.filter(|_| old.is_some()),
                old,
                new,
                initial,
            });
            return;
        };
        let change = &mut self.changes[at];
        if change.old.is_some() && change.deleted.is_none() {
            change.deleted = ended;
        }
        change.initial = (change.initial && change.new.is_some()) || initial;
        change.new = new;
        // Should a key come again that came and went inside the batch, that is a new change: a void
        // one is never found.
        self.has_void |= change.object().is_none();
    }

    fn find(&self, hash: u64, object: Option<&Cached<T>>) -> Option<usize> {
        let key = object.map(Cached::key);
        let is_it = |at: usize| self.changes[at].object().map(Cached::key) == key;
        self.positions.find(hash, is_it)
    }

    /// The changes. Objects that came and went inside the batch leave none.
    pub(super) fn finish(self) -> (Vec<Change<T>>, Positions) {
        let Self {
            mut changes,
            mut positions,
            has_void,
        } = self;
        if has_void {
            changes.retain(|change| change.object().is_some());
        }
        positions.clear();
        (changes, positions)
    }
}

impl Positions {
    fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        if self.hashes.len() <= SEARCHED {
            let mut hashes = self.hashes.iter().enumerate();
            return hashes.find_map(|(at, &h)| (h == hash && is_it(at)).then_some(at));
        }
        self.by_key
            .find(hash, |position| position.hash == hash && is_it(position.at))
            .map(|position| position.at)
    }

    fn add(&mut self, hash: u64) {
        self.hashes.push(hash);
        let known = match self.hashes.len() {
            len if len <= SEARCHED => return,
            len if len == SEARCHED + 1 => 0,
            len => len - 1,
        };
        for (at, &hash) in self.hashes.iter().enumerate().skip(known) {
            self.by_key
                .insert_unique(hash, Position { hash, at }, |position| position.hash);
        }
    }

    fn clear(&mut self) {
        self.by_key.clear();
        self.hashes.clear();
        // A relist must not leave room for itself behind.
        if self.hashes.capacity() > KEPT {
            *self = Self::default();
        }
    }
}

/// Positions that there is room for from one batch to the next.
const KEPT: usize = 4_096;
