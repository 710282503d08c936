//! A queue with an indexer behind it, and a notation for objects and calls.
use crate::delta::{DeltaQueue, ListSnapshot, Producer, QueueConfig, SourceId};
use crate::indexer::{Applied, IndexWriter, Indexer};
use crate::object::{Incoming, Meta, ResourceVersion};

pub(super) type Text = String;

/// A queue, its consumer, and the calls that a handler fed with net changes would get.
pub(super) struct Pipe {
    pub(super) queue: DeltaQueue<Text>,
    pub(super) producer: Producer<Text>,
    pub(super) indexer: Indexer<Text>,
    pub(super) writer: IndexWriter<Text>,
}

pub(super) fn object(text: &str) -> Incoming<Text> {
    let (name, version) = text.split_once('@').unwrap();
    let (name, uid) = name.split_once('#').unwrap_or((name, "u"));
    Incoming::new(
        Meta::new("ns", name, uid, version).unwrap(),
        text.to_owned(),
    )
}

pub(super) fn list(version: u64, items: &[&str]) -> ListSnapshot<Text> {
    ListSnapshot {
        resource_version: ResourceVersion::from(version),
        items: items.iter().map(|text| Ok(object(text))).collect(),
        reset: false,
    }
}

pub(super) fn calls(applied: &Applied<Text>) -> Vec<String> {
    let mut calls = Vec::new();
    for change in &applied.changes {
        let star = if change.initial { "*" } else { "" };
        match (&change.deleted, &change.old, &change.new) {
            (None, Some(old), Some(new)) => calls.push(format!("UPD({} -> {})", **old, **new)),
            (deleted, _, new) => {
                if let Some(deleted) = deleted {
                    let last = deleted.last.as_ref().map_or("", |last| last.as_str());
                    let mark = if deleted.final_state_unknown { "?" } else { "" };
                    calls.push(format!("DEL{mark}({last})"));
                }
                calls.extend(new.as_ref().map(|new| format!("ADD{star}({})", **new)));
            }
        }
    }
    calls
}

impl Pipe {
    pub(super) fn new(config: QueueConfig<Text>) -> Self {
        let queue = DeltaQueue::new(config);
        let (indexer, writer) = Indexer::builder().build();
        Self {
            producer: queue.producer(SourceId(0)),
            queue,
            indexer,
            writer,
        }
    }

    /// A pipe whose store holds these already.
    pub(super) fn holding(items: &[&str]) -> Self {
        let mut pipe = Self::new(QueueConfig::default());
        pipe.producer.replace(list(1, items)).unwrap();
        pipe.run();
        pipe
    }

    pub(super) fn run(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(batch) = self.queue.try_drain() {
            all.extend(calls(&self.writer.apply(batch)));
            self.queue.acknowledge();
        }
        all
    }

    pub(super) fn store(&self) -> Vec<String> {
        let mut objects: Vec<_> = self.indexer.load().iter().map(|o| (**o).clone()).collect();
        objects.sort();
        objects
    }
}
