//! A reflector on a scripted transport, a recording sink and a manual clock, driven by hand.
//!
//! Scripts are written in the notation of the cases: a list answer is `"10 a@5 b@6 cont=t1"`, the
//! frames of a watch are `"+a@5 ~a@6 -a@7 BM@8 EOF"`; see [`step`] for the rest.
use super::super::cycle::{Cycle, RunEnd};
use super::super::sink::DeltaSink;
use super::super::{
    ReflectorConfig, ReflectorError, ReflectorHandle, ReflectorMetrics, ReflectorStatus,
};
use crate::clock::{Clock, ManualClock, SharedClock, Timestamp};
use crate::delta::{DeltaQueue, PreparedList, Producer, PushError, SourceId};
use crate::object::{Cached, Incoming, Meta, ObjectKey, ResourceVersion, Uid, Versioning};
use crate::source::{
    ApiStatus, BadObject, ListOptions, ListPage, ListWatch, Selectors, SourceError, StatusCause,
    WatchEvent, WatchOptions, WatchStream,
};
use crate::stop::StopToken;
use crate::sync::{AtomicBool, Mutex, Ordering};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

pub(super) type Outcome<T> = Result<T, SourceError>;

/// Calls to the transport and inputs of the queue, in their common order.
type History = Arc<Mutex<Vec<String>>>;

/// What the transport answers, in order; what is left unsaid never ends.
pub(super) struct Script {
    clock: SharedClock,
    state: Mutex<ScriptState>,
    open: Arc<()>,
    history: History,
    selectors: Selectors,
    pub(super) versioning: Versioning,
    pub(super) streaming: bool,
}

#[derive(Default)]
struct ScriptState {
    lists: VecDeque<Outcome<ListPage<String>>>,
    watches: VecDeque<Outcome<Vec<Step>>>,
    list_forever: Option<Outcome<ListPage<String>>>,
    watch_forever: Option<Outcome<Vec<Step>>>,
    calls: Vec<(Timestamp, String)>,
    watch_timeouts: Vec<Duration>,
    most_open: usize,
}

#[derive(Clone)]
enum Step {
    Frame(WatchEvent<String>),
    Fail(SourceError),
    Wait(Duration),
    End,
    Panic,
}

/// `11`, `a@11`, `a#u1@11`, `ns/a@`: key, uid, version.
fn parts(text: &str) -> (&str, &str, &str) {
    let (name, version) = text.split_once('@').unwrap_or((text, ""));
    let (name, uid) = name.split_once('#').unwrap_or((name, "u"));
    (name, uid, version)
}

fn meta(text: &str) -> Meta {
    let (name, uid, version) = parts(text);
    let (namespace, name) = name.split_once('/').unwrap_or(("ns", name));
    Meta::new(namespace, name, uid, version).unwrap()
}

fn object(text: &str) -> Incoming<String> {
    Incoming::new(meta(text), parts(text).2.to_owned())
}

/// `spam@7`, or `?@7` when not even the key can be read.
fn bad(text: &str) -> BadObject {
    let (name, uid, version) = parts(text);
    BadObject {
        key: (name != "?").then(|| ObjectKey::new("ns", name).unwrap()),
        uid: Uid::new(uid),
        resource_version: ResourceVersion::new(version),
        reason: "undecodable".to_owned(),
    }
}

pub(super) fn api(code: u16, reason: &str) -> SourceError {
    SourceError::Api(ApiStatus::new(code, reason, "scripted"))
}

pub(super) fn throttled(retry_after_secs: u64) -> SourceError {
    let mut status = ApiStatus::new(429, "TooManyRequests", "scripted");
    status.retry_after = Some(Duration::from_secs(retry_after_secs));
    status.into()
}

pub(super) fn too_large() -> SourceError {
    let mut status = ApiStatus::new(504, "Timeout", "scripted");
    status.causes.push(StatusCause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: String::new(),
    });
    status.into()
}

pub(super) fn cut() -> SourceError {
    SourceError::Transport("cut".to_owned())
}

pub(super) fn refused() -> SourceError {
    SourceError::ConnectionRefused("nobody there".to_owned())
}

/// `10 a@5 bad:spam@6 cont=t1`: the version, then the objects, then the token. `_` is no version.
pub(super) fn page(text: &str) -> ListPage<String> {
    let mut words = text.split(' ');
    let version = words.next().filter(|&word| word != "_").unwrap_or("");
    let mut page = ListPage {
        resource_version: ResourceVersion::new(version),
        continue_token: None,
        items: Vec::new(),
    };
    for word in words {
        if let Some(token) = word.strip_prefix("cont=") {
            page.continue_token = Some(token.to_owned());
        } else if let Some(word) = word.strip_prefix("bad:") {
            page.items.push(Err(bad(word)));
        } else {
            page.items.push(Ok(object(word)));
        }
    }
    page
}

/// One word of a watch script; words that are no frame: `60s` waits, `EOF` ends, `CUT` breaks,
/// `TIMEOUT` is a read timeout, `ERR410` (or 429, 500, 403) and `STORE`, `TOOLARGE` are error
/// frames, `bad:k@7` and `bad:-k@7` are undecodable, `TABLE` is foreign, `PANIC` panics.
fn step(word: &str) -> Step {
    let frame = |event| Step::Frame(event);
    if let Some(rest) = word.strip_prefix("bad:") {
        let (deleted, rest) = rest
            .strip_prefix('-')
            .map_or((false, rest), |rest| (true, rest));
        return frame(WatchEvent::Bad {
            object: bad(rest),
            deleted,
        });
    }
    if let Some(rest) = word.strip_prefix("BM@") {
        let version = rest.trim_end_matches("(end)");
        return frame(WatchEvent::Bookmark {
            resource_version: ResourceVersion::new(version),
            initial_events_end: version.len() < rest.len(),
        });
    }
    if let Some(secs) = word.strip_suffix('s').and_then(|secs| secs.parse().ok()) {
        return Step::Wait(Duration::from_secs_f64(secs));
    }
    match (word, word.as_bytes()[0]) {
        ("EOF", _) => Step::End,
        ("PANIC", _) => Step::Panic,
        ("CUT", _) => Step::Fail(cut()),
        ("TIMEOUT", _) => Step::Fail(SourceError::TimedOut),
        ("ERR410", _) => Step::Fail(api(410, "Expired")),
        ("ERR429", _) => Step::Fail(api(429, "TooManyRequests")),
        ("ERR500", _) => Step::Fail(api(500, "InternalError")),
        ("ERR403", _) => Step::Fail(api(403, "Forbidden")),
        ("STORE", _) => Step::Fail(api(500, "StoreReadError")),
        ("TOOLARGE", _) => Step::Fail(too_large()),
        ("TABLE", _) => frame(WatchEvent::Foreign {
            description: "a Table".to_owned(),
        }),
        (_, b'+') => frame(WatchEvent::Added(object(&word[1..]))),
        (_, b'~') => frame(WatchEvent::Modified(object(&word[1..]))),
        (_, b'-') => frame(WatchEvent::Deleted(object(&word[1..]))),
        _ => panic!("{word} is no step"),
    }
}

fn steps(text: &str) -> Vec<Step> {
    text.split_whitespace().map(step).collect()
}

impl Script {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            state: Mutex::new(ScriptState::default()),
            open: Arc::new(()),
            history: History::default(),
            selectors: Selectors::default(),
            versioning: Versioning::Decimal,
            streaming: false,
        }
    }

    pub(super) fn calls(&self) -> Vec<String> {
        let state = self.state.lock();
        state.calls.iter().map(|(_, call)| call.clone()).collect()
    }

    pub(super) fn list(self, text: &str) -> Self {
        self.list_answer(Ok(page(text)))
    }

    pub(super) fn list_answer(self, answer: Outcome<ListPage<String>>) -> Self {
        self.state.lock().lists.push_back(answer);
        self
    }

    pub(super) fn lists_fail(mut self, times: usize, error: &SourceError) -> Self {
        for _ in 0..times {
            self = self.list_answer(Err(error.clone()));
        }
        self
    }

    pub(super) fn list_forever(self, answer: Outcome<ListPage<String>>) -> Self {
        self.state.lock().list_forever = Some(answer);
        self
    }

    pub(super) fn watch(self, text: &str) -> Self {
        self.state.lock().watches.push_back(Ok(steps(text)));
        self
    }

    pub(super) fn watches_fail(self, times: usize, error: &SourceError) -> Self {
        let answers = std::iter::repeat_n(Err(error.clone()), times);
        self.state.lock().watches.extend(answers);
        self
    }

    pub(super) fn watch_forever(self, text: &str) -> Self {
        self.state.lock().watch_forever = Some(Ok(steps(text)));
        self
    }

    pub(super) fn watches_fail_forever(self, error: SourceError) -> Self {
        self.state.lock().watch_forever = Some(Err(error));
        self
    }

    pub(super) fn streaming(mut self) -> Self {
        self.streaming = true;
        self
    }

    pub(super) fn opaque(mut self) -> Self {
        self.versioning = Versioning::Opaque;
        self
    }

    fn record(&self, call: String) {
        let now = self.clock.now();
        self.history.lock().push(call.clone());
        self.state.lock().calls.push((now, call));
    }
}

impl ListWatch for Script {
    type Object = String;

    async fn list(&self, options: ListOptions) -> Outcome<ListPage<String>> {
        assert_eq!(options.selectors, self.selectors, "selectors travel");
        let mut words = vec![];
        if let Some(token) = &options.continue_token {
            words.push(format!("cont={token}"));
        }
        if options.continue_token.is_none() || !options.resource_version.is_empty() {
            words.push(format!("rv={}", options.resource_version));
        }
        if let Some(version_match) = options.version_match {
            words.push(format!("match={version_match:?}"));
        }
        if let Some(limit) = options.limit {
            words.push(format!("limit={limit}"));
        }
        if options.metadata_only {
            words.push("metadata".to_owned());
        }
        self.record(format!("LIST({})", words.join(",")));
        let _open = self.open.clone();
        let answer = {
            let mut state = self.state.lock();
            let next = state.lists.pop_front();
            next.or_else(|| state.list_forever.clone())
        };
        match answer {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    async fn watch(&self, options: WatchOptions) -> Outcome<WatchStream<String>> {
        assert!(
            options.allow_bookmarks,
            "I-R5: bookmarks are always asked for"
        );
        assert_eq!(options.selectors, self.selectors, "selectors travel");
        let init = if options.send_initial_events {
            "init,"
        } else {
            ""
        };
        self.record(format!("WATCH({init}rv={})", options.resource_version));
        let answer = {
            let mut state = self.state.lock();
            state.watch_timeouts.extend(options.timeout);
            let next = state.watches.pop_front();
            next.or_else(|| state.watch_forever.clone())
        };
        let steps = answer.unwrap_or_else(|| Ok(Vec::new()))?;
        let open = self.open.clone();
        let mut state = self.state.lock();
        // One handle is the script's own.
        state.most_open = state.most_open.max(Arc::strong_count(&open) - 1);
        Ok(Box::pin(Frames {
            clock: self.clock.clone(),
            steps: steps.into(),
            wait: None,
            ended: false,
            _open: open,
        }))
    }

    fn versioning(&self) -> Versioning {
        self.versioning
    }

    fn supports_streaming_list(&self) -> bool {
        self.streaming
    }
}

struct Frames {
    clock: SharedClock,
    steps: VecDeque<Step>,
    wait: Option<crate::clock::Sleep>,
    ended: bool,
    _open: Arc<()>,
}

impl futures_core::Stream for Frames {
    type Item = Outcome<WatchEvent<String>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        assert!(!self.ended, "a stream that has ended was polled again");
        loop {
            if let Some(wait) = &mut self.wait {
                std::task::ready!(wait.as_mut().poll(context));
                self.wait = None;
            }
            let Some(step) = self.steps.pop_front() else {
                return Poll::Pending;
            };
            self.ended = matches!(step, Step::Fail(_) | Step::End | Step::Panic);
            return Poll::Ready(match step {
                Step::Frame(event) => Some(Ok(event)),
                Step::Fail(error) => Some(Err(error)),
                Step::End => None,
                Step::Panic => panic!("scripted"),
                Step::Wait(duration) => {
                    self.wait = Some(self.clock.sleep_until(self.clock.now() + duration));
                    continue;
                }
            });
        }
    }
}

/// Records what it is given; may be full or closed.
#[derive(Clone)]
pub(super) struct Recorder {
    state: Arc<Mutex<Recorded>>,
    history: History,
}

#[derive(Default)]
struct Recorded {
    inputs: Vec<String>,
    full: bool,
    closed: bool,
}

impl Recorder {
    pub(super) fn fill(&self) {
        self.state.lock().full = true;
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
    }

    fn push(&self, input: String) -> Result<(), PushError> {
        let mut recorded = self.state.lock();
        if recorded.closed {
            return Err(PushError::Closed);
        }
        recorded.inputs.push(input.clone());
        self.history.lock().push(input);
        Ok(())
    }

    async fn push_when_free(&self, verb: char, meta: &Meta) -> Result<(), PushError> {
        if self.state.lock().full {
            std::future::pending::<()>().await;
        }
        if meta.key.name().starts_with("vetoed") {
            let bad = refused_by_transform(meta);
            self.push(format!("bad:{}", show_bad(&bad)))?;
            return Err(PushError::Transform(bad));
        }
        self.push(format!("{verb}{}", show(meta)))
    }
}

fn refused_by_transform(meta: &Meta) -> BadObject {
    BadObject {
        key: Some(meta.key.clone()),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        reason: "refused".to_owned(),
    }
}

fn show(meta: &Meta) -> String {
    format!("{}@{}", key(&meta.key), meta.resource_version)
}

/// Keys of the usual namespace are shown by name, as in the scripts.
fn key(key: &ObjectKey) -> &str {
    key.as_str().strip_prefix("ns/").unwrap_or(key.as_str())
}

fn show_bad(bad: &BadObject) -> String {
    let key = bad.key.as_ref().map_or("?", key);
    format!("{key}@{}", bad.resource_version)
}

impl DeltaSink<String> for Recorder {
    /// The transform of these tests refuses names that begin with `vetoed`.
    fn prepare(&self, object: Incoming<String>) -> Result<Cached<String>, BadObject> {
        if object.meta.key.name().starts_with("vetoed") {
            return Err(refused_by_transform(&object.meta));
        }
        Ok(object.into())
    }

    async fn added(&self, object: Incoming<String>) -> Result<(), PushError> {
        self.push_when_free('+', &object.meta).await
    }

    async fn updated(&self, object: Incoming<String>) -> Result<(), PushError> {
        self.push_when_free('~', &object.meta).await
    }

    async fn deleted(&self, object: Incoming<String>) -> Result<(), PushError> {
        self.push_when_free('-', &object.meta).await
    }

    async fn deleted_meta(&self, meta: Meta) -> Result<(), PushError> {
        self.push(format!("-{}(meta)", show(&meta)))
    }

    fn bad(&self, object: BadObject) -> Result<(), PushError> {
        self.push(format!("bad:{}", show_bad(&object)))
    }

    fn replace(&self, list: PreparedList<String>) -> Result<(), PushError> {
        let good = list.items.iter().map(|object| show(&object.meta()));
        let bad = list.bad.iter().map(|bad| format!("bad:{}", show_bad(bad)));
        let items: Vec<_> = good.chain(bad).collect();
        let reset = if list.reset { " reset" } else { "" };
        let version = list.resource_version;
        self.push(format!("={version} [{}]{reset}", items.join(" ")))
    }

    fn bookmark(&self, version: ResourceVersion) -> Result<(), PushError> {
        self.push(format!("BM@{version}"))
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A reflector that runs only when told, on a clock that moves only when told.
pub(super) struct Rig<K = Recorder> {
    pub(super) clock: ManualClock,
    pub(super) stop: StopToken,
    pub(super) handle: ReflectorHandle,
    pub(super) sink: K,
    pub(super) end: Option<RunEnd>,
    source: Arc<Script>,
    task: Option<Pin<Box<dyn Future<Output = RunEnd> + Send>>>,
    woken: Arc<Woken>,
    errors: Arc<Mutex<Vec<ReflectorError>>>,
}

/// The seed of every rig; a test that fails prints it.
const SEED: u64 = 42;

impl Rig {
    pub(super) fn new(script: impl FnOnce(Script) -> Script) -> Self {
        Self::with(script, |_| {})
    }

    pub(super) fn with(
        script: impl FnOnce(Script) -> Script,
        configure: impl FnOnce(&mut ReflectorConfig),
    ) -> Self {
        let recorder = Recorder {
            state: Arc::default(),
            history: History::default(),
        };
        Self::feeding(recorder.clone(), recorder.history, script, configure)
    }

    /// What the queue was given.
    pub(super) fn inputs(&self) -> Vec<String> {
        self.sink.state.lock().inputs.clone()
    }
}

impl Rig<Producer<String>> {
    /// A reflector that feeds a real queue.
    pub(super) fn queueing(
        queue: &DeltaQueue<String>,
        script: impl FnOnce(Script) -> Script,
    ) -> Self {
        let producer = queue.producer(SourceId(0));
        Self::feeding(producer, History::default(), script, |_| {})
    }
}

impl<K: DeltaSink<String> + Clone> Rig<K> {
    fn feeding(
        sink: K,
        history: History,
        script: impl FnOnce(Script) -> Script,
        configure: impl FnOnce(&mut ReflectorConfig),
    ) -> Self {
        println!("seed {SEED}");
        let clock = ManualClock::new();
        let shared: SharedClock = Arc::new(clock.clone());
        let errors: Arc<Mutex<Vec<ReflectorError>>> = Arc::default();
        let mut config = ReflectorConfig::new(shared.clone());
        config.seed = SEED;
        let seen = errors.clone();
        config.on_error = Some(Arc::new(move |error| seen.lock().push(error.clone())));
        configure(&mut config);
        let mut source = script(Script::new(shared));
        source.selectors = config.selectors.clone();
        source.history = history;
        let source = Arc::new(source);
        let stop = StopToken::new();
        let cycle = Cycle::new(source.clone(), sink.clone(), config);
        let handle = cycle.handle();
        let mut rig = Self {
            clock,
            handle,
            sink,
            end: None,
            source,
            task: Some(Box::pin(cycle.run(stop.clone()))),
            stop,
            woken: Arc::new(Woken(AtomicBool::new(true))),
            errors,
        };
        rig.settle();
        rig
    }

    /// Run until nothing can go on without time passing.
    pub(super) fn settle(&mut self) {
        let waker = Waker::from(self.woken.clone());
        let mut context = Context::from_waker(&waker);
        let mut turns = 0;
        while let Some(task) = &mut self.task
            && self.woken.0.swap(false, Ordering::SeqCst)
        {
            turns += 1;
            assert!(turns < 100_000, "the reflector spins");
            if let Poll::Ready(end) = task.as_mut().poll(&mut context) {
                self.end = Some(end);
                self.task = None;
            }
        }
    }

    /// Let this much time pass, running whatever becomes due on the way.
    pub(super) fn pass(&mut self, secs: f64) {
        let target = self.clock.now() + Duration::from_secs_f64(secs);
        self.settle();
        while let Some(deadline) = self.clock.next_deadline()
            && deadline <= target
        {
            self.clock.advance_to(deadline);
            self.settle();
        }
        self.clock.advance_to(target);
        self.settle();
    }

    /// Let time pass up to the next point at which anything is due; returns how long that was.
    pub(super) fn pass_to_next(&mut self) -> Duration {
        let before = self.clock.now();
        if let Some(deadline) = self.clock.next_deadline() {
            self.clock.advance_to(deadline);
            self.settle();
        }
        self.clock.now() - before
    }

    /// Drop the reflector where it stands.
    pub(super) fn drop_task(&mut self) {
        self.task = None;
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.source.calls()
    }

    pub(super) fn timed_calls(&self) -> Vec<(Timestamp, String)> {
        self.source.state.lock().calls.clone()
    }

    pub(super) fn count_calls(&self, prefix: &str) -> usize {
        self.calls()
            .iter()
            .filter(|call| call.starts_with(prefix))
            .count()
    }

    /// Calls and inputs, in their common order.
    pub(super) fn history(&self) -> Vec<String> {
        self.source.history.lock().clone()
    }

    pub(super) fn errors(&self) -> Vec<ReflectorError> {
        self.errors.lock().clone()
    }

    pub(super) fn status(&self) -> ReflectorStatus {
        self.handle.status()
    }

    pub(super) fn metrics(&self) -> ReflectorMetrics {
        self.handle.metrics()
    }

    pub(super) fn watch_timeouts(&self) -> Vec<Duration> {
        self.source.state.lock().watch_timeouts.clone()
    }

    /// Calls in flight and streams that are open.
    pub(super) fn open_calls(&self) -> usize {
        Arc::strong_count(&self.source.open) - 1
    }

    pub(super) fn most_open_streams(&self) -> usize {
        self.source.state.lock().most_open
    }

    /// Give the transport more answers while it runs.
    pub(super) fn amend(&self, lists: &[&str], watch_forever: &str) {
        let mut state = self.source.state.lock();
        state.lists.extend(lists.iter().map(|text| Ok(page(text))));
        state.watch_forever = Some(Ok(steps(watch_forever)));
    }
}
