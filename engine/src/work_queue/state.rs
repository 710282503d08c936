//! What the work queue holds, under its one lock.
use crate::clock::Timestamp;
use ahash::RandomState;
use hashbrown::HashTable;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// Where a key is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere but among the delayed.
    Away,
    /// In the ready queue.
    Ready,
    /// With a worker; `again` when it was added meanwhile.
    Held { again: bool },
}

struct Entry<K> {
    key: Arc<K>,
    hash: u64,
    place: Place,
    /// The delayed add that counts, if any.
    due: Option<Due>,
    /// First add since it was last handed out.
    added_at: Timestamp,
    taken_at: Timestamp,
}

/// A delayed add: when, and which, so that replaced ones are told from the one that counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Timestamp,
    /// Equal times come in the order in which they were asked for.
    order: u64,
}

/// How far a shutdown is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// No adds; what is ready is still handed out.
    ShutDown,
    /// As `ShutDown`, and workers wait for what is held elsewhere, since it may come again.
    Draining,
}

/// What a work queue counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WorkQueueMetrics {
    /// Keys that are ready.
    pub depth: usize,
    /// Keys that wait for their time.
    pub delayed: usize,
    /// Keys that workers hold.
    pub in_flight: usize,
    /// Adds that made a key ready or due again; those that were collapsed do not count.
    pub adds: u64,
    /// Keys that were handed out.
    pub gets: u64,
    /// Rate-limited adds.
    pub retries: u64,
    /// Time from first add to hand-out, over all hand-outs.
    pub queue_time: Duration,
    /// Time with workers, over all finished hand-outs.
    pub work_time: Duration,
    /// Time that the keys in flight have been held, together.
    pub unfinished: Duration,
    /// Time that the longest-held key has been held.
    pub longest_running: Duration,
}

pub(super) struct State<K> {
    hasher: RandomState,
    by_key: HashTable<u32>,
    entries: Slab<Entry<K>>,
    ready: VecDeque<u32>,
    /// Delayed adds, earliest first; some may have been replaced or cancelled since.
    delays: BinaryHeap<Reverse<(Due, u32)>>,
    delayed: usize,
    held: usize,
    order: u64,
    pub(super) phase: Phase,
    pub(super) deliver_delayed: bool,
    pub(super) counts: WorkQueueMetrics,
}

/// What a worker finds.
pub(super) enum Found<K> {
    Key(u32, Arc<K>),
    /// Nothing now; the next delayed key is due at this time.
    Nothing(Option<Timestamp>),
    ShutDown,
}

impl<K: Hash + Eq> State<K> {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            by_key: HashTable::new(),
            entries: Slab::new(),
            ready: VecDeque::new(),
            delays: BinaryHeap::new(),
            delayed: 0,
            held: 0,
            order: 0,
            phase: Phase::Open,
            deliver_delayed: false,
            counts: WorkQueueMetrics::default(),
        }
    }

    fn find(&self, key: &K) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let entries = &self.entries;
        self.by_key
            .find(hash, |&id| *entries[id as usize].key == *key)
            .copied()
    }

    fn find_or_insert(&mut self, key: K) -> u32 {
        let hash = self.hasher.hash_one(&key);
        let entries = &mut self.entries;
        if let Some(&id) = self
            .by_key
            .find(hash, |&id| *entries[id as usize].key == key)
        {
            return id;
        }
        let at = entries.insert(Entry {
            key: Arc::new(key),
            hash,
            place: Place::Away,
            due: None,
            added_at: Timestamp::default(),
            taken_at: Timestamp::default(),
        });
        let id = u32::try_from(at).expect("a work queue holds fewer than 2^32 keys");
        self.by_key
            .insert_unique(hash, id, |&id| entries[id as usize].hash);
        id
    }

    /// Forget a key that is neither ready, nor held, nor delayed: the queue keeps nothing of it.
    fn forget_if_gone(&mut self, id: u32) {
        let entry = &self.entries[id as usize];
        if entry.place != Place::Away || entry.due.is_some() {
            return;
        }
        if let Ok(found) = self.by_key.find_entry(entry.hash, |&other| other == id) {
            found.remove();
        }
        self.entries.remove(id as usize);
        if self.entries.is_empty() && self.entries.capacity() > 1_024 {
            // A queue that once was long does not keep the memory of it.
            self.entries.shrink_to_fit();
            self.by_key = HashTable::new();
            self.ready.shrink_to(1_024);
        }
    }

    /// Add a key; true when it became ready.
    pub(super) fn add(&mut self, key: K, now: Timestamp) -> bool {
        if self.phase != Phase::Open {
            return false;
        }
        let id = self.find_or_insert(key);
        self.mark(id, now)
    }

    fn mark(&mut self, id: u32, now: Timestamp) -> bool {
        let entry = &mut self.entries[id as usize];
        match entry.place {
            Place::Away => {
                entry.place = Place::Ready;
                entry.added_at = now;
                self.ready.push_back(id);
                self.counts.adds += 1;
                true
            }
            Place::Held { again: false } => {
                entry.place = Place::Held { again: true };
                entry.added_at = now;
                self.counts.adds += 1;
                false
            }
            Place::Ready | Place::Held { again: true } => false,
        }
    }

    /// Add a key at a later time; of several requests the earliest counts. True when it became
    /// ready at once or is now the first that is due, so that a waiting worker must look again.
    pub(super) fn add_at(&mut self, key: K, at: Timestamp, now: Timestamp) -> bool {
        if at <= now {
            return self.add(key, now);
        }
        if self.phase != Phase::Open {
            return false;
        }
        let id = self.find_or_insert(key);
        let entry = &mut self.entries[id as usize];
        match entry.due {
            Some(due) if due.at <= at => return false,
            Some(_) => (),
            None => self.delayed += 1,
        }
        self.order += 1;
        let due = Due {
            at,
            order: self.order,
        };
        entry.due = Some(due);
        let first = self
            .delays
            .peek()
            .is_none_or(|Reverse((earliest, _))| due < *earliest);
        self.delays.push(Reverse((due, id)));
        self.drop_replaced();
        first
    }

    /// Entries of the heap that do not count any more must not outnumber those that do.
    fn drop_replaced(&mut self) {
        if self.delays.len() > 2 * self.delayed + 64 {
            let entries = &self.entries;
            self.delays.retain(|Reverse((due, id))| {
                entries
                    .get(*id as usize)
                    .is_some_and(|entry| entry.due == Some(*due))
            });
        }
    }

    /// Take back a delayed add; true when there was one.
    pub(super) fn cancel_delayed(&mut self, key: &K) -> bool {
        let Some(id) = self.find(key) else {
            return false;
        };
        let cancelled = self.entries[id as usize].due.take().is_some();
        self.delayed -= usize::from(cancelled);
        self.drop_replaced();
        self.forget_if_gone(id);
        cancelled
    }

    pub(super) fn drop_delayed(&mut self) {
        for Reverse((due, id)) in std::mem::take(&mut self.delays) {
            if let Some(entry) = self.entries.get_mut(id as usize)
                && entry.due == Some(due)
            {
                entry.due = None;
                self.forget_if_gone(id);
            }
        }
        self.delayed = 0;
    }

    /// The keys that wait for their time, earliest first.
    pub(super) fn delayed(&self) -> Vec<(Arc<K>, Timestamp)> {
        let mut delayed: Vec<_> = self
            .entries
            .iter()
            .filter_map(|(_, entry)| Some((entry.due?, entry.key.clone())))
            .collect();
        delayed.sort_unstable_by_key(|(due, _)| *due);
        delayed
            .into_iter()
            .map(|(due, key)| (key, due.at))
            .collect()
    }

    /// Make ready what is due; how many keys became ready.
    fn promote(&mut self, now: Timestamp) -> usize {
        let mut promoted = 0;
        while let Some(Reverse((due, id))) = self.delays.peek().copied() {
            let counts = self
                .entries
                .get(id as usize)
                .is_some_and(|entry| entry.due == Some(due));
            if counts && due.at > now {
                break;
            }
            self.delays.pop();
            if counts {
                self.entries[id as usize].due = None;
                self.delayed -= 1;
                promoted += usize::from(self.mark(id, now));
            }
        }
        promoted
    }

    /// Hand out the next key, if there is one.
    pub(super) fn take(&mut self, now: Timestamp) -> Found<K> {
        if !self.delays.is_empty() {
            self.promote(now);
        }
        let Some(id) = self.ready.pop_front() else {
            return self.nothing();
        };
        let entry = &mut self.entries[id as usize];
        entry.place = Place::Held { again: false };
        entry.taken_at = now;
        self.held += 1;
        self.counts.gets += 1;
        self.counts.queue_time += now.since(entry.added_at);
        Found::Key(id, entry.key.clone())
    }

    fn nothing(&self) -> Found<K> {
        let next = self.delays.peek().map(|Reverse((due, _))| due.at);
        match self.phase {
            Phase::ShutDown => Found::ShutDown,
            Phase::Draining if self.is_drained() => Found::ShutDown,
            Phase::Open | Phase::Draining => Found::Nothing(next),
        }
    }

    /// True when a key is ready for another worker.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// True when nothing is left that a drain waits for.
    pub(super) fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.held == 0 && (self.delayed == 0 || !self.deliver_delayed)
    }

    /// A worker is done with the key in `id`; true when it is ready again.
    pub(super) fn done(&mut self, id: u32, now: Timestamp) -> bool {
        let entry = &mut self.entries[id as usize];
        let Place::Held { again } = entry.place else {
            return false;
        };
        self.held -= 1;
        self.counts.work_time += now.since(entry.taken_at);
        if again {
            entry.place = Place::Ready;
            self.ready.push_back(id);
        } else {
            entry.place = Place::Away;
            self.forget_if_gone(id);
        }
        again
    }

    /// As [`State::done`], by key; a key that nobody holds is left as it is.
    pub(super) fn done_key(&mut self, key: &K, now: Timestamp) -> bool {
        self.find(key).is_some_and(|id| self.done(id, now))
    }

    /// Keys that are ready, counting those whose time has come.
    pub(super) fn len(&mut self, now: Timestamp) -> usize {
        self.promote(now);
        self.ready.len()
    }

    pub(super) fn metrics(&mut self, now: Timestamp) -> WorkQueueMetrics {
        let depth = self.len(now);
        let held = self
            .entries
            .iter()
            .filter(|&(_, entry)| matches!(entry.place, Place::Held { .. }))
            .map(|(_, entry)| now.since(entry.taken_at));
        let (mut unfinished, mut longest_running) = (Duration::ZERO, Duration::ZERO);
        for time in held {
            unfinished += time;
            longest_running = longest_running.max(time);
        }
        WorkQueueMetrics {
            depth,
            delayed: self.delayed,
            in_flight: self.held,
            unfinished,
            longest_running,
            ..self.counts
        }
    }

    /// Keys that workers have held for longer than `limit`, longest first.
    pub(super) fn stuck(&self, limit: Duration, now: Timestamp) -> Vec<(Arc<K>, Duration)> {
        let mut stuck: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry.place, Place::Held { .. }))
            .map(|(_, entry)| (entry.key.clone(), now.since(entry.taken_at)))
            .filter(|(_, time)| *time > limit)
            .collect();
        stuck.sort_unstable_by_key(|(_, time)| Reverse(*time));
        stuck
    }
}
