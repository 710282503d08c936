//! Handler calls: `ADD*(a@5)`, `UPD(a@5 -> a@6)`, `DEL(a@9)`, `DEL?(a, last=a@5)`, and how a
//! sequence of them is described.
use super::super::trouble::{Place, Reading, Trouble};
use super::super::yaml::{Node, Value, split_at};
use super::{ObjectText, function, show_key};
use informant::Timestamp;
use std::fmt;

/// A call that a handler got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it was.
    pub what: CallPattern,
    /// Which step of the scenario it belongs to: within one, only the order of each key is certain.
    pub round: usize,
    /// When.
    pub at: Timestamp,
}

/// One call, or what it shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallPattern {
    /// `ADD(a@5)`, `ADD*(a@5)`.
    Add {
        /// The object.
        object: ObjectText,
        /// It is part of the initial list.
        initial: bool,
    },
    /// `UPD(a@5 -> a@6)`. `UPD(a)` leaves both states open.
    Update {
        /// The state before.
        old: ObjectText,
        /// The state after.
        new: ObjectText,
    },
    /// `DEL(a@9)`.
    Delete(ObjectText),
    /// `DEL?(a, last=a@5)`. `last=none`: never known. Without `last`: anything.
    DeleteUnknown {
        /// Which key (with the version of the deletion, where one is known).
        object: ObjectText,
        /// The last state; the inner `None` is "none known".
        last: Option<Option<ObjectText>>,
    },
    /// `RESET`: the source was reset.
    Reset,
    /// `REPLAY`: the handler starts over.
    Replay,
}

/// What a sequence of calls shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// This call.
    One(CallPattern),
    /// One of these sequences.
    OneOf(Vec<Vec<Item>>),
    /// This sequence, or nothing.
    Maybe(Vec<Item>),
    /// All of these, in any order.
    AnyOrder(Vec<Item>),
    /// `...`: any calls, or none.
    Anything,
}

const FORMS: &str =
    "a call is ADD(a@5), ADD*(a@5), UPD(a@5 -> a@6), DEL(a@9), DEL?(a, last=a@5), RESET or REPLAY";

/// Read one call.
///
/// # Errors
/// When it is none.
pub fn call_pattern(place: Place, text: &str) -> Reading<CallPattern> {
    let text = text.trim();
    match text {
        "RESET" | "RESET(0)" => return Ok(CallPattern::Reset),
        "REPLAY" => return Ok(CallPattern::Replay),
        _ => {}
    }
    let Some((name, inner, "")) = function(text) else {
        return Err(
            Trouble::new(place, format!("{text:?} is no call of a handler")).suggest(FORMS),
        );
    };
    let object = |text: &str| ObjectText::parse(place, text);
    match name {
        "ADD" | "ADD*" => Ok(CallPattern::Add {
            object: object(inner)?,
            initial: name == "ADD*",
        }),
        "UPD" => {
            let arrow = inner.split_once("->").or_else(|| inner.split_once('→'));
            let (old, new) = if let Some((old, new)) = arrow {
                (object(old)?, object(new)?)
            } else {
                let new = object(inner)?;
                let old = ObjectText {
                    key: new.key.clone(),
                    ..ObjectText::default()
                };
                (old, new)
            };
            Ok(CallPattern::Update { old, new })
        }
        "DEL" => Ok(CallPattern::Delete(object(inner)?)),
        "DEL?" => {
            let parts = split_at(inner, ',');
            let Some(first) = parts.first() else {
                return Err(Trouble::new(place, "DEL?() names no object").suggest(FORMS));
            };
            let last = match parts.get(1) {
                None => None,
                Some(part) => {
                    let last = part.strip_prefix("last").map(str::trim_start);
                    let Some(last) = last.and_then(|last| last.strip_prefix('=')) else {
                        return Err(
                            Trouble::new(place, format!("{part:?} is not last=…")).suggest(FORMS)
                        );
                    };
                    Some(if last.trim() == "none" {
                        None
                    } else {
                        Some(object(last)?)
                    })
                }
            };
            Ok(CallPattern::DeleteUnknown {
                object: object(first)?,
                last,
            })
        }
        other => {
            let known = ["ADD", "ADD*", "UPD", "DEL", "DEL?", "RESET", "REPLAY"];
            Err(Trouble::unknown(place, "call", other, known))
        }
    }
}

/// Read a sequence of calls.
///
/// # Errors
/// When something in it is no call.
pub fn calls(node: &Node) -> Reading<Vec<Item>> {
    let mut items = Vec::new();
    for part in node.parts() {
        items.push(item(&part)?);
    }
    Ok(items)
}

fn item(node: &Node) -> Reading<Item> {
    let place = node.place;
    match &node.value {
        Value::Scalar { text, .. } => {
            let text = text.trim();
            if matches!(text, "..." | "…") {
                return Ok(Item::Anything);
            }
            if let Some(rest) = text
                .strip_prefix("maybe ")
                .or_else(|| text.strip_prefix("optional "))
            {
                return Ok(Item::Maybe(vec![Item::One(call_pattern(place, rest)?)]));
            }
            let choices = split_at(&text.replace(" or ", " | "), '|');
            if choices.len() > 1 {
                let mut alternatives = Vec::new();
                for choice in choices {
                    let nothing = matches!(choice.as_str(), "nothing" | "none");
                    alternatives.push(if nothing {
                        Vec::new()
                    } else {
                        vec![Item::One(call_pattern(place, &choice)?)]
                    });
                }
                return Ok(Item::OneOf(alternatives));
            }
            Ok(Item::One(call_pattern(place, text)?))
        }
        Value::Sequence(_) => Ok(Item::AnyOrder(calls(node)?)),
        Value::Mapping(entries) => {
            let [(key, value)] = entries.as_slice() else {
                return Err(node
                    .trouble("one of these at a time")
                    .suggest("one_of, maybe, any_order"));
            };
            match key.expect_text("a key")? {
                "one_of" | "either" => Ok(Item::OneOf(alternatives(value)?)),
                "maybe" | "optional" => Ok(Item::Maybe(calls(value)?)),
                "any_order" => Ok(Item::AnyOrder(calls(value)?)),
                other => {
                    let known = ["one_of", "maybe", "any_order"];
                    Err(Trouble::unknown(
                        key.place,
                        "key in a sequence of calls",
                        other,
                        known,
                    ))
                }
            }
        }
    }
}

fn alternatives(node: &Node) -> Reading<Vec<Vec<Item>>> {
    let Value::Sequence(items) = &node.value else {
        return Err(node
            .trouble("one_of needs a list of sequences")
            .suggest("one_of: [[ADD(a@5)], []]"));
    };
    items.iter().map(calls).collect()
}

impl CallPattern {
    /// The key that the call is about; `None` where it is about all.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Add { object, .. }
            | Self::Delete(object)
            | Self::DeleteUnknown { object, .. } => Some(&object.key),
            Self::Update { new, .. } => Some(&new.key),
            Self::Reset | Self::Replay => None,
        }
    }

    /// True when `seen`, a real call, is what this pattern says.
    pub fn matches(&self, seen: &Self) -> bool {
        match (self, seen) {
            (
                Self::Add { object, initial },
                Self::Add {
                    object: seen,
                    initial: was_initial,
                },
            ) => initial == was_initial && object.matches(seen),
            (
                Self::Update { old, new },
                Self::Update {
                    old: seen_old,
                    new: seen_new,
                },
            ) => old.matches(seen_old) && new.matches(seen_new),
            (Self::Delete(object), Self::Delete(seen)) => object.matches(seen),
            (
                Self::DeleteUnknown { object, last },
                Self::DeleteUnknown {
                    object: seen,
                    last: seen_last,
                },
            ) => {
                let known = ObjectText {
                    version: None,
                    ..object.clone()
                };
                known.matches(seen)
                    && match (last, seen_last) {
                        (None, _) | (Some(None), Some(None) | None) => true,
                        (Some(Some(last)), Some(Some(seen))) => last.matches(seen),
                        _ => false,
                    }
            }
            (Self::Reset, Self::Reset) | (Self::Replay, Self::Replay) => true,
            _ => false,
        }
    }
}

impl fmt::Display for CallPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add {
                object,
                initial: false,
            } => write!(f, "ADD({object})"),
            Self::Add {
                object,
                initial: true,
            } => write!(f, "ADD*({object})"),
            Self::Update { old, new } => write!(f, "UPD({old} -> {new})"),
            Self::Delete(object) => write!(f, "DEL({object})"),
            Self::DeleteUnknown { object, last } => {
                write!(f, "DEL?({}", show_key(&object.key))?;
                match last {
                    Some(Some(last)) => write!(f, ", last={last})"),
                    Some(None) => f.write_str(", last=none)"),
                    None => f.write_str(")"),
                }
            }
            Self::Reset => f.write_str("RESET"),
            Self::Replay => f.write_str("REPLAY"),
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: &[Self]| {
            let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
            texts.join(", ")
        };
        match self {
            Self::One(call) => call.fmt(f),
            Self::OneOf(choices) => {
                let texts: Vec<_> = choices
                    .iter()
                    .map(|choice| format!("[{}]", list(choice)))
                    .collect();
                write!(f, "one of {}", texts.join(" or "))
            }
            Self::Maybe(items) => write!(f, "maybe [{}]", list(items)),
            Self::AnyOrder(items) => write!(f, "in any order [{}]", list(items)),
            Self::Anything => f.write_str("..."),
        }
    }
}
