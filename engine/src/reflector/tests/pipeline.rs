//! The reflector on the real queue and the real indexer.
use super::rig::{Rig, Script};
use crate::delta::{DeltaQueue, Producer, QueueConfig, SourceId};
use crate::indexer::{IndexWriter, Indexer};
use crate::reflector::RunEnd;
use std::sync::Arc;

struct Pipeline {
    queue: DeltaQueue<String>,
    rig: Rig<Producer<String>>,
    cache: Indexer<String>,
    writer: IndexWriter<String>,
}

impl Pipeline {
    fn new(config: QueueConfig<String>, script: impl FnOnce(Script) -> Script) -> Self {
        let queue = DeltaQueue::new(config);
        let (cache, writer) = Indexer::builder().build();
        Self {
            rig: Rig::queueing(&queue, script),
            queue,
            cache,
            writer,
        }
    }

    /// Apply what is pending; the cache afterwards, as `version: key@version ...`.
    fn apply(&mut self) -> String {
        while let Some(batch) = self.queue.try_drain() {
            self.writer.apply(batch);
            self.queue.acknowledge();
            self.rig.settle();
        }
        let view = self.cache.load();
        let mut objects: Vec<_> = view
            .iter()
            .map(|object| format!("{}@{}", object.name(), object.resource_version()))
            .collect();
        objects.sort();
        format!("{}: {}", view.resource_version(), objects.join(" "))
    }
}

fn unbounded() -> QueueConfig<String> {
    QueueConfig::default()
}

/// C010, C025, I-R8: what a relist does not show is gone.
#[test]
fn c025_a_relist_removes_what_is_no_longer_there() {
    let mut pipeline = Pipeline::new(unbounded(), |script| {
        script
            .list("10 a@5 b@6")
            .watch("+c@11 ERR410")
            .list("20 b@6 c@11")
    });
    assert_eq!(pipeline.apply(), "11: a@5 b@6 c@11");
    pipeline.rig.pass(5.0);
    assert_eq!(pipeline.apply(), "20: b@6 c@11");
}

/// C024, C032, C033, C034.
#[test]
fn c024_the_cache_follows_the_watch() {
    let mut pipeline = Pipeline::new(unbounded(), |script| {
        script
            .list("10 a@5")
            .watch("-a@11 -ghost@12 ~b@13 +b@13 ~b@14 BM@20")
    });
    assert_eq!(pipeline.apply(), "20: b@14");
}

/// C019, C020, W-R5: the cache says what it does not show.
#[test]
fn c019_bad_objects_are_in_the_quarantine_and_the_rest_goes_on() {
    let mut pipeline = Pipeline::new(unbounded(), |script| {
        script
            .list("10 eggs@5 bad:spam@6")
            .watch("~eggs@12 bad:eggs@13")
    });
    assert_eq!(pipeline.apply(), "13: eggs@12");
    let view = pipeline.cache.load();
    let mut keys: Vec<_> = view
        .quarantine()
        .map(|entry| entry.key.as_ref().unwrap().name().to_owned())
        .collect();
    keys.sort();
    assert_eq!(keys, ["eggs", "spam"]);
    assert!(pipeline.queue.has_synced());
}

/// A declared reset is the only way back.
#[test]
fn a_reset_takes_the_cache_back() {
    let mut pipeline = Pipeline::new(unbounded(), |script| {
        script
            .list("100 a@50 b@60")
            .watch("BM@40")
            .list("41 a@20")
            .list("41 a@20")
            .watch("~a@42")
    });
    assert_eq!(pipeline.apply(), "100: a@50 b@60");
    pipeline.rig.pass(5.0);
    assert_eq!(pipeline.apply(), "42: a@42");
    assert_eq!(pipeline.cache.load().epoch(), 1);
}

/// Back-pressure: a full queue holds the watch, and the resume point with it.
#[test]
fn a_full_queue_holds_the_watch_until_there_is_room() {
    let config = QueueConfig {
        bound: Some(2),
        ..unbounded()
    };
    let mut pipeline = Pipeline::new(config, |script| {
        script.list("10").watch("5s +a@11 +b@12 +c@13 +d@14")
    });
    pipeline.apply();
    pipeline.rig.pass(5.0);
    assert_eq!(pipeline.rig.status().last_seen_version.to_string(), "12");
    assert_eq!(pipeline.apply(), "14: a@11 b@12 c@13 d@14");
    assert_eq!(pipeline.rig.status().last_seen_version.to_string(), "14");
}

#[test]
fn a_closed_queue_or_a_foreign_reset_ends_the_reflector() {
    let mut pipeline = Pipeline::new(unbounded(), |script| script.list("10").watch("5s +a@11"));
    pipeline.queue.close();
    pipeline.rig.pass(5.0);
    assert_eq!(pipeline.rig.end, Some(RunEnd::QueueClosed));

    let mut pipeline = Pipeline::new(unbounded(), |script| script.list("10").watch("5s +a@11"));
    let other = pipeline.queue.producer(SourceId(0));
    let reset = crate::delta::ListSnapshot {
        resource_version: "3".into(),
        items: vec![],
        reset: true,
    };
    other.replace(reset).unwrap();
    pipeline.rig.pass(5.0);
    assert_eq!(pipeline.rig.end, Some(RunEnd::AbandonedEpoch));
}

/// The transform runs once for each object, lists, streaming lists and watches alike.
#[test]
fn the_transform_runs_once_for_each_object() {
    for streaming in [false, true] {
        let runs = Arc::new(crate::sync::AtomicUsize::new(0));
        let counted = runs.clone();
        let config = QueueConfig {
            transform: Some(Arc::new(move |_: &mut String| {
                counted.fetch_add(1, crate::sync::Ordering::SeqCst);
                Ok(())
            })),
            ..unbounded()
        };
        let mut pipeline = Pipeline::new(config, |script| {
            if streaming {
                script.streaming().watch("+a@5 +b@6 BM@10(end) +c@11")
            } else {
                script.list("10 a@5 b@6").watch("+c@11")
            }
        });
        assert_eq!(pipeline.apply(), "11: a@5 b@6 c@11");
        assert_eq!(runs.load(crate::sync::Ordering::SeqCst), 3);
    }
}

// What must never happen, as far as it concerns the source: each was seen in another informer.

#[test]
fn never_does_a_late_delete_of_an_old_uid_remove_the_living_object() {
    let mut pipeline = Pipeline::new(unbounded(), |script| {
        script
            .list("10 a#u1@5")
            .watch("-a#u1@11 +a#u2@12 5s -a#u1@11 ~b@13")
    });
    assert_eq!(pipeline.apply(), "12: a@12");
    pipeline.rig.pass(5.0);
    assert_eq!(pipeline.apply(), "13: a@12 b@13");
}

#[test]
fn never_do_objects_of_a_broken_initial_stream_stay_as_ghosts() {
    let mut pipeline = Pipeline::new(unbounded(), |script| {
        script
            .streaming()
            .watch("+ghost@5 +a@6 EOF")
            .watch("+a@6 BM@9(end)")
    });
    assert_eq!(pipeline.apply(), ": ");
    pipeline.rig.pass(5.0);
    assert_eq!(pipeline.apply(), "9: a@6");
}

#[test]
fn never_does_one_bad_key_discard_a_whole_relist() {
    let mut pipeline = Pipeline::new(unbounded(), |script| script.list("10 a@5 bad:?@6 b@7"));
    assert_eq!(pipeline.apply(), "10: a@5 b@7");
    assert!(pipeline.queue.has_synced());
    assert!(!pipeline.cache.load().is_complete(), "and it says so");
}

#[test]
fn never_does_the_version_pass_an_object_that_was_not_stored_in_silence() {
    let mut pipeline = Pipeline::new(unbounded(), |script| {
        script.list("10 a@5").watch("bad:a@11 ~b@12")
    });
    assert_eq!(pipeline.apply(), "12: a@5 b@12");
    let view = pipeline.cache.load();
    let failed: Vec<_> = view.quarantine().map(|bad| &bad.failed_version).collect();
    assert_eq!(failed, [&crate::ResourceVersion::from(11)]);
}
