//! The oracle: every input applied by itself, at once, by the rules as they are written.
use super::world::Event;
use crate::delta::SourceId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    pub(super) life: u32,
    pub(super) version: u64,
    pub(super) content: u32,
    pub(super) source: SourceId,
}

#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Whether versions compare.
    pub(super) ordered: bool,
    pub(super) stored: BTreeMap<u8, Stored>,
    /// The version that failed, by key.
    pub(super) bad: BTreeMap<u8, (u64, SourceId)>,
    /// Lives that ended since the last look, in order: key, life, final state known.
    pub(super) ends: Vec<(u8, u32, bool)>,
    pub(super) reached: BTreeMap<SourceId, u64>,
    /// Sources that were reset since the last look.
    pub(super) resets: BTreeSet<SourceId>,
}

impl Plain {
    fn is_older(&self, version: u64, than: u64) -> bool {
        self.ordered && version < than
    }

    pub(super) fn event(&mut self, source: SourceId, event: &Event, known: bool) {
        self.reach(source, event.version);
        let stored = self.stored.get(&event.key).cloned();
        if event.is_delete {
            self.delete(event, stored.as_ref(), known);
        } else if event.is_refused() {
            self.quarantine(source, event, true);
        } else {
            self.upsert(source, event, true);
        }
    }

    fn delete(&mut self, event: &Event, stored: Option<&Stored>, known: bool) {
        if let Some(stored) = stored {
            let is_same = stored.life == event.life;
            let is_newer = self.ordered && event.version > stored.version;
            if self.is_older(event.version, stored.version) || !(is_same || is_newer) {
                return;
            }
            let known = known && is_same && !event.is_refused();
            self.ends.push((event.key, stored.life, known));
            self.stored.remove(&event.key);
        }
        self.is_good(event);
    }

    fn upsert(&mut self, source: SourceId, event: &Event, guard: bool) {
        let new = Stored {
            life: event.life,
            version: event.version,
            content: event.content,
            source,
        };
        if let Some(stored) = self.stored.get(&event.key) {
            if guard && self.is_older(event.version, stored.version) {
                return;
            }
            if stored.life != event.life {
                self.ends.push((event.key, stored.life, false));
            } else if guard && stored.version == event.version {
                return self.is_good(event);
            }
        }
        self.stored.insert(event.key, new);
        self.is_good(event);
    }

    fn is_good(&mut self, event: &Event) {
        if let Some((failed, _)) = self.bad.get(&event.key)
            && !self.is_older(event.version, *failed)
        {
            self.bad.remove(&event.key);
        }
    }

    pub(super) fn broken(&mut self, source: SourceId, event: &Event) {
        self.reach(source, event.version);
        self.quarantine(source, event, true);
    }

    fn quarantine(&mut self, source: SourceId, event: &Event, guard: bool) {
        let stored = self.stored.get(&event.key).map(|stored| stored.version);
        let failed = self.bad.get(&event.key).map(|(failed, _)| *failed);
        for newer in [stored, failed].into_iter().flatten() {
            if guard && self.is_older(event.version, newer) {
                return;
            }
        }
        self.bad.insert(event.key, (event.version, source));
    }

    pub(super) fn list(&mut self, source: SourceId, version: u64, items: &[Event], reset: bool) {
        if reset {
            self.resets.insert(source);
            self.reached.insert(source, version);
        }
        self.reach(source, version);
        self.bad.retain(|_, (_, of)| *of != source);
        let (refused, good): (Vec<_>, Vec<_>) = items.iter().partition(|item| item.is_refused());
        for item in good {
            self.upsert(source, item, !reset);
        }
        for item in refused {
            self.quarantine(source, item, !reset);
        }
        let is_gone = |key: &u8, stored: &Stored| {
            stored.source == source && items.iter().all(|item| item.key != *key)
        };
        let gone = self
            .stored
            .iter()
            .filter(|(key, stored)| is_gone(key, stored));
        self.ends
            .extend(gone.map(|(key, stored)| (*key, stored.life, false)));
        self.stored.retain(|key, stored| !is_gone(key, stored));
    }

    /// Never back, except in a reset.
    pub(super) fn reach(&mut self, source: SourceId, version: u64) {
        let reached = self.reached.entry(source).or_insert(version);
        if !self.ordered || version > *reached {
            *reached = version;
        }
    }
}
