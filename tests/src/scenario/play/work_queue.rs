//! A work queue, its workers, and a clock that moves when told.
use super::super::action::{Action, Step};
use super::super::claim::{Check, Claim};
use super::super::document::Scenario;
use super::super::notation::show_duration;
use super::super::spec::LimiterSpec;
use super::super::stage::Stage;
use super::super::work_verb::{Got, WorkVerb};
use super::cache::number;
use super::{Outcome, Play, equal};
use informant::Clock;
use informant::work_queue::{
    Delayed, Drained, FastSlow, Item, ItemExponential, MaxOf, RateLimiter, TokenBucket, WorkQueue,
    WorkQueueConfig,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

pub(super) struct WorkPlay {
    stage: Stage,
    queue: WorkQueue<String>,
    limiter: Arc<dyn RateLimiter<String>>,
    /// What was handed out to nobody in particular.
    held: Vec<Item<String>>,
    workers: BTreeMap<String, Arc<Mutex<Worker>>>,
    drains: BTreeMap<String, JoinHandle<Drained>>,
}

enum Worker {
    Waiting,
    Holds(Item<String>),
    ShutDown,
    /// It is done with what it had, and asks for nothing.
    Idle,
}

fn lock(worker: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

fn limiter(spec: &LimiterSpec) -> Arc<dyn RateLimiter<String>> {
    match *spec {
        LimiterSpec::Exponential { base, max } => Arc::new(ItemExponential::new(base, max)),
        LimiterSpec::FastSlow {
            fast,
            slow,
            attempts,
        } => Arc::new(FastSlow::new(fast, slow, attempts)),
        LimiterSpec::Bucket { per_second, burst } => Arc::new(TokenBucket::new(per_second, burst)),
    }
}

impl WorkPlay {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let stage = Stage::new(scenario.settings.patience);
        let limiter: Arc<dyn RateLimiter<String>> = match scenario.settings.limiter.as_slice() {
            [] => Arc::new(ItemExponential::default()),
            [only] => limiter(only),
            several => Arc::new(MaxOf::new(several.iter().map(limiter).collect())),
        };
        let config = WorkQueueConfig::new(stage.shared_clock()).limiter(limiter.clone());
        Self {
            limiter,
            queue: WorkQueue::new(config),
            stage,
            held: Vec::new(),
            workers: BTreeMap::new(),
            drains: BTreeMap::new(),
        }
    }

    fn act(&mut self, verb: &WorkVerb) -> Outcome {
        let queue = &self.queue;
        match verb {
            WorkVerb::Add(key) => queue.add(key.clone()),
            WorkVerb::AddAfter(key, delay) => queue.add_after(key.clone(), *delay),
            WorkVerb::AddRateLimited(key) => {
                queue.add_rate_limited(key.clone());
            }
            WorkVerb::Get(expected) => return self.get(expected.as_ref()),
            WorkVerb::Wait(name) => self.wait(name),
            WorkVerb::Done(key) => self.done(key),
            WorkVerb::Forget(key) => queue.forget(key),
            WorkVerb::Cancel(key) => {
                queue.cancel_delayed(key);
            }
            WorkVerb::ShutDown => queue.shut_down(),
            WorkVerb::Drain { name, deliver } => {
                let queue = queue.clone();
                let delayed = if *deliver {
                    Delayed::Deliver
                } else {
                    Delayed::Drop
                };
                let draining =
                    tokio::spawn(async move { queue.shut_down_with_drain(delayed).await });
                self.drains.insert(name.clone(), draining);
            }
            WorkVerb::When(key, expected) => {
                let delay = self.limiter.when(key, self.stage.clock.now());
                if let Some(expected) = expected {
                    equal(
                        &format!("when({key})"),
                        &show_duration(*expected),
                        &show_duration(delay),
                    )?;
                }
            }
            WorkVerb::Len(count) => return number("len", count, queue.len()),
            WorkVerb::Retries(key, count) => {
                return number(&format!("retries({key})"), count, queue.retries(key));
            }
        }
        Ok(())
    }

    fn get(&mut self, expected: Option<&Got>) -> Outcome {
        let (got, item) = match self.queue.try_get() {
            Ok(Some(item)) => (Got::Key((*item).clone()), Some(item)),
            Ok(None) => (Got::Nothing, None),
            Err(_) => (Got::ShutDown, None),
        };
        self.held.extend(item);
        match expected {
            Some(expected) if *expected != got => Err(format!(
                "get: expected {}, got {}",
                show(expected),
                show(&got)
            )),
            _ => Ok(()),
        }
    }

    fn wait(&mut self, name: &str) {
        let worker = Arc::new(Mutex::new(Worker::Waiting));
        self.workers.insert(name.to_owned(), worker.clone());
        let queue = self.queue.clone();
        tokio::spawn(async move {
            let got = queue.get().await;
            *lock(&worker) = match got {
                Ok(item) => Worker::Holds(item),
                Err(_) => Worker::ShutDown,
            };
        });
    }

    fn done(&mut self, key: &str) {
        if let Some(at) = self.held.iter().position(|item| **item == key) {
            self.held.remove(at).done();
            return;
        }
        for worker in self.workers.values() {
            let mut worker = lock(worker);
            if matches!(&*worker, Worker::Holds(item) if **item == key) {
                let held = std::mem::replace(&mut *worker, Worker::Idle);
                drop(worker);
                drop(held);
                return;
            }
        }
        self.queue.done(&key.to_owned());
    }
}

fn show(got: &Got) -> String {
    match got {
        Got::Key(key) => key.clone(),
        Got::Nothing => "nothing".to_owned(),
        Got::ShutDown => "shutdown".to_owned(),
    }
}

impl Play for WorkPlay {
    async fn begin(&mut self) -> Outcome {
        Ok(())
    }

    async fn step(&mut self, action: &Action, _later: &[Step]) -> Outcome {
        match action {
            Action::Work(verb) => self.act(verb)?,
            Action::Advance(time) => self.stage.pass(*time).await,
            other => {
                return Err(format!(
                    "a scenario that drives a work queue cannot do this: {other:?}"
                ));
            }
        }
        self.stage.settle().await;
        let metrics = self.queue.metrics();
        equal("ready by the metrics", &metrics.ready, &self.queue.len())
    }

    async fn check(&mut self, check: &Check) -> Outcome {
        self.stage.settle().await;
        let metrics = self.queue.metrics();
        match &check.what {
            Claim::Len(count) => number("len", count, self.queue.len()),
            Claim::Delayed(count) => number("delayed", count, metrics.delayed),
            Claim::InFlight(count) => number("in flight", count, metrics.in_flight),
            Claim::Adds(count) => number("adds", count, metrics.adds),
            Claim::Retries { key, count } => {
                number(&format!("retries({key})"), count, self.queue.retries(key))
            }
            Claim::Worker { name, state } => {
                let worker = self
                    .workers
                    .get(name)
                    .ok_or_else(|| format!("there is no worker {name:?}"))?;
                let found = match &*lock(worker) {
                    Worker::Waiting => "waiting".to_owned(),
                    Worker::Holds(item) => (**item).clone(),
                    Worker::ShutDown => "shutdown".to_owned(),
                    Worker::Idle => "idle".to_owned(),
                };
                equal(&format!("worker {name}"), state, &found)
            }
            Claim::Wait { name, outcome } => {
                let drain = self
                    .drains
                    .get(name)
                    .ok_or_else(|| format!("there is no drain {name:?}"))?;
                let found = if drain.is_finished() { "ok" } else { "pending" };
                equal(name, &outcome.as_str(), &found)
            }
            Claim::Now(time) => equal(
                "now",
                &show_duration(*time),
                &show_duration(self.stage.clock.now().since_origin()),
            ),
            other => Err(format!(
                "this cannot be expected of a work queue: {other:?}"
            )),
        }
    }

    async fn end(&mut self) -> Outcome {
        self.held.clear();
        self.queue.shut_down();
        self.stage.settle().await;
        for worker in self.workers.values() {
            let mut worker = lock(worker);
            let held = std::mem::replace(&mut *worker, Worker::Idle);
            drop(worker);
            if matches!(held, Worker::Waiting) {
                return Err("a worker waits although the queue is shut down".to_owned());
            }
        }
        self.stage.pass(Duration::ZERO).await;
        match self.drains.iter().find(|(_, drain)| !drain.is_finished()) {
            Some((name, _)) => Err(format!(
                "{name} has not ended, although the queue is shut down"
            )),
            None => Ok(()),
        }
    }
}
