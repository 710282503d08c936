//! Random batches against the oracle: I-IX1 to I-IX12, snapshots that never change, and net
//! changes that fold to the same state.
use super::oracle::Oracle;
use super::{Zones, deletion, object, zone_indexer};
use crate::delta::{Batch, Delta, KeyDeltas, Replace, SourceId, Step};
use crate::indexer::{Applied, Effective, Snapshot};
use crate::object::{Cached, ObjectKey, ResourceVersion};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A small world, so that keys, uids, versions and slots collide all the time.
#[derive(Clone, Debug)]
enum Input {
    Upsert {
        key: u16,
        uid: u8,
        version: u8,
        zones: Zones,
        source: u32,
    },
    Delete {
        key: u16,
        uid: u8,
        version: u8,
    },
    Relist {
        items: Vec<(u16, u8, u8, Zones)>,
        source: u32,
        reset: bool,
    },
}

fn zones() -> impl Strategy<Value = Zones> {
    prop_oneof![
        4 => prop::collection::vec(0..4u8, 1),
        2 => prop::collection::vec(0..6u8, 0..4),
        1 => prop::collection::vec(6..10u8, 1..3),
    ]
}

/// Mostly a few keys, so that they collide; at times many, so that chunks are split.
fn key() -> impl Strategy<Value = u16> {
    prop_oneof![4 => 0..24u16, 1 => 0..600u16]
}

fn list_items() -> impl Strategy<Value = Vec<(u16, u8, u8, Zones)>> {
    let item = || (key(), 0..3u8, 0..40u8, zones());
    let wide = (0..600u16, 0..3u8, 0..40u8, zones());
    prop_oneof![
        4 => prop::collection::vec(item(), 0..20),
        1 => prop::collection::vec(wide, 150..400),
    ]
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        6 => (key(), 0..3u8, 0..40u8, zones(), 0..2u32).prop_map(|(key, uid, version, zones, source)| {
            Input::Upsert { key, uid, version, zones, source }
        }),
        3 => (key(), 0..3u8, 0..40u8).prop_map(|(key, uid, version)| Input::Delete { key, uid, version }),
        1 => (list_items(), 0..2u32, prop::bool::weighted(0.2))
            .prop_map(|(items, source, reset)| Input::Relist { items, source, reset }),
    ]
}

fn name(key: u16) -> String {
    format!("o{key}")
}

fn make(key: u16, uid: u8, version: u8, zones: &[u8]) -> Cached<Zones> {
    object(&name(key), &format!("u{uid}"), u64::from(version), zones)
}

/// One batch of the inputs, grouped as the queue groups them, and the oracle moved along.
fn batch(inputs: &[Input], oracle: &mut Oracle, version: u64) -> Batch<Zones> {
    let mut steps: Vec<Step<Zones>> = Vec::new();
    for input in inputs {
        let (source, delta) = match input {
            Input::Upsert {
                key,
                uid,
                version,
                zones,
                source,
            } => {
                let new = make(*key, *uid, *version, zones);
                oracle.upsert(&new, *source, true);
                (*source, Delta::Updated(new))
            }
            Input::Delete { key, uid, version } => {
                let last = make(*key, *uid, *version, &[]);
                oracle.delete(last.key(), &format!("u{uid}"), u64::from(*version));
                (0, deletion(&last, u64::from(*version)))
            }
            Input::Relist {
                items,
                source,
                reset,
            } => {
                let items: Vec<_> = items
                    .iter()
                    .map(|(k, u, v, z)| make(*k, *u, *v, z))
                    .collect();
                oracle.replace(&items, *source, version, *reset);
                steps.push(Step::Replace(Replace {
                    source: SourceId(*source),
                    resource_version: ResourceVersion::from(version),
                    items,
                    bad: vec![],
                    initial: false,
                    reset: *reset,
                    superseded_deletes: vec![],
                }));
                continue;
            }
        };
        let group = KeyDeltas {
            source: SourceId(source),
            deltas: smallvec::smallvec![delta],
        };
        let groups = if let Some(Step::Changes(groups)) = steps.last_mut() {
            groups
        } else {
            steps.push(Step::Changes(vec![]));
            match steps.last_mut() {
                Some(Step::Changes(groups)) => groups,
                _ => unreachable!("it was pushed a line ago"),
            }
        };
        let same = groups
            .iter_mut()
            .rfind(|g| g.deltas[0].key() == group.deltas[0].key())
            .filter(|g| g.source == group.source);
        match same {
            // Only neighbours in time of one key may be grouped past other keys: that is what
            // coalescing by key means, and the oracle is indifferent to the order of keys.
            Some(same) => same.deltas.extend(group.deltas),
            None => groups.push(group),
        }
    }
    Batch {
        inputs: inputs.len(),
        steps,
        versions: smallvec::smallvec![(SourceId(0), ResourceVersion::from(version))],
    }
}

/// I-IX1 to I-IX4, I-IX9: every read of the view agrees with the oracle.
fn check(view: &Snapshot<Zones>, oracle: &Oracle) {
    assert_eq!(view.len(), oracle.held.len());
    let mut all: Vec<_> = view
        .iter()
        .map(|o| {
            (
                o.key().clone(),
                o.uid().to_string(),
                o.resource_version().to_string(),
            )
        })
        .collect();
    all.sort();
    let expected: Vec<_> = oracle
        .held
        .iter()
        .map(|(k, h)| (k.clone(), h.uid.clone(), h.version.to_string()))
        .collect();
    assert_eq!(all, expected);
    let (zones, poisoned) = oracle.zones();
    let index = view.index::<u8>("zone").unwrap();
    for zone in 0..10 {
        let expected = zones.get(&zone).cloned().unwrap_or_default();
        assert_eq!(
            view.index_keys(&index, &zone).unwrap(),
            expected,
            "zone {zone}"
        );
        assert_eq!(view.count_by_index(&index, &zone).unwrap(), expected.len());
        for object in view.by_index(&index, &zone).unwrap() {
            assert!(object.contains(&zone));
            assert!(view.get(object.key()).unwrap().ptr_eq(object), "one moment");
        }
    }
    let mut values: Vec<_> = view
        .index_values(&index)
        .unwrap()
        .map(|(zone, objects)| (*zone, objects.len()))
        .collect();
    values.sort_unstable();
    assert_eq!(
        values,
        zones
            .iter()
            .map(|(zone, keys)| (*zone, keys.len()))
            .collect::<Vec<_>>()
    );
    let mut bad: Vec<ObjectKey> = view
        .poisoned("zone")
        .unwrap()
        .map(|o| o.key().clone())
        .collect();
    bad.sort();
    assert_eq!(bad, poisoned);
    let firsts = view
        .index_values_by_name("first")
        .unwrap()
        .map(|(_, objects)| objects.len())
        .sum::<usize>();
    assert_eq!(
        firsts,
        oracle
            .held
            .values()
            .filter(|h| !h.object.is_empty())
            .count()
    );
}

/// What a handler that folds the net changes ends up with.
fn fold_net(seen: &mut BTreeMap<ObjectKey, Cached<Zones>>, applied: &Applied<Zones>) {
    for change in &applied.changes {
        let before = match &change.new {
            Some(new) => seen.insert(new.key().clone(), new.clone()),
            None => seen.remove(change.key()),
        };
        match (&before, &change.old) {
            (Some(before), Some(old)) => assert!(before.ptr_eq(old), "old is what was there"),
            (None, None) => (),
            _ => panic!("{change:?} does not follow {before:?}"),
        }
        if let (Some(old), Some(new)) = (&change.old, &change.new) {
            assert!(
                change.deleted.is_some() || old.uid() == new.uid(),
                "a new life is visible"
            );
        } else {
            assert_eq!(change.deleted.is_some(), change.old.is_some());
        }
    }
}

/// Effective deltas follow Add (Update)* Delete, and end in the same state.
fn fold_effective(seen: &mut BTreeMap<ObjectKey, Cached<Zones>>, applied: &Applied<Zones>) {
    for effect in applied.effective.as_ref().unwrap() {
        match effect {
            Effective::Added { new, .. } => {
                assert!(seen.insert(new.key().clone(), new.clone()).is_none());
            }
            Effective::Updated { old, new } => {
                let before = seen.insert(new.key().clone(), new.clone()).unwrap();
                assert!(before.ptr_eq(old));
                assert_eq!(old.uid(), new.uid());
            }
            Effective::Deleted { deleted } => {
                assert!(deleted.last.is_some());
                assert!(seen.remove(&deleted.key).is_some());
            }
        }
    }
}

/// apply(older, diff) == newer, and the way back.
fn check_diff(newer: &Snapshot<Zones>, older: &Snapshot<Zones>, now: &Oracle, then: &Oracle) {
    for (new, old, to, from) in [(newer, older, now, then), (older, newer, then, now)] {
        let diff = new.diff(old).unwrap();
        let mut folded: BTreeMap<_, _> = old.iter().map(|o| (o.key().clone(), o.clone())).collect();
        for gone in &diff.deleted {
            assert!(folded.remove(gone.key()).unwrap().ptr_eq(gone));
        }
        for (before, after) in &diff.modified {
            assert_eq!(before.uid(), after.uid());
            assert!(
                folded
                    .insert(after.key().clone(), after.clone())
                    .unwrap()
                    .ptr_eq(before)
            );
        }
        for added in &diff.added {
            assert!(folded.insert(added.key().clone(), added.clone()).is_none());
        }
        assert_eq!(folded.len(), to.held.len());
        assert!(
            folded
                .iter()
                .all(|(key, object)| new.get(key).unwrap().ptr_eq(object))
        );
        let unchanged = to.held.iter().filter(|(key, held)| {
            from.held
                .get(*key)
                .is_some_and(|other| other.object.ptr_eq(&held.object))
        });
        let touched: std::collections::BTreeSet<_> = diff
            .added
            .iter()
            .chain(&diff.deleted)
            .map(Cached::key)
            .chain(diff.modified.iter().map(|(_, new)| new.key()))
            .collect();
        assert_eq!(
            touched.len(),
            {
                let keys: std::collections::BTreeSet<_> =
                    to.held.keys().chain(from.held.keys()).collect();
                keys.len() - unchanged.count()
            },
            "nothing that did not change is in the diff"
        );
    }
}

proptest! {
    #[test]
    fn random_batches_equal_the_oracle_and_held_snapshots_never_change(
        batches in prop::collection::vec((prop::collection::vec(input(), 0..12), any::<bool>(), any::<bool>()), 1..24),
    ) {
        let (indexer, mut writer) = zone_indexer();
        writer.set_effective(true);
        let mut oracle = Oracle::default();
        let mut held: Vec<(Snapshot<Zones>, Oracle)> = Vec::new();
        let (mut net, mut steps) = (BTreeMap::new(), BTreeMap::new());
        super::hush_expected_panics();
        for (version, (inputs, hold, maintain)) in batches.iter().enumerate() {
            let applied = writer.apply(batch(inputs, &mut oracle, version as u64));
            fold_net(&mut net, &applied);
            fold_effective(&mut steps, &applied);
            let now = indexer.snapshot();
            prop_assert_eq!(now.versions()[0].1.clone(), ResourceVersion::from(version as u64));
            check(&now, &oracle);
            if *hold {
                held.push((now, oracle.clone()));
            }
            if *maintain {
                writer.maintain();
            }
            if *maintain && let Some((older, then)) = held.first() {
                check_diff(&indexer.snapshot(), older, &oracle, then);
            }
            if held.len() > 5 {
                held.remove(version % 5);
            }
        }
        for (snapshot, then) in &held {
            check(snapshot, then);
        }
        for folded in [&net, &steps] {
            prop_assert_eq!(folded.keys().collect::<Vec<_>>(), oracle.held.keys().collect::<Vec<_>>());
        }
    }
}
