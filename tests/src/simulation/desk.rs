//! What all parts of a run share: the history, the oracle, what was counted, the first failure.
use super::oracle::Oracle;
use super::world::{History, Part, Thing};
use informant::indexer::Indexer;
use informant::source::memory::MemorySource;
use informant::source::{ListOptions, WatchOptions};
use informant::{ResourceVersion, SharedClock};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests that may come without any time passing between them.
const REQUESTS_AT_ONCE: u32 = 300;

/// Faults that the port of the next calls takes up.
#[derive(Default)]
pub(super) struct PortFaults {
    pub(super) stale_lists: u8,
    pub(super) late_marker: u8,
    /// Calls, milliseconds, and whether they pass after the source has looked.
    pub(super) slow: (u8, u64, bool),
    pub(super) hang: bool,
    pub(super) panic_in_call: bool,
    pub(super) panic_in_stream: bool,
}

/// How a call is to be answered.
pub(super) struct Answering {
    pub(super) stale: bool,
    pub(super) delay: Option<(u64, bool)>,
    pub(super) hangs: bool,
    pub(super) panics: bool,
}

pub(super) struct Book {
    pub(super) history: History,
    pub(super) oracle: Oracle,
    pub(super) faults: PortFaults,
    /// Calls and streams under way, by the generation in which they began.
    pub(super) under_way: Vec<usize>,
    /// The versions from which each source's reflector may go on: it was given them, with something
    /// that counts.
    offered: Vec<BTreeSet<u64>>,
    /// Ports of an informer that was stopped get no more calls.
    incarnation: u32,
    at_once: (std::time::Duration, u32),
    pub(super) requests: u64,
    pub(super) frames: u64,
    pub(super) calls: u64,
    pub(super) writes: u64,
    digest: u64,
    failure: Option<String>,
    log: Option<Vec<String>>,
}

/// Shared by the driver, the ports, the handlers and the workers, all on one thread.
#[derive(Clone)]
pub(super) struct Desk {
    book: Arc<Mutex<Book>>,
    pub(super) clock: SharedClock,
    pub(super) source: MemorySource<Thing>,
    pub(super) parts: Arc<[Part]>,
}

impl Desk {
    pub(super) fn new(
        clock: SharedClock,
        source: MemorySource<Thing>,
        parts: Vec<Part>,
        oracle: Oracle,
        logs: bool,
    ) -> Self {
        let first = super::world::number_of(&source.resource_version());
        Self {
            book: Arc::new(Mutex::new(Book {
                history: History::new(first),
                oracle,
                faults: PortFaults::default(),
                under_way: vec![0],
                offered: vec![BTreeSet::new(); parts.len()],
                incarnation: 0,
                at_once: (std::time::Duration::ZERO, 0),
                requests: 0,
                frames: 0,
                calls: 0,
                writes: 0,
                digest: 0xcbf2_9ce4_8422_2325,
                failure: None,
                log: logs.then(Vec::new),
            })),
            clock,
            source,
            parts: parts.into(),
        }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is wrong; the first time counts.
    pub(super) fn fail(&self, what: impl FnOnce() -> String) {
        let at = self.clock.now().since_origin();
        self.book().fail(|| format!("{} (at {at:?})", what()));
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.book().failure.clone()
    }

    /// Look at what is published, if that was not looked at yet.
    pub(super) fn observe(&self, cache: &Indexer<Thing>) {
        let view = cache.load();
        let book = &mut *self.book();
        if book.oracle.has_seen(view.sequence()) {
            return;
        }
        book.note(3, view.sequence(), view.len() as u64);
        if let Some(log) = &mut book.log {
            let versions: Vec<_> = view.versions().iter().map(|(_, v)| v.to_string()).collect();
            log.push(format!(
                "{:?} published {versions:?} epoch {}: {:?}, quarantine {:?}",
                self.clock.now().since_origin(),
                view.epoch(),
                {
                    let mut all: Vec<_> = view
                        .iter()
                        .map(|o| format!("{}@{}", o.key().name(), o.resource_version()))
                        .collect();
                    all.sort();
                    all
                },
                view.quarantine().map(|q| q.key.clone()).collect::<Vec<_>>(),
            ));
        }
        let checked = book.oracle.check(&view, &book.history, &self.parts);
        if let Err(what) = checked {
            let at = self.clock.now().since_origin();
            book.fail(|| format!("{what} (at {at:?})"));
        }
    }

    pub(super) fn log(&self, line: impl FnOnce() -> String) {
        let at = self.clock.now().since_origin();
        if let Some(log) = &mut self.book().log {
            log.push(format!("{at:?} {}", line()));
        }
    }

    pub(super) fn take_log(&self) -> Vec<String> {
        self.book().log.take().unwrap_or_default()
    }

    pub(super) fn note(&self, kind: u64, a: u64, b: u64) {
        self.book().note(kind, a, b);
    }

    /// Another informer begins.
    pub(super) fn next_incarnation(&self, cache: &Indexer<Thing>) -> u32 {
        let mut book = self.book();
        book.incarnation += 1;
        for offered in &mut book.offered {
            offered.clear();
        }
        let generation = book.history.generation();
        book.oracle.begin(generation, cache.load().sequence());
        book.incarnation
    }

    /// A list is asked for by the reflector (or by a consistency check).
    pub(super) fn list_begins(&self, port: Port<'_>, options: &ListOptions) -> Answering {
        self.log(|| format!("list of {}: {options:?}", port.source));
        let follows = options.continue_token.is_some();
        if follows && (!options.resource_version.is_empty() || options.version_match.is_some()) {
            self.fail(|| format!("a follow-up page with a version: {options:?}"));
        }
        if !follows && !options.metadata_only {
            self.check_version(port, &options.resource_version);
        }
        let mut book = self.book();
        let stale = !follows
            && !options.metadata_only
            && book.faults.stale_lists > 0
            && !options.resource_version.is_empty();
        if stale {
            book.faults.stale_lists -= 1;
        }
        book.answering(stale)
    }

    pub(super) fn watch_begins(&self, port: Port<'_>, options: &WatchOptions) -> Answering {
        self.log(|| format!("watch of {}: {options:?}", port.source));
        if !options.send_initial_events && options.resource_version.is_empty() {
            self.fail(|| "a watch without a version".to_owned());
        }
        self.check_version(port, &options.resource_version);
        self.book().answering(false)
    }

    /// No request may be older than what was applied, nor newer than what was given.
    fn check_version(&self, port: Port<'_>, asked: &ResourceVersion) {
        let now = self.clock.now().since_origin();
        let applied = port.cache.and_then(|cache| {
            let view = cache.load();
            let of_source = |(source, version): &(informant::delta::SourceId, ResourceVersion)| {
                (source.0 as usize == port.source).then(|| super::world::number_of(version))
            };
            view.versions().iter().find_map(of_source)
        });
        let mut book = self.book();
        book.requests += 1;
        let number = asked.as_number().unwrap_or(u64::MAX);
        book.note(1, port.source as u64, number);
        if port.incarnation != book.incarnation {
            book.fail(|| "a request of an informer that has stopped".to_owned());
        }
        if book.at_once.0 == now {
            book.at_once.1 += 1;
        } else {
            book.at_once = (now, 1);
        }
        if book.at_once.1 > REQUESTS_AT_ONCE {
            book.fail(|| format!("a storm of requests (at {now:?})"));
        }
        if asked.is_empty() {
            return;
        }
        // A published state of before a restore says nothing about the versions after it.
        let same = book.oracle.generation(port.source) == book.history.generation();
        if let Some(applied) = applied.filter(|_| same)
            && number < applied
        {
            book.fail(|| format!("asked for {asked} after {applied} was applied (at {now:?})"));
        }
        if number != 0 && !book.offered[port.source].contains(&number) {
            book.fail(|| {
                format!(
                    "asked for {asked}, which no list, good frame or bookmark gave (at {now:?})"
                )
            });
        }
    }

    /// The source gave the reflector something that counts, at this version.
    pub(super) fn offered(&self, source: usize, version: &ResourceVersion) {
        if let Some(version) = version.as_number() {
            self.book().offered[source].insert(version);
        }
    }

    pub(super) fn under_way(&self) -> UnderWay {
        let mut book = self.book();
        let generation = book.history.generation();
        book.under_way[generation] += 1;
        UnderWay(self.clone(), generation)
    }
}

/// From where a request comes.
#[derive(Clone, Copy)]
pub(super) struct Port<'a> {
    pub(super) source: usize,
    pub(super) incarnation: u32,
    pub(super) cache: Option<&'a Indexer<Thing>>,
}

impl Book {
    pub(super) fn fail(&mut self, what: impl FnOnce() -> String) {
        if self.failure.is_none() {
            let what = what();
            if let Some(log) = &mut self.log {
                log.push(format!("FAILED: {what}"));
            }
            self.failure = Some(what);
        }
    }

    /// A number for all that was seen: equal runs have equal ones.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    fn note(&mut self, kind: u64, a: u64, b: u64) {
        for part in [kind, a, b] {
            self.digest = (self.digest ^ part).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn answering(&mut self, stale: bool) -> Answering {
        let faults = &mut self.faults;
        let (slow, millis, after) = faults.slow;
        faults.slow.0 = slow.saturating_sub(1);
        Answering {
            stale,
            delay: (slow > 0).then_some((millis, after)),
            // A storm ends here, so that the run does.
            hangs: std::mem::take(&mut faults.hang) || self.at_once.1 > REQUESTS_AT_ONCE,
            panics: std::mem::take(&mut faults.panic_in_call),
        }
    }

    /// No call and no stream of before the last restore is under way.
    pub(super) fn is_past_cut_off(&self) -> bool {
        let current = self.history.generation();
        self.under_way[..current].iter().all(|count| *count == 0)
    }
}

/// A call or a stream; its end is the drop.
pub(super) struct UnderWay(Desk, usize);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.book().under_way[self.1] -= 1;
    }
}
