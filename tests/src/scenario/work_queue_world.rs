//! Scenarios of the work queue, on a clock that moves only when told.
use super::keys::unknown;
use super::notation::duration;
use super::world::{number, same, same_flag};
use super::yaml::{Located, Node, Value};
use informant::work_queue::{Delayed, Item, ItemExponential, ShutDown, WorkQueue, WorkQueueConfig};
use informant::{Clock, ManualClock};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

pub(super) struct WorkQueueWorld {
    clock: ManualClock,
    queue: WorkQueue<String>,
    items: BTreeMap<String, Item<String>>,
    drain: Option<Pin<Box<dyn Future<Output = ()>>>>,
    drained: bool,
    got: Vec<String>,
}

const STEPS: [&str; 18] = [
    "add",
    "add_after",
    "add_rate_limited",
    "get",
    "get_all",
    "done",
    "retry",
    "succeed",
    "requeue_after",
    "forget",
    "cancel",
    "shut_down",
    "drain",
    "drain_delivering",
    "advance",
    "worker_panics",
    "note",
    "expect",
];

const EXPECTATIONS: [&str; 11] = [
    "len",
    "delayed",
    "in_flight",
    "adds",
    "gets",
    "retries",
    "got",
    "next",
    "drained",
    "shutting_down",
    "due",
];

impl WorkQueueWorld {
    pub(super) fn read(settings: &Node) -> Result<Self, Located> {
        let (mut base, mut max) = (Duration::from_millis(5), Duration::from_secs(1_000));
        if !matches!(settings.value, Value::Null) {
            for (key, value) in settings.map()? {
                let time = || duration(value.text()?).map_err(|error| (value.line, error));
                match key.text()? {
                    "base_delay" => base = time()?,
                    "max_delay" => max = time()?,
                    other => {
                        let known = ["base_delay", "max_delay"];
                        return Err((
                            key.line,
                            unknown("setting of the work queue", other, &known),
                        ));
                    }
                }
            }
        }
        let clock = ManualClock::new();
        let config = WorkQueueConfig::new(Arc::new(clock.clone()))
            .limiter(Arc::new(ItemExponential::new(base, max)));
        Ok(Self {
            clock,
            queue: WorkQueue::new(config),
            items: BTreeMap::new(),
            drain: None,
            drained: false,
            got: Vec::new(),
        })
    }

    /// What a worker would get now: a key, `nothing`, or `shutdown`.
    fn get(&mut self) -> String {
        let got = match self.queue.try_get() {
            Ok(Some(item)) => {
                let key = (*item).clone();
                self.items.insert(key.clone(), item);
                key
            }
            Ok(None) => "nothing".to_owned(),
            Err(ShutDown) => "shutdown".to_owned(),
        };
        self.got.push(got.clone());
        got
    }

    fn take(&mut self, key: &str, line: usize) -> Result<Item<String>, Located> {
        let held = self.items.remove(key);
        held.ok_or_else(|| (line, format!("no worker holds {key:?} here")))
    }

    pub(super) fn step(&mut self, verb: &Node, argument: &Node) -> Result<(), Located> {
        let line = argument.line;
        let keys = || Ok::<_, Located>(argument.texts()?.into_iter().map(|(_, text)| text));
        // `a 5s`: a key and a time.
        let delayed = || {
            let mut delayed = Vec::new();
            for (line, text) in argument.texts()? {
                let (key, time) = text
                    .rsplit_once(' ')
                    .ok_or((line, format!("{text:?} has no delay; write a 5s")))?;
                // Negative means now.
                let time = if time.starts_with('-') {
                    Duration::ZERO
                } else {
                    duration(time).map_err(|error| (line, error))?
                };
                delayed.push((key.trim().to_owned(), time));
            }
            Ok::<_, Located>(delayed)
        };
        match verb.text()? {
            "add" => keys()?.for_each(|key| self.queue.add(key)),
            "add_after" => delayed()?
                .into_iter()
                .for_each(|(key, delay)| self.queue.add_after(key, delay)),
            "add_rate_limited" => {
                for key in keys()? {
                    self.queue.add_rate_limited(key);
                }
            }
            "forget" => keys()?.for_each(|key| self.queue.forget(&key)),
            "cancel" => {
                for key in keys()? {
                    self.queue.cancel_delayed(&key);
                }
            }
            "get" => drop(self.get()),
            "get_all" => loop {
                let got = self.get();
                if matches!(got.as_str(), "nothing" | "shutdown") {
                    self.got.pop();
                    break;
                }
                self.items.remove(&got);
            },
            "done" => {
                for key in keys()? {
                    match self.items.remove(&key) {
                        Some(item) => item.done(),
                        None => self.queue.done(&key),
                    }
                }
            }
            "retry" => {
                self.take(argument.text()?, line)?.retry();
            }
            "succeed" => self.take(argument.text()?, line)?.succeed(),
            "requeue_after" => {
                for (key, delay) in delayed()? {
                    self.take(&key, line)?.requeue_after(delay);
                }
            }
            "worker_panics" => {
                let item = self.take(argument.text()?, line)?;
                let unwinding = std::panic::AssertUnwindSafe(move || {
                    let _item = item;
                    std::panic::resume_unwind(Box::new("the scenario asks for a panic here"));
                });
                std::panic::catch_unwind(unwinding).ok();
            }
            "shut_down" => self.queue.shut_down(),
            "drain" | "drain_delivering" => {
                let delayed = if verb.text()? == "drain" {
                    Delayed::Drop
                } else {
                    Delayed::Deliver
                };
                let queue = self.queue.clone();
                self.drain = Some(Box::pin(async move {
                    queue.shut_down_with_drain(delayed).await;
                }));
            }
            "advance" => {
                let time = duration(argument.text()?).map_err(|error| (line, error))?;
                self.clock.advance(time);
            }
            "note" => (),
            other => return Err((verb.line, unknown("step", other, &STEPS))),
        }
        if let Some(drain) = &mut self.drain
            && drain
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_ready()
        {
            self.drain = None;
            self.drained = true;
        }
        Ok(())
    }

    pub(super) fn expect(&mut self, key: &Node, node: &Node) -> Result<Option<String>, Located> {
        let metrics = self.queue.metrics();
        Ok(match key.text()? {
            "len" => number(node, self.queue.len() as u64)?,
            "delayed" => number(node, metrics.delayed as u64)?,
            "in_flight" => number(node, metrics.in_flight as u64)?,
            "adds" => number(node, metrics.adds)?,
            "gets" => number(node, metrics.gets)?,
            "drained" => same_flag(node, self.drained)?,
            "shutting_down" => same_flag(node, self.queue.is_shutting_down())?,
            "retries" => {
                for (key, count) in node.map()? {
                    let retries = self.queue.retries(&key.text()?.to_owned());
                    if let Some(text) = number(count, u64::from(retries))? {
                        return Ok(Some(format!("retries of {}: {text}", key.text()?)));
                    }
                }
                None
            }
            // What was handed out since it was last asked, in order.
            "got" => {
                let expected: Vec<String> =
                    node.texts()?.into_iter().map(|(_, text)| text).collect();
                let got = std::mem::take(&mut self.got);
                (expected != got).then(|| format!("expected {expected:?}, workers got {got:?}"))
            }
            "next" => {
                let got = self.get();
                same(node, &got)?
            }
            // When each delayed key is due, from now.
            "due" => {
                let due = self.queue.delayed();
                let now = self.clock.now();
                for (key, expected) in node.map()? {
                    let found = due
                        .iter()
                        .find(|delayed| *delayed.key == *key.text().unwrap_or(""));
                    let actual = found.map_or_else(
                        || "never".to_owned(),
                        |delayed| format!("{:?}", delayed.due.since(now)),
                    );
                    let expected = match expected.text()? {
                        "never" => "never".to_owned(),
                        text => format!(
                            "{:?}",
                            duration(text).map_err(|error| (expected.line, error))?
                        ),
                    };
                    if expected != actual {
                        return Ok(Some(format!(
                            "{} is due in {actual}, expected {expected}",
                            key.text()?
                        )));
                    }
                }
                None
            }
            other => return Err((key.line, unknown("expectation", other, &EXPECTATIONS))),
        })
    }
}
