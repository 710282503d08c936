//! Reading what an `expect` step says.
use super::claim::{Check, Claim, Gap};
use super::notation::{Count, DeltaPattern, Item, ObjectText, RequestPattern, calls, duration};
use super::sequence::Order;
use super::settings::{boolean, count, objects};
use super::trouble::{Reading, Trouble};
use super::yaml::{Node, Value};
use std::time::Duration;

/// All words that may stand in an `expect`.
pub const KEYS: [&str; 41] = [
    "calls",
    "call_count",
    "requests",
    "request_count",
    "gaps",
    "errors",
    "store",
    "index",
    "index_values",
    "poisoned",
    "quarantine",
    "complete",
    "watermark",
    "last_seen",
    "synced",
    "has_synced",
    "handler_synced",
    "view",
    "waits",
    "state",
    "running",
    "handlers",
    "resync_period",
    "queue_depth",
    "pending",
    "open_watches",
    "epoch",
    "transform_calls",
    "snapshots",
    "lookup",
    "keys",
    "same",
    "different",
    "informers",
    "len",
    "delayed",
    "in_flight",
    "workers",
    "retries",
    "adds",
    "now",
];

/// Read an `expect`.
///
/// # Errors
/// When something in it is not understood.
pub fn checks(node: &Node) -> Reading<Vec<Check>> {
    let mut checks = Vec::new();
    if let Value::Sequence(items) = &node.value {
        for item in items {
            checks.extend(self::checks(item)?);
        }
        return Ok(checks);
    }
    for (key, value) in node.entries("expect")? {
        claims(key, value, &mut checks)?;
    }
    if checks.is_empty() {
        return Err(node
            .trouble("nothing is expected")
            .suggest(format!("known are: {}", KEYS.join(", "))));
    }
    Ok(checks)
}

#[allow(clippy::too_many_lines)] // One arm a word, and each arm is short.
fn claims(key: &Node, value: &Node, checks: &mut Vec<Check>) -> Reading<()> {
    let name = key.expect_text("a key")?;
    let mut add = |what| {
        checks.push(Check {
            place: key.place,
            what,
        });
    };
    match name {
        "calls" => call_claims(value, None, &mut add)?,
        "call_count" => each(value, |handler, value| {
            add(Claim::CallCount {
                handler,
                count: count(value)?,
            });
            Ok(())
        })?,
        "requests" => request_claims(value, &mut add)?,
        "request_count" => match &value.value {
            Value::Mapping(entries) => {
                for (like, value) in entries {
                    let (like, _) =
                        RequestPattern::parse(like.place, like.expect_text("a request")?)?;
                    add(Claim::RequestCount {
                        like: Some(like),
                        count: count(value)?,
                    });
                }
            }
            _ => add(Claim::RequestCount {
                like: None,
                count: count(value)?,
            }),
        },
        "gaps" => {
            for (like, value) in value.entries("gaps")? {
                let (like, _) = RequestPattern::parse(like.place, like.expect_text("a request")?)?;
                add(Claim::Gaps {
                    like,
                    gaps: gaps(value)?,
                });
            }
        }
        "errors" => match &value.value {
            Value::Mapping(entries) => {
                for (key, value) in entries {
                    match key.expect_text("a key")? {
                        "count" => add(Claim::ErrorCount(count(value)?)),
                        other => {
                            return Err(Trouble::unknown(
                                key.place,
                                "key of errors",
                                other,
                                ["count"],
                            ));
                        }
                    }
                }
            }
            Value::Scalar { text, .. } if text == "none" => add(Claim::Errors(Vec::new())),
            Value::Scalar { text, .. }
                if text.starts_with(['<', '>', '=']) || text.contains("..") =>
            {
                add(Claim::ErrorCount(count(value)?));
            }
            _ => add(Claim::Errors(texts(value)?)),
        },
        "store" => store_claims(value, &mut add)?,
        "index" | "indexes" => {
            for (index, value) in value.entries("index")? {
                let index = index.expect_text("an index")?.to_owned();
                if matches!(value.text(), Some("error" | "unknown")) {
                    add(Claim::NoIndex { index, error: true });
                    continue;
                }
                for (of, value) in value.entries("the values of an index")? {
                    add(Claim::Index {
                        index: index.clone(),
                        value: of.expect_text("a value")?.to_owned(),
                        objects: objects(value)?,
                    });
                }
            }
        }
        "index_values" => {
            for (index, value) in value.entries("index_values")? {
                let index = index.expect_text("an index")?.to_owned();
                add(if matches!(value.text(), Some("error" | "unknown")) {
                    Claim::NoIndex { index, error: true }
                } else {
                    Claim::IndexValues {
                        index,
                        values: texts(value)?,
                    }
                });
            }
        }
        "poisoned" => {
            for (index, value) in value.entries("poisoned")? {
                let index = index.expect_text("an index")?.to_owned();
                add(Claim::Poisoned {
                    index,
                    objects: objects(value)?,
                });
            }
        }
        "quarantine" => add(Claim::Quarantine(objects(value)?)),
        "complete" => add(Claim::Complete(boolean(value)?)),
        "watermark" => each(value, |source, value| {
            add(Claim::Watermark {
                source,
                version: version(value)?,
            });
            Ok(())
        })?,
        "last_seen" => each(value, |source, value| {
            add(Claim::LastSeen {
                source,
                version: version(value)?,
            });
            Ok(())
        })?,
        "synced" | "has_synced" => each(value, |of, value| {
            add(Claim::Synced {
                of,
                synced: boolean(value)?,
            });
            Ok(())
        })?,
        "handler_synced" => each(value, |handler, value| {
            let handler = handler.unwrap_or_default();
            add(Claim::HandlerSynced {
                handler,
                synced: boolean(value)?,
            });
            Ok(())
        })?,
        "view" => each(value, |handler, value| {
            add(Claim::View {
                handler,
                objects: objects(value)?,
            });
            Ok(())
        })?,
        "waits" => {
            for (name, value) in value.entries("waits")? {
                let (name, outcome) = (name.expect_text("a wait")?.to_owned(), outcome(value)?);
                add(Claim::Wait { name, outcome });
            }
        }
        "state" => each(value, |source, value| {
            let state = value.expect_text("a state")?;
            let known = [
                "initialising",
                "listing",
                "streaming",
                "watching",
                "backing_off",
                "stopped",
            ];
            if !known.contains(&state) {
                return Err(Trouble::unknown(value.place, "state", state, known));
            }
            add(Claim::State {
                source,
                state: state.to_owned(),
            });
            Ok(())
        })?,
        "running" => add(Claim::Running(boolean(value)?)),
        "handlers" => {
            for (handler, numbers) in value.entries("handlers")? {
                for (number, value) in numbers.entries("the numbers of a handler")? {
                    let name = number.expect_text("a number's name")?;
                    let known = ["calls", "panics", "waiting", "coalesced", "replays"];
                    if !known.contains(&name) {
                        return Err(Trouble::unknown(
                            number.place,
                            "number of a handler",
                            name,
                            known,
                        ));
                    }
                    add(Claim::HandlerNumber {
                        handler: handler.expect_text("a handler")?.to_owned(),
                        number: name.to_owned(),
                        count: count(value)?,
                    });
                }
            }
        }
        "resync_period" => each(value, |handler, value| {
            let period = match value.expect_text("a period")? {
                "none" | "never" => None,
                text => Some(duration(value.place, text)?),
            };
            add(Claim::ResyncPeriod {
                handler: handler.unwrap_or_default(),
                period,
            });
            Ok(())
        })?,
        "queue_depth" => add(Claim::QueueDepth(count(value)?)),
        "pending" => pending_claims(value, &mut add)?,
        "open_watches" => add(Claim::OpenWatches(count(value)?)),
        "epoch" => add(Claim::Epoch(count(value)?)),
        "transform_calls" => add(Claim::TransformCalls(count(value)?)),
        "snapshots" => {
            for (name, value) in value.entries("snapshots")? {
                add(Claim::Snapshot {
                    name: name.expect_text("a name")?.to_owned(),
                    objects: objects(value)?,
                });
            }
        }
        "lookup" => {
            for (text, value) in value.entries("lookup")? {
                let object = match value.text() {
                    Some("none" | "null" | "") => None,
                    _ => Some(ObjectText::read(value)?),
                };
                add(Claim::Lookup {
                    key: text.expect_text("a key")?.to_owned(),
                    object,
                });
            }
        }
        "keys" => {
            for (text, value) in value.entries("keys")? {
                let valid = match value.text() {
                    Some("valid" | "ok") => true,
                    Some("error" | "invalid") => false,
                    _ => return Err(value.trouble("a key is valid or invalid")),
                };
                add(Claim::Key {
                    text: text.expect_text("a key")?.to_owned(),
                    valid,
                });
            }
        }
        "same" | "different" => add(Claim::Same {
            names: texts(value)?,
            same: name == "same",
        }),
        "informers" => add(Claim::Informers(count(value)?)),
        "len" => add(Claim::Len(count(value)?)),
        "delayed" => add(Claim::Delayed(count(value)?)),
        "in_flight" => add(Claim::InFlight(count(value)?)),
        "workers" => {
            for (name, value) in value.entries("workers")? {
                add(Claim::Worker {
                    name: name.expect_text("a worker")?.to_owned(),
                    state: value.expect_text("what a worker has")?.to_owned(),
                });
            }
        }
        "retries" => {
            for (of, value) in value.entries("retries")? {
                add(Claim::Retries {
                    key: of.expect_text("a key")?.to_owned(),
                    count: count(value)?,
                });
            }
        }
        "adds" => add(Claim::Adds(count(value)?)),
        "now" => add(Claim::Now(duration(
            value.place,
            value.expect_text("a time")?,
        )?)),
        other => return Err(Trouble::unknown(key.place, "expectation", other, KEYS)),
    }
    Ok(())
}

fn call_claims(node: &Node, handler: Option<&str>, add: &mut dyn FnMut(Claim)) -> Reading<()> {
    let claim = |calls, order| Claim::Calls {
        handler: handler.map(str::to_owned),
        calls,
        order,
    };
    let Value::Mapping(entries) = &node.value else {
        if let Some(text) = node.text()
            && matches!(text, "none" | "nothing")
        {
            add(claim(Vec::new(), Order::default()));
            return Ok(());
        }
        add(claim(calls(node)?, Order::default()));
        return Ok(());
    };
    if entries.iter().all(|(_, value)| value.is_null()) {
        add(claim(calls(node)?, Order::default()));
        return Ok(());
    }
    for (key, value) in entries {
        match key.expect_text("a key")? {
            "in_order" => add(claim(calls(value)?, Order::Exact)),
            "per_key" => add(claim(calls(value)?, Order::PerKey)),
            "any_order" => add(claim(vec![Item::AnyOrder(calls(value)?)], Order::PerKey)),
            "one_of" | "either" => {
                let one = Node {
                    place: node.place,
                    value: Value::Sequence(vec![node.clone()]),
                };
                add(claim(calls(&one)?, Order::default()));
            }
            "contains" | "has" => {
                let mut items = vec![Item::Anything];
                for item in calls(value)? {
                    items.push(item);
                    items.push(Item::Anything);
                }
                add(claim(items, Order::default()));
            }
            name if handler.is_none() => call_claims(value, Some(name), add)?,
            other => {
                let known = ["in_order", "per_key", "any_order", "one_of", "contains"];
                return Err(Trouble::unknown(key.place, "key of calls", other, known));
            }
        }
    }
    Ok(())
}

fn request_claims(node: &Node, add: &mut impl FnMut(Claim)) -> Reading<()> {
    match &node.value {
        Value::Mapping(entries) if !entries.iter().all(|(_, value)| value.is_null()) => {
            for (key, value) in entries {
                match key.expect_text("a key")? {
                    "count" => add(Claim::RequestCount {
                        like: None,
                        count: count(value)?,
                    }),
                    source => add(Claim::Requests {
                        source: Some(source.to_owned()),
                        requests: requests(value)?,
                    }),
                }
            }
        }
        Value::Scalar { text, .. } if matches!(text.as_str(), "none" | "nothing") => {
            add(Claim::Requests {
                source: None,
                requests: Vec::new(),
            });
        }
        Value::Scalar { text, .. }
            if text.starts_with(['<', '>']) || text.trim().parse::<u64>().is_ok() =>
        {
            add(Claim::RequestCount {
                like: None,
                count: count(node)?,
            });
        }
        _ => add(Claim::Requests {
            source: None,
            requests: requests(node)?,
        }),
    }
    Ok(())
}

/// Requests, each with the time at which it shall come, where that is said: `LIST at 3s`.
fn requests(node: &Node) -> Reading<Vec<(RequestPattern, Option<Duration>)>> {
    let mut requests = Vec::new();
    for part in node.parts() {
        let (request, rest) = RequestPattern::parse(part.place, part.expect_text("a request")?)?;
        let at = match rest.trim().strip_prefix("at ") {
            Some(at) => Some(duration(part.place, at.trim().trim_start_matches("T+"))?),
            None if rest.trim().is_empty() => None,
            None => {
                return Err(part
                    .trouble(format!("{:?} after a request", rest.trim()))
                    .suggest("LIST(rv=0) at 3s"));
            }
        };
        requests.push((request, at));
    }
    Ok(requests)
}

fn gaps(node: &Node) -> Reading<Vec<Gap>> {
    let mut gaps = Vec::new();
    for part in node.parts() {
        let text = part.expect_text("a gap")?;
        let (text, times) = match text.rsplit_once(" x") {
            Some((text, times)) => (text, times.parse().map_err(|_| part.trouble("how often?"))?),
            None => (text, 1),
        };
        let gap = match text {
            "growing" => Gap::Growing,
            "any" => Gap::Any,
            text => match text.split_once("..") {
                Some((least, most)) => {
                    Gap::Between(duration(part.place, least)?, duration(part.place, most)?)
                }
                None => Gap::Exactly(duration(part.place, text)?),
            },
        };
        gaps.extend(std::iter::repeat_n(gap, times));
    }
    Ok(gaps)
}

fn store_claims(node: &Node, add: &mut impl FnMut(Claim)) -> Reading<()> {
    let is_set = match &node.value {
        Value::Mapping(entries) => entries.iter().all(|(_, value)| value.is_null()),
        _ => true,
    };
    if is_set {
        add(Claim::Store {
            of: None,
            objects: objects(node)?,
        });
        return Ok(());
    }
    for (key, value) in node.entries("store")? {
        match key.expect_text("a key")? {
            "has" | "contains" => add(Claim::Stored(objects(value)?)),
            "lacks" => add(Claim::NotStored(objects(value)?)),
            "size" => add(Claim::StoreSize(count(value)?)),
            informer => add(Claim::Store {
                of: Some(informer.to_owned()),
                objects: objects(value)?,
            }),
        }
    }
    Ok(())
}

fn pending_claims(node: &Node, add: &mut impl FnMut(Claim)) -> Reading<()> {
    let deltas = |node: &Node| -> Reading<Vec<DeltaPattern>> {
        node.parts()
            .iter()
            .map(|part| DeltaPattern::parse(part.place, part.expect_text("a delta")?))
            .collect()
    };
    if matches!(node.text(), Some("none" | "nothing")) {
        add(Claim::QueueDepth(Count::exactly(0)));
        return Ok(());
    }
    for (key, value) in node.entries("pending")? {
        let choices = match &value.value {
            Value::Mapping(entries) => match entries.as_slice() {
                [(word, choices)] if word.text() == Some("one_of") => match &choices.value {
                    Value::Sequence(choices) => {
                        choices.iter().map(deltas).collect::<Reading<_>>()?
                    }
                    _ => return Err(choices.trouble("one_of needs a list of lists")),
                },
                _ => {
                    return Err(
                        value.trouble("what waits is a list of deltas, or one_of such lists")
                    );
                }
            },
            _ => vec![deltas(value)?],
        };
        let key = ObjectText::parse(key.place, key.expect_text("a key")?)?.key;
        add(Claim::Pending { key, choices });
    }
    Ok(())
}

/// The same for each entry of a mapping, or for the one value without a name.
fn each(node: &Node, mut read: impl FnMut(Option<String>, &Node) -> Reading<()>) -> Reading<()> {
    match &node.value {
        Value::Mapping(entries) if !entries.iter().all(|(_, value)| value.is_null()) => {
            for (name, value) in entries {
                read(Some(name.expect_text("a name")?.to_owned()), value)?;
            }
            Ok(())
        }
        _ => read(None, node),
    }
}

fn texts(node: &Node) -> Reading<Vec<String>> {
    node.parts()
        .iter()
        .map(|part| Ok(part.expect_text("a word")?.to_owned()))
        .collect()
}

fn version(node: &Node) -> Reading<String> {
    Ok(node
        .expect_text("a version")?
        .trim_start_matches('@')
        .to_owned())
}

/// How a wait ends.
pub const OUTCOMES: [&str; 11] = [
    "pending",
    "ok",
    "timeout",
    "not_started",
    "stopped",
    "already_started",
    "reset",
    "not_comparable",
    "conflict",
    "still_running",
    "refused",
];

/// Read the outcome of a wait or of a call.
///
/// # Errors
/// When it is unknown.
pub fn outcome(node: &Node) -> Reading<String> {
    let word = node.expect_text("an outcome")?;
    if OUTCOMES.contains(&word) {
        return Ok(word.to_owned());
    }
    Err(Trouble::unknown(node.place, "outcome", word, OUTCOMES))
}
