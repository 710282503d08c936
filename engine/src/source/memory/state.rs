//! What the embedded source holds.
use super::{Stamp, WriteError};
use crate::object::{Incoming, Meta, ObjectKey, ResourceVersion, Uid};
use crate::source::{ListOptions, SourceError, WatchOptions};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

/// How open watches end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// The stream ends, as it does when the server's timeout is over.
    Clean,
    /// The transport breaks.
    Broken,
}

/// One call that the source got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A list.
    List(ListOptions),
    /// A watch.
    Watch(WatchOptions),
}

/// One remembered change.
#[derive(Clone)]
pub(super) struct Event<T> {
    pub(super) version: u64,
    pub(super) change: Change,
    pub(super) item: Arc<Incoming<T>>,
    /// No watch gets a frame of it.
    pub(super) dropped: bool,
}

/// A list that is being paged.
pub(super) struct Paging<T> {
    pub(super) version: u64,
    pub(super) rest: Vec<Arc<Incoming<T>>>,
}

pub(super) struct State<T> {
    pub(super) objects: BTreeMap<ObjectKey, Arc<Incoming<T>>>,
    pub(super) version: u64,
    uids: u64,
    /// Ascending by version.
    pub(super) events: VecDeque<Event<T>>,
    history: usize,
    /// Changes up to here are forgotten.
    pub(super) compacted: u64,
    pub(super) paging: HashMap<String, Paging<T>>,
    tokens: u64,
    /// Counts disconnects: a watch of an earlier generation is over.
    pub(super) generation: u64,
    pub(super) disconnect: Disconnect,
    pub(super) bookmark_at: u64,
    pub(super) drop_until: u64,
    pub(super) list_faults: VecDeque<SourceError>,
    pub(super) watch_faults: VecDeque<SourceError>,
    pub(super) requests: Vec<Request>,
}

impl<T: Clone> State<T> {
    pub(super) fn new(history: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            version: 1,
            uids: 0,
            events: VecDeque::new(),
            history,
            compacted: 0,
            paging: HashMap::new(),
            tokens: 0,
            generation: 0,
            disconnect: Disconnect::Clean,
            bookmark_at: 0,
            drop_until: 0,
            list_faults: VecDeque::new(),
            watch_faults: VecDeque::new(),
            requests: Vec::new(),
        }
    }

    pub(super) fn next_uid(&mut self) -> Uid {
        self.uids += 1;
        super::uid(self.uids)
    }

    /// The uid of the object, if it is there and at the expected version.
    pub(super) fn check(
        &self,
        key: &ObjectKey,
        expected: Option<&ResourceVersion>,
    ) -> Result<Uid, WriteError> {
        let Some(item) = self.objects.get(key) else {
            return Err(WriteError::NotFound(key.clone()));
        };
        match expected {
            Some(expected) if *expected != item.meta.resource_version => {
                Err(WriteError::Conflict {
                    key: key.clone(),
                    expected: expected.clone(),
                    found: item.meta.resource_version.clone(),
                })
            }
            _ => Ok(item.meta.uid.clone()),
        }
    }

    pub(super) fn put(
        &mut self,
        key: ObjectKey,
        uid: Uid,
        mut object: T,
        change: Change,
        stamp: Option<&Stamp<T>>,
    ) -> Meta {
        self.version += 1;
        let meta = Meta {
            key: key.clone(),
            uid,
            resource_version: self.version.into(),
        };
        if let Some(stamp) = stamp {
            stamp(&mut object, &meta);
        }
        let item = Arc::new(Incoming::new(meta.clone(), object));
        self.objects.insert(key, item.clone());
        self.remember(change, item);
        meta
    }

    /// Take out an object that is there.
    pub(super) fn remove(&mut self, key: &ObjectKey, stamp: Option<&Stamp<T>>) -> Meta {
        let item = self
            .objects
            .remove(key)
            .expect("the caller has checked that the object is there");
        self.version += 1;
        let mut last = (*item).clone();
        last.meta.resource_version = self.version.into();
        if let Some(stamp) = stamp {
            stamp(&mut last.object, &last.meta);
        }
        let meta = last.meta.clone();
        self.remember(Change::Deleted, Arc::new(last));
        meta
    }

    fn remember(&mut self, change: Change, item: Arc<Incoming<T>>) {
        self.events.push_back(Event {
            version: self.version,
            change,
            item,
            dropped: self.version <= self.drop_until,
        });
        if self.events.len() > self.history
            && let Some(oldest) = self.events.pop_front()
        {
            self.compacted = oldest.version;
        }
    }

    pub(super) fn compact(&mut self, version: u64) {
        let version = version.min(self.version);
        self.compacted = self.compacted.max(version);
        let forgotten = self
            .events
            .partition_point(|event| event.version <= version);
        self.events.drain(..forgotten);
        self.paging.retain(|_, paging| paging.version > version);
    }

    pub(super) fn disconnect(&mut self, how: Disconnect) {
        self.generation += 1;
        self.disconnect = how;
    }

    /// Keep the rest of a list for its next page.
    pub(super) fn keep_page(&mut self, paging: Paging<T>) -> String {
        self.tokens += 1;
        let token = format!("page-{}", self.tokens);
        self.paging.insert(token.clone(), paging);
        token
    }
}
