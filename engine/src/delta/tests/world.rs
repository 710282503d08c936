//! A small collection with a history, as an API server has one, and what an informer may be told of
//! it: in order, again, broken, or as a list.
use crate::object::{Incoming, Meta, ResourceVersion};
use crate::source::BadObject;
use std::collections::BTreeMap;

/// One state of one key, or its end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) key: u8,
    pub(super) life: u32,
    pub(super) version: u64,
    /// Different in every write, also in those of an epoch that was abandoned.
    pub(super) content: u32,
    pub(super) is_delete: bool,
}

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) history: Vec<Event>,
    live: BTreeMap<u8, Event>,
    /// Events that were told already.
    pub(super) told: usize,
    version: u64,
    writes: u32,
    lives: u32,
}

impl Event {
    /// Contents that end in 7 are those that the transform refuses.
    pub(super) fn is_refused(&self) -> bool {
        self.content % 11 == 7
    }

    pub(super) fn meta(&self) -> Meta {
        let name = char::from(b'a' + self.key).to_string();
        let (life, version) = (format!("u{}", self.life), self.version.to_string());
        Meta::new("ns", &name, &life, &version).unwrap()
    }

    pub(super) fn object(&self) -> Incoming<u32> {
        Incoming::new(self.meta(), self.content)
    }

    pub(super) fn bad(&self) -> BadObject {
        let meta = self.meta();
        BadObject {
            key: Some(meta.key),
            uid: meta.uid,
            resource_version: meta.resource_version,
            reason: "made so".to_owned(),
        }
    }
}

impl World {
    /// Write to a key: create or change it, or end it where it is there.
    pub(super) fn write(&mut self, key: u8, end: bool) {
        self.version += 1;
        self.writes += 1;
        let living = self.live.get(&key).cloned();
        if living.is_none() {
            self.lives += 1;
        }
        let event = Event {
            key,
            life: living.as_ref().map_or(self.lives, |living| living.life),
            version: self.version,
            content: self.writes,
            is_delete: end && living.is_some(),
        };
        if event.is_delete {
            self.live.remove(&key);
        } else {
            self.live.insert(key, event.clone());
        }
        self.history.push(event);
    }

    /// The next event that was not told.
    pub(super) fn next(&mut self) -> Option<Event> {
        let event = self.history.get(self.told).cloned()?;
        self.told += 1;
        Some(event)
    }

    /// One of the latest events that were told before.
    pub(super) fn again(&self, back: usize) -> Option<Event> {
        self.told
            .checked_sub(1 + back)
            .map(|at| self.history[at].clone())
    }

    /// The state some events before the newest, and its version.
    pub(super) fn list(&mut self, back: usize) -> (u64, Vec<Event>) {
        let upto = self.history.len().saturating_sub(back);
        let mut state = BTreeMap::new();
        for event in &self.history[..upto] {
            if event.is_delete {
                state.remove(&event.key);
            } else {
                state.insert(event.key, event.clone());
            }
        }
        self.told = self.told.max(upto);
        let version = self.history[..upto].last().map_or(0, |event| event.version);
        (version, state.into_values().collect())
    }

    pub(super) fn version(&self) -> ResourceVersion {
        ResourceVersion::from(self.version)
    }

    /// Go back to an earlier state, as after a restore from a backup: the versions that are
    /// forgotten will be given out again.
    pub(super) fn restore(&mut self, back: usize) {
        let upto = self.history.len().saturating_sub(back);
        self.history.truncate(upto);
        self.version = self.history.last().map_or(0, |event| event.version);
        let (_, state) = self.list(0);
        self.live = state.into_iter().map(|event| (event.key, event)).collect();
        self.told = upto;
    }
}
