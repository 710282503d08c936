//! The scripted transport: answers as it is told, and writes down what it is asked.
use super::notation::{
    Answer, Exchange, Frame, Kind, ListAnswer, ListItem, Request, RequestPattern,
};
use super::spec::Keep;
use super::thing::{Scripted, item, kept};
use informant::source::{
    ListOptions, ListPage, ListWatch, SourceError, VersionMatch, WatchEvent, WatchOptions,
    WatchStream,
};
use informant::{Clock, ManualClock, ResourceVersion, Timestamp, Versioning};
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Requests that may come while the clock stands; more is a spin.
const SPIN: usize = 2_000;

/// One source's transport, as the runner holds it.
#[derive(Clone)]
pub struct Transport {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    clock: ManualClock,
    keep: Option<Keep>,
    log: Log,
    state: Mutex<State>,
}

/// What all transports of a scenario were asked, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Request>>>);

impl Log {
    /// All requests so far.
    pub fn all(&self) -> Vec<Request> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn push(&self, request: Request) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request);
    }
}

#[derive(Default)]
struct State {
    /// Answers that are ready, in order.
    planned: VecDeque<Planned>,
    forever: Vec<Exchange>,
    waiting: VecDeque<Waiting>,
    faults: Vec<String>,
    open: Option<mpsc::UnboundedSender<Frame>>,
    open_streams: usize,
    most_open_streams: usize,
    since: Timestamp,
    calls_since: usize,
}

struct Planned {
    exchange: Exchange,
    reply: Reply,
}

/// A request that no step has come for yet.
struct Waiting {
    request: Request,
    reply: oneshot::Sender<(Duration, Reply)>,
}

enum Reply {
    Page(ListAnswer),
    /// Frames as the runner sends them.
    Live(mpsc::UnboundedReceiver<Frame>),
    /// Frames one after the other, by themselves.
    Canned(Vec<Frame>),
    Fail(SourceError),
    Hang,
    Panic,
}

/// What became of an exchange that a step offers.
pub enum Offer {
    /// It took place.
    Taken,
    /// No request is there; it is ready for the next one.
    Ready,
    /// Another request is there.
    Mismatch(String),
}

impl Transport {
    /// A transport without any answers.
    pub fn new(name: &str, clock: ManualClock, keep: Option<Keep>, log: Log) -> Self {
        Self {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                clock,
                keep,
                log,
                state: Mutex::default(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What the source is called.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Have these answers ready from the start.
    pub fn plan(&self, exchanges: &[Exchange]) {
        for exchange in exchanges {
            for _ in 0..exchange.times {
                let reply = canned(&exchange.answer);
                let exchange = exchange.clone();
                self.state().planned.push_back(Planned { exchange, reply });
            }
        }
    }

    /// Answer all requests of these sorts so, from now on; none: no more.
    pub fn forever(&self, exchanges: &[Exchange]) {
        let waiting: Vec<Waiting> = {
            let mut state = self.state();
            if exchanges.is_empty() {
                state.forever.clear();
            }
            for exchange in exchanges {
                state
                    .forever
                    .retain(|old| old.request.kind != exchange.request.kind);
                state.forever.push(exchange.clone());
            }
            state.waiting.drain(..).collect()
        };
        for waiting in waiting {
            let answer = self.state().forever_answer(&waiting.request);
            match answer {
                Some((delay, reply)) => {
                    // The engine may have given the call up.
                    let _gone = waiting.reply.send((delay, reply));
                }
                None => self.state().waiting.push_back(waiting),
            }
        }
    }

    /// Offer an exchange to the request that is there, or that comes next.
    pub fn offer(&self, exchange: &Exchange) -> Offer {
        let mut state = self.state();
        let reply = match &exchange.answer {
            Answer::Watch(_) => {
                let (sender, receiver) = mpsc::unbounded_channel();
                state.open = Some(sender);
                Reply::Live(receiver)
            }
            other => canned(other),
        };
        state.drop_given_up();
        // Several informers may ask one transport at the same time.
        let asked = state
            .waiting
            .iter()
            .position(|waiting| exchange.request.matches(&waiting.request));
        let Some(waiting) = asked.and_then(|at| state.waiting.remove(at)) else {
            if let Some(waiting) = state.waiting.front() {
                return Offer::Mismatch(mismatch(&exchange.request, &waiting.request));
            }
            let exchange = exchange.clone();
            state.planned.push_back(Planned { exchange, reply });
            return Offer::Ready;
        };
        drop(state);
        let _gone = waiting.reply.send((exchange.delay, reply));
        Offer::Taken
    }

    /// True while an offered exchange waits for its request.
    pub fn has_planned(&self) -> bool {
        self.planned() > 0
    }

    /// How many exchanges wait for their requests.
    pub fn planned(&self) -> usize {
        self.state().planned.len()
    }

    /// Open a watch that no step asks about, and that stays idle.
    pub fn open_waiting_watch(&self) {
        let mut state = self.state();
        state.drop_given_up();
        let is_watch = state
            .waiting
            .front()
            .is_some_and(|waiting| waiting.request.kind == Kind::Watch);
        let front = if is_watch {
            state.waiting.pop_front()
        } else {
            None
        };
        if let Some(waiting) = front {
            let (sender, receiver) = mpsc::unbounded_channel();
            state.open = Some(sender);
            drop(state);
            let _gone = waiting.reply.send((Duration::ZERO, Reply::Live(receiver)));
        }
    }

    /// Say something on the open watch.
    ///
    /// # Errors
    /// When none is open.
    pub fn send(&self, frame: &Frame) -> Result<(), String> {
        let mut state = self.state();
        let ends = matches!(frame, Frame::Fail(_) | Frame::End | Frame::Panic);
        let sent = match &state.open {
            Some(open) if frame == &Frame::End => !open.is_closed(),
            Some(open) => open.send(frame.clone()).is_ok(),
            None => false,
        };
        if ends || !sent {
            state.open = None;
        }
        if sent {
            return Ok(());
        }
        match state.waiting.front() {
            Some(waiting) => Err(format!(
                "no watch is open; the engine asks for {}",
                waiting.request
            )),
            None => Err("no watch is open, and the engine asks for none".to_owned()),
        }
    }

    /// What went against the script.
    pub fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut self.state().faults)
    }

    /// A list that nobody answered.
    pub fn waiting_list(&self) -> Option<Request> {
        let mut state = self.state();
        state.drop_given_up();
        let waiting = state
            .waiting
            .iter()
            .find(|waiting| waiting.request.kind == Kind::List);
        waiting.map(|waiting| waiting.request.clone())
    }

    /// Streams that are open now.
    pub fn open_streams(&self) -> usize {
        self.state().open_streams
    }

    /// Streams that were open at the same time, at the most.
    pub fn most_open_streams(&self) -> usize {
        self.state().most_open_streams
    }
}

impl State {
    fn drop_given_up(&mut self) {
        self.waiting.retain(|waiting| !waiting.reply.is_closed());
    }

    fn forever_answer(&self, request: &Request) -> Option<(Duration, Reply)> {
        let exchange = self
            .forever
            .iter()
            .find(|exchange| exchange.request.matches(request))?;
        Some((exchange.delay, canned(&exchange.answer)))
    }
}

fn canned(answer: &Answer) -> Reply {
    match answer {
        Answer::List(page) => Reply::Page(page.clone()),
        Answer::Watch(watch) => Reply::Canned(watch.frames.clone()),
        Answer::Fail(error) => Reply::Fail(error.clone()),
        Answer::Hang => Reply::Hang,
        Answer::Panic => Reply::Panic,
    }
}

fn mismatch(expected: &RequestPattern, request: &Request) -> String {
    format!(
        "expected request: {expected}\n    the engine asked:  {}",
        expected.show_alike(request)
    )
}

/// The source that the engine is given: one transport, seen with some type of objects.
pub struct Source<T> {
    transport: Transport,
    versioning: Versioning,
    streaming: bool,
    objects: PhantomData<fn() -> T>,
}

impl<T> Source<T> {
    /// A source behind `transport`.
    pub fn new(transport: Transport, versioning: Versioning, streaming: bool) -> Self {
        Self {
            transport,
            versioning,
            streaming,
            objects: PhantomData,
        }
    }

    async fn reply(&self, kind: Kind, options: BTreeMap<&'static str, String>) -> Reply {
        let (delay, reply) = match self.answer(kind, options) {
            Ok(answer) => answer,
            Err(answer) => match answer.await {
                Ok(answer) => answer,
                // The scenario has ended.
                Err(_gone) => std::future::pending().await,
            },
        };
        let clock = &self.transport.shared.clock;
        clock.sleep_until(clock.now() + delay).await;
        reply
    }

    /// The answer, or the wait for one.
    fn answer(
        &self,
        kind: Kind,
        options: BTreeMap<&'static str, String>,
    ) -> Result<(Duration, Reply), oneshot::Receiver<(Duration, Reply)>> {
        let at = self.transport.shared.clock.now();
        let request = Request {
            source: self.transport.name().to_owned(),
            kind,
            options,
            at,
        };
        let (reply, answer) = oneshot::channel();
        self.transport.shared.log.push(request.clone());
        let mut state = self.transport.state();
        if state.since != at {
            (state.since, state.calls_since) = (at, 0);
        }
        state.calls_since += 1;
        if state.calls_since > SPIN {
            if state.calls_since == SPIN + 1 {
                state.faults.push(format!("the engine spins: {SPIN} requests while the clock stood, the last was {request}"));
            }
            return Ok((Duration::ZERO, Reply::Hang));
        }
        if let Some(planned) = state.planned.pop_front() {
            if !planned.exchange.request.matches(&request) {
                let told = mismatch(&planned.exchange.request, &request);
                let line = planned.exchange.place.line;
                state.faults.push(format!("line {line}: {told}"));
                return Ok((Duration::ZERO, Reply::Hang));
            }
            return Ok((planned.exchange.delay, planned.reply));
        }
        if let Some(answer) = state.forever_answer(&request) {
            return Ok(answer);
        }
        state.waiting.push_back(Waiting { request, reply });
        Err(answer)
    }
}

impl<T: Scripted> ListWatch for Source<T> {
    type Object = T;

    async fn list(&self, options: ListOptions) -> Result<ListPage<T>, SourceError> {
        let mut asked = BTreeMap::new();
        let mut set = |name, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                asked.insert(name, value);
            }
        };
        set("rv", Some(options.resource_version.to_string()));
        set("match", options.version_match.map(show_match));
        set("limit", options.limit.map(|limit| limit.to_string()));
        set("cont", options.continue_token);
        set("namespace", options.selectors.namespace);
        set("labels", options.selectors.labels);
        set("fields", options.selectors.fields);
        set("shard", options.selectors.shard);
        set("metadata", options.metadata_only.then(|| "true".to_owned()));
        match self.reply(Kind::List, asked).await {
            Reply::Page(page) => Ok(self.page(&page)),
            Reply::Fail(error) => Err(error),
            Reply::Panic => panic!("scripted panic of the transport"),
            Reply::Hang | Reply::Live(_) | Reply::Canned(_) => std::future::pending().await,
        }
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<T>, SourceError> {
        let mut asked = BTreeMap::new();
        let mut set = |name, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                asked.insert(name, value);
            }
        };
        set("rv", Some(options.resource_version.to_string()));
        set("match", options.version_match.map(show_match));
        set(
            "init",
            options.send_initial_events.then(|| "true".to_owned()),
        );
        set(
            "bookmarks",
            options.allow_bookmarks.then(|| "true".to_owned()),
        );
        set(
            "timeout",
            options
                .timeout
                .map(|timeout| format!("{}s", timeout.as_secs())),
        );
        set("namespace", options.selectors.namespace);
        set("labels", options.selectors.labels);
        set("fields", options.selectors.fields);
        set("shard", options.selectors.shard);
        let frames = match self.reply(Kind::Watch, asked).await {
            Reply::Live(frames) => Frames::Live(frames),
            Reply::Canned(frames) => Frames::Canned(frames.into()),
            Reply::Fail(error) => return Err(error),
            Reply::Panic => panic!("scripted panic of the transport"),
            Reply::Hang | Reply::Page(_) => return std::future::pending().await,
        };
        Ok(stream(frames, &self.transport))
    }

    fn versioning(&self) -> Versioning {
        self.versioning
    }

    fn supports_streaming_list(&self) -> bool {
        self.streaming
    }
}

fn show_match(version_match: VersionMatch) -> String {
    format!("{version_match:?}")
}

impl<T: Scripted> Source<T> {
    fn page(&self, page: &ListAnswer) -> ListPage<T> {
        let keep = self.transport.shared.keep.as_ref();
        ListPage {
            resource_version: ResourceVersion::new(&page.version),
            continue_token: page.token.clone(),
            items: page
                .items
                .iter()
                .filter(|entry| kept(keep, entry))
                .map(item)
                .collect(),
        }
    }
}

/// Where the frames of a stream come from.
enum Frames {
    Live(mpsc::UnboundedReceiver<Frame>),
    Canned(VecDeque<Frame>),
}

impl Frames {
    async fn next(&mut self) -> Option<Frame> {
        match self {
            Self::Live(frames) => frames.recv().await,
            Self::Canned(frames) => match frames.pop_front() {
                Some(frame) => Some(frame),
                // It stays open.
                None => std::future::pending().await,
            },
        }
    }
}

/// Counts a stream as open while it lives.
struct Open(Transport);

impl Open {
    fn new(transport: &Transport) -> Self {
        let mut state = transport.state();
        state.open_streams += 1;
        state.most_open_streams = state.most_open_streams.max(state.open_streams);
        drop(state);
        Self(transport.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.state().open_streams -= 1;
    }
}

struct Streaming {
    frames: Frames,
    open: Option<Open>,
    transport: Transport,
    burst: VecDeque<Frame>,
}

fn stream<T: Scripted>(frames: Frames, transport: &Transport) -> WatchStream<T> {
    let streaming = Streaming {
        frames,
        open: Some(Open::new(transport)),
        transport: transport.clone(),
        burst: VecDeque::new(),
    };
    Box::pin(futures_util::stream::unfold(
        streaming,
        |mut streaming| async {
            loop {
                let next = match streaming.burst.pop_front() {
                    Some(frame) => Some(frame),
                    None => streaming.frames.next().await,
                };
                let event = match next {
                    None | Some(Frame::End) => return None,
                    Some(Frame::Wait(time)) => {
                        let clock = streaming.transport.shared.clock.clone();
                        clock.sleep_until(clock.now() + time).await;
                        continue;
                    }
                    Some(Frame::Burst(frames)) => {
                        streaming.burst.extend(frames);
                        continue;
                    }
                    Some(Frame::Panic) => panic!("scripted panic of the stream"),
                    Some(Frame::Fail(error)) => {
                        streaming.frames = Frames::Canned([Frame::End].into());
                        streaming.open = None;
                        Err(error)
                    }
                    Some(frame) => {
                        let keep = streaming.transport.shared.keep.as_ref();
                        let (Frame::Added(about) | Frame::Modified(about) | Frame::Deleted(about)) =
                            &frame
                        else {
                            return Some((Ok(other_event(&frame)), streaming));
                        };
                        if !kept(keep, about) {
                            continue;
                        }
                        Ok(object_event(&frame, about))
                    }
                };
                return Some((event, streaming));
            }
        },
    ))
}

fn object_event<T: Scripted>(frame: &Frame, about: &ListItem) -> WatchEvent<T> {
    match (frame, item(about)) {
        (Frame::Added(_), Ok(object)) => WatchEvent::Added(object),
        (Frame::Deleted(_), Ok(object)) => WatchEvent::Deleted(object),
        (_, Ok(object)) => WatchEvent::Modified(object),
        (frame, Err(object)) => WatchEvent::Bad {
            object,
            deleted: matches!(frame, Frame::Deleted(_)),
        },
    }
}

fn other_event<T>(frame: &Frame) -> WatchEvent<T> {
    match frame {
        Frame::Bookmark { version, end } => WatchEvent::Bookmark {
            resource_version: ResourceVersion::new(version),
            initial_events_end: *end,
        },
        Frame::Foreign(kind) => WatchEvent::Foreign {
            description: kind.clone(),
        },
        other => WatchEvent::Foreign {
            description: format!("{other:?}"),
        },
    }
}
