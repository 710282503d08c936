//! Reading the steps of a scenario.
use super::action::{Action, GetSpec, Step, WaitSpec};
use super::check::{checks, outcome};
use super::notation::{
    Answer, Exchange, QueueVerb, RequestPattern, answer, duration, frames, is_frame, is_request,
};
use super::settings::{boolean, named, number, selectors};
use super::spec::{HandlerSpec, IndexSpec, TransformSpec};
use super::trouble::{Place, Reading, Trouble};
use super::work_verb::{WorkVerb, got_of, work_verb};
use super::yaml::{Node, Value, split_at};
use std::time::Duration;

/// The verbs of steps.
pub const VERBS: [&str; 46] = [
    "list",
    "watch",
    "frames",
    "send",
    "forever",
    "advance",
    "quiet",
    "settle",
    "expect",
    "start",
    "stop",
    "drop",
    "add_handler",
    "remove_handler",
    "block",
    "release",
    "pause",
    "resume",
    "consumer",
    "relist",
    "add_index",
    "snapshot",
    "wait_for_sync",
    "wait_for",
    "added",
    "updated",
    "deleted",
    "replace",
    "bookmark",
    "resync",
    "drain",
    "run",
    "pop",
    "close",
    "get",
    "remove",
    "repeat",
    "note",
    "add",
    "add_after",
    "add_rate_limited",
    "done",
    "forget",
    "cancel",
    "shutdown",
    "shutdown_with_drain",
];

/// Read the steps of a scenario.
///
/// # Errors
/// When one of them is not understood.
pub fn steps(node: &Node) -> Reading<Vec<Step>> {
    let Value::Sequence(items) = &node.value else {
        return Err(node
            .trouble(format!("steps must be a list, not {}", node.kind()))
            .suggest("- advance: 3s"));
    };
    let mut steps = Vec::new();
    for item in items {
        step(item, &mut steps)?;
    }
    Ok(steps)
}

fn step(node: &Node, steps: &mut Vec<Step>) -> Reading<()> {
    let place = node.place;
    let mut push = |what| steps.push(Step { place, what });
    match &node.value {
        Value::Scalar { text, .. } => {
            let text = text.trim();
            if is_request(source_stripped(text)) {
                push(Action::Exchange(Exchange::parse(place, text)?));
                return Ok(());
            }
            if is_frame(text) {
                push(Action::Frames {
                    source: None,
                    frames: frames(node)?,
                });
                return Ok(());
            }
            for part in split_at(text, ';') {
                if let Some(verb) = QueueVerb::parse(place, &part)? {
                    push(Action::Queue(verb));
                } else if let Some((verbs, times)) = work_verb(place, &part)? {
                    for _ in 0..times {
                        push(Action::Work(verbs.clone()));
                    }
                } else {
                    let part = part.strip_suffix("()").unwrap_or(&part);
                    let (verb, argument) =
                        part.split_once(char::is_whitespace).unwrap_or((part, ""));
                    let entries = [(
                        Node::scalar(place, verb),
                        Node::scalar(place, argument.trim()),
                    )];
                    push(action(node, &entries)?);
                }
            }
            Ok(())
        }
        Value::Mapping(entries) => {
            push(action(node, entries)?);
            Ok(())
        }
        Value::Sequence(_) => Err(node.trouble("a step is a text or a mapping, not a list")),
    }
}

fn source_stripped(text: &str) -> &str {
    ["LIST", "WATCH"]
        .iter()
        .filter_map(|word| {
            text.find(&format!(" {word}"))
                .or_else(|| text.find(&format!(".{word}")))
        })
        .min()
        .filter(|at| {
            text[..*at]
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        })
        .map_or(text, |at| &text[at + 1..])
}

/// The options beside a step's verb.
struct Options<'a> {
    place: Place,
    verb: &'a str,
    entries: Vec<&'a (Node, Node)>,
}

impl<'a> Options<'a> {
    fn take(&mut self, name: &str) -> Option<&'a Node> {
        let at = self
            .entries
            .iter()
            .position(|(key, _)| key.text() == Some(name))?;
        Some(&self.entries.remove(at).1)
    }

    fn text(&mut self, name: &str) -> Reading<Option<String>> {
        self.take(name)
            .map(|node| Ok(node.expect_text(name)?.to_owned()))
            .transpose()
    }

    fn gives(&mut self) -> Reading<String> {
        self.take("gives").map_or(Ok("ok".to_owned()), outcome)
    }

    fn end(self, known: &[&str]) -> Reading<()> {
        match self.entries.first() {
            None => Ok(()),
            Some((key, _)) => {
                let name = key.text().unwrap_or_default();
                let what = format!("key of step {:?}", self.verb);
                Err(if known.is_empty() {
                    Trouble::new(key.place, format!("step {:?} takes no {name:?}", self.verb))
                        .suggest("each step is an entry of its own, with a dash")
                } else {
                    Trouble::unknown(key.place, &what, name, known.iter().copied())
                })
            }
        }
    }
}

#[allow(clippy::too_many_lines)] // One arm a verb, and each arm is short.
fn action(node: &Node, entries: &[(Node, Node)]) -> Reading<Action> {
    let [(key, value), ..] = entries else {
        return Err(node.trouble("an empty step"));
    };
    // The verb comes first, but need not.
    let at = entries
        .iter()
        .position(|(key, _)| {
            key.text()
                .is_some_and(|text| VERBS.contains(&text) || is_request(source_stripped(text)))
        })
        .unwrap_or(0);
    let (key, value) = entries
        .get(at)
        .map_or((key, value), |(key, value)| (key, value));
    let verb = key.expect_text("a verb")?;
    let mut options = Options {
        place: key.place,
        verb,
        entries: entries
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != at)
            .map(|(_, entry)| entry)
            .collect(),
    };
    if is_request(source_stripped(verb)) {
        let mut exchange = if value.is_null() && verb.contains("->") {
            Exchange::parse(key.place, verb)?
        } else {
            Exchange::from_entry(key, value)?
        };
        if let Some(times) = options.take("times") {
            exchange.times = number(times)?;
        }
        if let Some(delay) = options.take("delay") {
            exchange.delay = duration(delay.place, delay.expect_text("delay")?)?;
        }
        options.end(&["times", "delay"])?;
        return Ok(Action::Exchange(exchange));
    }
    if let Some(verb) = QueueVerb::from_entry(key, value)? {
        options.end(&[])?;
        return Ok(Action::Queue(verb));
    }
    let text = || value.expect_text(verb);
    let time = || duration(value.place, value.expect_text(verb)?);
    let name = || -> Reading<String> {
        let name = value.expect_text(verb)?;
        if name.is_empty() {
            return Err(key
                .trouble(format!("{verb} needs a name"))
                .suggest(format!("{verb}: h1")));
        }
        Ok(name.to_owned())
    };
    Ok(match verb {
        "list" | "watch" => {
            let kind = if verb == "list" {
                super::notation::Kind::List
            } else {
                super::notation::Kind::Watch
            };
            let request = RequestPattern::from_options(kind, value)?;
            let source = options.text("source")?;
            let times = options.take("times").map_or(Ok(1), number)?;
            let given = options.take("answer").or_else(|| options.take("frames"));
            let error = options.take("error");
            let (answer, delay) = match (given, error) {
                (_, Some(error)) => (
                    Answer::Fail(super::notation::source_error(error)?),
                    Duration::ZERO,
                ),
                (Some(given), None) => answer(kind, given)?,
                (None, None) => answer(kind, &Node::scalar(key.place, ""))?,
            };
            let delay = match options.take("delay") {
                Some(delay) => duration(delay.place, delay.expect_text("delay")?)?,
                None => delay,
            };
            options.end(&["source", "times", "answer", "frames", "error", "delay"])?;
            return Ok(Action::Exchange(Exchange {
                place: key.place,
                source,
                request,
                answer,
                delay,
                times,
            }));
        }
        "frames" | "send" => {
            let source = options.text("source")?;
            options.end(&["source"])?;
            return Ok(Action::Frames {
                source,
                frames: frames(value)?,
            });
        }
        "forever" => Action::Forever(forever(value)?),
        "advance" | "pass" => Action::Advance(time()?),
        "settle" => Action::Advance(Duration::ZERO),
        "quiet" => Action::Quiet(time()?),
        "expect" => Action::Expect(checks(value)?),
        "start" => Action::Start {
            gives: options.gives()?,
        },
        "stop" => Action::Stop {
            at_once: options.take("at_once").map_or(Ok(true), boolean)?,
        },
        "drop" => Action::Drop,
        "add_handler" => {
            let gives = options.gives()?;
            let handler = if options.entries.is_empty() {
                named(value, HandlerSpec::read)?.into_iter().next()
            } else {
                let name = text()?;
                let rest = Node {
                    place: node.place,
                    value: Value::Mapping(options.entries.drain(..).cloned().collect()),
                };
                Some(HandlerSpec::read(name, key.place, &rest)?)
            };
            let handler = handler.ok_or_else(|| {
                key.trouble("add_handler needs a name")
                    .suggest("add_handler: h2")
            })?;
            Action::AddHandler { handler, gives }
        }
        "remove_handler" => Action::RemoveHandler(name()?),
        "block" => Action::Block(name()?),
        "release" | "unblock" => Action::Release(name()?),
        "pause" => Action::Pause,
        "resume" => Action::Resume,
        "consumer" => match text()?.trim_end_matches("()") {
            "paused" | "pause" | "pauses" => Action::Pause,
            "running" | "run" | "runs" | "resume" => Action::Resume,
            other => {
                return Err(Trouble::unknown(
                    value.place,
                    "state of the consumer",
                    other,
                    ["paused", "running"],
                ));
            }
        },
        "relist" => Action::Relist(
            value
                .text()
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
        ),
        "add_index" => {
            let gives = options.gives()?;
            let index = named(value, IndexSpec::read)?.into_iter().next();
            let index = index.ok_or_else(|| {
                key.trouble("add_index needs a name")
                    .suggest("add_index: zone")
            })?;
            Action::AddIndex { index, gives }
        }
        "snapshot" => Action::Snapshot(name()?),
        "wait_for_sync" | "wait_for" => {
            let (mut version, mut timeout) = (None, None);
            if verb == "wait_for" {
                version = Some(text()?.to_owned());
            } else if !value.is_null() {
                timeout = Some(time()?);
            }
            if let Some(node) = options.take("timeout") {
                timeout = Some(duration(node.place, node.expect_text("timeout")?)?);
            }
            let spec = WaitSpec {
                version,
                timeout,
                of: options.text("of")?,
                name: options.text("as")?,
                gives: options.gives()?,
            };
            options.end(&["timeout", "of", "as", "gives"])?;
            return Ok(Action::Wait(spec));
        }
        "resync" => Action::Queue(QueueVerb::Resync),
        "drain" | "run" | "pop" => Action::Drain,
        "close" => Action::Close,
        "add"
        | "add_rate_limited"
        | "done"
        | "forget"
        | "cancel"
        | "add_after"
        | "shutdown"
        | "shutdown_with_drain" => work(key.place, verb, value)?,
        "get" if value.is_null() => {
            let gives = options
                .take("gives")
                .map(|got| got.expect_text("gives").map(got_of));
            Action::Work(WorkVerb::Get(gives.transpose()?))
        }
        "get" => {
            let kind = text()?.to_owned();
            let name = options.text("as")?.unwrap_or_else(|| kind.clone());
            let transform = options
                .take("transform")
                .map(TransformSpec::read)
                .transpose()?;
            let rest: Vec<_> = options.entries.drain(..).cloned().collect();
            let selectors = selectors(&rest, &[])?;
            Action::Get(GetSpec {
                kind,
                name,
                selectors,
                transform,
            })
        }
        "remove" => Action::Remove(name()?),
        "repeat" => {
            let times = options.take("times").map_or(Ok(1), number)?;
            Action::Repeat {
                times,
                steps: steps(value)?,
            }
        }
        "note" => Action::Note,
        other if frame_source(other, value) => {
            options.end(&[])?;
            let text = text()?;
            if is_request(text) {
                let mut exchange = Exchange::parse(value.place, text)?;
                exchange.source = Some(other.to_owned());
                return Ok(Action::Exchange(exchange));
            }
            return Ok(Action::Frames {
                source: Some(other.to_owned()),
                frames: frames(value)?,
            });
        }
        other => {
            let written = [
                "LIST", "WATCH", "Added", "Updated", "Deleted", "Replace", "Resync", "shutdown",
            ];
            let known = VERBS.into_iter().chain(written);
            return Err(Trouble::unknown(options.place, "verb", other, known));
        }
    })
    .and_then(|action| options.end(&["gives", "as", "times"]).map(|()| action))
}

/// The long forms of what is done with a work queue: `{add: [a, b]}`, `{add_after: {a: 5s}}`.
fn work(place: Place, verb: &str, value: &Node) -> Reading<Action> {
    let mut texts = Vec::new();
    if value.is_null() {
        texts.push(format!("{verb}()"));
    } else if verb == "add_after" {
        for (key, delay) in value.entries("add_after")? {
            texts.push(format!(
                "add_after({}, {})",
                key.expect_text("a key")?,
                delay.expect_text("a delay")?
            ));
        }
    } else {
        for part in value.parts() {
            texts.push(format!("{verb}({})", part.expect_text("a key")?));
        }
    }
    let mut steps = Vec::new();
    for text in texts {
        if let Some((verb, _)) = work_verb(place, &text)? {
            let what = Action::Work(verb);
            steps.push(Step { place, what });
        }
    }
    Ok(Action::Repeat { times: 1, steps })
}

/// `s1: LIST -> …`, `s1: +a@5`: a source, and what it does.
fn frame_source(word: &str, value: &Node) -> bool {
    value
        .text()
        .is_some_and(|text| is_request(text) || is_frame(text))
        && word
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

fn forever(node: &Node) -> Reading<Vec<Exchange>> {
    let one = |text: &str, place| Exchange::parse(place, text);
    match &node.value {
        Value::Scalar { text, .. } if matches!(text.as_str(), "none" | "") => Ok(Vec::new()),
        Value::Scalar { text, .. } => Ok(vec![one(text, node.place)?]),
        Value::Sequence(items) => {
            let mut exchanges = Vec::new();
            for item in items {
                exchanges.extend(forever(item)?);
            }
            Ok(exchanges)
        }
        Value::Mapping(entries) => entries
            .iter()
            .map(|(key, value)| Exchange::from_entry(key, value))
            .collect(),
    }
}
