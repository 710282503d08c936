//! Fault reports, by id.
use super::{changes, deletion, object, relist, zone_indexer};
use crate::delta::{Batch, Delta, SourceId, Step};
use crate::indexer::{IndexDeclaration, UnknownIndex};
use crate::object::{Cached, ObjectKey, Uid};
use crate::source::BadObject;
use smallvec::smallvec;

#[test]
fn c052_an_index_function_that_fails_leaves_no_dangling_entries() {
    let (indexer, mut writer) = zone_indexer();
    let (a, b) = (object("a", "u1", 1, &[9]), object("b", "u2", 2, &[1]));
    let applied = writer.apply(changes(2, vec![Delta::Added(a.clone()), Delta::Added(b)]));
    assert_eq!(applied.index_failures.len(), 1);
    assert_eq!(
        (
            &*applied.index_failures[0].index,
            applied.index_failures[0].key.as_str()
        ),
        ("zone", "ns/a")
    );
    let zone = indexer.index::<u8>("zone").unwrap();
    let view = indexer.snapshot();
    assert!(view.contains("ns/a") && view.by_index(&zone, &9).unwrap().len() == 0);
    assert_eq!(view.poisoned("zone").unwrap().count(), 1);
    writer.apply(changes(3, vec![deletion(&a, 3)]));
    let view = indexer.snapshot();
    assert_eq!(view.poisoned("zone").unwrap().count(), 0);
    assert_eq!(
        view.by_index(&zone, &1)
            .unwrap()
            .map(Cached::name)
            .collect::<Vec<_>>(),
        ["b"]
    );
}

#[test]
fn c053_a_panicking_index_function_does_not_take_the_store_down() {
    let (indexer, mut writer) = zone_indexer();
    let items = vec![
        object("a", "u1", 1, &[1]),
        object("b", "u2", 2, &[8]),
        object("c", "u3", 3, &[1]),
    ];
    let applied = writer.apply(relist(10, items));
    assert_eq!(applied.changes.len(), 3);
    assert!(applied.index_failures[0].reason.contains("zone 8 panics"));
    let zone = indexer.index::<u8>("zone").unwrap();
    assert_eq!(indexer.load().by_index(&zone, &1).unwrap().len(), 2);
    let applied = writer.apply(changes(
        12,
        vec![Delta::Updated(object("b", "u2", 12, &[1]))],
    ));
    assert!(applied.index_failures.is_empty());
    assert_eq!(indexer.load().by_index(&zone, &1).unwrap().len(), 3);
    assert_eq!(indexer.load().poisoned("zone").unwrap().len(), 0);
}

#[test]
fn c054_index_values_without_objects_disappear() {
    let (indexer, mut writer) = zone_indexer();
    for n in 0..10_000_u64 {
        let name = format!("x{n}");
        let short = object(&name, "u", n, &[(n % 7) as u8]);
        writer.apply(changes(n, vec![Delta::Added(short.clone())]));
        writer.apply(changes(n, vec![deletion(&short, n)]));
    }
    writer.apply(changes(
        10_001,
        vec![Delta::Added(object("live", "u", 10_001, &[5]))],
    ));
    let zone = indexer.index::<u8>("zone").unwrap();
    let view = indexer.snapshot();
    assert_eq!(
        view.index_values(&zone)
            .unwrap()
            .map(|(zone, _)| *zone)
            .collect::<Vec<_>>(),
        [5]
    );
    assert_eq!(
        view.by_index(&zone, &1).unwrap().len(),
        0,
        "empty, not an error"
    );
}

#[test]
fn c055_an_index_added_after_objects_are_present_covers_them() {
    let (indexer, mut writer) = zone_indexer();
    writer.apply(relist(
        2,
        vec![object("a", "u1", 1, &[1]), object("b", "u2", 2, &[2])],
    ));
    let before = indexer.snapshot();
    let failures = writer
        .add_index(IndexDeclaration::new("count", |o: &Cached<Vec<u8>>| {
            Some(o.len())
        }))
        .unwrap();
    assert!(failures.is_empty());
    let count = indexer.index::<usize>("count").unwrap();
    assert_eq!(indexer.load().by_index(&count, &1).unwrap().len(), 2);
    assert!(matches!(
        before.by_index(&count, &1),
        Err(UnknownIndex::NotHere { .. })
    ));
    for version in 3..20 {
        writer.apply(changes(
            version,
            vec![Delta::Added(object(
                &format!("c{version}"),
                "u",
                version,
                &[1],
            ))],
        ));
        assert_eq!(
            indexer.load().by_index(&count, &1).unwrap().len() as u64,
            version
        );
    }
    let again = IndexDeclaration::new("count", |_: &Cached<Vec<u8>>| Some(1_u8));
    assert_eq!(writer.add_index(again).unwrap_err().name, "count");
    assert_eq!(
        indexer.load().by_index(&count, &1).unwrap().len(),
        19,
        "nothing was changed"
    );
    writer.remove_index("count").unwrap();
    assert!(indexer.load().by_index(&count, &1).is_err());
    assert!(writer.remove_index("count").is_err());
}

#[test]
fn c056_an_index_function_that_returns_nothing() {
    let (indexer, mut writer) = zone_indexer();
    let zone = indexer.index::<u8>("zone").unwrap();
    let mut step = |version, zones: &[u8]| {
        writer.apply(changes(
            version,
            vec![Delta::Updated(object("a", "u1", version, zones))],
        ));
        let view = indexer.snapshot();
        let values: Vec<u8> = view
            .index_values(&zone)
            .unwrap()
            .map(|(zone, _)| *zone)
            .collect();
        let of_a = view
            .by_any(&zone, view.get("ns/a").unwrap().iter())
            .unwrap()
            .len();
        (view.len(), values, of_a)
    };
    assert_eq!(step(1, &[]), (1, vec![], 0));
    assert_eq!(step(2, &[3]), (1, vec![3], 1));
    assert_eq!(step(3, &[]), (1, vec![], 0));
}

#[test]
fn c057_objects_handed_to_readers_are_frozen() {
    let (indexer, mut writer) = zone_indexer();
    let (a, b) = (object("a", "u1", 5, &[1]), object("b", "u2", 5, &[1]));
    writer.apply(changes(5, vec![Delta::Added(a), Delta::Added(b.clone())]));
    let held = indexer.snapshot();
    let object_held = held.get("ns/a").unwrap().clone();
    writer.apply(changes(
        6,
        vec![Delta::Updated(object("a", "u1", 6, &[2])), deletion(&b, 6)],
    ));
    writer.apply(relist(7, vec![]));
    assert_eq!(
        held.get("ns/a").unwrap().resource_version().to_string(),
        "5"
    );
    assert!(held.contains("ns/b") && *object_held == [1]);
    assert!(indexer.is_empty());
}

#[test]
fn c058_index_and_objects_come_from_one_moment() {
    let (indexer, mut writer) = zone_indexer();
    let zone = indexer.index::<u8>("zone").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let done = || stop.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (mut checks, mut newest) = (0_u32, 0);
                    while !done() || checks == 0 {
                        let view = indexer.snapshot();
                        assert!(view.sequence() >= newest, "never back");
                        newest = view.sequence();
                        for value in [1, 2] {
                            let found: Vec<_> = view.by_index(&zone, &value).unwrap().collect();
                            assert!(found.iter().all(|object| object.contains(&value)));
                            assert!(found.iter().all(|o| view.get(o.key()).unwrap().ptr_eq(o)));
                            let keys = view.index_keys(&zone, &value).unwrap();
                            assert_eq!(keys.len(), found.len());
                            assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "no repeats");
                        }
                        checks += 1;
                    }
                })
            })
            .collect();
        for round in 0..2_000 {
            let version = round * 3;
            let name = format!("o{}", round % 50);
            let last = object(&name, "u", version + 1, &[2]);
            writer.apply(changes(
                version,
                vec![Delta::Added(object(&name, "u", version, &[1]))],
            ));
            writer.apply(changes(version + 1, vec![Delta::Updated(last.clone())]));
            if round % 3 == 0 {
                writer.apply(changes(version + 2, vec![deletion(&last, version + 2)]));
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn c059_a_query_on_an_index_that_does_not_exist_is_an_error() {
    let (indexer, mut writer) = zone_indexer();
    writer.apply(changes(1, vec![Delta::Added(object("a", "u1", 1, &[1]))]));
    let view = indexer.snapshot();
    let error = view.by_index_name("nope", "x").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"there is no index "nope"; there are zone, first"#
    );
    assert!(view.index_values_by_name("nope").is_err());
    assert!(matches!(
        view.by_index_name("zone", "1"),
        Err(UnknownIndex::OtherType { .. })
    ));
    let (other, _writer) = zone_indexer();
    let foreign = other.index::<u8>("zone").unwrap();
    assert!(matches!(
        view.by_index(&foreign, &1),
        Err(UnknownIndex::NotHere { .. })
    ));
}

#[test]
fn a_late_delete_of_an_old_uid_never_removes_the_living() {
    let (indexer, mut writer) = zone_indexer();
    let (old, new) = (object("a", "u1", 5, &[1]), object("a", "u2", 9, &[1]));
    writer.apply(changes(9, vec![Delta::Added(new)]));
    let applied = writer.apply(changes(10, vec![deletion(&old, 8)]));
    assert_eq!((applied.changes.len(), applied.dropped.stale), (0, 1));
    assert!(indexer.load().contains("ns/a"));
}

#[test]
fn an_unchanged_relist_changes_nothing_and_says_nothing() {
    let (indexer, mut writer) = zone_indexer();
    let items = || vec![object("a", "u1", 5, &[1]), object("b", "u2", 6, &[2])];
    writer.apply(relist(6, items()));
    let before = indexer.snapshot();
    let applied = writer.apply(relist(20, items()));
    assert_eq!((applied.changes.len(), applied.dropped.unchanged), (0, 2));
    let after = indexer.snapshot();
    assert_eq!(after.resource_version().to_string(), "20");
    assert!(
        before.iter().zip(after.iter()).all(|(a, b)| a.ptr_eq(b)),
        "the old objects are kept"
    );
}

#[test]
fn a_list_as_new_as_the_cache_with_an_older_item_shows_a_rewritten_history() {
    let (indexer, mut writer) = zone_indexer();
    writer.apply(relist(
        20,
        vec![object("a", "u", 18, &[1]), object("b", "u", 3, &[1])],
    ));
    // The backup had `a` at 7; after the restore the store's version was raised to 1000.
    let applied = writer.apply(relist(
        1_000,
        vec![object("b", "u", 3, &[1]), object("a", "u", 7, &[2])],
    ));
    assert_eq!(applied.resets, [SourceId(0)]);
    assert_eq!(applied.changes.len(), 1);
    assert_eq!(
        indexer.get("ns/a").map(|a| a.resource_version().clone()),
        Some(7.into())
    );
    assert_eq!(indexer.load().epoch(), 1);
    assert_eq!(indexer.resource_version(), 1_000.into());
}

#[test]
fn a_list_older_than_what_is_known_and_a_key_that_stands_twice_show_no_reset() {
    let (indexer, mut writer) = zone_indexer();
    writer.apply(relist(20, vec![object("a", "u", 18, &[1])]));
    let applied = writer.apply(relist(15, vec![object("a", "u", 7, &[2])]));
    assert_eq!((applied.resets.len(), applied.dropped.stale), (0, 1));
    let applied = writer.apply(relist(
        30,
        vec![object("a", "u", 25, &[1]), object("a", "u", 24, &[2])],
    ));
    assert_eq!((applied.resets.len(), applied.dropped.stale), (0, 1));
    assert_eq!(
        indexer.get("ns/a").map(|a| a.resource_version().clone()),
        Some(25.into())
    );
}

fn unusable(version: u64) -> BadObject {
    BadObject {
        key: Some(ObjectKey::new("ns", "a").unwrap()),
        uid: Uid::new("u"),
        resource_version: version.into(),
        reason: "cannot be read".to_owned(),
    }
}

#[test]
fn an_unusable_object_of_a_reset_is_quarantined_although_it_is_older() {
    let (indexer, mut writer) = zone_indexer();
    writer.apply(relist(20, vec![object("a", "u", 18, &[1])]));
    let mut reset = relist(10, Vec::new());
    let Some(Step::Replace(replace)) = reset.steps.first_mut() else {
        unreachable!("a relist is one step");
    };
    replace.reset = true;
    replace.bad.push(unusable(7));
    let applied = writer.apply(reset);
    assert_eq!(applied.quarantined.len(), 1);
    assert_eq!(indexer.load().quarantine().count(), 1);
    // A list that is no reset and again cannot use it says nothing new; one that can, ends it.
    let mut again = relist(11, Vec::new());
    let Some(Step::Replace(replace)) = again.steps.first_mut() else {
        unreachable!("a relist is one step");
    };
    replace.bad.push(unusable(7));
    writer.apply(again);
    assert_eq!(indexer.load().quarantine().count(), 1);
    // What is stored is of another history: its version neither outdates nor equals anything now.
    let duplicate = writer.apply(changes(11, vec![Delta::Updated(object("a", "u", 6, &[9]))]));
    assert_eq!(duplicate.dropped.stale, 1);
    let applied = writer.apply(changes(
        18,
        vec![Delta::Updated(object("a", "u", 18, &[2]))],
    ));
    assert_eq!(applied.changes.len(), 1);
    let zone = indexer.index::<u8>("zone").unwrap();
    let view = indexer.load();
    assert_eq!(view.by_index(&zone, &2).unwrap().len(), 1);
    assert_eq!(view.quarantine().count(), 0);
}

#[test]
fn what_a_reset_cannot_use_and_is_deleted_after_it_is_gone() {
    let (indexer, mut writer) = zone_indexer();
    writer.apply(relist(20, vec![object("a", "u", 18, &[1])]));
    let mut reset = relist(10, Vec::new());
    let Some(Step::Replace(replace)) = reset.steps.first_mut() else {
        unreachable!("a relist is one step");
    };
    replace.reset = true;
    replace.bad.push(unusable(7));
    writer.apply(reset);
    writer.apply(changes(12, vec![deletion(&object("a", "u", 11, &[1]), 12)]));
    let view = indexer.load();
    assert_eq!((view.len(), view.quarantine().count()), (0, 0));
}

#[test]
fn a_good_item_of_another_source_ends_a_quarantine_that_it_outdates() {
    let (indexer, mut writer) = zone_indexer();
    let bad = |version| Batch {
        steps: vec![Step::Bad {
            source: SourceId(1),
            object: unusable(version),
            deleted: false,
        }],
        versions: smallvec![],
        inputs: 1,
    };
    writer.apply(bad(9));
    writer.apply(relist(8, vec![object("a", "u", 8, &[1])]));
    assert_eq!(indexer.load().quarantine().count(), 1, "9 is still unread");
    writer.apply(relist(12, vec![object("a", "u", 11, &[1])]));
    assert_eq!(indexer.load().quarantine().count(), 0);
}

#[test]
fn a_source_that_takes_its_word_back_leaves_what_another_cannot_use() {
    let (indexer, mut writer) = zone_indexer();
    let bad = |source, version| Batch {
        steps: vec![Step::Bad {
            source: SourceId(source),
            object: unusable(version),
            deleted: false,
        }],
        versions: smallvec![],
        inputs: 1,
    };
    writer.apply(relist(5, vec![object("a", "u", 5, &[1])]));
    writer.apply(bad(0, 7));
    writer.apply(bad(1, 9));
    assert_eq!(indexer.load().quarantine().count(), 1, "once per key");
    // The object has left source 1 again; source 0 has not said anything newer since 7.
    let mut empty = relist(12, Vec::new());
    let Some(Step::Replace(replace)) = empty.steps.first_mut() else {
        unreachable!("a relist is one step");
    };
    replace.source = SourceId(1);
    writer.apply(empty);
    let failed: Vec<_> = indexer
        .load()
        .quarantine()
        .map(|object| object.failed_version.clone())
        .collect();
    assert_eq!(failed, [7.into()]);
    writer.apply(relist(13, vec![object("a", "u", 10, &[1])]));
    assert_eq!(indexer.load().quarantine().count(), 0);
}
