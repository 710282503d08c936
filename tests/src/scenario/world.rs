//! Scenarios of the whole pipeline: a scripted transport, an informer, handlers, virtual time.
use super::check::{difference, fits, number_fits, patterns};
use super::keys::unknown;
use super::notation::{Call, Frame, Request, Thing, Thought, duration, things};
use super::transport::Transport;
use super::yaml::{Located, Node, Value};
use informant::delta::Deleted;
use informant::indexer::{Emit, IndexDeclaration, View};
use informant::informer::{
    Event, HandlerOptions, PastLimit, Policy, Registration, Resync, Transform, async_handler_fn,
};
use informant::reflector::ReflectorState;
use informant::{Cached, SharedInformer, Versioning};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Long enough for everything that can happen now, short beside any delay of a scenario.
const NOW: Duration = Duration::from_millis(1);

type Shared<T> = Arc<Mutex<T>>;

fn read<T: Clone>(shared: &Shared<T>) -> T {
    shared
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// A handler of the scenario.
struct Recorder {
    line: usize,
    options: HandlerOptions,
    later: bool,
    panics: Vec<Call>,
    blocked: watch::Sender<bool>,
    calls: Shared<Vec<Call>>,
    /// Calls that an expectation has seen.
    seen: usize,
    registration: Option<Registration<Thing>>,
}

pub(super) struct InformerWorld {
    transport: Transport,
    informer: SharedInformer<Thing>,
    handlers: BTreeMap<String, Recorder>,
    errors: Shared<Vec<String>>,
    errors_seen: usize,
    requests_seen: usize,
    transforms: Arc<AtomicU64>,
    last_start: Option<bool>,
    held: BTreeMap<String, Vec<Thought>>,
}

const STEPS: [&str; 15] = [
    "start",
    "stop",
    "advance",
    "send",
    "add_handler",
    "remove_handler",
    "block",
    "release",
    "add_index",
    "relist",
    "wait_for_sync",
    "hold",
    "drop",
    "expect",
    "note",
];

const EXPECTATIONS: [&str; 20] = [
    "requests",
    "calls",
    "errors",
    "store",
    "index",
    "values",
    "poisoned",
    "quarantine",
    "version",
    "synced",
    "objects",
    "handlers",
    "transforms",
    "state",
    "start",
    "open_watches",
    "list_calls",
    "watch_calls",
    "held",
    "last_seen",
];

impl InformerWorld {
    pub(super) fn read(root: &[(Node, Node)]) -> Result<Self, Located> {
        let entry = |key: &str| {
            root.iter()
                .find(|(k, _)| k.text() == Ok(key))
                .map(|(_, v)| v)
        };
        let versioning = match entry("versions").map(|node| (node.line, node.text())) {
            None => Versioning::Decimal,
            Some((line, text)) => match text? {
                "decimal" => Versioning::Decimal,
                "opaque" => Versioning::Opaque,
                other => {
                    return Err((
                        line,
                        unknown("kind of versions", other, &["decimal", "opaque"]),
                    ));
                }
            },
        };
        let mut settings = Settings::default();
        for (key, value) in entry("informer")
            .map(Node::map)
            .transpose()?
            .unwrap_or_default()
        {
            settings.set(key, value)?;
        }
        let transport = Transport::read(entry("transport"), versioning, settings.streaming)?;
        let errors = Shared::<Vec<String>>::default();
        let transforms = Arc::new(AtomicU64::new(0));
        let mut builder = SharedInformer::builder(transport.clone())
            .name("scenario")
            .seed(1)
            .declare(zones("zone"));
        if let Some(period) = settings.resync {
            builder = builder.resync(period);
        }
        let told = errors.clone();
        builder = builder.on_error(move |error| {
            told.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(full_text(error));
        });
        builder = builder.reflector(move |config| settings.apply(config));
        for (name, function) in entry("indexes")
            .map(Node::map)
            .transpose()?
            .unwrap_or_default()
        {
            if name.text()? != "zone" {
                builder = builder.declare(index(name.text()?, function)?);
            }
        }
        if let Some(node) = entry("transform") {
            builder = builder.transform(transform(node, transforms.clone())?);
        }
        let mut handlers = BTreeMap::new();
        match entry("handlers") {
            None => drop(handlers.insert("h".to_owned(), Recorder::read(0, "h", &[])?)),
            Some(node) => {
                for (name, options) in node.map()? {
                    let options = match &options.value {
                        Value::Null => &[],
                        _ => options.map()?,
                    };
                    let recorder = Recorder::read(name.line, name.text()?, options)?;
                    handlers.insert(name.text()?.to_owned(), recorder);
                }
            }
        }
        let mut world = Self {
            transport,
            informer: builder.build(),
            handlers,
            errors,
            errors_seen: 0,
            requests_seen: 0,
            transforms,
            last_start: None,
            held: BTreeMap::new(),
        };
        let now: Vec<_> = world
            .handlers
            .iter()
            .filter(|(_, h)| !h.later)
            .map(|(name, _)| name.clone())
            .collect();
        for name in now {
            world.add_handler(&name, 0)?;
        }
        Ok(world)
    }

    fn handler(&mut self, name: &str, line: usize) -> Result<&mut Recorder, Located> {
        let known: Vec<String> = self.handlers.keys().cloned().collect();
        self.handlers.get_mut(name).ok_or_else(|| {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            (line, unknown("handler", name, &known))
        })
    }

    fn add_handler(&mut self, name: &str, line: usize) -> Result<(), Located> {
        let informer = self.informer.clone();
        let recorder = self.handler(name, line)?;
        let (calls, panics) = (recorder.calls.clone(), recorder.panics.clone());
        let blocked = recorder.blocked.subscribe();
        let handler = async_handler_fn(move |event: Event<Thing>| {
            let call = call(&event);
            let panics = panics.iter().any(|pattern| pattern.describes(&call));
            if !panics {
                calls
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(call);
            }
            let mut blocked = blocked.clone();
            async move {
                // An error means that the scenario is over.
                blocked.wait_for(|blocked| !*blocked).await.ok();
                assert!(!panics, "the scenario asks for a panic here");
            }
        });
        let registration = informer.add_async_handler(&recorder.options, handler);
        recorder.registration = registration.ok();
        if recorder.registration.is_none() {
            self.last_start = Some(false);
        }
        Ok(())
    }

    pub(super) async fn step(&mut self, verb: &Node, argument: &Node) -> Result<(), Located> {
        let line = verb.line;
        match verb.text()? {
            "start" => self.last_start = Some(self.informer.start().is_ok()),
            "stop" => self.informer.stop().await,
            "advance" => {
                let time = duration(argument.text()?).map_err(|error| (line, error))?;
                tokio::time::sleep(time).await;
            }
            "send" => {
                let mut frames = Vec::new();
                for (line, text) in argument.texts()? {
                    frames.push(Frame::parse(&text).map_err(|error| (line, error))?);
                }
                self.transport.send(frames).map_err(|error| (line, error))?;
            }
            "add_handler" => self.add_handler(argument.text()?, line)?,
            "remove_handler" => {
                let registration = self.handler(argument.text()?, line)?.registration.take();
                if let Some(registration) = registration {
                    registration.remove();
                }
            }
            "block" => drop(
                self.handler(argument.text()?, line)?
                    .blocked
                    .send_replace(true),
            ),
            "release" => drop(
                self.handler(argument.text()?, line)?
                    .blocked
                    .send_replace(false),
            ),
            "add_index" => {
                for (name, function) in argument.map()? {
                    let declaration = index(name.text()?, function)?;
                    self.last_start = Some(self.informer.add_index(declaration).await.is_ok());
                }
            }
            "relist" => {
                for (_, reflector) in self.informer.reflectors() {
                    reflector.relist();
                }
            }
            "wait_for_sync" => {
                let time = duration(argument.text()?).map_err(|error| (line, error))?;
                self.last_start = Some(self.informer.wait_for_sync(time).await.is_ok());
            }
            "hold" => {
                let objects = self.informer.snapshot().iter().map(thought).collect();
                self.held.insert(argument.text()?.to_owned(), objects);
            }
            "drop" => drop(self.held.remove(argument.text()?)),
            "note" => (),
            other => return Err((line, unknown("step", other, &STEPS))),
        }
        tokio::time::sleep(NOW).await;
        Ok(())
    }

    /// Check one expectation; a text says how it fails.
    pub(super) fn expect(&mut self, key: &Node, node: &Node) -> Result<Option<String>, Located> {
        let informer = self.informer.clone();
        let view = informer.snapshot();
        let status = informer.status();
        Ok(match key.text()? {
            "requests" => {
                let all = self.transport.requests();
                let new = &all[self.requests_seen..];
                let expected = patterns(node, &Request::parse)?;
                let fit = fits(&expected, new, &Request::describes);
                let text = (!fit).then(|| difference("requests", node, new));
                self.requests_seen = all.len();
                text
            }
            "calls" => return self.expect_calls(node),
            "errors" => {
                let all = read(&self.errors);
                let new = &all[self.errors_seen..];
                self.errors_seen = all.len();
                errors(node, new)?
            }
            "store" => objects("objects", node, view.iter().map(thought).collect())?,
            "held" | "index" | "values" | "poisoned" => return self.expect_view(key, &view, node),
            "quarantine" => {
                let actual = view.quarantine().filter_map(|bad| {
                    let mut thought = Thought::parse(bad.key.as_ref()?.as_str()).ok()?;
                    thought.version = Some(bad.failed_version.to_string());
                    Some(thought)
                });
                objects("quarantined objects", node, actual.collect())?
            }
            "version" => same(node, &view.resource_version().to_string())?,
            "last_seen" => {
                let seen = status
                    .sources
                    .first()
                    .map_or(String::new(), |(_, s)| s.last_seen_version.to_string());
                same(node, &seen)?
            }
            "synced" => same_flag(node, informer.has_synced())?,
            "start" => same_flag(node, self.last_start == Some(true))?,
            "objects" => number(node, view.len() as u64)?,
            "transforms" => number(node, self.transforms.load(Ordering::SeqCst))?,
            "open_watches" => number(node, self.transport.open_watches() as u64)?,
            "list_calls" => number(node, self.count("LIST"))?,
            "watch_calls" => number(node, self.count("WATCH"))?,
            "state" => {
                let state = match status.sources.first().map(|(_, source)| &source.state) {
                    None | Some(ReflectorState::Initialising) => "initialising",
                    Some(ReflectorState::Listing) => "listing",
                    Some(ReflectorState::Streaming) => "streaming",
                    Some(ReflectorState::Watching) => "watching",
                    Some(ReflectorState::BackingOff { .. }) => "backing off",
                    Some(ReflectorState::Stopped) => "stopped",
                };
                same(node, state)?
            }
            "handlers" => {
                for (name, expected) in node.map()? {
                    if let Some(text) = self.expect_handler(name, expected)? {
                        return Ok(Some(format!("handler {}: {text}", name.text()?)));
                    }
                }
                None
            }
            other => return Err((key.line, unknown("expectation", other, &EXPECTATIONS))),
        })
    }

    /// Expectations of what snapshots hold.
    fn expect_view(
        &self,
        key: &Node,
        view: &View<Thing>,
        node: &Node,
    ) -> Result<Option<String>, Located> {
        Ok(match key.text()? {
            "held" => {
                for (name, expected) in node.map()? {
                    let held = self.held.get(name.text()?).cloned().unwrap_or_default();
                    if let Some(text) = objects("held objects", expected, held)? {
                        return Ok(Some(text));
                    }
                }
                None
            }
            "index" => expect_index(view, node)?,
            "values" => {
                for (name, expected) in node.map()? {
                    let values = match view.index_values_by_name(name.text()?) {
                        Ok(found) => found,
                        Err(error) => return Ok(Some(error.to_string())),
                    };
                    let mut actual: Vec<String> = values.map(|(value, _)| value.clone()).collect();
                    actual.sort_unstable();
                    let mut wanted: Vec<String> = expected
                        .texts()?
                        .into_iter()
                        .map(|(_, text)| text)
                        .collect();
                    wanted.sort_unstable();
                    if actual != wanted {
                        return Ok(Some(difference("index values", expected, &actual)));
                    }
                }
                None
            }
            "poisoned" => {
                for (name, expected) in node.map()? {
                    let poisoned = match view.poisoned(name.text()?) {
                        Ok(found) => found,
                        Err(error) => return Ok(Some(error.to_string())),
                    };
                    if let Some(text) = objects(
                        "poisoned objects",
                        expected,
                        poisoned.map(thought).collect(),
                    )? {
                        return Ok(Some(text));
                    }
                }
                None
            }
            other => return Err((key.line, unknown("expectation", other, &EXPECTATIONS))),
        })
    }

    fn count(&self, verb: &str) -> u64 {
        self.transport
            .requests()
            .iter()
            .filter(|request| request.verb == verb)
            .count() as u64
    }

    /// Calls since they were last asked about: a list for the only handler, or a map by handler.
    fn expect_calls(&mut self, node: &Node) -> Result<Option<String>, Located> {
        let by_handler = match &node.value {
            Value::Map(entries)
                if entries
                    .iter()
                    .all(|(k, _)| k.text().is_ok_and(|k| self.handlers.contains_key(k))) =>
            {
                entries.clone()
            }
            _ => {
                let name = self.handlers.keys().next().cloned().unwrap_or_default();
                if self.handlers.len() != 1 {
                    return Err((
                        node.line,
                        "there are several handlers; name each: calls: {h1: […]}".to_owned(),
                    ));
                }
                let name = Node {
                    line: node.line,
                    value: Value::Text(name),
                };
                vec![(name, node.clone())]
            }
        };
        for (name, expected) in by_handler {
            let recorder = self.handler(name.text()?, name.line)?;
            let all = read(&recorder.calls);
            let new = &all[recorder.seen..];
            recorder.seen = all.len();
            let patterns = patterns(&expected, &Call::parse)?;
            if !fits(&patterns, new, &Call::describes) {
                let what = format!("calls of handler {}", name.text()?);
                return Ok(Some(difference(&what, &expected, new)));
            }
        }
        Ok(None)
    }

    fn expect_handler(&mut self, name: &Node, expected: &Node) -> Result<Option<String>, Located> {
        let recorder = self.handler(name.text()?, name.line)?;
        let status = recorder.registration.as_ref().map(Registration::status);
        let period = recorder
            .registration
            .as_ref()
            .and_then(Registration::resync_period);
        for (key, value) in expected.map()? {
            let failed = match key.text()? {
                "synced" => same_flag(value, status.as_ref().is_some_and(|s| s.synced))?,
                "panics" => number(value, status.as_ref().map_or(0, |s| s.panics))?,
                "waiting" => number(value, status.as_ref().map_or(0, |s| s.waiting as u64))?,
                "call_count" => number(value, read(&recorder.calls).len() as u64)?,
                "registered" => same_flag(value, status.as_ref().is_some_and(|s| !s.removed))?,
                "resync" => match value.text()? {
                    "never" => {
                        period.map(|period| format!("resyncs every {period:?}, expected never"))
                    }
                    text => {
                        let wanted = duration(text).map_err(|error| (value.line, error))?;
                        (period != Some(wanted))
                            .then(|| format!("resyncs every {period:?}, expected {wanted:?}"))
                    }
                },
                other => {
                    let known = [
                        "synced",
                        "panics",
                        "waiting",
                        "call_count",
                        "registered",
                        "resync",
                    ];
                    return Err((key.line, unknown("expectation of a handler", other, &known)));
                }
            };
            if failed.is_some() {
                return Ok(failed);
            }
        }
        Ok(None)
    }

    /// Requests that were not what the script expected at their place.
    pub(super) fn mismatches(&self) -> Vec<(usize, String)> {
        self.transport.mismatches()
    }

    pub(super) async fn end(self) {
        for recorder in self.handlers.values() {
            recorder.blocked.send_replace(false);
        }
        self.informer.stop().await;
    }
}

impl Recorder {
    fn read(line: usize, name: &str, options: &[(Node, Node)]) -> Result<Self, Located> {
        let mut recorder = Self {
            line,
            options: HandlerOptions::named(name),
            later: false,
            panics: Vec::new(),
            blocked: watch::channel(false).0,
            calls: Shared::default(),
            seen: 0,
            registration: None,
        };
        let (mut policy, mut limit, mut past) =
            ("coalesce".to_owned(), 1_000_000, PastLimit::Coalesce);
        for (key, value) in options {
            match key.text()? {
                "policy" => policy = String::from(value.text()?),
                "limit" => limit = value.number()?,
                "past_limit" => {
                    past = match value.text()? {
                        "coalesce" => PastLimit::Coalesce,
                        "replay" => PastLimit::Replay,
                        "block" => PastLimit::Block,
                        other => {
                            return Err((
                                value.line,
                                unknown(
                                    "choice past the limit",
                                    other,
                                    &["coalesce", "replay", "block"],
                                ),
                            ));
                        }
                    }
                }
                "resync" => {
                    recorder.options = recorder.options.resync(match value.text()? {
                        "never" => Resync::Never,
                        "default" => Resync::Default,
                        text => Resync::Every(duration(text).map_err(|error| (value.line, error))?),
                    });
                }
                "blocked" => drop(recorder.blocked.send_replace(value.boolean()?)),
                "later" => recorder.later = value.boolean()?,
                "panics_on" => {
                    for (line, text) in value.texts()? {
                        recorder
                            .panics
                            .push(Call::parse(&text).map_err(|error| (line, error))?);
                    }
                }
                other => {
                    let known = [
                        "policy",
                        "limit",
                        "past_limit",
                        "resync",
                        "blocked",
                        "later",
                        "panics_on",
                    ];
                    return Err((key.line, unknown("option of a handler", other, &known)));
                }
            }
        }
        recorder.options = recorder.options.policy(match policy.as_str() {
            "coalesce" => Policy::Coalesce,
            "lossless" => Policy::lossless(limit, past),
            "unbounded" => Policy::Unbounded,
            other => {
                return Err((
                    recorder.line,
                    unknown("policy", other, &["coalesce", "lossless", "unbounded"]),
                ));
            }
        });
        Ok(recorder)
    }
}

/// Settings of the informer and its reflector.
#[derive(Clone)]
struct Settings {
    resync: Option<Duration>,
    streaming: bool,
    page_size: Option<u32>,
    backoff: Duration,
    backoff_max: Duration,
    jitter: f64,
    internal_error_retry: Duration,
    watch_timeout: Option<Duration>,
    streaming_tries: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            resync: None,
            streaming: false,
            page_size: Some(500),
            backoff: Duration::from_millis(800),
            backoff_max: Duration::from_secs(30),
            jitter: 0.0,
            internal_error_retry: Duration::ZERO,
            watch_timeout: None,
            streaming_tries: None,
        }
    }
}

impl Settings {
    fn set(&mut self, key: &Node, value: &Node) -> Result<(), Located> {
        let time = || duration(value.text()?).map_err(|error| (value.line, error));
        match key.text()? {
            "resync" => self.resync = Some(time()?).filter(|period| !period.is_zero()),
            "streaming_list" => self.streaming = value.boolean()?,
            "page_size" => self.page_size = Some(value.number()?).filter(|size| *size > 0),
            "backoff" => self.backoff = time()?,
            "backoff_max" => self.backoff_max = time()?,
            "jitter" => self.jitter = value.number()?,
            "internal_error_retry" => self.internal_error_retry = time()?,
            "watch_timeout" => self.watch_timeout = Some(time()?),
            "streaming_tries" => self.streaming_tries = Some(value.number()?),
            other => {
                let known = [
                    "resync",
                    "streaming_list",
                    "page_size",
                    "backoff",
                    "backoff_max",
                    "jitter",
                    "internal_error_retry",
                    "watch_timeout",
                    "streaming_tries",
                ];
                return Err((key.line, unknown("setting of the informer", other, &known)));
            }
        }
        Ok(())
    }

    fn apply(&self, config: &mut informant::reflector::ReflectorConfig) {
        config.page_size = self.page_size;
        config.backoff.initial = self.backoff;
        config.backoff.max = self.backoff_max;
        config.backoff.jitter = self.jitter;
        config.internal_error_retry = self.internal_error_retry;
        if let Some(timeout) = self.watch_timeout {
            config.min_watch_timeout = timeout;
        }
        if let Some(tries) = self.streaming_tries {
            config.streaming_list_tries = tries;
        }
    }
}

/// An error with everything that caused it.
fn full_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// The index of the objects' zones.
pub(super) fn zones(name: &str) -> IndexDeclaration<Thing> {
    IndexDeclaration::new(name, |object: &Cached<Thing>| object.zones.clone())
}

/// `zones`, `fails(a, b)`, `panics(a)`: the last two are indexes of zones that fail for some names.
fn index(name: &str, node: &Node) -> Result<IndexDeclaration<Thing>, Located> {
    let text = node.text()?;
    let (function, names) = text.split_once('(').unwrap_or((text, ")"));
    let names: Vec<String> = names
        .trim_end_matches(')')
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect();
    let panics = match function {
        "zones" => return Ok(zones(name)),
        "fails" => false,
        "panics" => true,
        other => {
            return Err((
                node.line,
                unknown("index function", other, &["zones", "fails", "panics"]),
            ));
        }
    };
    Ok(IndexDeclaration::with(
        name,
        move |object: &Cached<Thing>, emit: &mut Emit<'_, String>| {
            let chosen = names.iter().any(|name| {
                name == object.name()
                    || *name == format!("{}@{}", object.name(), object.resource_version())
            });
            if chosen && panics {
                std::panic::resume_unwind(Box::new("the scenario asks for a panic here"));
            }
            if chosen {
                return Err("the scenario asks for an error here".to_owned());
            }
            for zone in &object.zones {
                emit.borrowed(zone.as_str());
            }
            Ok(())
        },
    ))
}

/// `strip`, `fails(a)`, `panics(a)`; each also strips the others and counts its calls.
fn transform(node: &Node, calls: Arc<AtomicU64>) -> Result<Transform<Thing>, Located> {
    let text = node.text()?;
    let (function, names) = text.split_once('(').unwrap_or((text, ")"));
    let zones: Vec<String> = names
        .trim_end_matches(')')
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect();
    let panics = match function {
        "strip" | "fails" => false,
        "panics" => true,
        other => {
            return Err((
                node.line,
                unknown("transform", other, &["strip", "fails", "panics"]),
            ));
        }
    };
    Ok(Transform::new("scenario", move |mut thing: Thing| {
        calls.fetch_add(1, Ordering::SeqCst);
        let chosen = thing.zones.iter().any(|zone| zones.contains(zone));
        if chosen && panics {
            std::panic::resume_unwind(Box::new("the scenario asks for a panic here"));
        }
        if chosen {
            return Err("the scenario asks for an error here");
        }
        thing.stripped = true;
        Ok(thing)
    }))
}

/// What a cached object is in the notation.
pub(super) fn thought(object: &Cached<Thing>) -> Thought {
    Thought {
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        uid: Some(object.uid().to_string()),
        zones: object.zones.clone(),
        version: Some(object.resource_version().to_string()),
        bad: false,
        stripped: object.stripped,
    }
}

pub(super) fn deletion(deleted: &Deleted<Thing>) -> Call {
    let mut object = Thought::parse("x").expect("a plain name is an object");
    object.namespace = String::from(deleted.key.namespace());
    object.name = String::from(deleted.key.name());
    object.uid = Some(deleted.uid.to_string());
    object.version = Some(deleted.resource_version.to_string());
    let last = deleted.last.as_ref().map(thought);
    if deleted.final_state_unknown {
        return Call::DeleteUnknown { object, last };
    }
    if let Some(last) = last {
        object.zones = last.zones;
        object.stripped = last.stripped;
    }
    Call::Delete { object }
}

fn call(event: &Event<Thing>) -> Call {
    match event {
        Event::Added { object, initial } => Call::Add {
            object: thought(object),
            initial: *initial,
        },
        Event::Updated { old, new } => Call::Update {
            old: thought(old),
            new: thought(new),
        },
        Event::Deleted(deleted) => deletion(deleted),
        Event::Reset(_) => Call::Reset,
        Event::Replay => Call::Replay,
    }
}

/// The objects are these, in any order.
pub(super) fn objects(
    what: &str,
    node: &Node,
    mut actual: Vec<Thought>,
) -> Result<Option<String>, Located> {
    let mut expected = Vec::new();
    for (line, text) in node.texts()? {
        expected.extend(things(&text).map_err(|error| (line, error))?);
    }
    actual.sort_by_key(|thought| (thought.namespace.clone(), thought.name.clone()));
    expected.sort_by_key(|thought| (thought.namespace.clone(), thought.name.clone()));
    let same =
        expected.len() == actual.len() && expected.iter().zip(&actual).all(|(e, a)| e.describes(a));
    Ok((!same).then(|| difference(what, node, &actual)))
}

/// `index: {zone: {z1: [a], z2: []}}`.
pub(super) fn expect_index(view: &View<Thing>, node: &Node) -> Result<Option<String>, Located> {
    for (name, values) in node.map()? {
        for (value, expected) in values.map()? {
            let found = view.by_index_name(name.text()?, value.text()?);
            if matches!(&expected.value, Value::Text(text) if text == "error") {
                if found.is_ok() {
                    return Ok(Some(format!(
                        "the query of index {} is no error",
                        name.text()?
                    )));
                }
                continue;
            }
            let found = match found {
                Ok(found) => found,
                Err(error) => return Ok(Some(error.to_string())),
            };
            let what = format!("objects with {} = {}", name.text()?, value.text()?);
            if let Some(text) = objects(&what, expected, found.map(thought).collect())? {
                return Ok(Some(text));
            }
        }
    }
    Ok(None)
}

/// A number of errors, or texts that each error in order contains.
pub(super) fn errors(node: &Node, actual: &[String]) -> Result<Option<String>, Located> {
    if let Value::Text(text) = &node.value
        && (text.parse::<u64>().is_ok() || text.starts_with("at "))
    {
        let fit = number_fits(node, actual.len() as u64)?;
        return Ok((!fit).then(|| difference("errors", node, actual)));
    }
    let expected = patterns(node, &|text| Ok(text.to_owned()))?;
    let fit = fits(&expected, actual, &|part, error| {
        error.contains(part.as_str())
    });
    Ok((!fit).then(|| difference("errors", node, actual)))
}

pub(super) fn same(node: &Node, actual: &str) -> Result<Option<String>, Located> {
    let expected = match &node.value {
        Value::Null => "",
        _ => node.text()?,
    };
    Ok((expected != actual).then(|| format!("expected {expected:?}, it is {actual:?}")))
}

pub(super) fn same_flag(node: &Node, actual: bool) -> Result<Option<String>, Located> {
    let expected = node.boolean()?;
    Ok((expected != actual).then(|| format!("expected {expected}, it is {actual}")))
}

pub(super) fn number(node: &Node, actual: u64) -> Result<Option<String>, Located> {
    let fit = number_fits(node, actual)?;
    Ok((!fit).then(|| format!("expected {}, it is {actual}", node.text().unwrap_or(""))))
}
