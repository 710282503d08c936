//! The indexer as its users see it: against an oracle, and case by case.
mod algebra;
mod cases;
mod model;
mod oracle;

use super::{IndexWriter, Indexer};
use crate::delta::{Batch, Deleted, Delta, KeyDeltas, Replace, SourceId, Step};
use crate::object::{Cached, Incoming, Meta, ResourceVersion};
use smallvec::smallvec;

/// A test object: the zones it is in; zone 9 makes the index function fail, zone 8 makes it panic.
pub(super) type Zones = Vec<u8>;

pub(super) fn object(name: &str, uid: &str, version: u64, zones: &[u8]) -> Cached<Zones> {
    let meta = Meta::new("ns", name, uid, &version.to_string()).unwrap();
    Cached::from(Incoming::new(meta, zones.to_vec()))
}

pub(super) fn zone_indexer() -> (Indexer<Zones>, IndexWriter<Zones>) {
    use super::{Emit, IndexDeclaration};
    Indexer::builder()
        .declare(IndexDeclaration::with(
            "zone",
            |object: &Cached<Zones>, emit: &mut Emit<'_, u8>| {
                for &zone in object.iter() {
                    assert_ne!(zone, 8, "zone 8 panics");
                    if zone == 9 {
                        return Err("zone 9 fails".to_owned());
                    }
                    emit.value(zone);
                }
                Ok(())
            },
        ))
        .index("first", |object: &Cached<Zones>| {
            object.first().map(|zone| format!("z{zone}"))
        })
        .build()
}

pub(super) fn changes(version: u64, deltas: Vec<Delta<Zones>>) -> Batch<Zones> {
    Batch {
        inputs: deltas.len(),
        steps: vec![Step::Changes(
            deltas
                .into_iter()
                .map(|delta| KeyDeltas {
                    source: SourceId(0),
                    deltas: smallvec![delta],
                })
                .collect(),
        )],
        versions: smallvec![(SourceId(0), ResourceVersion::from(version))],
    }
}

pub(super) fn relist(version: u64, items: Vec<Cached<Zones>>) -> Batch<Zones> {
    Batch {
        steps: vec![Step::Replace(Replace {
            source: SourceId(0),
            resource_version: ResourceVersion::from(version),
            items,
            bad: vec![],
            initial: false,
            reset: false,
            superseded_deletes: vec![],
        })],
        versions: smallvec![(SourceId(0), ResourceVersion::from(version))],
        inputs: 1,
    }
}

pub(super) fn deletion(object: &Cached<Zones>, version: u64) -> Delta<Zones> {
    Delta::deleted(Deleted {
        resource_version: ResourceVersion::from(version),
        ..Deleted::known(object.clone())
    })
}

/// Index functions of these tests panic on purpose, thousands of times: keep that off the screen.
pub(super) fn hush_expected_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let expected = info
                .payload()
                .downcast_ref::<String>()
                .is_some_and(|text| text.contains("zone 8 panics"));
            if !expected {
                loud(info);
            }
        }));
    });
}
