//! The delta queue in front of the indexer: case by case.
use super::rig::{Pipe, Text, calls, list, object};
use crate::delta::{
    Compaction, DeltaQueue, ListSnapshot, PushError, QueueConfig, ResyncTargets, SourceId, Step,
};
use crate::object::ResourceVersion;
use crate::source::BadObject;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn c040_an_object_known_only_to_the_queue_and_absent_from_the_relist_is_deleted() {
    let mut pipe = Pipe::holding(&[]);
    pipe.producer.try_added(object("a@11")).unwrap();
    pipe.producer.replace(list(20, &[])).unwrap();
    assert!(pipe.run().is_empty(), "the pair cancels out");
    assert!(pipe.store().is_empty());
    // With every delta kept, both steps are visible to whoever asks for them.
    pipe.queue.set_compaction(Compaction::KeepAll);
    pipe.writer.set_effective(true);
    pipe.producer.try_added(object("a@21")).unwrap();
    pipe.producer.replace(list(30, &[])).unwrap();
    let applied = pipe.writer.apply(pipe.queue.try_drain().unwrap());
    assert_eq!(applied.effective.unwrap().len(), 2);
    assert!(pipe.store().is_empty());
}

#[test]
fn c041_a_relist_after_a_queued_delete_does_not_swallow_the_recreated_object() {
    let mut pipe = Pipe::holding(&["a#u1@5"]);
    pipe.producer.try_deleted(object("a#u1@9")).unwrap();
    pipe.producer.replace(list(15, &["a#u2@15"])).unwrap();
    assert_eq!(pipe.run(), ["DEL(a#u1@9)", "ADD(a#u2@15)"]);
    assert_eq!(pipe.store(), ["a#u2@15"]);
}

#[test]
fn c042_two_relists_in_a_row_do_not_nest_tombstones() {
    let mut pipe = Pipe::holding(&["a@5"]);
    for version in [6, 7, 8] {
        pipe.producer.replace(list(version, &[])).unwrap();
    }
    assert_eq!(pipe.run(), ["DEL?(a@5)"]);
}

#[test]
fn c043_a_list_that_contains_the_same_key_twice_still_becomes_synced() {
    let mut pipe = Pipe::new(QueueConfig::default());
    pipe.producer.replace(list(3, &["a@1", "a@2"])).unwrap();
    assert!(!pipe.queue.has_synced());
    assert_eq!(pipe.run(), ["ADD*(a@2)"]);
    assert!(pipe.queue.has_synced());
    assert_eq!(pipe.store(), ["a@2"]);
}

#[test]
fn c044_an_empty_first_list_counts_as_synced() {
    let mut pipe = Pipe::new(QueueConfig::default());
    assert!(!pipe.queue.has_synced());
    pipe.producer.replace(list(10, &[])).unwrap();
    assert!(pipe.run().is_empty());
    assert!(pipe.queue.has_synced());
    crate::sync::block_on(pipe.queue.synced()).unwrap();
    assert_eq!(pipe.indexer.resource_version().to_string(), "10");
}

#[test]
fn c045_close_wakes_a_blocked_drain_always() {
    for _ in 0..500 {
        let queue = DeltaQueue::<Text>::new(QueueConfig::default());
        let producer = queue.producer(SourceId(0));
        producer.try_added(object("a@1")).unwrap();
        let consumers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                std::thread::spawn(move || {
                    let mut taken = 0;
                    while let Ok(batch) = queue.drain_blocking() {
                        taken += batch.inputs;
                    }
                    taken
                })
            })
            .collect();
        queue.close();
        let taken: usize = consumers.into_iter().map(|c| c.join().unwrap()).sum();
        assert_eq!(taken, 1, "what was queued before the close is handed out");
        assert_eq!(producer.try_added(object("b@2")), Err(PushError::Closed));
    }
}

#[test]
fn c046_an_older_state_never_follows_a_newer_one() {
    let mut pipe = Pipe::holding(&[]);
    pipe.producer.try_added(object("a@5")).unwrap();
    let failed = pipe.queue.try_drain().unwrap();
    pipe.producer.try_updated(object("a@6")).unwrap();
    drop(failed);
    assert_eq!(pipe.run(), ["ADD(a@6)"]);
    pipe.producer.try_updated(object("a@5")).unwrap();
    assert!(pipe.run().is_empty());
    assert!(pipe.queue.is_empty());
}

#[test]
fn c047_a_resync_does_not_overtake_a_pending_delta() {
    let mut pipe = Pipe::holding(&["a@5", "b@5"]);
    pipe.producer.try_updated(object("a@6")).unwrap();
    pipe.producer.try_deleted(object("b@7")).unwrap();
    pipe.producer.resync(ResyncTargets::All).unwrap();
    pipe.producer.resync(ResyncTargets::All).unwrap();
    let applied = pipe.writer.apply(pipe.queue.try_drain().unwrap());
    assert_eq!(calls(&applied), ["UPD(a@5 -> a@6)", "DEL(b@7)"]);
    assert_eq!(applied.resyncs, [ResyncTargets::All]);
    assert_eq!(pipe.store(), ["a@6"]);
}

#[test]
fn c048_the_transform_never_sees_a_tombstone() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let mut pipe = Pipe::new(QueueConfig {
        transform: Some(Arc::new(move |text: &mut Text| {
            counted.fetch_add(1, Ordering::Relaxed);
            text.insert_str(0, "stripped ");
            Ok(())
        })),
        ..QueueConfig::default()
    });
    pipe.producer.replace(list(10, &["a@5", "b@5"])).unwrap();
    pipe.run();
    pipe.producer.replace(list(20, &["a@8"])).unwrap();
    assert_eq!(
        pipe.run(),
        ["UPD(stripped a@5 -> stripped a@8)", "DEL?(stripped b@5)"]
    );
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[test]
fn a_transform_that_fails_or_panics_quarantines_its_object_only() {
    let mut pipe = Pipe::new(QueueConfig {
        transform: Some(Arc::new(|text: &mut Text| match text.as_str() {
            "b@2" => Err("no b".to_owned()),
            "c@3" => panic!("no c"),
            _ => Ok(()),
        })),
        ..QueueConfig::default()
    });
    let refused = pipe
        .producer
        .replace(list(9, &["a@1", "b@2", "c@3"]))
        .unwrap();
    assert_eq!(refused.len(), 2);
    assert_eq!(pipe.run(), ["ADD*(a@1)"]);
    let view = pipe.indexer.snapshot();
    let reasons: Vec<_> = view.quarantine().map(|bad| bad.reason.clone()).collect();
    assert_eq!(
        reasons,
        [
            "the transform failed: no b",
            "the transform failed: panicked: no c"
        ]
    );
    assert!(pipe.queue.has_synced() && !view.is_complete());
    assert!(matches!(
        pipe.producer.try_updated(object("c@3")),
        Err(PushError::Transform(_))
    ));
    pipe.producer.try_updated(object("b@10")).unwrap();
    assert_eq!(pipe.run(), ["ADD(b@10)"]);
    assert_eq!(
        pipe.indexer.load().quarantine().count(),
        1,
        "b is good again"
    );
    pipe.producer.replace(list(12, &["a@1", "b@10"])).unwrap();
    pipe.run();
    assert!(
        pipe.indexer.load().is_complete(),
        "a relist clears the rest"
    );
}

#[test]
fn c049_a_slow_consumer_does_not_stop_producers() {
    let mut pipe = Pipe::holding(&[]);
    pipe.producer.try_added(object("a@1")).unwrap();
    let being_processed = pipe.queue.try_drain().unwrap();
    for version in 2..10_002 {
        pipe.producer
            .try_updated(object(&format!("k{version}@{version}")))
            .unwrap();
    }
    assert!(pipe.queue.has_synced());
    pipe.writer.apply(being_processed);
    assert_eq!(pipe.run().len(), 10_000);
}

#[test]
fn c050_pending_deltas_of_one_key_do_not_grow_with_each_identical_relist() {
    for compaction in [Compaction::FirstAndLast, Compaction::KeepAll] {
        let mut pipe = Pipe::new(QueueConfig {
            compaction,
            ..QueueConfig::default()
        });
        for version in 0..1_000 {
            pipe.producer
                .replace(list(version, &["a@5", "b@5"]))
                .unwrap();
        }
        let batch = pipe.queue.try_drain().unwrap();
        assert_eq!((batch.steps.len(), batch.inputs), (1, 1_000));
        assert_eq!(calls(&pipe.writer.apply(batch)), ["ADD*(a@5)", "ADD*(b@5)"]);
        for items in [["a@5"], ["a@6"], ["a@6"]] {
            pipe.producer.replace(list(2_000, &items)).unwrap();
        }
        pipe.run();
        assert_eq!(pipe.store(), ["a@6"]);
    }
}

#[test]
fn c051_deleted_and_recreated_before_the_consumer_looks() {
    for compaction in [Compaction::FirstAndLast, Compaction::KeepAll] {
        let mut pipe = Pipe::holding(&["a#u1@5"]);
        pipe.queue.set_compaction(compaction);
        pipe.producer.try_deleted(object("a#u1@9")).unwrap();
        pipe.producer.try_added(object("a#u2@10")).unwrap();
        pipe.producer.try_updated(object("a#u2@11")).unwrap();
        assert_eq!(pipe.run(), ["DEL(a#u1@9)", "ADD(a#u2@11)"]);
        assert_eq!(pipe.store(), ["a#u2@11"]);
    }
}

#[test]
fn a_full_queue_makes_producers_wait_but_admits_relists_and_pending_keys() {
    let mut pipe = Pipe::new(QueueConfig {
        bound: Some(2),
        ..QueueConfig::default()
    });
    pipe.producer.try_added(object("a@1")).unwrap();
    pipe.producer.try_added(object("b@2")).unwrap();
    assert_eq!(pipe.producer.try_added(object("c@3")), Err(PushError::Full));
    pipe.producer.try_updated(object("a@4")).unwrap();
    pipe.producer.bookmark(ResourceVersion::from(5)).unwrap();
    let producer = pipe.producer.clone();
    let waiting = std::thread::spawn(move || producer.updated_blocking(object("c@6")));
    let mut got = 0;
    while got < 3 {
        let batch = pipe.queue.drain_blocking().unwrap();
        got += pipe.writer.apply(batch).changes.len();
    }
    waiting.join().unwrap().unwrap();
    assert_eq!(pipe.store(), ["a@4", "b@2", "c@6"]);
}

#[test]
fn a_reset_voids_what_older_producers_still_say() {
    let mut pipe = Pipe::holding(&["a@50", "b@60"]);
    let old = pipe.producer.clone();
    pipe.producer.try_updated(object("a@70")).unwrap();
    pipe.producer
        .replace(ListSnapshot {
            reset: true,
            ..list(40, &["a@30"])
        })
        .unwrap();
    assert_eq!(
        old.try_updated(object("b@99")),
        Err(PushError::AbandonedEpoch)
    );
    let applied = pipe.writer.apply(pipe.queue.try_drain().unwrap());
    assert_eq!(applied.resets, [SourceId(0)]);
    assert_eq!(calls(&applied), ["UPD(a@50 -> a@30)", "DEL?(b@60)"]);
    assert_eq!(pipe.indexer.load().epoch(), 1);
    assert_eq!(pipe.indexer.resource_version().to_string(), "40");
    pipe.producer.try_updated(object("a@31")).unwrap();
    assert_eq!(pipe.run(), ["UPD(a@30 -> a@31)"]);
}

#[test]
fn a_relist_of_one_source_deletes_nothing_of_another() {
    let mut pipe = Pipe::holding(&["a@5"]);
    let other = pipe.queue.producer(SourceId(1));
    assert!(
        !pipe.queue.has_synced(),
        "the other source has not listed yet"
    );
    other.replace(list(7, &["b@6", "c@7"])).unwrap();
    pipe.run();
    assert!(pipe.queue.has_synced());
    pipe.producer.replace(list(9, &[])).unwrap();
    assert_eq!(pipe.run(), ["DEL?(a@5)"]);
    let view = pipe.indexer.snapshot();
    assert_eq!(view.versions().len(), 2);
    assert!(
        view.resource_version().is_empty(),
        "there is no one version of two sources"
    );
    other.try_updated(object("b@10")).unwrap();
    other.replace(list(12, &["c@7"])).unwrap();
    assert_eq!(
        pipe.run(),
        ["DEL?(b@10)"],
        "the last known state is the one that was queued"
    );
}

#[test]
fn a_bad_object_passes_the_watermark_only_with_its_record() {
    let mut pipe = Pipe::holding(&["a@5", "b@5"]);
    let bad = |name: &str, version: u64| BadObject {
        key: Some(object(&format!("{name}@{version}")).meta.key),
        uid: "u".into(),
        resource_version: ResourceVersion::from(version),
        reason: "no JSON".to_owned(),
    };
    pipe.producer.bad(bad("a", 8), false).unwrap();
    pipe.producer.bad(bad("b", 9), true).unwrap();
    assert_eq!(pipe.run(), ["DEL?(b@5)"]);
    let view = pipe.indexer.snapshot();
    assert_eq!(view.resource_version().to_string(), "9");
    let quarantined: Vec<_> = view.quarantine().cloned().collect();
    assert_eq!(quarantined.len(), 1);
    assert_eq!(quarantined[0].last_good, Some(ResourceVersion::from(5)));
    assert_eq!(pipe.store(), ["a@5"], "the last good state stays readable");
    pipe.producer.bad(bad("a", 10), false).unwrap();
    pipe.producer.try_updated(object("a@11")).unwrap();
    let batch = pipe.queue.try_drain().unwrap();
    assert!(
        batch
            .steps
            .iter()
            .all(|step| !matches!(step, Step::Bad { .. }))
    );
    pipe.writer.apply(batch);
    assert!(pipe.indexer.load().is_complete());
}

#[test]
fn a_million_updates_of_one_key_keep_memory_flat_and_cost_one_change() {
    let mut pipe = Pipe::holding(&["a@1"]);
    let count = if cfg!(debug_assertions) {
        100_000
    } else {
        1_000_000
    };
    for version in 2..count {
        pipe.producer
            .try_updated(object(&format!("a@{version}")))
            .unwrap();
    }
    assert_eq!(pipe.queue.len(), 1);
    assert_eq!(pipe.run(), [format!("UPD(a@1 -> a@{})", count - 1)]);
}

#[test]
fn a_look_at_what_is_pending_takes_nothing() {
    let mut pipe = Pipe::holding(&["a@5"]);
    pipe.producer.try_updated(object("b@6")).unwrap();
    pipe.producer.replace(list(7, &["b@6", "c@7"])).unwrap();
    pipe.producer.try_updated(object("c@8")).unwrap();
    let seen = format!("{:?}", pipe.queue.pending());
    assert_eq!(format!("{:?}", pipe.queue.pending()), seen);
    assert_eq!(format!("{:?}", pipe.queue.try_drain().unwrap()), seen);
    assert!(pipe.queue.pending().steps.is_empty());
    pipe.run();
}
