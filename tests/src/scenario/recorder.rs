//! A handler that writes down what it is told, may block, be slow or panic, and refuses what no
//! handler may ever see.
use super::notation::{Call, CallPattern, ObjectText};
use super::spec::{HandlerSpec, IndexSpec};
use super::thing::{Scripted, index_fails, index_values, key_only, show};
use informant::delta::{Deleted, SourceId};
use informant::indexer::Indexer;
use informant::informer::{AsyncHandler, Event, Handler};
use informant::{Cached, Clock, ManualClock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What all recorders of a scenario share.
#[derive(Clone)]
pub struct Surroundings<T> {
    /// The clock.
    pub clock: ManualClock,
    /// Counts what happens one after the other.
    pub round: Arc<AtomicUsize>,
    /// The cache that handlers may read in each call.
    pub lister: Indexer<T>,
    /// The indexes that it was built with.
    pub indexes: Vec<IndexSpec>,
    /// Versions can only be told equal or different.
    pub opaque: bool,
}

/// One handler. Clones write into the same book.
pub struct Recorder<T> {
    spec: HandlerSpec,
    around: Surroundings<T>,
    book: Arc<Mutex<Book>>,
    gate: watch::Sender<bool>,
}

#[derive(Default)]
struct Book {
    calls: Vec<Recorded>,
    taken: usize,
    view: BTreeMap<String, ObjectText>,
    /// Calls of each sort in which it shall panic.
    met: Vec<usize>,
    wrong: Vec<String>,
    was_reset: bool,
    inside: bool,
}

#[derive(Clone)]
struct Recorded {
    call: Call,
    panicked: bool,
}

impl<T> Clone for Recorder<T> {
    fn clone(&self) -> Self {
        Self {
            spec: self.spec.clone(),
            around: Surroundings {
                clock: self.around.clock.clone(),
                round: self.around.round.clone(),
                lister: self.around.lister.clone(),
                indexes: self.around.indexes.clone(),
                opaque: self.around.opaque,
            },
            book: self.book.clone(),
            gate: self.gate.clone(),
        }
    }
}

impl<T: Scripted> Recorder<T> {
    /// A handler as the scenario describes it.
    pub fn new(spec: HandlerSpec, around: Surroundings<T>) -> Self {
        let (gate, _) = watch::channel(spec.blocked);
        Self {
            book: Arc::new(Mutex::new(Book {
                met: vec![0; spec.panics_on.len()],
                ..Book::default()
            })),
            spec,
            around,
            gate,
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Block in the next call, or do no more.
    pub fn block(&self, blocked: bool) {
        self.gate.send_replace(blocked);
    }

    /// The calls since this was last asked: all, and those that did not panic.
    pub fn take(&self) -> (Vec<Call>, Vec<Call>) {
        let mut book = self.book();
        let taken = book.taken;
        book.taken = book.calls.len();
        let new = &book.calls[taken..];
        let sane = new.iter().filter(|recorded| !recorded.panicked);
        (
            new.iter().map(|recorded| recorded.call.clone()).collect(),
            sane.map(|recorded| recorded.call.clone()).collect(),
        )
    }

    /// How many calls there were since this was last asked.
    pub fn take_count(&self) -> usize {
        self.take().0.len()
    }

    /// Calls so far are of no interest.
    pub fn forget(&self) {
        let mut book = self.book();
        book.taken = book.calls.len();
    }

    /// What it has been told adds up to this.
    pub fn view(&self) -> Vec<ObjectText> {
        self.book().view.values().cloned().collect()
    }

    /// What no handler may ever see, and this one saw.
    pub fn wrong(&self) -> Vec<String> {
        self.book().wrong.clone()
    }

    /// True when it is in no call, and neither slow nor blocked.
    pub fn is_at_rest(&self) -> bool {
        !self.book().inside && self.spec.slow.is_none() && !*self.gate.borrow()
    }

    /// True when it is not told of everything.
    pub fn is_filtered(&self) -> bool {
        self.spec.only.is_some()
    }

    /// Wait until it does not block.
    pub async fn opened(&self) {
        let mut gate = self.gate.subscribe();
        drop(gate.wait_for(|blocked| !blocked).await);
    }

    /// Write a call down and judge it. True when it shall panic.
    fn enter(&self, what: CallPattern) -> bool {
        let mut book = self.book();
        if std::mem::replace(&mut book.inside, true) {
            let told = format!("{}: {what} came inside of another call", self.spec.name);
            book.wrong.push(told);
        }
        let told = self.judge(&mut book, &what);
        book.wrong.extend(
            told.into_iter()
                .map(|told| format!("{}: {what}: {told}", self.spec.name)),
        );
        let mut panics = false;
        for (at, (pattern, nth)) in self.spec.panics_on.iter().enumerate() {
            if pattern.matches(&what) {
                book.met[at] += 1;
                panics |= nth.is_none_or(|nth| nth == book.met[at]);
            }
        }
        let call = Call {
            what,
            round: self.around.round.load(Ordering::Relaxed),
            at: self.around.clock.now(),
        };
        book.calls.push(Recorded {
            call,
            panicked: panics,
        });
        panics
    }

    fn leave(&self) {
        self.book().inside = false;
    }

    /// What holds of every call, whatever the scenario says.
    fn judge(&self, book: &mut Book, what: &CallPattern) -> Option<String> {
        match what {
            CallPattern::Add { object, .. } => {
                let known = book.view.insert(object.key.clone(), object.clone());
                if let Some(known) = known {
                    return Some(format!("it had been told of {known} already"));
                }
                self.behind(book, object)
            }
            CallPattern::Update { old, new } => {
                let known = book.view.insert(new.key.clone(), new.clone());
                if known.as_ref() != Some(old) {
                    let known = known.map_or("nothing".to_owned(), |known| known.to_string());
                    return Some(format!("what it had been told last was {known}"));
                }
                self.behind(book, new)
            }
            CallPattern::Delete(object) | CallPattern::DeleteUnknown { object, .. } => {
                if book.view.remove(&object.key).is_none() {
                    return Some("it had never been told of the object".to_owned());
                }
                let stored = self
                    .around
                    .lister
                    .get(object.key.as_str())
                    .map(|stored| show(&stored));
                stored
                    .filter(|stored| self.is_older(book, stored, object))
                    .map(|stored| format!("the cache still shows {stored}"))
            }
            CallPattern::Reset => {
                book.was_reset = true;
                None
            }
            CallPattern::Replay => {
                book.view.clear();
                None
            }
        }
    }

    /// The cache may be ahead of a handler, never behind, and its indexes agree with it.
    fn behind(&self, book: &Book, told: &ObjectText) -> Option<String> {
        let view = self.around.lister.load();
        let stored = view.get(told.key.as_str())?;
        let seen = show(stored);
        if self.is_older(book, &seen, told) {
            return Some(format!("the cache is behind: it shows {seen}"));
        }
        for index in &self.around.indexes {
            if index_fails(index, &seen) {
                continue;
            }
            for value in index_values(index, stored) {
                let found = view
                    .by_index_name(&index.name, &value)
                    .map(|mut objects| objects.any(|object| object.ptr_eq(stored)));
                if !matches!(found, Ok(true)) {
                    return Some(format!(
                        "index {} does not have {seen} under {value}",
                        index.name
                    ));
                }
            }
        }
        None
    }

    fn is_older(&self, book: &Book, stored: &ObjectText, told: &ObjectText) -> bool {
        if book.was_reset || self.around.opaque {
            return false;
        }
        let number = |object: &ObjectText| object.version.as_ref()?.parse::<u64>().ok();
        matches!((number(stored), number(told)), (Some(stored), Some(told)) if stored < told)
    }

    /// One call, from its beginning to its end.
    async fn call(&self, what: CallPattern) {
        let panics = self.enter(what);
        let mut gate = self.gate.subscribe();
        // The recorder itself holds the other end.
        drop(gate.wait_for(|blocked| !blocked).await);
        if let Some(slow) = self.spec.slow {
            let clock = &self.around.clock;
            clock.sleep_until(clock.now() + slow).await;
        }
        self.leave();
        assert!(!panics, "scripted panic of the handler");
    }

    /// One event of a subscriber.
    pub async fn event(&self, event: Event<T>) {
        self.call(told(&event)).await;
    }

    fn call_now(&self, what: CallPattern) {
        let panics = self.enter(what);
        self.leave();
        assert!(!panics, "scripted panic of the handler");
    }
}

fn added<T: Scripted>(object: &Cached<T>, initial: bool) -> CallPattern {
    CallPattern::Add {
        object: show(object),
        initial,
    }
}

fn updated<T: Scripted>(old: &Cached<T>, new: &Cached<T>) -> CallPattern {
    CallPattern::Update {
        old: show(old),
        new: show(new),
    }
}

/// A deletion as it is written.
pub fn deleted<T: Scripted>(deleted: &Deleted<T>) -> CallPattern {
    let last = deleted.last.as_ref().map(show);
    match (deleted.final_state_unknown, last) {
        (false, Some(last)) => CallPattern::Delete(last),
        (_, last) => CallPattern::DeleteUnknown {
            object: ObjectText {
                version: (!deleted.resource_version.is_empty())
                    .then(|| deleted.resource_version.to_string()),
                ..key_only(&deleted.key)
            },
            last: Some(last),
        },
    }
}

fn told<T: Scripted>(event: &Event<T>) -> CallPattern {
    match event {
        Event::Added { object, initial } => added(object, *initial),
        Event::Updated { old, new } => updated(old, new),
        Event::Deleted(end) => deleted(end),
        Event::Reset(_) => CallPattern::Reset,
        Event::Replay => CallPattern::Replay,
    }
}

impl<T: Scripted> AsyncHandler<T> for Recorder<T> {
    async fn on_add(&mut self, object: &Cached<T>, initial: bool) {
        self.call(added(object, initial)).await;
    }

    async fn on_update(&mut self, old: &Cached<T>, new: &Cached<T>) {
        self.call(updated(old, new)).await;
    }

    async fn on_delete(&mut self, end: &Deleted<T>) {
        self.call(deleted(end)).await;
    }

    async fn on_reset(&mut self, _source: SourceId) {
        self.call(CallPattern::Reset).await;
    }

    async fn on_replay(&mut self) {
        self.call(CallPattern::Replay).await;
    }
}

/// For handlers behind a filter, which are synchronous.
impl<T: Scripted> Handler<T> for Recorder<T> {
    fn on_add(&mut self, object: &Cached<T>, initial: bool) {
        self.call_now(added(object, initial));
    }

    fn on_update(&mut self, old: &Cached<T>, new: &Cached<T>) {
        self.call_now(updated(old, new));
    }

    fn on_delete(&mut self, end: &Deleted<T>) {
        self.call_now(deleted(end));
    }

    fn on_reset(&mut self, _source: SourceId) {
        self.call_now(CallPattern::Reset);
    }

    fn on_replay(&mut self) {
        self.call_now(CallPattern::Replay);
    }
}

/// What is wrong between what a cache shows and what its handler was told: nothing, once all is quiet.
pub fn difference(stored: &[ObjectText], view: &[ObjectText]) -> Option<String> {
    let list = |objects: &[ObjectText]| {
        let texts: Vec<_> = objects.iter().map(ToString::to_string).collect();
        format!("{{{}}}", texts.join(", "))
    };
    (stored != view).then(|| {
        format!(
            "it was told of {}, and the cache shows {}",
            list(view),
            list(stored)
        )
    })
}
