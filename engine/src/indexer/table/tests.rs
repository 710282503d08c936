//! The table against a plain map, and against its own other version.
use super::{Lane, Op, Slot, Table};
use ahash::RandomState;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
struct Entry(Arc<(u32, u32)>);

impl Lane for Entry {
    fn hash(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one(self.0.0)
    }

    fn read_ahead(&self) -> u64 {
        u64::from(self.0.1)
    }
}

fn entry(key: u32, value: u32) -> Entry {
    Entry(Arc::new((key, value)))
}

fn hasher() -> RandomState {
    RandomState::with_seeds(1, 2, 3, 4)
}

fn find(table: &Table<Entry>, key: u32) -> Option<(Slot, Entry)> {
    let (slot, found) = table.find(table.hasher().hash_one(key), |e| e.0.0 == key)?;
    Some((slot, found.clone()))
}

/// A table, the slots that it told us, and the log that another version replays.
struct Subject {
    table: Table<Entry>,
    slots: HashMap<u32, Slot>,
    log: Vec<Op<Entry>>,
}

impl Subject {
    fn new() -> Self {
        Self {
            table: Table::new(hasher()),
            slots: HashMap::new(),
            log: Vec::new(),
        }
    }

    fn put(&mut self, key: u32, value: u32, stamp: u64) {
        let hash = self.table.hasher().hash_one(key);
        let new = entry(key, value);
        if let Some((slot, _)) = find(&self.table, key) {
            self.table.replace(slot, new.clone(), stamp);
            self.log.push(Op::Replace(slot, new));
            return;
        }
        let mut moves = Vec::new();
        let slot = self
            .table
            .insert(hash, new.clone(), stamp, |old, new| moves.push((old, new)));
        for (old, new) in moves {
            let key = *self
                .slots
                .iter()
                .find(|(_, s)| **s == old)
                .expect("known")
                .0;
            self.slots.insert(key, new);
        }
        self.slots.insert(key, slot);
        self.log.push(Op::Insert(hash, new));
    }

    fn take(&mut self, key: u32, stamp: u64) {
        if let Some((slot, _)) = find(&self.table, key) {
            let hash = self.table.hasher().hash_one(key);
            self.table.remove(slot, hash, stamp);
            self.slots.remove(&key);
            self.log.push(Op::Remove(slot, hash));
        }
    }
}

proptest! {
    #[test]
    fn a_table_equals_a_map_and_a_replayed_version_equals_it_to_the_slot(
        script in prop::collection::vec((0..3u8, 0..400u32), 1..900),
    ) {
        let mut subject = Subject::new();
        let mut oracle = HashMap::new();
        let held = subject.table.clone();
        let mut replayed = subject.table.clone();
        for (at, (verb, key)) in script.into_iter().enumerate() {
            let value = u32::try_from(at).unwrap();
            if verb == 0 {
                subject.take(key, u64::from(value));
                oracle.remove(&key);
            } else {
                subject.put(key, value, u64::from(value));
                oracle.insert(key, value);
            }
        }
        replayed.read_ops_ahead(&subject.log);
        for (stamp, op) in subject.log.iter().enumerate() {
            replayed.replay(op.clone(), stamp as u64);
        }
        prop_assert_eq!(held.len(), 0);
        prop_assert_eq!(held.lanes().count(), 0);
        for table in [&subject.table, &replayed] {
            prop_assert_eq!(table.len(), oracle.len());
            let mut seen: Vec<_> = table.lanes().map(|e| *e.0).collect();
            prop_assert_eq!(table.lanes().len(), seen.len());
            let mut stepped = Vec::new();
            for lane in table.lanes() {
                stepped.push(*lane.0);
            }
            prop_assert_eq!(&stepped, &seen, "next and fold agree");
            seen.sort_unstable();
            let mut expected: Vec<_> = oracle.iter().map(|(k, v)| (*k, *v)).collect();
            expected.sort_unstable();
            prop_assert_eq!(seen, expected);
            for key in 0..400 {
                let found = find(table, key);
                prop_assert_eq!(found.as_ref().map(|(_, e)| e.0.1), oracle.get(&key).copied());
                prop_assert_eq!(found.map(|(slot, _)| slot), subject.slots.get(&key).copied());
            }
        }
    }
}

#[test]
fn growth_to_a_hundred_thousand_keeps_every_entry_reachable() {
    let mut table = Table::new(hasher());
    for key in 0..100_000 {
        let hash = table.hasher().hash_one(key);
        table.insert(hash, entry(key, key), 1, |_, _| ());
    }
    assert!((0..100_000).all(|key| find(&table, key).is_some()));
    let load = table.len() as f64 / (table.slot_limit() / 64 * 56) as f64;
    assert!(load > 0.5, "chunks are {load} full");
}

#[test]
fn dismantling_frees_everything_in_slices() {
    let mut table = Table::new(hasher());
    let kept = entry(0, 0);
    for key in 0..1_000 {
        let hash = table.hasher().hash_one(key);
        let new = if key == 0 {
            kept.clone()
        } else {
            entry(key, 0)
        };
        table.insert(hash, new, 1, |_, _| ());
    }
    let mut slices = 0;
    while !table.dismantle(4) {
        slices += 1;
    }
    assert!(slices > 3);
    assert_eq!(Arc::strong_count(&kept.0), 1);
}
