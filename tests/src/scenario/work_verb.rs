//! What is done with a work queue: `add(a); get -> a; done(a)`.
use super::notation::{Count, duration, function, unquoted};
use super::trouble::{Place, Reading, Trouble};
use super::yaml::split_at;
use std::time::Duration;

/// What is done with a work queue.
#[derive(Clone, Debug)]
pub enum WorkVerb {
    /// `add(a)`.
    Add(String),
    /// `add_after(a, 5s)`.
    AddAfter(String, Duration),
    /// `add_rate_limited(a)`.
    AddRateLimited(String),
    /// `get -> a`: a worker that asks now, and does not wait.
    Get(Option<Got>),
    /// `get(w1)`: a worker that waits.
    Wait(String),
    /// `done(a)`.
    Done(String),
    /// `forget(a)`.
    Forget(String),
    /// `cancel(a)`: the delayed add is taken back.
    Cancel(String),
    /// `shutdown()`.
    ShutDown,
    /// `shutdown_with_drain()`, under a name; `deliver` waits for delayed keys, too.
    Drain {
        /// Under which name it can be asked about.
        name: String,
        /// Delayed keys are handed out.
        deliver: bool,
    },
    /// `when(a) = 5ms`: what the limiter says; it counts a failure.
    When(String, Option<Duration>),
    /// `len = 1`.
    Len(Count),
    /// `retries(a) = 2`.
    Retries(String, Count),
}

/// What a get gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// This key.
    Key(String),
    /// Nothing is ready.
    Nothing,
    /// The queue is shut down.
    ShutDown,
}

/// A verb of the work queue and how often; `None` when the text is none at all.
#[allow(clippy::too_many_lines)] // One arm a verb, and each arm is short.
pub fn work_verb(place: Place, text: &str) -> Reading<Option<(WorkVerb, usize)>> {
    let text = text.trim();
    let (text, times) = match text.rsplit_once(" x") {
        Some((before, times)) => match times.trim().parse() {
            Ok(times) => (before.trim(), times),
            Err(_) => (text, 1),
        },
        None => (text, 1),
    };
    if let Some(rest) = text.strip_prefix("len") {
        let rest = rest.trim_start().trim_start_matches("()").trim_start();
        let count = rest.strip_prefix('=').or_else(|| rest.strip_prefix("->"));
        return match count {
            Some(count) => Ok(Some((WorkVerb::Len(Count::parse(place, count)?), times))),
            None => Err(Trouble::new(place, "len is compared with something").suggest("len = 1")),
        };
    }
    if text == "get" {
        return Ok(Some((WorkVerb::Get(None), times)));
    }
    if let Some(rest) = text
        .strip_prefix("get")
        .map(|rest| rest.trim_start_matches("()").trim())
        && let Some(got) = rest.strip_prefix("->")
    {
        return Ok(Some((WorkVerb::Get(Some(got_of(got))), times)));
    }
    let Some((name, inner, rest)) = function(text) else {
        return Ok(None);
    };
    let rest = rest.trim();
    let result = rest
        .strip_prefix('=')
        .or_else(|| rest.strip_prefix("->"))
        .map(str::trim);
    if result.is_none() && !rest.is_empty() {
        return Ok(None);
    }
    let arguments = split_at(inner, ',');
    let key =
        || -> Reading<String> {
            let key = arguments.first().map(|key| unquoted(key).to_owned());
            // `(ns1, x)` and `ns1/x` are the same key.
            match (key, arguments.get(1)) {
                (Some(namespace), Some(name))
                    if !matches!(text.split('(').next(), Some("add_after")) =>
                {
                    Ok(format!("{namespace}/{name}"))
                }
                (Some(key), _) => Ok(key),
                (None, _) => Err(Trouble::new(place, format!("{text:?} names no key"))
                    .suggest(format!("{name}(a)"))),
            }
        };
    let verb = match name {
        "add" => WorkVerb::Add(key()?),
        "add_after" => {
            let Some(delay) = arguments.last().filter(|_| arguments.len() > 1) else {
                return Err(Trouble::new(place, format!("{text:?} lacks its delay"))
                    .suggest("add_after(a, 5s)"));
            };
            // The past is now.
            let delay = if delay.starts_with('-') {
                Duration::ZERO
            } else {
                duration(place, delay)?
            };
            WorkVerb::AddAfter(key()?, delay)
        }
        "add_rate_limited" => WorkVerb::AddRateLimited(key()?),
        "get" => WorkVerb::Wait(key()?),
        "done" => WorkVerb::Done(key()?),
        "forget" => WorkVerb::Forget(key()?),
        "cancel" | "cancel_delayed" => WorkVerb::Cancel(key()?),
        "shutdown" | "shut_down" => WorkVerb::ShutDown,
        "shutdown_with_drain" | "shut_down_with_drain" | "drain" => {
            let mut name = "drain".to_owned();
            let mut deliver = false;
            for argument in &arguments {
                match argument.as_str() {
                    "deliver" => deliver = true,
                    other => other.clone_into(&mut name),
                }
            }
            WorkVerb::Drain { name, deliver }
        }
        "when" => WorkVerb::When(
            key()?,
            result.map(|time| duration(place, time)).transpose()?,
        ),
        "retries" => match result {
            Some(count) => WorkVerb::Retries(key()?, Count::parse(place, count)?),
            None => {
                return Err(Trouble::new(place, "retries is compared with something")
                    .suggest("retries(a) = 2"));
            }
        },
        other => {
            let known = [
                "add",
                "add_after",
                "add_rate_limited",
                "get",
                "done",
                "forget",
                "cancel",
                "shutdown",
                "shutdown_with_drain",
                "when",
                "retries",
                "len",
                "Added",
                "Updated",
                "Deleted",
                "Replace",
                "Resync",
            ];
            return Err(Trouble::unknown(place, "verb", other, known));
        }
    };
    Ok(Some((verb, times)))
}

/// What `get -> …` names.
pub fn got_of(text: &str) -> Got {
    match text.trim().trim_matches(['(', ')']) {
        "nothing" | "none" | "waits" | "timeout" => Got::Nothing,
        "shutdown" | "none, shutdown" => Got::ShutDown,
        key => Got::Key(unquoted(key).to_owned()),
    }
}
