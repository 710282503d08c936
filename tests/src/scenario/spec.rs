//! What handlers, indexes, transforms, sources and kinds are made of.
use super::notation::{CallPattern, ListItem, ObjectText, call_pattern, duration};
use super::settings::{boolean, number, objects, selectors};
use super::trouble::{Place, Reading, Trouble};
use super::yaml::{Node, Value};
use informant::informer::{PastLimit, Policy, Resync};
use informant::source::Selectors;
use std::time::Duration;

/// A handler.
#[derive(Clone, Debug)]
pub struct HandlerSpec {
    /// Where it is written.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// What is kept when it is slow.
    pub policy: Policy,
    /// How often it is told of everything.
    pub resync: Resync,
    /// It blocks in its first call until it is released.
    pub blocked: bool,
    /// Each call takes so long.
    pub slow: Option<Duration>,
    /// Calls in which it panics: which, and at which occurrence (every, without one).
    pub panics_on: Vec<(CallPattern, Option<usize>)>,
    /// It is a subscriber, which reads events from a stream.
    pub subscriber: bool,
    /// Only objects with this field value.
    pub only: Option<String>,
}

/// An index.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    /// Where it is written.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// Where the values come from: `field`, `namespace`, `name`, or the name of a field.
    pub of: String,
    /// Objects on which the function fails.
    pub fails_for: Vec<ObjectText>,
    /// Objects on which the function panics.
    pub panics_for: Vec<ObjectText>,
}

/// A transform: `strip` takes all fields away, any other name is put into the field `by`.
#[derive(Clone, Debug)]
pub struct TransformSpec {
    /// Its name.
    pub name: String,
    /// Objects that it refuses.
    pub fails_for: Vec<ObjectText>,
    /// Objects on which it panics.
    pub panics_for: Vec<ObjectText>,
}

/// A source.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// Its name in steps and expectations.
    pub name: String,
    /// What it is asked for.
    pub selectors: Selectors,
}

/// What a filtering wrapper keeps.
#[derive(Clone, Debug)]
pub enum Keep {
    /// Names that end in this.
    NamesEndingIn(String),
    /// Names that begin with this.
    NamesBeginningWith(String),
}

/// The state before the first step.
#[derive(Clone, Debug)]
pub struct Given {
    /// The version that was listed.
    pub version: String,
    /// What was in the list.
    pub items: Vec<ListItem>,
}

/// A rate limiter.
#[derive(Clone, Debug)]
pub enum LimiterSpec {
    /// Doubles per failure of a key.
    Exponential {
        /// The first delay.
        base: Duration,
        /// The longest.
        max: Duration,
    },
    /// Fast for some attempts, then slow.
    FastSlow {
        /// The first delays.
        fast: Duration,
        /// The later ones.
        slow: Duration,
        /// How many are fast.
        attempts: u32,
    },
    /// One bucket for all keys.
    Bucket {
        /// Adds a second.
        per_second: f64,
        /// Adds at once.
        burst: u32,
    },
}

/// A kind of a factory.
#[derive(Clone, Debug)]
pub struct KindSpec {
    /// Its name.
    pub name: String,
    /// What the factory makes of its objects.
    pub transform: Option<TransformSpec>,
}

impl HandlerSpec {
    /// A handler that gets every change, as client-go's do.
    pub fn usual(name: &str) -> Self {
        Self {
            place: Place::default(),
            name: name.to_owned(),
            policy: Policy::Unbounded,
            resync: Resync::Default,
            blocked: false,
            slow: None,
            panics_on: Vec::new(),
            subscriber: false,
            only: None,
        }
    }

    /// Read a handler.
    ///
    /// # Errors
    /// When a key or value is not understood.
    pub fn read(name: &str, place: Place, node: &Node) -> Reading<Self> {
        let mut handler = Self {
            place,
            ..Self::usual(name)
        };
        if let Some(word) = node.text().filter(|text| !text.is_empty()) {
            handler.policy = policy(node, word)?;
            return Ok(handler);
        }
        let (mut limit, mut past) = (None, PastLimit::Coalesce);
        for (key, value) in node.entries("a handler")? {
            match key.expect_text("a key")? {
                "name" => {}
                "policy" => match &value.value {
                    Value::Mapping(entries) => {
                        for (key, value) in entries {
                            match key.expect_text("a key")? {
                                "limit" | "lossless" => limit = Some(number(value)?),
                                "past_limit" => past = past_limit(value)?,
                                other => {
                                    return Err(Trouble::unknown(
                                        key.place,
                                        "key of policy",
                                        other,
                                        ["limit", "past_limit"],
                                    ));
                                }
                            }
                        }
                    }
                    _ => handler.policy = policy(value, value.expect_text("policy")?)?,
                },
                "limit" => limit = Some(number(value)?),
                "past_limit" => past = past_limit(value)?,
                "resync" => {
                    handler.resync = match value.expect_text("resync")? {
                        "default" => Resync::Default,
                        "never" | "none" => Resync::Never,
                        text => Resync::Every(duration(value.place, text)?),
                    };
                }
                "blocked" | "blocks" => handler.blocked = boolean(value)?,
                "slow" => handler.slow = Some(duration(value.place, value.expect_text("slow")?)?),
                "panics_on" => {
                    for part in value.parts() {
                        handler.panics_on.push(panic_on(&part)?);
                    }
                }
                "subscriber" => handler.subscriber = boolean(value)?,
                "only" => handler.only = Some(value.expect_text("only")?.to_owned()),
                other => {
                    let known = [
                        "name",
                        "policy",
                        "limit",
                        "past_limit",
                        "resync",
                        "blocked",
                        "slow",
                        "panics_on",
                        "subscriber",
                        "only",
                    ];
                    return Err(Trouble::unknown(
                        key.place,
                        "key of a handler",
                        other,
                        known,
                    ));
                }
            }
        }
        if let Some(limit) = limit {
            handler.policy = Policy::lossless(limit, past);
        }
        Ok(handler)
    }
}

fn policy(node: &Node, word: &str) -> Reading<Policy> {
    match word {
        "coalesce" => Ok(Policy::Coalesce),
        "lossless" | "unbounded" => Ok(Policy::Unbounded),
        other => Err(Trouble::unknown(node.place, "policy", other, ["coalesce", "lossless"])
            .suggest("policy is coalesce or lossless; limit: 10 and past_limit: coalesce | replay | block bound a lossless one")),
    }
}

fn past_limit(node: &Node) -> Reading<PastLimit> {
    match node.expect_text("past_limit")? {
        "coalesce" => Ok(PastLimit::Coalesce),
        "replay" => Ok(PastLimit::Replay),
        "block" => Ok(PastLimit::Block),
        other => Err(Trouble::unknown(
            node.place,
            "past_limit",
            other,
            ["coalesce", "replay", "block"],
        )),
    }
}

fn panic_on(node: &Node) -> Reading<(CallPattern, Option<usize>)> {
    if let Some(text) = node.text() {
        return Ok((call_pattern(node.place, text)?, None));
    }
    let (mut call, mut nth) = (None, None);
    for (key, value) in node.entries("panics_on")? {
        match key.expect_text("a key")? {
            "call" => call = Some(call_pattern(value.place, value.expect_text("call")?)?),
            "nth" => nth = Some(number(value)?),
            other => {
                return Err(Trouble::unknown(
                    key.place,
                    "key of panics_on",
                    other,
                    ["call", "nth"],
                ));
            }
        }
    }
    let call = call.ok_or_else(|| node.trouble("which call?").suggest("call: UPD(a)"))?;
    Ok((call, nth))
}

impl IndexSpec {
    /// Read an index.
    ///
    /// # Errors
    /// When a key or value is not understood.
    pub fn read(name: &str, place: Place, node: &Node) -> Reading<Self> {
        let mut index = Self {
            place,
            name: name.to_owned(),
            of: name.to_owned(),
            fails_for: Vec::new(),
            panics_for: Vec::new(),
        };
        if let Some(of) = node.text() {
            if !of.is_empty() {
                of.clone_into(&mut index.of);
            }
            return Ok(index);
        }
        for (key, value) in node.entries("an index")? {
            match key.expect_text("a key")? {
                "name" => {}
                "of" | "field" => value.expect_text("of")?.clone_into(&mut index.of),
                "fails_for" => index.fails_for = objects(value)?,
                "panics_for" => index.panics_for = objects(value)?,
                other => {
                    let known = ["name", "of", "fails_for", "panics_for"];
                    return Err(Trouble::unknown(key.place, "key of an index", other, known));
                }
            }
        }
        Ok(index)
    }
}

impl TransformSpec {
    /// Read a transform.
    ///
    /// # Errors
    /// When a key or value is not understood.
    pub fn read(node: &Node) -> Reading<Self> {
        let mut transform = Self {
            name: "strip".to_owned(),
            fails_for: Vec::new(),
            panics_for: Vec::new(),
        };
        if let Some(name) = node.text() {
            name.clone_into(&mut transform.name);
            return Ok(transform);
        }
        for (key, value) in node.entries("a transform")? {
            match key.expect_text("a key")? {
                "name" => value.expect_text("name")?.clone_into(&mut transform.name),
                "fails_for" => transform.fails_for = objects(value)?,
                "panics_for" => transform.panics_for = objects(value)?,
                other => {
                    let known = ["name", "fails_for", "panics_for"];
                    return Err(Trouble::unknown(
                        key.place,
                        "key of a transform",
                        other,
                        known,
                    ));
                }
            }
        }
        Ok(transform)
    }
}

impl SourceSpec {
    /// Read it.
    ///
    /// # Errors
    /// When a key or value is not understood.
    pub fn read(name: &str, _place: Place, node: &Node) -> Reading<Self> {
        Ok(Self {
            name: name.to_owned(),
            selectors: selectors(node.entries("a source")?, &["name"])?,
        })
    }
}

impl KindSpec {
    /// Read it.
    ///
    /// # Errors
    /// When a key or value is not understood.
    pub fn read(name: &str, _place: Place, node: &Node) -> Reading<Self> {
        let mut kind = Self {
            name: name.to_owned(),
            transform: None,
        };
        for (key, value) in node.entries("a kind")? {
            match key.expect_text("a key")? {
                "name" => {}
                "transform" => kind.transform = Some(TransformSpec::read(value)?),
                other => {
                    return Err(Trouble::unknown(
                        key.place,
                        "key of a kind",
                        other,
                        ["transform"],
                    ));
                }
            }
        }
        Ok(kind)
    }
}
