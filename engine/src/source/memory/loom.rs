//! Models of the two protocols of the embedded source.
//!
//! - A watch that waits is woken by every write: the write is in the history before the wake-up,
//!   and a watch registers before it looks again. Mutant: `announce_before_write`.
//! - A write that was prepared outside the lock is committed only if nothing has moved. Mutant:
//!   `commit_blindly`.
//!
//! Left out: timeouts (the clock has its own tests) and more than two threads beside the model's.
use super::{Disconnect, MemoryConfig, MemorySource};
use crate::object::ObjectKey;
use crate::source::{ListWatch, WatchEvent, WatchOptions, WatchStream};
use crate::sync::block_on;
use std::future::poll_fn;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name).unwrap()
}

fn watch(source: &MemorySource<u32>) -> WatchStream<u32> {
    let options = WatchOptions {
        resource_version: 1.into(),
        ..WatchOptions::default()
    };
    block_on(source.watch(options)).unwrap()
}

fn next(stream: &mut WatchStream<u32>) -> Option<u32> {
    let frame = block_on(poll_fn(|context| stream.as_mut().poll_next(context)))?;
    match frame.unwrap() {
        WatchEvent::Added(item) | WatchEvent::Modified(item) => Some(item.object),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_waiting_watch_is_woken_by_a_write() {
    loom::model(|| {
        let source = MemorySource::new();
        let mut stream = watch(&source);
        let writer = source.clone();
        let writes = loom::thread::spawn(move || writer.upsert(key("a"), 7));
        assert_eq!(next(&mut stream), Some(7));
        writes.join().unwrap();
    });
}

#[test]
fn every_waiting_watch_is_woken_by_an_end() {
    loom::model(|| {
        let source = MemorySource::new();
        let (mut first, mut second) = (watch(&source), watch(&source));
        let other = loom::thread::spawn(move || next(&mut first));
        source.disconnect(Disconnect::Clean);
        assert_eq!(next(&mut second), None);
        assert_eq!(other.join().unwrap(), None);
    });
}

#[test]
fn writes_prepared_at_the_same_time_get_different_versions() {
    loom::model(|| {
        let config = MemoryConfig::default().stamp(|object: &mut u32, meta| {
            *object = u32::try_from(meta.resource_version.as_number().unwrap()).unwrap();
        });
        let source = MemorySource::with(config);
        let writer = source.clone();
        let other = loom::thread::spawn(move || writer.upsert(key("a"), 0));
        let here = source.upsert(key("b"), 0);
        let there = other.join().unwrap();
        assert_ne!(here.resource_version, there.resource_version);
        assert_ne!(here.uid, there.uid);
        for meta in [here, there] {
            let stored = source.get(&meta.key).unwrap();
            assert_eq!(stored.meta, meta);
            assert_eq!(
                Some(u64::from(stored.object)),
                meta.resource_version.as_number()
            );
        }
    });
}
