//! A delta queue and its consumer, which applies what it drains to an indexer.
use super::super::action::{Action, Step};
use super::super::claim::{Check, Claim};
use super::super::document::Scenario;
use super::super::errors::{self, Told};
use super::super::notation::{DeltaKind, ListItem, QueueVerb, show_key};
use super::super::recorder::{Recorder, Surroundings};
use super::super::sequence::compare;
use super::super::spec::HandlerSpec;
use super::super::stage::Stage;
use super::super::thing::{PlainThing, apply, bad, declaration, incoming, item};
use super::cache::{self, number};
use super::{Outcome, Play, equal, pending, same_objects};
use informant::delta::{
    Batch, Compaction, DeltaQueue, ListSnapshot, Producer, PushError, QueueConfig, ResyncTargets,
    SourceId,
};
use informant::indexer::{Applied, Effective, IndexWriter, Indexer};
use informant::informer::Handler;
use informant::{Cached, ResourceVersion, Versioning};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type T = PlainThing;

pub(super) struct QueuePlay<'a> {
    scenario: &'a Scenario,
    stage: Stage,
    queue: DeltaQueue<T>,
    producer: Producer<T>,
    lister: Indexer<T>,
    writer: IndexWriter<T>,
    handlers: Vec<(HandlerSpec, Recorder<T>)>,
    running: bool,
    errors: Vec<Told>,
    errors_taken: usize,
    transform_calls: Arc<AtomicU64>,
}

impl<'a> QueuePlay<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, String> {
        let settings = &scenario.settings;
        let stage = Stage::new(settings.patience);
        let versioning = if settings.opaque {
            Versioning::Opaque
        } else {
            Versioning::Decimal
        };
        let mut builder = Indexer::<T>::builder().versioning(versioning).hash_seed(7);
        for index in &settings.indexes {
            builder = builder.declare(declaration(index));
        }
        let (lister, writer) = builder.build();
        let specs = match settings.handlers.as_slice() {
            [] => vec![HandlerSpec::usual("handler")],
            specs => specs.to_vec(),
        };
        if let Some(spec) = specs.iter().find(|spec| {
            spec.blocked || spec.slow.is_some() || spec.subscriber || spec.only.is_some()
        }) {
            return Err(format!(
                "handler {:?}: a scenario that drives a queue has plain handlers only",
                spec.name
            ));
        }
        let lossless = specs.iter().any(|spec| spec.policy.is_lossless());
        let transform_calls = Arc::<AtomicU64>::default();
        let transform = settings.transform.clone().map(|spec| {
            let calls = transform_calls.clone();
            let function = move |object: &mut T| {
                calls.fetch_add(1, Ordering::Relaxed);
                *object = apply(&spec, object)?.into();
                Ok(())
            };
            Arc::new(function) as informant::delta::Transform<T>
        });
        let queue = DeltaQueue::new(QueueConfig {
            versioning,
            compaction: if lossless {
                Compaction::KeepAll
            } else {
                Compaction::FirstAndLast
            },
            bound: settings.queue_bound,
            transform,
            clock: Some(stage.shared_clock()),
            ..QueueConfig::default()
        });
        let handlers = specs
            .into_iter()
            .map(|spec| {
                let around = Surroundings {
                    clock: stage.clock.clone(),
                    round: stage.round.clone(),
                    lister: lister.clone(),
                    indexes: settings.indexes.clone(),
                    opaque: settings.opaque,
                };
                (spec.clone(), Recorder::new(spec, around))
            })
            .collect();
        Ok(Self {
            scenario,
            producer: queue.producer(SourceId(0)),
            queue,
            stage,
            lister,
            writer,
            handlers,
            running: false,
            errors: Vec::new(),
            errors_taken: 0,
            transform_calls,
        })
    }

    fn input(&mut self, verb: &QueueVerb) -> Outcome {
        let pushed = match verb {
            QueueVerb::Input(kind, text) => {
                let object = incoming::<T>(text).map_err(|bad| bad.to_string())?;
                match kind {
                    DeltaKind::Added => self.producer.try_added(object),
                    DeltaKind::Deleted => self.producer.try_deleted(object),
                    _ => self.producer.try_updated(object),
                }
            }
            QueueVerb::Bad(text) => self.producer.bad(bad(text), false),
            QueueVerb::Replace {
                items,
                version,
                reset,
            } => self.replace(items, version, *reset),
            QueueVerb::Bookmark(version) => self.producer.bookmark(ResourceVersion::new(version)),
            QueueVerb::Resync => self.producer.resync(ResyncTargets::All),
        };
        match pushed {
            // It is in the quarantine, and told when it is applied.
            Ok(()) | Err(PushError::Transform(_)) => Ok(()),
            Err(PushError::Closed) => {
                self.errors.push(Told {
                    name: "closed".to_owned(),
                    message: "the queue is closed".to_owned(),
                });
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn replace(&self, items: &[ListItem], version: &str, reset: bool) -> Result<(), PushError> {
        let list = ListSnapshot {
            resource_version: ResourceVersion::new(version),
            items: items.iter().map(item).collect(),
            reset,
        };
        self.producer.replace(list).map(drop)
    }

    /// Take all that is pending, apply it, and tell the handlers.
    fn drain(&mut self) {
        let Some(batch) = self.queue.try_drain() else {
            return;
        };
        self.apply(batch);
    }

    fn apply(&mut self, batch: Batch<T>) {
        let lossless = self
            .handlers
            .iter()
            .any(|(spec, _)| spec.policy.is_lossless());
        self.writer.set_effective(lossless);
        let applied = self.writer.apply(batch);
        self.queue.acknowledge();
        for (spec, recorder) in &mut self.handlers {
            let name = spec.name.clone();
            let mut calls: Vec<Telling<'_>> = Vec::new();
            told(
                &applied,
                spec.policy.is_lossless(),
                &self.lister,
                &mut calls,
            );
            for mut call in calls {
                let panicked = catch_unwind(AssertUnwindSafe(|| call(recorder))).is_err();
                if panicked {
                    self.errors.push(Told {
                        name: format!("panic({name})"),
                        message: "the handler panicked".to_owned(),
                    });
                }
            }
        }
        self.errors.extend(
            applied
                .index_failures
                .into_iter()
                .map(|failure| Told::of(&failure.into())),
        );
        self.errors
            .extend(applied.quarantined.into_iter().map(|object| {
                let key = object.key.as_ref().map_or("?", |key| key.as_str());
                Told {
                    name: format!("bad({})", show_key(key)),
                    message: object.reason,
                }
            }));
    }

    fn always(&self) -> Outcome {
        cache::agrees(&self.lister.load(), &self.scenario.settings.indexes)?;
        for (_, recorder) in &self.handlers {
            if let Some(wrong) = recorder.wrong().first() {
                return Err(format!("what no handler may see: {wrong}"));
            }
        }
        Ok(())
    }

    fn meant(&self, name: Option<&str>) -> Result<Vec<&(HandlerSpec, Recorder<T>)>, String> {
        let meant: Vec<_> = self
            .handlers
            .iter()
            .filter(|(spec, _)| name.is_none_or(|name| name == spec.name))
            .collect();
        if meant.is_empty() {
            return Err(format!(
                "there is no handler {:?}",
                name.unwrap_or_default()
            ));
        }
        Ok(meant)
    }
}

type Telling<'a> = Box<dyn FnMut(&mut Recorder<T>) + 'a>;

/// The calls that a batch leads to, as the two sorts of handlers get them.
fn told<'a>(
    applied: &'a Applied<T>,
    lossless: bool,
    lister: &Indexer<T>,
    calls: &mut Vec<Telling<'a>>,
) {
    calls.extend(applied.resets.iter().map(|source| {
        Box::new(move |recorder: &mut Recorder<T>| Handler::on_reset(recorder, *source))
            as Telling<'a>
    }));
    let mut changed = BTreeSet::new();
    match &applied.effective {
        Some(effective) if lossless => {
            for delta in effective {
                let (key, call): (_, Telling<'a>) = match delta {
                    Effective::Added { new, initial } => (
                        new.key(),
                        Box::new(move |recorder| Handler::on_add(recorder, new, *initial)),
                    ),
                    Effective::Updated { old, new } => (
                        new.key(),
                        Box::new(move |recorder| Handler::on_update(recorder, old, new)),
                    ),
                    Effective::Deleted { deleted } => (
                        &deleted.key,
                        Box::new(move |recorder| Handler::on_delete(recorder, deleted)),
                    ),
                };
                changed.insert(key.clone());
                calls.push(call);
            }
        }
        _ => {
            for change in &applied.changes {
                changed.insert(change.key().clone());
                if let Some(deleted) = &change.deleted {
                    calls.push(Box::new(move |recorder| {
                        Handler::on_delete(recorder, deleted);
                    }));
                }
                let Some(new) = &change.new else {
                    continue;
                };
                match &change.old {
                    Some(old) if change.deleted.is_none() => {
                        calls.push(Box::new(move |recorder| {
                            Handler::on_update(recorder, old, new);
                        }));
                    }
                    _ => calls.push(Box::new(move |recorder| {
                        Handler::on_add(recorder, new, change.initial);
                    })),
                }
            }
        }
    }
    if !applied.resyncs.is_empty() {
        let all: Vec<Cached<T>> = lister.list();
        for object in all {
            if !changed.contains(object.key()) {
                calls.push(Box::new(move |recorder| {
                    Handler::on_update(recorder, &object, &object);
                }));
            }
        }
    }
}

impl Play for QueuePlay<'_> {
    async fn begin(&mut self) -> Outcome {
        if let Some(given) = &self.scenario.settings.given {
            self.replace(&given.items, &given.version, false)
                .map_err(|error| error.to_string())?;
            self.drain();
            for (_, recorder) in &self.handlers {
                recorder.forget();
            }
            self.errors_taken = self.errors.len();
        }
        self.always()
    }

    async fn step(&mut self, action: &Action, _later: &[Step]) -> Outcome {
        match action {
            Action::Queue(verb) => self.input(verb)?,
            Action::Drain => self.drain(),
            Action::Pause => self.running = false,
            Action::Resume => self.running = true,
            Action::Close => self.queue.close(),
            Action::Advance(time) => self.stage.pass(*time).await,
            other => {
                return Err(format!(
                    "a scenario that drives a queue cannot do this: {other:?}"
                ));
            }
        }
        if self.running {
            self.drain();
        }
        self.stage.settle().await;
        self.always()
    }

    async fn check(&mut self, check: &Check) -> Outcome {
        if let Some(outcome) = cache::check(&check.what, &self.lister, |_| Ok(SourceId(0))) {
            return outcome;
        }
        match &check.what {
            Claim::Calls {
                handler,
                calls,
                order,
            } => {
                for (spec, recorder) in self.meant(handler.as_deref())? {
                    let (all, sane) = recorder.take();
                    if let Some(told) = compare(calls, &all, *order)
                        && (all.len() == sane.len() || compare(calls, &sane, *order).is_some())
                    {
                        return Err(format!("handler {}: {told}", spec.name));
                    }
                }
                Ok(())
            }
            Claim::CallCount { handler, count } => {
                for (spec, recorder) in self.meant(handler.as_deref())? {
                    number(
                        &format!("calls of handler {}", spec.name),
                        count,
                        recorder.take_count(),
                    )?;
                }
                Ok(())
            }
            Claim::View { handler, objects } => {
                for (spec, recorder) in self.meant(handler.as_deref())? {
                    same_objects(
                        &format!("what handler {} was told adds up to", spec.name),
                        objects,
                        &recorder.view(),
                    )?;
                }
                Ok(())
            }
            Claim::Errors(expected) => {
                let new = &self.errors[self.errors_taken..];
                let outcome = errors::compare(expected, new);
                self.errors_taken = self.errors.len();
                outcome
            }
            Claim::ErrorCount(count) => {
                let new = self.errors.len() - self.errors_taken;
                self.errors_taken = self.errors.len();
                number("errors", count, new)
            }
            Claim::Synced { of: None, synced } => equal("synced", synced, &self.queue.has_synced()),
            Claim::QueueDepth(count) => number("keys in the queue", count, self.queue.len()),
            Claim::Pending { key, choices } => {
                let found = pending::pending(&self.queue.pending(), &self.lister.load(), key);
                pending::compare(key, choices, &found)
            }
            Claim::TransformCalls(count) => number(
                "calls of the transform",
                count,
                self.transform_calls.load(Ordering::Relaxed),
            ),
            other => Err(format!("this cannot be expected of a queue: {other:?}")),
        }
    }

    async fn end(&mut self) -> Outcome {
        self.drain();
        let stored = cache::content(&self.lister.load());
        for (spec, recorder) in &self.handlers {
            if let Some(told) = super::super::recorder::difference(&stored, &recorder.view()) {
                return Err(format!("handler {}: {told}", spec.name));
            }
        }
        self.always()
    }
}
