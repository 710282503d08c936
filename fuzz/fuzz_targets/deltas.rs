//! Arbitrary inputs of two sources through delta queue and indexer, against a sorted map and a loop.
//!
//! After every drain the cache must be what the map is, every index must agree with the objects,
//! snapshots that are held must not have changed, and the difference of two snapshots must lead
//! from one to the other.
#![no_main]
use arbitrary::Arbitrary;
use informant::delta::{Compaction, DeltaQueue, ListSnapshot, Producer, QueueConfig, SourceId};
use informant::indexer::{Indexer, Snapshot};
use informant::{Cached, Incoming, Meta, ObjectKey, ResourceVersion};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

/// A small world, so that keys, uids and versions collide.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Thing {
    key: u8,
    uid: u8,
    version: u8,
    zone: u8,
}

#[derive(Arbitrary, Debug)]
enum Input {
    Upsert(bool, Thing),
    Delete(bool, Thing),
    Relist(bool, Vec<Thing>, bool),
    Bookmark(bool),
    KeepAll(bool),
    Drain,
    Maintain,
}

impl Thing {
    fn incoming(self) -> Incoming<u8> {
        let Self {
            key,
            uid,
            version,
            zone,
        } = self;
        let (key, uid, version) = (
            format!("o{}", key % 12),
            format!("u{}", uid % 3),
            (version % 32).to_string(),
        );
        let meta = Meta::new("ns", &key, &uid, &version).expect("a plain name is a key");
        Incoming::new(meta, zone % 4)
    }
}

#[derive(Clone)]
struct Held {
    meta: Meta,
    zone: u8,
    source: usize,
}

/// What the cache must be, one input after the other.
#[derive(Clone, Default)]
struct Oracle(BTreeMap<ObjectKey, Held>);

impl Oracle {
    fn upsert(&mut self, source: usize, new: Incoming<u8>, guard: bool) {
        if let Some(known) = self.0.get(&new.meta.key)
            && guard
        {
            let (old, now) = (number(&known.meta), number(&new.meta));
            if now < old || (now == old && known.meta.uid == new.meta.uid) {
                return;
            }
        }
        let held = Held {
            meta: new.meta.clone(),
            zone: new.object,
            source,
        };
        self.0.insert(new.meta.key, held);
    }

    fn delete(&mut self, gone: &Meta) {
        let Some(known) = self.0.get(&gone.key) else {
            return;
        };
        let (old, now) = (number(&known.meta), number(gone));
        if now > old || (now == old && known.meta.uid == gone.uid) {
            self.0.remove(&gone.key);
        }
    }
}

fn number(meta: &Meta) -> u64 {
    meta.resource_version
        .as_number()
        .expect("versions are small numbers here")
}

fn check(view: &Snapshot<u8>, oracle: &Oracle) {
    assert_eq!(view.len(), oracle.0.len());
    for (key, held) in &oracle.0 {
        let found = view.get(key).expect("what the oracle has is there");
        assert_eq!((found.meta(), **found), (held.meta.clone(), held.zone));
    }
    let zones = view.index::<u8>("zone").expect("it was declared");
    for zone in 0..4 {
        let found = view
            .by_index(&zones, &zone)
            .expect("it was declared")
            .count();
        assert_eq!(
            found,
            oracle.0.values().filter(|held| held.zone == zone).count()
        );
    }
}

fn check_diff(new: &Snapshot<u8>, old: &Snapshot<u8>) {
    let diff = new.diff(old).expect("they are of one indexer");
    let mut folded: BTreeMap<_, Cached<u8>> =
        old.iter().map(|o| (o.key().clone(), o.clone())).collect();
    for gone in &diff.deleted {
        assert!(folded.remove(gone.key()).is_some());
    }
    for (_, after) in &diff.modified {
        assert!(folded.insert(after.key().clone(), after.clone()).is_some());
    }
    for added in &diff.added {
        assert!(folded.insert(added.key().clone(), added.clone()).is_none());
    }
    assert_eq!(folded.len(), new.len());
    assert!(
        folded
            .iter()
            .all(|(key, object)| new.get(key).is_some_and(|o| o.ptr_eq(object)))
    );
}

fuzz_target!(|inputs: Vec<Input>| {
    let queue = DeltaQueue::new(QueueConfig::default());
    let producers: [Producer<u8>; 2] = [queue.producer(SourceId(0)), queue.producer(SourceId(1))];
    let (indexer, mut writer) = Indexer::builder()
        .hash_seed(1)
        .index("zone", |object: &Cached<u8>| Some(**object))
        .build();
    let mut oracle = Oracle::default();
    let mut held: Option<(Snapshot<u8>, Oracle)> = None;
    for (at, input) in inputs.into_iter().enumerate() {
        match input {
            Input::Upsert(source, thing) => {
                let source = usize::from(source);
                oracle.upsert(source, thing.incoming(), true);
                producers[source]
                    .try_updated(thing.incoming())
                    .expect("there is no bound");
            }
            Input::Delete(source, thing) => {
                let gone = thing.incoming();
                oracle.delete(&gone.meta);
                producers[usize::from(source)]
                    .try_deleted(gone)
                    .expect("there is no bound");
            }
            Input::Relist(source, things, reset) => {
                let source = usize::from(source);
                for thing in &things {
                    oracle.upsert(source, thing.incoming(), !reset);
                }
                let named: Vec<_> = things
                    .iter()
                    .map(|thing| thing.incoming().meta.key)
                    .collect();
                oracle
                    .0
                    .retain(|key, held| held.source != source || named.contains(key));
                // What the source queued before is superseded, so the two must agree only if
                // nothing of it is left: drain first.
                drain(&queue, &mut writer);
                let list = ListSnapshot {
                    resource_version: ResourceVersion::from(at as u64),
                    items: things.iter().map(|thing| Ok(thing.incoming())).collect(),
                    reset,
                };
                producers[source]
                    .replace(list)
                    .expect("relists are always admitted");
            }
            Input::Bookmark(source) => {
                let version = ResourceVersion::from(at as u64);
                producers[usize::from(source)]
                    .bookmark(version)
                    .expect("bookmarks are always admitted");
            }
            Input::KeepAll(on) => {
                let compaction = if on {
                    Compaction::KeepAll
                } else {
                    Compaction::FirstAndLast
                };
                queue.set_compaction(compaction);
            }
            Input::Drain => {
                drain(&queue, &mut writer);
                let now = indexer.snapshot();
                check(&now, &oracle);
                if let Some((older, then)) = &held {
                    check(older, then);
                    check_diff(&now, older);
                }
                if at % 3 == 0 {
                    held = Some((now, oracle.clone()));
                }
            }
            Input::Maintain => {
                writer.maintain();
            }
        }
    }
    drain(&queue, &mut writer);
    check(&indexer.snapshot(), &oracle);
});

fn drain(queue: &DeltaQueue<u8>, writer: &mut informant::indexer::IndexWriter<u8>) {
    while let Some(batch) = queue.try_drain() {
        writer.apply(batch);
        queue.acknowledge();
    }
}
