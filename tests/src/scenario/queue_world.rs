//! Scenarios of the delta queue and the indexer behind it, without a transport.
use super::check::{difference, fits, patterns};
use super::keys::unknown;
use super::notation::{Call, Thing, Thought, things};
use super::world::{
    deletion, errors, expect_index, number, objects, same, same_flag, thought, zones,
};
use super::yaml::{Located, Node, Value};
use informant::delta::{
    Compaction, DeltaQueue, ListSnapshot, Producer, QueueConfig, ResyncTargets, SourceId,
};
use informant::indexer::{Applied, Effective, IndexWriter, Indexer};
use informant::source::BadObject;
use informant::{ResourceVersion, Versioning};
use std::collections::BTreeMap;

pub(super) struct QueueWorld {
    queue: DeltaQueue<Thing>,
    producers: BTreeMap<u32, Producer<Thing>>,
    source: u32,
    indexer: Indexer<Thing>,
    writer: IndexWriter<Thing>,
    lossless: bool,
    calls: Vec<Call>,
    calls_seen: usize,
    errors: Vec<String>,
    errors_seen: usize,
    resyncs: u64,
    pushed: bool,
}

const STEPS: [&str; 15] = [
    "holds",
    "added",
    "updated",
    "deleted",
    "deleted_unknown",
    "replace",
    "reset",
    "resync",
    "bookmark",
    "bad",
    "source",
    "run",
    "close",
    "note",
    "expect",
];

const EXPECTATIONS: [&str; 13] = [
    "calls",
    "store",
    "index",
    "pending",
    "version",
    "versions",
    "synced",
    "quarantine",
    "resyncs",
    "errors",
    "epoch",
    "accepted",
    "closed",
];

impl QueueWorld {
    pub(super) fn read(root: &[(Node, Node)], settings: &Node) -> Result<Self, Located> {
        let mut versioning = Versioning::Decimal;
        for (key, value) in root {
            if key.text()? == "versions" && value.text()? == "opaque" {
                versioning = Versioning::Opaque;
            }
        }
        let (mut lossless, mut bound) = (false, None);
        if !matches!(settings.value, Value::Null) {
            for (key, value) in settings.map()? {
                match key.text()? {
                    "lossless" => lossless = value.boolean()?,
                    "bound" => bound = Some(value.number()?),
                    other => {
                        return Err((
                            key.line,
                            unknown("setting of the queue", other, &["lossless", "bound"]),
                        ));
                    }
                }
            }
        }
        let queue = DeltaQueue::new(QueueConfig {
            versioning,
            compaction: if lossless {
                Compaction::KeepAll
            } else {
                Compaction::FirstAndLast
            },
            bound,
            ..QueueConfig::default()
        });
        let (indexer, mut writer) = Indexer::builder()
            .versioning(versioning)
            .declare(zones("zone"))
            .build();
        writer.set_effective(lossless);
        let producers = BTreeMap::from([(0, queue.producer(SourceId(0)))]);
        Ok(Self {
            queue,
            producers,
            source: 0,
            indexer,
            writer,
            lossless,
            calls: Vec::new(),
            calls_seen: 0,
            errors: Vec::new(),
            errors_seen: 0,
            resyncs: 0,
            pushed: true,
        })
    }

    fn each(
        &mut self,
        node: &Node,
        push: impl Fn(&Producer<Thing>, Thought) -> bool,
    ) -> Result<(), Located> {
        for (line, text) in node.texts()? {
            for object in things(&text).map_err(|error| (line, error))? {
                self.pushed = push(&self.producers[&self.source], object);
            }
        }
        Ok(())
    }

    fn replace(&mut self, node: &Node, reset: bool) -> Result<(), Located> {
        let text = node.text()?;
        let (version, listed) = text
            .strip_prefix("rv=")
            .and_then(|list| list.split_once(' '))
            .ok_or((
                node.line,
                format!("{text:?} is no list; write rv=20 [a@5, b@6]"),
            ))?;
        let items = things(listed).map_err(|error| (node.line, error))?;
        let list = ListSnapshot {
            resource_version: ResourceVersion::new(version.trim_matches('"')),
            items: items
                .iter()
                .map(|item| {
                    if item.bad {
                        Err(bad(item))
                    } else {
                        Ok(item.incoming())
                    }
                })
                .collect(),
            reset,
        };
        self.pushed = self.producers[&self.source].replace(list).is_ok();
        Ok(())
    }

    pub(super) fn step(&mut self, verb: &Node, argument: &Node) -> Result<(), Located> {
        match verb.text()? {
            // What the store holds before anything happens.
            "holds" => {
                self.replace(argument, false)?;
                self.run();
                self.calls.clear();
            }
            "added" => self.each(argument, |queue, object| {
                queue.try_added(object.incoming()).is_ok()
            })?,
            "updated" => self.each(argument, |queue, object| {
                queue.try_updated(object.incoming()).is_ok()
            })?,
            "deleted" => self.each(argument, |queue, object| {
                queue.try_deleted(object.incoming()).is_ok()
            })?,
            "deleted_unknown" => self.each(argument, |queue, object| {
                queue.bad(bad(&object), true).is_ok()
            })?,
            "bad" => self.each(argument, |queue, object| {
                queue.bad(bad(&object), false).is_ok()
            })?,
            "replace" => self.replace(argument, false)?,
            "reset" => self.replace(argument, true)?,
            "resync" => {
                self.pushed = self.producers[&self.source]
                    .resync(ResyncTargets::All)
                    .is_ok();
            }
            "bookmark" => {
                let version = ResourceVersion::new(argument.text()?);
                self.pushed = self.producers[&self.source].bookmark(version).is_ok();
            }
            "source" => {
                self.source = argument.number()?;
                let queue = &self.queue;
                self.producers
                    .entry(self.source)
                    .or_insert_with_key(|id| queue.producer(SourceId(*id)));
            }
            "run" => self.run(),
            "close" => self.queue.close(),
            "note" => (),
            other => return Err((verb.line, unknown("step", other, &STEPS))),
        }
        Ok(())
    }

    /// Drain everything, apply it, and note what handlers would be told.
    fn run(&mut self) {
        while let Some(batch) = self.queue.try_drain() {
            let applied = self.writer.apply(batch);
            self.queue.acknowledge();
            self.resyncs += applied.resyncs.len() as u64;
            self.errors
                .extend(applied.quarantined.iter().map(|bad| format!("{bad:?}")));
            self.calls
                .extend(applied.resets.iter().map(|_| Call::Reset));
            if self.lossless {
                self.calls
                    .extend(applied.effective.iter().flatten().map(effective));
            } else {
                net(&applied, &mut self.calls);
            }
        }
    }

    pub(super) fn expect(&mut self, key: &Node, node: &Node) -> Result<Option<String>, Located> {
        let view = self.indexer.snapshot();
        Ok(match key.text()? {
            "calls" => {
                let new = &self.calls[self.calls_seen.min(self.calls.len())..];
                let fit = fits(&patterns(node, &Call::parse)?, new, &Call::describes);
                let text = (!fit).then(|| difference("calls", node, new));
                self.calls_seen = self.calls.len();
                text
            }
            "store" => objects("objects", node, view.iter().map(thought).collect())?,
            "index" => expect_index(&view, node)?,
            "pending" => number(node, self.queue.len() as u64)?,
            "version" => same(node, &view.resource_version().to_string())?,
            "versions" => {
                let versions: Vec<_> = view
                    .versions()
                    .iter()
                    .map(|(source, version)| format!("{}={version}", source.0))
                    .collect();
                same(node, &versions.join(" "))?
            }
            "synced" => same_flag(node, self.queue.has_synced())?,
            "accepted" => same_flag(node, self.pushed)?,
            "closed" => same_flag(node, self.queue.is_closed())?,
            "resyncs" => number(node, self.resyncs)?,
            "epoch" => number(node, view.epoch())?,
            "errors" => {
                let new = &self.errors[self.errors_seen..];
                let text = errors(node, new)?;
                self.errors_seen = self.errors.len();
                text
            }
            "quarantine" => {
                let actual = view.quarantine().filter_map(|bad| {
                    let mut thought = Thought::parse(bad.key.as_ref()?.as_str()).ok()?;
                    thought.version = Some(bad.failed_version.to_string());
                    Some(thought)
                });
                objects("quarantined objects", node, actual.collect())?
            }
            other => return Err((key.line, unknown("expectation", other, &EXPECTATIONS))),
        })
    }
}

fn bad(thought: &Thought) -> BadObject {
    let meta = thought.incoming().meta;
    BadObject {
        key: Some(meta.key),
        uid: meta.uid,
        resource_version: meta.resource_version,
        reason: "it cannot be decoded".to_owned(),
    }
}

fn net(applied: &Applied<Thing>, calls: &mut Vec<Call>) {
    for change in &applied.changes {
        match (&change.deleted, &change.old, &change.new) {
            (None, Some(old), Some(new)) => calls.push(Call::Update {
                old: thought(old),
                new: thought(new),
            }),
            (deleted, _, new) => {
                calls.extend(deleted.as_ref().map(deletion));
                calls.extend(new.as_ref().map(|new| Call::Add {
                    object: thought(new),
                    initial: change.initial,
                }));
            }
        }
    }
}

fn effective(effect: &Effective<Thing>) -> Call {
    match effect {
        Effective::Added { new, initial } => Call::Add {
            object: thought(new),
            initial: *initial,
        },
        Effective::Updated { old, new } => Call::Update {
            old: thought(old),
            new: thought(new),
        },
        Effective::Deleted { deleted } => deletion(deleted),
    }
}
