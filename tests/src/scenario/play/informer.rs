//! A whole informer on scripted sources.
mod checks;

use super::super::action::{Action, Step, WaitSpec};
use super::super::claim::Check;
use super::super::document::Scenario;
use super::super::errors::Told;
use super::super::notation::{Answer, Exchange, Kind, ListAnswer, RequestPattern, show_duration};
use super::super::recorder::{Recorder, Surroundings, difference};
use super::super::settings::Settings;
use super::super::spec::{HandlerSpec, IndexSpec};
use super::super::stage::Stage;
use super::super::thing::{PlainThing, declaration, transform};
use super::super::transport::{Source, Transport};
use super::super::trouble::Place;
use super::cache;
use super::{Outcome, Play, equal};
use informant::delta::SourceId;
use informant::indexer::{Indexer, Snapshot, WaitError};
use informant::informer::{
    AddIndexError, Filtered, HandlerOptions, Hold, InformerBuilder, NotSynced, NotSyncedReason,
    Registration, SharedInformer, StartError,
};
use informant::reflector::{BackoffConfig, ReflectorConfig};
use informant::source::Selectors;
use informant::{Cached, Clock, ResourceVersion, Versioning};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

type T = PlainThing;

/// A handler that is registered, or was.
struct Member {
    recorder: Recorder<T>,
    registration: Option<Registration<T>>,
    reader: Option<JoinHandle<()>>,
    subscriber: bool,
}

/// How a wait that goes on beside other steps has ended, if it has.
type Ended = Arc<Mutex<Option<String>>>;

pub(super) struct InformerPlay<'a> {
    scenario: &'a Scenario,
    stage: Stage,
    informer: Option<SharedInformer<T>>,
    lister: Indexer<T>,
    /// Indexes that the cache has.
    indexes: Vec<IndexSpec>,
    handlers: BTreeMap<String, Member>,
    waits: BTreeMap<String, Ended>,
    snapshots: BTreeMap<String, (Snapshot<T>, Vec<super::super::notation::ObjectText>)>,
    errors: Arc<Mutex<Vec<Told>>>,
    errors_taken: usize,
    requests_taken: usize,
    transform_calls: Arc<AtomicU64>,
    hold: Option<Hold>,
    started: bool,
}

/// How a reflector is set up for scenarios.
pub(super) fn configure(
    scenario: &Scenario,
) -> impl Fn(&mut ReflectorConfig) + Send + Sync + 'static {
    let settings = scenario.settings.clone();
    let page_size = scenario.page_size();
    move |config| {
        let Settings {
            backoff,
            streaming_tries,
            streaming_patience,
            internal_error_retry,
            call_timeout,
            ..
        } = &settings;
        config.page_size = page_size.or(config.page_size);
        config.backoff = backoff.unwrap_or(BackoffConfig::default());
        config.streaming_list_tries = streaming_tries.unwrap_or(config.streaming_list_tries);
        config.streaming_list_patience =
            streaming_patience.unwrap_or(config.streaming_list_patience);
        config.internal_error_retry = internal_error_retry.unwrap_or(config.internal_error_retry);
        config.call_timeout = call_timeout.unwrap_or(config.call_timeout);
    }
}

/// The names of the sources, and what each is asked for.
fn sources(settings: &Settings) -> Vec<(String, Selectors)> {
    if !settings.sources.is_empty() {
        return settings
            .sources
            .iter()
            .map(|source| (source.name.clone(), source.selectors.clone()))
            .collect();
    }
    if !settings.namespaces.is_empty() {
        let of = |namespace: &String| Selectors {
            namespace: Some(namespace.clone()),
            ..Selectors::default()
        };
        return settings
            .namespaces
            .iter()
            .map(|namespace| (namespace.clone(), of(namespace)))
            .collect();
    }
    vec![("server".to_owned(), Selectors::default())]
}

impl<'a> InformerPlay<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, String> {
        let settings = &scenario.settings;
        let mut stage = Stage::new(settings.patience);
        let versioning = if settings.opaque {
            Versioning::Opaque
        } else {
            Versioning::Decimal
        };
        let mut builder: Option<InformerBuilder<T>> = None;
        for (name, selectors) in sources(settings) {
            let transport = Transport::new(
                &name,
                stage.clock.clone(),
                settings.keep.clone(),
                stage.log.clone(),
            );
            let source = Source::<T>::new(transport.clone(), versioning, scenario.streams());
            builder = Some(match builder {
                None => SharedInformer::builder(source).selectors(selectors),
                Some(builder) => builder.add_source(source, selectors),
            });
            stage.transports.push(transport);
        }
        let Some(mut builder) = builder else {
            return Err("there is no source".to_owned());
        };
        let told: Arc<Mutex<Vec<Told>>> = Arc::default();
        let hook = told.clone();
        builder = builder
            .name("informer")
            .seed(7)
            .clock(stage.shared_clock())
            .reflector(configure(scenario))
            .on_error(move |error| {
                hook.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Told::of(error));
            });
        let transform_calls = Arc::<AtomicU64>::default();
        if let Some(spec) = &settings.transform {
            builder = builder.transform(transform(spec, transform_calls.clone()));
        }
        if let Some(period) = settings.resync {
            builder = builder.resync(period);
        }
        if let Some(bound) = settings.queue_bound {
            builder = builder.queue_bound(bound);
        }
        for index in &settings.indexes {
            builder = builder.declare(declaration(index));
        }
        let informer = builder.build();
        Ok(Self {
            scenario,
            stage,
            lister: informer.lister(),
            informer: Some(informer),
            indexes: settings.indexes.clone(),
            handlers: BTreeMap::new(),
            waits: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            errors: told,
            errors_taken: 0,
            requests_taken: 0,
            transform_calls,
            hold: None,
            started: false,
        })
    }

    fn informer(&self) -> Result<&SharedInformer<T>, String> {
        self.informer
            .as_ref()
            .ok_or_else(|| "the informer was dropped".to_owned())
    }

    fn member(&self, name: &str) -> Result<&Member, String> {
        self.handlers.get(name).ok_or_else(|| {
            let names: Vec<_> = self.handlers.keys().map(String::as_str).collect();
            format!(
                "there is no handler {name:?}; there are: {}",
                names.join(", ")
            )
        })
    }

    /// The one that is meant when no name is given.
    fn members(&self, name: Option<&str>) -> Result<Vec<(&str, &Member)>, String> {
        match name {
            Some(name) => Ok(vec![(name_of(&self.handlers, name), self.member(name)?)]),
            None => Ok(self
                .handlers
                .iter()
                .map(|(name, member)| (name.as_str(), member))
                .collect()),
        }
    }

    fn source_id(&self, name: Option<&str>) -> Result<SourceId, String> {
        let transport = self.stage.transport(name)?.name();
        let at = self
            .stage
            .transports
            .iter()
            .position(|other| other.name() == transport);
        Ok(SourceId(
            at.and_then(|at| u32::try_from(at).ok()).unwrap_or_default(),
        ))
    }

    fn add_handler(&mut self, spec: &HandlerSpec) -> Result<String, String> {
        let around = Surroundings {
            clock: self.stage.clock.clone(),
            round: self.stage.round.clone(),
            lister: self.lister.clone(),
            indexes: self.indexes.clone(),
            opaque: self.scenario.settings.opaque,
        };
        let recorder = Recorder::new(spec.clone(), around);
        let options = HandlerOptions::named(&spec.name)
            .policy(spec.policy)
            .resync(spec.resync);
        let informer = self.informer()?;
        let mut reader = None;
        let registration = if spec.subscriber {
            match informer.subscribe(&options) {
                Ok(mut stream) => {
                    let recorder = recorder.clone();
                    reader = Some(tokio::spawn(async move {
                        recorder.opened().await;
                        while let Some(event) = stream.next().await {
                            recorder.event(event).await;
                        }
                    }));
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        } else if let Some(only) = spec.only.clone() {
            let filter =
                move |object: &Cached<T>| object.fields.iter().any(|(_, value)| *value == only);
            informer
                .add_handler_with(&options, Filtered::new(filter, recorder.clone()))
                .map(Some)
        } else {
            informer
                .add_async_handler(&options, recorder.clone())
                .map(Some)
        };
        match registration {
            Ok(registration) => {
                let member = Member {
                    recorder,
                    registration,
                    reader,
                    subscriber: spec.subscriber,
                };
                self.handlers.insert(spec.name.clone(), member);
                Ok("ok".to_owned())
            }
            Err(error) if error.to_string().contains("stopped") => Ok("stopped".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn start(&mut self) -> Result<String, String> {
        let outcome = match self.informer()?.start() {
            Ok(()) => "ok",
            Err(StartError::AlreadyStarted { .. }) => "already_started",
            Err(StartError::Stopped { .. }) => "stopped",
            Err(error) => return Err(error.to_string()),
        };
        self.started = true;
        Ok(outcome.to_owned())
    }

    /// What the scenario takes as given: one list, answered in whichever way it is asked for.
    async fn given(&mut self) -> Outcome {
        let Some(given) = &self.scenario.settings.given else {
            return Ok(());
        };
        let exchange = |kind, answer| Exchange {
            place: Place::default(),
            source: None,
            request: RequestPattern {
                kind,
                options: Vec::new(),
                bare: true,
            },
            answer,
            delay: Duration::ZERO,
            times: 1,
        };
        self.stage.settle().await;
        if self.scenario.streams() {
            let mut frames: Vec<_> = given
                .items
                .iter()
                .cloned()
                .map(super::super::notation::Frame::Added)
                .collect();
            frames.push(super::super::notation::Frame::Bookmark {
                version: given.version.clone(),
                end: true,
            });
            let answer = super::super::notation::WatchAnswer { frames };
            self.stage
                .exchange(&exchange(Kind::Watch, Answer::Watch(answer)))
                .await?;
            self.requests_taken = self.stage.log.count();
        } else {
            let page = ListAnswer {
                version: given.version.clone(),
                items: given.items.clone(),
                token: None,
            };
            self.requests_taken = self.stage.log.count();
            self.stage
                .exchange(&exchange(Kind::List, Answer::List(page)))
                .await?;
        }
        for member in self.handlers.values() {
            member.recorder.forget();
        }
        self.errors_taken = self.told().len();
        Ok(())
    }

    fn told(&self) -> Vec<Told> {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    async fn stop(&mut self, at_once: bool) -> Outcome {
        let Some(informer) = self.informer.clone() else {
            return Ok(());
        };
        let before = self.stage.clock.now();
        let stopping = tokio::spawn(async move { informer.stop().await });
        self.stage.settle().await;
        if at_once && !stopping.is_finished() {
            return Err("stop() does not end while the clock stands".to_owned());
        }
        self.stage
            .pass_until(Duration::from_secs(3600), || stopping.is_finished())
            .await;
        if !stopping.is_finished() {
            return Err("stop() does not end".to_owned());
        }
        if at_once {
            equal(
                "time that stop() took",
                &show_duration(Duration::ZERO),
                &show_duration(self.stage.clock.now() - before),
            )?;
        }
        Ok(())
    }

    async fn wait(&mut self, spec: &WaitSpec) -> Outcome {
        let ended = Ended::default();
        let timeout = spec.timeout.unwrap_or(Duration::from_secs(365 * 24 * 3600));
        let note = ended.clone();
        match &spec.version {
            None => {
                let informer = self.informer()?.clone();
                tokio::spawn(async move {
                    let outcome = match informer.wait_for_sync(timeout).await {
                        Ok(()) => "ok",
                        Err(error) => not_synced(&error),
                    };
                    *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome.to_owned());
                });
            }
            Some(version) => {
                let (lister, clock) = (self.lister.clone(), self.stage.shared_clock());
                let version = ResourceVersion::new(version);
                let deadline = clock.now() + timeout;
                tokio::spawn(async move {
                    let outcome = match lister.wait_for_until(&version, &clock, deadline).await {
                        Ok(()) => "ok",
                        Err(WaitError::Deadline) => "timeout",
                        Err(WaitError::NotComparable) => "not_comparable",
                        Err(WaitError::Stopped) => "stopped",
                        Err(WaitError::SourceReset) => "reset",
                        Err(_) => "failed",
                    };
                    *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome.to_owned());
                });
            }
        }
        self.stage.settle().await;
        if let Some(name) = &spec.name {
            self.waits.insert(name.clone(), ended);
            return Ok(());
        }
        let most = spec.timeout.unwrap_or(Duration::from_secs(61)) + Duration::from_millis(1);
        let done = || {
            ended
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some()
        };
        self.stage.pass_until(most, done).await;
        let outcome = ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
        equal(
            "the wait",
            &spec.gives,
            &outcome.unwrap_or_else(|| "pending".to_owned()),
        )
    }

    async fn add_index(&mut self, spec: &IndexSpec) -> Result<String, String> {
        let informer = self.informer()?.clone();
        let declaration = declaration::<T>(spec);
        let adding = tokio::spawn(async move { informer.add_index(declaration).await });
        self.stage.settle().await;
        if !adding.is_finished() {
            return Err("add_index does not end (is the consumer paused?)".to_owned());
        }
        match adding.await {
            Ok(Ok(failures)) => {
                self.indexes.push(spec.clone());
                let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
                errors.extend(
                    failures
                        .into_iter()
                        .map(|failure| Told::of(&failure.into())),
                );
                Ok("ok".to_owned())
            }
            Ok(Err(AddIndexError::Stopped { .. })) => Ok("stopped".to_owned()),
            Ok(Err(AddIndexError::Conflict(_))) => Ok("conflict".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What holds after each step, whatever the scenario says.
    fn always(&self) -> Outcome {
        cache::agrees(&self.lister.load(), &self.indexes)?;
        for member in self.handlers.values() {
            if let Some(wrong) = member.recorder.wrong().first() {
                return Err(format!("what no handler may see: {wrong}"));
            }
        }
        for (name, (snapshot, objects)) in &self.snapshots {
            if cache::content(&**snapshot) != *objects {
                return Err(format!("snapshot {name:?} has changed"));
            }
        }
        let most = self
            .stage
            .transports
            .iter()
            .map(Transport::most_open_streams)
            .max()
            .unwrap_or_default();
        if most > 1 {
            return Err(format!(
                "{most} watches of one source were open at the same time"
            ));
        }
        self.stage.faults()
    }
}

fn name_of<'a>(handlers: &'a BTreeMap<String, Member>, name: &str) -> &'a str {
    handlers
        .get_key_value(name)
        .map_or("", |(name, _)| name.as_str())
}

pub(super) fn not_synced(error: &NotSynced) -> &'static str {
    match error.reason {
        NotSyncedReason::NotStarted => "not_started",
        NotSyncedReason::Stopped => "stopped",
        _ => "timeout",
    }
}

impl Play for InformerPlay<'_> {
    async fn begin(&mut self) -> Outcome {
        let specs = match self.scenario.settings.handlers.as_slice() {
            [] => vec![HandlerSpec::usual("handler")],
            specs => specs.to_vec(),
        };
        for spec in &specs {
            self.add_handler(spec)?;
        }
        if let Some(transport) = self.stage.transports.first() {
            let own = self.stage.transports.len() == 1;
            let mine: Vec<Exchange> = self.scenario.settings.server.clone();
            if own {
                transport.plan(&mine);
            } else {
                for exchange in &mine {
                    self.stage
                        .transport(exchange.source.as_deref())?
                        .plan(std::slice::from_ref(exchange));
                }
            }
        }
        let by_hand = super::super::document::all_steps(&self.scenario.steps)
            .iter()
            .any(|step| matches!(step.what, Action::Start { .. }));
        let started_first = by_hand && self.scenario.settings.given.is_none();
        if !started_first {
            self.start()?;
        }
        self.given().await?;
        self.stage.settle().await;
        self.always()
    }

    #[allow(clippy::too_many_lines)] // One arm a verb, and each arm is short.
    async fn step(&mut self, action: &Action, later: &[Step]) -> Outcome {
        match action {
            Action::Exchange(exchange) => self.stage.exchange(exchange).await?,
            Action::Frames { source, frames } => {
                self.stage.frames(source.as_deref(), frames).await?;
            }
            Action::Forever(exchanges) => {
                if exchanges.is_empty() {
                    self.stage
                        .transports
                        .iter()
                        .for_each(|transport| transport.forever(&[]));
                }
                for exchange in exchanges {
                    self.stage
                        .transport(exchange.source.as_deref())?
                        .forever(std::slice::from_ref(exchange));
                }
            }
            Action::PlayServer => self.stage.play_server().await?,
            Action::Advance(time) => {
                self.stage.settle().await;
                if *time > Duration::ZERO {
                    self.stage.open_idle_watches(later);
                    self.stage.pass(*time).await;
                }
            }
            Action::Quiet(time) => {
                self.stage.settle().await;
                let before = self.stage.log.count();
                if later
                    .iter()
                    .all(|step| !matches!(step.what, Action::Exchange(_)))
                {
                    self.stage.open_idle_watches(later);
                }
                self.stage.pass(*time).await;
                let log = self.stage.log.all();
                if let Some(request) = log.get(before) {
                    return Err(format!(
                        "expected no request for {}, but {request} came at {}",
                        show_duration(*time),
                        show_duration(request.at.since_origin())
                    ));
                }
            }
            Action::Start { gives } => {
                let outcome = self.start()?;
                equal("start", gives, &outcome)?;
            }
            Action::Stop { at_once } => self.stop(*at_once).await?,
            Action::Drop => {
                self.informer = None;
                self.stage.settle().await;
            }
            Action::AddHandler { handler, gives } => {
                let outcome = self.add_handler(handler)?;
                equal("add_handler", gives, &outcome)?;
            }
            Action::RemoveHandler(name) => {
                let member = self
                    .handlers
                    .get_mut(name)
                    .ok_or_else(|| format!("there is no handler {name:?}"))?;
                if let Some(registration) = &member.registration {
                    registration.remove();
                }
                if let Some(reader) = member.reader.take() {
                    reader.abort();
                }
            }
            Action::Block(name) => self.member(name)?.recorder.block(true),
            Action::Release(name) => self.member(name)?.recorder.block(false),
            Action::Pause => {
                self.stage.settle().await;
                let hold = self.informer()?.hold();
                self.hold = Some(hold);
            }
            Action::Resume => self.hold = None,
            Action::Relist(source) => {
                let id = self.source_id(source.as_deref())?;
                let informer = self.informer()?;
                let (_, handle) = informer
                    .reflectors()
                    .iter()
                    .find(|(source, _)| *source == id)
                    .ok_or("there is no such source")?;
                handle.relist();
            }
            Action::AddIndex { index, gives } => {
                let outcome = self.add_index(index).await?;
                equal("add_index", gives, &outcome)?;
            }
            Action::Snapshot(name) => {
                let snapshot = self.lister.snapshot();
                let objects = cache::content(&*snapshot);
                self.snapshots.insert(name.clone(), (snapshot, objects));
            }
            Action::Wait(spec) => self.wait(spec).await?,
            other => {
                return Err(format!(
                    "a scenario that drives an informer cannot do this: {other:?}"
                ));
            }
        }
        self.stage.settle().await;
        self.always()
    }

    async fn check(&mut self, check: &Check) -> Outcome {
        self.stage.settle().await;
        self.judge(&check.what)
    }

    async fn end(&mut self) -> Outcome {
        self.hold = None;
        for member in self.handlers.values() {
            member.recorder.block(false);
        }
        self.stage.settle().await;
        self.always()?;
        if self
            .informer
            .as_ref()
            .is_some_and(|informer| informer.status().running)
        {
            self.stage.nothing_left()?;
        }
        // Whoever keeps up with the changes has been told of what there is.
        if self
            .informer
            .as_ref()
            .is_some_and(|informer| informer.has_synced() && !informer.is_stopped())
        {
            self.stage.pass(Duration::from_millis(200)).await;
            let stored = cache::content(&self.lister.load());
            for (name, member) in &self.handlers {
                let gone = member
                    .registration
                    .as_ref()
                    .is_some_and(|registration| registration.status().removed);
                let filtered = self.filtered(name) || member.subscriber;
                if !gone
                    && !filtered
                    && member.recorder.is_at_rest()
                    && let Some(told) = difference(&stored, &member.recorder.view())
                {
                    return Err(format!("handler {name}: {told}"));
                }
            }
        }
        if self.started {
            self.stop(false).await?;
            let open: usize = self
                .stage
                .transports
                .iter()
                .map(Transport::open_streams)
                .sum();
            if open > 0 {
                return Err(format!("{open} watches are open after the stop"));
            }
        }
        self.always()
    }
}

impl InformerPlay<'_> {
    fn filtered(&self, handler: &str) -> bool {
        self.handlers
            .get(handler)
            .is_some_and(|member| member.recorder.is_filtered())
    }
}
