//! Random scripts through queue and indexer, against the oracle after every drain.
use super::plain::Plain;
use super::world::{Event, World};
use crate::delta::{
    Compaction, DeltaQueue, ListSnapshot, Producer, PushError, QueueConfig, QueueMode,
    ResyncTargets, SourceId, Step,
};
use crate::indexer::{IndexWriter, Indexer};
use crate::object::{ResourceVersion, Versioning};
use crate::source::WatchEvent;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Keys a source owns; the sources are disjoint.
const KEYS: u8 = 3;

#[derive(Clone, Copy, Debug)]
enum Op {
    Write {
        key: u8,
        end: bool,
    },
    Tell,
    TellMany(usize),
    TellAgain(usize),
    TellBroken,
    /// A deletion of which only the metadata can be read.
    TellMeta,
    Bookmark,
    List(usize),
    Restore(usize),
    Resync,
    Keep(Compaction),
    Drain,
}

fn ops() -> impl Strategy<Value = Vec<(u32, Op)>> {
    let op = prop_oneof![
        8 => (0..KEYS, prop::bool::weighted(0.4)).prop_map(|(key, end)| Op::Write { key, end }),
        8 => Just(Op::Tell),
        2 => (1..6_usize).prop_map(Op::TellMany),
        2 => (0..6_usize).prop_map(Op::TellAgain),
        1 => Just(Op::TellBroken),
        1 => Just(Op::TellMeta),
        1 => Just(Op::Bookmark),
        3 => (0..4_usize).prop_map(Op::List),
        1 => (0..4_usize).prop_map(Op::Restore),
        1 => Just(Op::Resync),
        1 => prop_oneof![Just(Compaction::KeepAll), Just(Compaction::FirstAndLast)]
            .prop_map(Op::Keep),
        3 => Just(Op::Drain),
    ];
    prop::collection::vec((0..2_u32, op), 0..60)
}

struct Source {
    id: SourceId,
    world: World,
    producer: Producer<u32>,
    /// A handle from before the last reset.
    void: Option<Producer<u32>>,
    is_listed: bool,
}

struct Run {
    queue: DeltaQueue<u32>,
    indexer: Indexer<u32>,
    writer: IndexWriter<u32>,
    plain: Plain,
    sources: Vec<Source>,
    resyncs: usize,
    /// A list since the last drain was older than what had been told before it.
    went_back: bool,
    /// Which of the pending inputs compacted what: then not every step can be asked for.
    may_compact: bool,
    mode: QueueMode,
}

impl Run {
    fn new(mode: QueueMode, versioning: Versioning, compaction: Compaction) -> Self {
        let queue = DeltaQueue::new(QueueConfig {
            mode,
            versioning,
            compaction,
            transform: Some(Arc::new(|content: &mut u32| match *content % 11 {
                7 if content.is_multiple_of(2) => panic!("refused loudly"),
                7 => Err("refused".to_owned()),
                _ => Ok(()),
            })),
            ..QueueConfig::default()
        });
        let (indexer, writer) = Indexer::builder().versioning(versioning).build();
        let sources = (0..2).map(SourceId).map(|id| Source {
            id,
            world: World::default(),
            producer: queue.producer(id),
            void: None,
            is_listed: false,
        });
        Self {
            sources: sources.collect(),
            queue,
            indexer,
            writer,
            plain: Plain {
                ordered: versioning == Versioning::Decimal,
                ..Plain::default()
            },
            resyncs: 0,
            went_back: false,
            may_compact: mode == QueueMode::Coalescing && compaction == Compaction::FirstAndLast,
            mode,
        }
    }

    fn tell(&mut self, at: usize, event: &Event) {
        let source = &mut self.sources[at];
        let told = if event.is_delete {
            source.producer.try_deleted(event.object())
        } else {
            source.producer.try_updated(event.object())
        };
        match told {
            Err(PushError::Transform(bad)) => assert!(event.is_refused(), "{bad}"),
            told => told.unwrap(),
        }
        let id = source.id;
        self.plain.event(id, event, true);
    }

    fn step(&mut self, at: usize, op: Op) {
        let source = &mut self.sources[at];
        let id = source.id;
        match op {
            Op::Write { key, end } => source
                .world
                .write(key + KEYS * u8::try_from(at).unwrap(), end),
            Op::Tell => {
                if let Some(event) = source.world.next() {
                    self.tell(at, &event);
                }
            }
            Op::TellMany(count) => {
                let events: Vec<_> = (0..count).filter_map(|_| source.world.next()).collect();
                let frames = events.iter().map(|event| {
                    if event.is_delete {
                        WatchEvent::Deleted(event.object())
                    } else {
                        WatchEvent::Added(event.object())
                    }
                });
                let refused = source.producer.push_many_blocking(frames).unwrap();
                let bad = events.iter().filter(|event| event.is_refused()).count();
                assert_eq!(refused.len(), bad);
                for event in &events {
                    self.plain.event(id, event, true);
                }
            }
            Op::TellAgain(back) => {
                // Without an order of versions nobody can tell that something is said again.
                let ordered = self.plain.ordered;
                if let Some(event) = source.world.again(back).filter(|_| ordered) {
                    self.tell(at, &event);
                }
            }
            Op::TellBroken => {
                if let Some(event) = source.world.next() {
                    source.producer.bad(event.bad(), event.is_delete).unwrap();
                    if event.is_delete {
                        self.plain.event(id, &event, false);
                    } else {
                        self.plain.broken(id, &event);
                    }
                }
            }
            Op::TellMeta => {
                if let Some(event) = source.world.next() {
                    if !event.is_delete {
                        return self.tell(at, &event);
                    }
                    source.producer.try_deleted_meta(event.meta()).unwrap();
                    self.plain.event(id, &event, false);
                }
            }
            Op::Bookmark => {
                if source.world.told == source.world.history.len() {
                    source.producer.bookmark(source.world.version()).unwrap();
                    let version = source.world.version().as_number().unwrap();
                    self.plain.reach(id, version);
                }
            }
            Op::List(back) => {
                // Of versions that do not compare a source must not go back.
                let back = if self.plain.ordered { back } else { 0 };
                self.list(at, back, false);
            }
            Op::Restore(back) => {
                source.world.restore(back);
                let (_, items) = source.world.list(0);
                if items.iter().any(Event::is_refused) {
                    // What was queued in the old epoch is void, so it is no last good state either.
                    self.drain();
                }
                let source = &mut self.sources[at];
                source.void = Some(source.producer.clone());
                self.list(at, 0, true);
            }
            Op::Resync => {
                source.producer.resync(ResyncTargets::All).unwrap();
                self.resyncs += 1;
            }
            Op::Keep(compaction) => {
                self.queue.set_compaction(compaction);
                self.may_compact |= self.mode == QueueMode::Coalescing;
            }
            Op::Drain => self.drain(),
        }
        self.check_void(at);
    }

    fn list(&mut self, at: usize, back: usize, reset: bool) {
        let source = &mut self.sources[at];
        self.went_back |= source.world.told + back > source.world.history.len();
        let (version, items) = source.world.list(back);
        let refused = source
            .producer
            .replace(ListSnapshot {
                resource_version: ResourceVersion::from(version),
                items: items.iter().map(|item| Ok(item.object())).collect(),
                reset,
            })
            .unwrap();
        let bad = items.iter().filter(|item| item.is_refused()).count();
        assert_eq!(refused.len(), bad, "the rest of the list is taken (I-DF10)");
        source.is_listed = true;
        self.plain.list(source.id, version, &items, reset);
    }

    /// What an abandoned epoch says is void.
    fn check_void(&self, at: usize) {
        let event = Event {
            key: 0,
            life: 99,
            version: 99,
            content: 1,
            is_delete: false,
        };
        if let Some(void) = &self.sources[at].void {
            assert_eq!(
                void.try_added(event.object()),
                Err(PushError::AbandonedEpoch)
            );
        }
    }

    /// One batch: applied as a whole it ends where the inputs do, one by one.
    fn drain(&mut self) {
        let before: BTreeMap<_, _> = self
            .indexer
            .snapshot()
            .iter()
            .map(|object| (object.key().clone(), object.uid().clone()))
            .collect();
        let mut applied = None;
        if let Some(batch) = self.queue.try_drain() {
            self.check_shape(&batch.steps);
            applied = Some(self.writer.apply(batch));
            self.queue.acknowledge();
        }
        let all_listed = self.sources.iter().all(|source| source.is_listed);
        assert_eq!(self.queue.has_synced(), all_listed, "I-DF12");
        let view = self.indexer.snapshot();
        let stored: BTreeMap<_, _> = view
            .iter()
            .map(|object| {
                let version = object.resource_version().as_number().unwrap();
                let state = (object.uid().to_string(), version, **object);
                (object.key().name().as_bytes()[0] - b'a', state)
            })
            .collect();
        let expected: BTreeMap<_, _> = self
            .plain
            .stored
            .iter()
            .map(|(key, stored)| {
                let life = format!("u{}", stored.life);
                (*key, (life, stored.version, stored.content))
            })
            .collect();
        assert_eq!(stored, expected, "I-DF17");
        let versions: BTreeMap<_, _> = view
            .versions()
            .iter()
            .map(|(source, version)| (*source, version.as_number().unwrap()))
            .collect();
        assert_eq!(versions, self.plain.reached, "the watermark is exact");
        let quarantined: Vec<_> = view
            .quarantine()
            .filter_map(|bad| Some(bad.key.as_ref()?.name().as_bytes()[0] - b'a'))
            .collect();
        let bad: Vec<_> = self.plain.bad.keys().copied().collect();
        assert_eq!(quarantined, bad);
        let ends = std::mem::take(&mut self.plain.ends);
        let resets = std::mem::take(&mut self.plain.resets);
        let Some(applied) = applied else { return };
        let told: BTreeSet<_> = applied.resets.iter().copied().collect();
        assert_eq!(told, resets);
        assert_eq!(!applied.resyncs.is_empty(), self.resyncs > 0);
        self.resyncs = 0;
        if std::mem::take(&mut self.went_back) || !resets.is_empty() {
            // What an abandoned epoch said of ends is void, and a list that goes back may end what
            // the next one brings again.
            return;
        }
        for change in &applied.changes {
            let key = change.key();
            let name = key.name().as_bytes()[0] - b'a';
            let first = ends.iter().find(|(ended, ..)| *ended == name);
            let Some(old) = &change.old else {
                assert!(change.deleted.is_none());
                continue;
            };
            assert_eq!(before.get(key), Some(old.uid()));
            // What a handler must be able to tell: deleted, or deleted and re-created.
            let told = change.deleted.as_ref().map(|d| !d.final_state_unknown);
            assert_eq!(told.is_some(), first.is_some(), "the stored life of {key}");
            // I-DF4: a batch may know more than its inputs did one by one, never less.
            let known_one_by_one = first.is_some_and(|(_, _, known)| *known);
            assert!(told == Some(true) || !known_one_by_one, "how {key} ended");
        }
    }

    /// I-RF1, I-DF1, C050: every input stands for itself, or keys are unique and few deltas wait.
    fn check_shape(&self, steps: &[Step<u32>]) {
        for step in steps {
            let Step::Changes(groups) = step else {
                continue;
            };
            let mut keys = BTreeSet::new();
            for group in groups {
                let key = group.deltas[0].key();
                assert!(group.deltas.iter().all(|delta| delta.key() == key));
                match self.mode {
                    QueueMode::Ordered => assert_eq!(group.deltas.len(), 1),
                    QueueMode::Coalescing => assert!(keys.insert(key.clone()), "{key} twice"),
                }
            }
        }
    }
}

fn run(ops: &[(u32, Op)], mode: QueueMode, versioning: Versioning, compaction: Compaction) {
    let mut run = Run::new(mode, versioning, compaction);
    for (at, op) in ops {
        run.step(*at as usize, *op);
    }
    run.drain();
    assert!(run.queue.is_empty());
    assert_eq!(run.queue.metrics().depth, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_coalesced_batch_ends_where_its_inputs_do(ops in ops(), keep_all: bool) {
        let compaction = if keep_all { Compaction::KeepAll } else { Compaction::FirstAndLast };
        run(&ops, QueueMode::Coalescing, Versioning::Decimal, compaction);
    }

    #[test]
    fn an_ordered_batch_ends_where_its_inputs_do(ops in ops()) {
        run(&ops, QueueMode::Ordered, Versioning::Decimal, Compaction::KeepAll);
    }

    #[test]
    fn versions_that_do_not_compare_end_the_same(ops in ops(), ordered: bool) {
        let mode = if ordered { QueueMode::Ordered } else { QueueMode::Coalescing };
        run(&ops, mode, Versioning::Opaque, Compaction::FirstAndLast);
    }
}
