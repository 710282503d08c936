//! The net change of each key: several steps of one key in one batch make one change.
use crate::delta::Deleted;
use crate::indexer::applied::Change;
use crate::object::Cached;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Where the change of a key is.
struct Position {
    hash: u64,
    at: usize,
}

/// Room for positions, empty between batches.
#[derive(Default)]
pub(in crate::indexer) struct Positions(HashTable<Position>);

/// Positions that there is room for from one batch to the next: a relist must not leave room for
/// itself behind.
const KEPT: usize = 4_096;

/// The changes of one batch so far.
pub(super) struct NetChanges<T> {
    changes: Vec<Change<T>>,
    positions: HashTable<Position>,
    /// The hash of the first change's key. As long as there is only one, there are no positions.
    first: u64,
    /// Some change is none any more: its key came and went.
    has_void: bool,
}

impl<T> NetChanges<T> {
    pub(super) fn new(positions: Positions) -> Self {
        Self {
            changes: Vec::new(),
            positions: positions.0,
            first: 0,
            has_void: false,
        }
    }

    /// So many more changes may come.
    pub(super) fn expect(&mut self, count: usize) {
        self.changes.reserve(count);
        self.positions.reserve(count, |position| position.hash);
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
        let Some(at) = self.place(hash, new.as_ref().or(old.as_ref())) else {
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

    /// Where the change of this key is. If there is none, the next change to be pushed is it.
    fn place(&mut self, hash: u64, object: Option<&Cached<T>>) -> Option<usize> {
        let Self {
            changes, positions, ..
        } = self;
        if changes.is_empty() {
            self.first = hash;
            return None;
        }
        if positions.is_empty() {
            let first = Position {
                hash: self.first,
                at: 0,
            };
            positions.insert_unique(self.first, first, |position| position.hash);
        }
        let key = object.map(Cached::key);
        let is_it = |position: &Position| {
            position.hash == hash && changes[position.at].object().map(Cached::key) == key
        };
        match positions.entry(hash, is_it, |position| position.hash) {
            Entry::Occupied(known) => Some(known.get().at),
            Entry::Vacant(free) => {
                free.insert(Position {
                    hash,
                    at: changes.len(),
                });
                None
            }
        }
    }

    /// The changes. Objects that came and went inside the batch leave none.
    pub(super) fn finish(self) -> (Vec<Change<T>>, Positions) {
        let Self {
            mut changes,
            mut positions,
            has_void,
            ..
        } = self;
        if has_void {
            changes.retain(|change| change.object().is_some());
        }
        positions.clear();
        if positions.capacity() > KEPT {
            positions = HashTable::new();
        }
        (changes, Positions(positions))
    }
}
