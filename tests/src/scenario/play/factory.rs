//! A factory of informers, with a scripted source for each kind.
use super::super::action::{Action, GetSpec, Step, WaitSpec};
use super::super::claim::{Check, Claim};
use super::super::document::Scenario;
use super::super::errors::{self, Told};
use super::super::notation::{Call, Item, ObjectText, show_duration};
use super::super::recorder::{Recorder, Surroundings};
use super::super::sequence::{Order, compare};
use super::super::spec::{HandlerSpec, KindSpec};
use super::super::stage::{Stage, compare_requests};
use super::super::thing::{Kinded, Scripted, transform};
use super::super::transport::{Source, Transport};
use super::cache::{self, number};
use super::informer::{configure, not_synced};
use super::{Outcome, Play, equal, same_objects};
use informant::informer::{
    FactoryError, FactoryNotSynced, HandlerOptions, InformerFactory, NotSyncedReason, Registration,
    SharedInformer,
};
use informant::{Clock, Versioning};
use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Kinds that a scenario may have: each needs a type of its own.
const KINDS: usize = 4;

pub(super) struct FactoryPlay<'a> {
    scenario: &'a Scenario,
    stage: Stage,
    factory: InformerFactory,
    kinds: Vec<KindSpec>,
    informers: BTreeMap<String, Box<dyn AnyInformer>>,
    waits: BTreeMap<String, Ended>,
    errors: Arc<Mutex<Vec<Told>>>,
    errors_taken: usize,
    requests_taken: usize,
}

type Ended = Arc<Mutex<Option<String>>>;
type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An informer of some kind, with its handler.
trait AnyInformer {
    fn has_synced(&self) -> bool;
    fn wait_for_sync(&self, timeout: Duration) -> Later<&'static str>;
    fn content(&self) -> Vec<ObjectText>;
    fn calls(&self, expected: &[Item], order: Order) -> Outcome;
    fn wrong(&self) -> Vec<String>;
    fn running(&self) -> bool;
    fn is_same(&self, other: &dyn AnyInformer) -> bool;
    fn remove_from(&self, factory: &InformerFactory) -> Later<bool>;
    fn as_any(&self) -> &dyn Any;
}

struct Informer<T: Scripted> {
    shared: SharedInformer<T>,
    recorder: Recorder<T>,
    _registration: Registration<T>,
}

impl<T: Scripted> AnyInformer for Informer<T> {
    fn has_synced(&self) -> bool {
        self.shared.has_synced()
    }

    fn wait_for_sync(&self, timeout: Duration) -> Later<&'static str> {
        let informer = self.shared.clone();
        Box::pin(async move {
            match informer.wait_for_sync(timeout).await {
                Ok(()) => "ok",
                Err(error) => not_synced(&error),
            }
        })
    }

    fn content(&self) -> Vec<ObjectText> {
        cache::content(&self.shared.lister().load())
    }

    fn calls(&self, expected: &[Item], order: Order) -> Outcome {
        let calls: Vec<Call> = self.recorder.take().0;
        compare(expected, &calls, order).map_or(Ok(()), Err)
    }

    fn wrong(&self) -> Vec<String> {
        self.recorder.wrong()
    }

    fn running(&self) -> bool {
        self.shared.status().running
    }

    fn is_same(&self, other: &dyn AnyInformer) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| self.shared.is_same(&other.shared))
    }

    fn remove_from(&self, factory: &InformerFactory) -> Later<bool> {
        let (factory, informer) = (factory.clone(), self.shared.clone());
        Box::pin(async move { factory.remove(&informer).await })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<'a> FactoryPlay<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, String> {
        let settings = &scenario.settings;
        let stage = Stage::new(settings.patience);
        let told: Arc<Mutex<Vec<Told>>> = Arc::default();
        let hook = told.clone();
        let mut builder = InformerFactory::builder()
            .clock(stage.shared_clock())
            .on_error(move |error| {
                hook.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Told::of(error));
            });
        if let Some(period) = settings.resync {
            builder = builder.resync(period);
        }
        let mut play = Self {
            scenario,
            stage,
            factory: builder.build(),
            kinds: Vec::new(),
            informers: BTreeMap::new(),
            waits: BTreeMap::new(),
            errors: told,
            errors_taken: 0,
            requests_taken: 0,
        };
        for kind in &settings.kinds {
            play.provide(kind)?;
        }
        Ok(play)
    }

    /// Give the factory a source for a kind.
    fn provide(&mut self, kind: &KindSpec) -> Outcome {
        let settings = &self.scenario.settings;
        let transport = Transport::new(
            &kind.name,
            self.stage.clock.clone(),
            settings.keep.clone(),
            self.stage.log.clone(),
        );
        self.stage.transports.push(transport.clone());
        let number = self.kinds.len();
        self.kinds.push(kind.clone());
        match number {
            0 => self.provide_as::<0>(kind, transport),
            1 => self.provide_as::<1>(kind, transport),
            2 => self.provide_as::<2>(kind, transport),
            3 => self.provide_as::<3>(kind, transport),
            _ => Err(format!("a scenario may have {KINDS} kinds")),
        }
    }

    fn provide_as<const N: usize>(&self, kind: &KindSpec, transport: Transport) -> Outcome {
        let opaque = self.scenario.settings.opaque;
        let versioning = if opaque {
            Versioning::Opaque
        } else {
            Versioning::Decimal
        };
        let source = Source::<Kinded<N>>::new(transport, versioning, self.scenario.streams());
        let provided = match &kind.transform {
            Some(spec) => self
                .factory
                .provide_with(source, transform(spec, Arc::default())),
            None => self.factory.provide(source),
        };
        provided.map_err(|error| error.to_string())
    }

    fn get(&mut self, spec: &GetSpec) -> Outcome {
        let known = self.kinds.iter().position(|kind| kind.name == spec.kind);
        let number = if let Some(number) = known {
            number
        } else {
            self.provide(&KindSpec {
                name: spec.kind.clone(),
                transform: None,
            })?;
            self.kinds.len() - 1
        };
        let informer = match number {
            0 => self.get_as::<0>(spec),
            1 => self.get_as::<1>(spec),
            2 => self.get_as::<2>(spec),
            _ => self.get_as::<3>(spec),
        }?;
        self.informers.insert(spec.name.clone(), informer);
        Ok(())
    }

    fn get_as<const N: usize>(&self, spec: &GetSpec) -> Result<Box<dyn AnyInformer>, String> {
        let mut request = self.factory.request::<Kinded<N>>();
        if let Some(namespace) = &spec.selectors.namespace {
            request = request.namespace(namespace);
        }
        if let Some(labels) = &spec.selectors.labels {
            request = request.labels(labels);
        }
        if let Some(fields) = &spec.selectors.fields {
            request = request.fields(fields);
        }
        if let Some(shard) = &spec.selectors.shard {
            request = request.shard(shard);
        }
        if let Some(own) = &spec.transform {
            request = request.transform(transform(own, Arc::default()));
        }
        let configure = configure(self.scenario);
        let informer = request
            .configure(move |builder| builder.seed(7).reflector(configure))
            .get()
            .map_err(|error| error.to_string())?;
        let handler = HandlerSpec::usual(&spec.name);
        let recorder = Recorder::new(
            handler.clone(),
            Surroundings {
                clock: self.stage.clock.clone(),
                round: self.stage.round.clone(),
                lister: informer.lister(),
                indexes: Vec::new(),
                opaque: self.scenario.settings.opaque,
            },
        );
        let options = HandlerOptions::named(&handler.name).policy(handler.policy);
        let registration = informer
            .add_async_handler(&options, recorder.clone())
            .map_err(|error| error.to_string())?;
        Ok(Box::new(Informer {
            shared: informer,
            recorder,
            _registration: registration,
        }))
    }

    fn informer(&self, name: &str) -> Result<&dyn AnyInformer, String> {
        self.informers
            .get(name)
            .map(|informer| &**informer)
            .ok_or_else(|| {
                let names: Vec<_> = self.informers.keys().map(String::as_str).collect();
                format!(
                    "there is no informer {name:?}; there are: {}",
                    names.join(", ")
                )
            })
    }

    fn named(&self, name: Option<&str>) -> Result<Vec<(&str, &dyn AnyInformer)>, String> {
        match name {
            Some(name) => {
                let informer = self.informer(name)?;
                let name = self
                    .informers
                    .get_key_value(name)
                    .map_or("", |(name, _)| name.as_str());
                Ok(vec![(name, informer)])
            }
            None => Ok(self
                .informers
                .iter()
                .map(|(name, informer)| (name.as_str(), &**informer))
                .collect()),
        }
    }

    async fn wait(&mut self, spec: &WaitSpec) -> Outcome {
        let timeout = spec.timeout.unwrap_or(Duration::from_secs(365 * 24 * 3600));
        let waiting: Later<&'static str> = if let Some(name) = &spec.of {
            self.informer(name)?.wait_for_sync(timeout)
        } else {
            let factory = self.factory.clone();
            Box::pin(async move {
                match factory.wait_for_sync(timeout).await {
                    Ok(()) => "ok",
                    Err(FactoryNotSynced::NotStarted { .. }) => "not_started",
                    Err(FactoryNotSynced::Informers { unsynced, .. })
                        if unsynced
                            .iter()
                            .any(|error| matches!(error.reason, NotSyncedReason::NotStarted)) =>
                    {
                        "not_started"
                    }
                    Err(_) => "timeout",
                }
            })
        };
        let ended = Ended::default();
        let note = ended.clone();
        tokio::spawn(async move {
            let outcome = waiting.await;
            *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome.to_owned());
        });
        self.stage.settle().await;
        if let Some(name) = &spec.name {
            self.waits.insert(name.clone(), ended);
            return Ok(());
        }
        let done = || {
            ended
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some()
        };
        let most = spec.timeout.unwrap_or(Duration::from_secs(61)) + Duration::from_millis(1);
        self.stage.pass_until(most, done).await;
        let outcome = ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
        equal(
            "the wait",
            &spec.gives,
            &outcome.unwrap_or_else(|| "pending".to_owned()),
        )
    }

    /// Wait for something that must end while the clock stands.
    async fn at_once(
        &self,
        what: &str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Outcome {
        let task = tokio::spawn(future);
        self.stage.settle().await;
        if task.is_finished() {
            Ok(())
        } else {
            Err(format!("{what} does not end while the clock stands"))
        }
    }

    fn told(&self) -> Vec<Told> {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn always(&self) -> Outcome {
        for (name, informer) in &self.informers {
            if let Some(wrong) = informer.wrong().first() {
                return Err(format!("{name}: what no handler may see: {wrong}"));
            }
        }
        self.stage.faults()
    }
}

impl Play for FactoryPlay<'_> {
    async fn begin(&mut self) -> Outcome {
        for exchange in &self.scenario.settings.server {
            self.stage
                .transport(exchange.source.as_deref())?
                .plan(std::slice::from_ref(exchange));
        }
        Ok(())
    }

    async fn step(&mut self, action: &Action, later: &[Step]) -> Outcome {
        match action {
            Action::Get(spec) => self.get(spec)?,
            Action::Start { gives } => {
                let outcome = match self.factory.start() {
                    Ok(()) => "ok",
                    Err(FactoryError::ShutDown) => "stopped",
                    Err(error) => return Err(error.to_string()),
                };
                equal("start", &gives.as_str(), &outcome)?;
            }
            Action::Wait(spec) => self.wait(spec).await?,
            Action::Remove(name) => {
                let removing = self.informer(name)?.remove_from(&self.factory);
                self.at_once("remove", async {
                    let _was_there = removing.await;
                })
                .await?;
            }
            Action::Stop { .. } => {
                let factory = self.factory.clone();
                self.at_once("shutdown", async move { factory.shutdown().await })
                    .await?;
            }
            Action::Exchange(exchange) => self.stage.exchange(exchange).await?,
            Action::Frames { source, frames } => {
                self.stage.frames(source.as_deref(), frames).await?;
            }
            Action::Forever(exchanges) => {
                for exchange in exchanges {
                    self.stage
                        .transport(exchange.source.as_deref())?
                        .forever(std::slice::from_ref(exchange));
                }
            }
            Action::PlayServer => self.stage.play_server().await?,
            Action::Advance(time) => {
                self.stage.settle().await;
                self.stage.open_idle_watches(later);
                self.stage.pass(*time).await;
            }
            other => {
                return Err(format!(
                    "a scenario that drives a factory cannot do this: {other:?}"
                ));
            }
        }
        self.stage.settle().await;
        self.always()
    }

    #[allow(clippy::too_many_lines)] // One arm an expectation, and each arm is short.
    async fn check(&mut self, check: &Check) -> Outcome {
        self.stage.settle().await;
        match &check.what {
            Claim::Store { of, objects } => {
                for (name, informer) in self.named(of.as_deref())? {
                    same_objects(&format!("store of {name}"), objects, &informer.content())?;
                }
                Ok(())
            }
            Claim::Synced { of, synced } => {
                for (name, informer) in self.named(of.as_deref())? {
                    equal(&format!("{name} synced"), synced, &informer.has_synced())?;
                }
                Ok(())
            }
            Claim::Calls {
                handler,
                calls,
                order,
            } => {
                for (name, informer) in self.named(handler.as_deref())? {
                    informer
                        .calls(calls, *order)
                        .map_err(|told| format!("handler of {name}: {told}"))?;
                }
                Ok(())
            }
            Claim::Same { names, same } => {
                for pair in names.windows(2) {
                    let found = self.informer(&pair[0])?.is_same(self.informer(&pair[1])?);
                    equal(
                        &format!("{} and {} are the same", pair[0], pair[1]),
                        same,
                        &found,
                    )?;
                }
                Ok(())
            }
            Claim::Informers(count) => number("informers", count, self.factory.informers().len()),
            Claim::Wait { name, outcome } => {
                let ended = self
                    .waits
                    .get(name)
                    .ok_or_else(|| format!("there is no wait {name:?}"))?;
                let found = ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
                equal(
                    &format!("wait {name}"),
                    outcome,
                    &found.unwrap_or_else(|| "pending".to_owned()),
                )
            }
            Claim::Requests { source, requests } => {
                let log = self.stage.log.all();
                let new: Vec<_> = log[self.requests_taken..]
                    .iter()
                    .filter(|request| {
                        source
                            .as_ref()
                            .is_none_or(|source| *source == request.source)
                    })
                    .cloned()
                    .collect();
                if source.is_none() {
                    self.requests_taken = log.len();
                }
                compare_requests(requests, &new)
            }
            Claim::RequestCount { like, count } => {
                let log = self.stage.log.all();
                let new = &log[self.requests_taken..];
                let found = new
                    .iter()
                    .filter(|request| like.as_ref().is_none_or(|like| like.matches(request)))
                    .count();
                number("requests", count, found)
            }
            Claim::Errors(expected) => {
                let told = self.told();
                let new = &told[self.errors_taken..];
                self.errors_taken = told.len();
                errors::compare(expected, new)
            }
            Claim::ErrorCount(count) => {
                let told = self.told().len();
                let new = told - self.errors_taken;
                self.errors_taken = told;
                number("errors", count, new)
            }
            Claim::Running(running) => {
                for (name, informer) in self.named(None)? {
                    equal(&format!("{name} runs"), running, &informer.running())?;
                }
                Ok(())
            }
            Claim::Now(time) => equal(
                "now",
                &show_duration(*time),
                &show_duration(self.stage.clock.now().since_origin()),
            ),
            other => Err(format!("this cannot be expected of a factory: {other:?}")),
        }
    }

    async fn end(&mut self) -> Outcome {
        self.always()?;
        let factory = self.factory.clone();
        self.at_once("shutdown", async move { factory.shutdown().await })
            .await?;
        let open: usize = self
            .stage
            .transports
            .iter()
            .map(Transport::open_streams)
            .sum();
        if open > 0 {
            return Err(format!("{open} watches are open after the shutdown"));
        }
        self.always()
    }
}
