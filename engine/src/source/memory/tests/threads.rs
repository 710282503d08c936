//! Many threads: nobody misses a change, and every write gets through.
use super::*;
use crate::source::memory::Disconnect;
use std::future::poll_fn;

/// The versions of all frames up to the end.
fn drain(mut stream: WatchStream<u32>) -> Vec<u64> {
    let mut versions = Vec::new();
    while let Some(frame) = block_on(poll_fn(|context| stream.as_mut().poll_next(context))) {
        let (WatchEvent::Added(item) | WatchEvent::Modified(item)) = frame.unwrap() else {
            panic!()
        };
        versions.push(item.meta.resource_version.as_number().unwrap());
    }
    versions
}

#[test]
fn every_watch_sees_every_write_of_every_writer_once() {
    const WRITES: u64 = 500;
    let config = MemoryConfig {
        bookmark_every: 0,
        ..MemoryConfig::default()
    };
    let source = with(config.stamp(|object, _| *object += 1));
    let watchers: Vec<_> = (0..4)
        .map(|_| {
            let stream = watch(&source);
            std::thread::spawn(move || drain(stream))
        })
        .collect();
    let writers: Vec<_> = (0..3)
        .map(|name| {
            let source = source.clone();
            std::thread::spawn(move || {
                for _ in 0..WRITES {
                    source.upsert(key(name), 0);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    source.disconnect(Disconnect::Clean);
    let all: Vec<u64> = (2..2 + 3 * WRITES).collect();
    for watcher in watchers {
        assert_eq!(watcher.join().unwrap(), all);
    }
    assert_eq!(source.open_watches(), 0);
}

#[test]
fn of_writers_that_expect_the_same_version_one_succeeds() {
    let source = filled(1);
    for _ in 0..50 {
        let version = source.get(&key(0)).unwrap().meta.resource_version;
        let writers: Vec<_> = (0..3)
            .map(|n| {
                let (source, version) = (source.clone(), version.clone());
                std::thread::spawn(move || source.update(&key(0), Some(&version), n).is_ok())
            })
            .collect();
        let successes = writers.into_iter().map(|w| w.join().unwrap());
        assert_eq!(successes.filter(|done| *done).count(), 1);
    }
}
