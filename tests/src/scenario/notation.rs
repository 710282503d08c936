//! The compact notation of objects, frames, answers, requests and calls.
use super::yaml::split;
use informant::source::{ApiStatus, SourceError, StatusCause};
use informant::{Incoming, Meta, ObjectKey};
use std::time::Duration;

/// The object type of all scenarios: the zones it is in, and what a transform left on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) zones: Vec<String>,
    pub(super) stripped: bool,
}

/// `name@version`, `name#uid@version`, `name(zone)@version`, `ns1/name@version`, `/name@version`
/// for a cluster-scoped object; a `!` at the end means that it cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thought {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Option<String>,
    pub(super) zones: Vec<String>,
    pub(super) version: Option<String>,
    pub(super) bad: bool,
    /// Written by a transform.
    pub(super) stripped: bool,
}

impl Thought {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (text, stripped) = match text.strip_prefix("stripped ") {
            Some(rest) => (rest.trim(), true),
            None => (text, false),
        };
        let (text, bad) = match text.strip_suffix('!') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (text, version) = match text.split_once('@') {
            Some((rest, version)) => (rest, Some(version.trim_matches('"').replace("(empty)", ""))),
            None => (text, None),
        };
        let (mut text, mut uid, mut zones) = (text.to_owned(), None, Vec::new());
        if let Some(open) = text.find('(') {
            let close = text.find(')').ok_or("a parenthesis is not closed")?;
            zones = split(&text[open + 1..close], ',');
            zones.retain(|zone| !zone.is_empty());
            text.replace_range(open..=close, "");
        }
        if let Some((rest, id)) = text.clone().split_once('#') {
            uid = Some(id.to_owned());
            text = String::from(rest);
        }
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (namespace, name),
            None => ("ns", text.as_str()),
        };
        let fits = |c: char| c.is_alphanumeric() || "-._".contains(c);
        if name.is_empty() || !name.chars().all(fits) || !namespace.chars().all(fits) {
            return Err(format!(
                "{text:?} is no object; write one as name#uid(zone)@version"
            ));
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid,
            zones,
            version,
            bad,
            stripped,
        })
    }

    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name).expect("the notation allows no other names")
    }

    pub(super) fn incoming(&self) -> Incoming<Thing> {
        let meta = Meta {
            key: self.key(),
            uid: self.uid.as_deref().unwrap_or("u").into(),
            resource_version: self.version.as_deref().unwrap_or("").into(),
        };
        Incoming::new(
            meta,
            Thing {
                zones: self.zones.clone(),
                stripped: false,
            },
        )
    }

    /// True when this describes `actual`: what is left out here may be anything there.
    pub(super) fn describes(&self, actual: &Self) -> bool {
        fn fits<T: PartialEq>(said: Option<&T>, actual: Option<&T>) -> bool {
            said.is_none() || said == actual
        }
        self.namespace == actual.namespace
            && self.name == actual.name
            && fits(self.version.as_ref(), actual.version.as_ref())
            && fits(self.uid.as_ref(), actual.uid.as_ref())
            && (self.zones.is_empty() || self.zones == actual.zones)
            && (!self.stripped || actual.stripped)
    }
}

/// Objects of `[a@5, b@6]` or `a@5, b@6`.
pub(super) fn things(text: &str) -> Result<Vec<Thought>, String> {
    let text = text.trim();
    let text = text
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'))
        .unwrap_or(text);
    let parts = split(text, ',');
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| Thought::parse(part))
        .collect()
}

/// `5s`, `300ms`, `2m`, `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{text:?} is no duration; write 300ms, 5s, 2m or 1h"))?;
    let seconds = match unit.trim() {
        "ms" => number / 1e3,
        "s" | "" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        other => return Err(format!("{other:?} is no unit of time; use ms, s, m or h")),
    };
    Ok(Duration::from_secs_f64(seconds))
}

/// What one list call is answered.
#[derive(Clone, Debug)]
pub(super) enum ListAnswer {
    Page {
        version: String,
        items: Vec<Thought>,
        token: Option<String>,
    },
    Error(SourceError),
    /// No answer, ever.
    Hang,
}

/// One frame of a watch, or a pause before the next.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    Added(Thought),
    Modified(Thought),
    Deleted(Thought),
    Bookmark(String, bool),
    Foreign(String),
    Error(SourceError),
    Wait(Duration),
    /// The ordinary end.
    End,
}

/// What one watch call is answered.
#[derive(Clone, Debug)]
pub(super) enum WatchAnswer {
    Frames(Vec<Frame>),
    Refused(SourceError),
    Hang,
}

fn value_of<'a>(word: &'a str, key: &str) -> Option<&'a str> {
    word.strip_prefix(key)?
        .strip_prefix('=')
        .map(|value| value.trim_matches('"'))
}

/// Words of a text; quotes and brackets hold together.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut depth, mut quoted) = (Vec::new(), String::new(), 0, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ' ' if depth == 0 && !quoted => {
                words.push(std::mem::take(&mut word));
                continue;
            }
            _ => (),
        }
        word.push(c);
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// `410`, `504 reason=Timeout message="…" cause=… causetext="…"`, `429 retry=3s`, `refused`,
/// `CUT`, `timeout`, `table`, `garbage`.
fn error(words: &[String]) -> Result<Option<SourceError>, String> {
    let Some(first) = words.first() else {
        return Ok(None);
    };
    let simple = match first.as_str() {
        "refused" => Some(SourceError::ConnectionRefused("nobody listens".to_owned())),
        "CUT" => Some(SourceError::Transport("the connection was cut".to_owned())),
        "timeout" => Some(SourceError::TimedOut),
        "table" => Some(SourceError::WrongKind {
            expected: "ThingList".to_owned(),
            found: "Table".to_owned(),
        }),
        "garbage" => Some(SourceError::Decode("not JSON".to_owned())),
        _ => None,
    };
    if simple.is_some() {
        return Ok(simple);
    }
    let Ok(code) = first.parse::<u16>() else {
        return Ok(None);
    };
    let mut status = ApiStatus::new(code, default_reason(code), "");
    let mut cause = StatusCause::default();
    for word in &words[1..] {
        if let Some(reason) = value_of(word, "reason") {
            status.reason = String::from(reason);
        } else if let Some(message) = value_of(word, "message") {
            status.message = String::from(message);
        } else if let Some(reason) = value_of(word, "cause") {
            cause.reason = String::from(reason);
        } else if let Some(text) = value_of(word, "causetext") {
            cause.message = String::from(text);
        } else if let Some(after) = value_of(word, "retry") {
            status.retry_after = Some(duration(after)?);
        } else {
            return Err(format!(
                "{word:?} belongs to no error; use reason, message, cause, causetext, retry"
            ));
        }
    }
    if cause != StatusCause::default() {
        status.causes.push(cause);
    }
    Ok(Some(status.into()))
}

fn default_reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        504 => "Timeout",
        _ => "",
    }
}

impl ListAnswer {
    /// `rv=10 [a@5, b@6] cont=t1`, an error, or `hang`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text);
        if words.first().is_some_and(|word| word == "hang") {
            return Ok(Self::Hang);
        }
        if let Some(error) = error(&words)? {
            return Ok(Self::Error(error));
        }
        let (mut version, mut items, mut token) = (None, Vec::new(), None);
        for word in &words {
            if let Some(rv) = value_of(word, "rv") {
                version = Some(rv.to_owned());
            } else if let Some(cont) = value_of(word, "cont") {
                token = Some(cont.to_owned());
            } else if word.starts_with('[') {
                items = things(word)?;
            } else {
                return Err(format!(
                    "{word:?} belongs to no answer of a list; write rv=10 [a@5] cont=t1, or an error such as 410"
                ));
            }
        }
        Ok(Self::Page {
            version: version.ok_or("an answer of a list needs rv=…")?,
            items,
            token,
        })
    }
}

impl Frame {
    /// `+a@11`, `~a@12`, `-a@13`, `BM@14`, `BM@14(end)`, `ERR(410,Expired)`, `TABLE@15`, `EOF`,
    /// `CUT`, `TIMEOUT`, `wait 5m`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('+') {
            return Ok(Self::Added(Thought::parse(rest)?));
        }
        if let Some(rest) = text.strip_prefix('~') {
            return Ok(Self::Modified(Thought::parse(rest)?));
        }
        if let Some(rest) = text.strip_prefix('-') {
            return Ok(Self::Deleted(Thought::parse(rest)?));
        }
        if let Some(rest) = text.strip_prefix("BM@") {
            let (version, end) = match rest.strip_suffix("(end)") {
                Some(version) => (version, true),
                None => (rest, false),
            };
            return Ok(Self::Bookmark(version.trim_matches('"').to_owned(), end));
        }
        if let Some(inside) = text.strip_prefix("ERR(").and_then(|t| t.strip_suffix(')')) {
            let mut parts = split(inside, ',');
            if let Some(reason) = parts.get_mut(1)
                && !reason.contains('=')
            {
                *reason = format!("reason={reason}");
            }
            let error = error(&parts)?.ok_or_else(|| format!("{inside:?} is no error"))?;
            return Ok(Self::Error(error));
        }
        if let Some(time) = text.strip_prefix("wait ") {
            return Ok(Self::Wait(duration(time)?));
        }
        if let Some(version) = text.strip_prefix("TABLE") {
            return Ok(Self::Foreign(format!("a Table{version}")));
        }
        match text {
            "EOF" => Ok(Self::End),
            "CUT" => Ok(Self::Error(SourceError::Transport(
                "the connection was cut".to_owned(),
            ))),
            "TIMEOUT" => Ok(Self::Error(SourceError::TimedOut)),
            other => Err(super::keys::unknown(
                "frame",
                other,
                &[
                    "+a@11",
                    "~a@12",
                    "-a@13",
                    "BM@14",
                    "BM@14(end)",
                    "ERR(410,Expired)",
                    "TABLE@15",
                    "EOF",
                    "CUT",
                    "TIMEOUT",
                    "wait 5m",
                ],
            )),
        }
    }

    pub(super) fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let parts = split(text, ',');
        let parts = parts.iter().filter(|part| !part.is_empty());
        parts.map(|part| Self::parse(part)).collect()
    }
}

impl WatchAnswer {
    /// Frames, an error instead of a stream, or `hang`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text);
        if words.first().is_some_and(|word| word == "hang") {
            return Ok(Self::Hang);
        }
        if !text.contains(',')
            && words.first().is_none_or(|word| word != "CUT")
            && let Some(error) = error(&words)?
        {
            return Ok(Self::Refused(error));
        }
        Ok(Self::Frames(Frame::parse_all(text)?))
    }
}

/// A request that is expected, or was made: `LIST(rv=0, limit=500, cont=t1)`, `WATCH(rv=10, init)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) verb: String,
    pub(super) options: Vec<(String, String)>,
}

impl Request {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (verb, inside) = match text.split_once('(') {
            Some((verb, rest)) => (
                verb,
                rest.strip_suffix(')')
                    .ok_or("a parenthesis is not closed")?,
            ),
            None => (text, ""),
        };
        let verb = verb.trim();
        if !matches!(verb, "LIST" | "WATCH") {
            return Err(super::keys::unknown("request", verb, &["LIST", "WATCH"]));
        }
        let mut options = Vec::new();
        for part in split(inside, ',').iter().filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, "true"));
            let known = [
                "rv",
                "match",
                "limit",
                "cont",
                "init",
                "bookmarks",
                "namespace",
                "labels",
                "fields",
                "shard",
            ];
            if !known.contains(&key) {
                return Err(super::keys::unknown("option of a request", key, &known));
            }
            options.push((key.to_owned(), value.trim_matches('"').to_owned()));
        }
        Ok(Self {
            verb: verb.to_owned(),
            options,
        })
    }

    /// True when this describes `actual`: options that are not named may be anything.
    pub(super) fn describes(&self, actual: &Self) -> bool {
        self.verb == actual.verb
            && self.options.iter().all(|(key, value)| {
                let found = actual.options.iter().find(|(k, _)| k == key);
                found.map_or("", |(_, v)| v) == value
            })
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let options: Vec<_> = self
            .options
            .iter()
            .map(|(key, value)| {
                if value == "true" {
                    key.clone()
                } else {
                    format!("{key}={value}")
                }
            })
            .collect();
        write!(f, "{}({})", self.verb, options.join(", "))
    }
}

/// A handler call that is expected, or was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Add {
        object: Thought,
        initial: bool,
    },
    Update {
        old: Thought,
        new: Thought,
    },
    Delete {
        object: Thought,
    },
    /// The final state is not known; `last` is the last known one.
    DeleteUnknown {
        object: Thought,
        last: Option<Thought>,
    },
    Reset,
    Replay,
}

impl Call {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (verb, inside) = match text.split_once('(') {
            Some((verb, rest)) => (
                verb,
                rest.strip_suffix(')')
                    .ok_or("a parenthesis is not closed")?,
            ),
            None => (text, ""),
        };
        match verb.trim() {
            "ADD" => Ok(Self::Add {
                object: Thought::parse(inside)?,
                initial: false,
            }),
            "ADD*" => Ok(Self::Add {
                object: Thought::parse(inside)?,
                initial: true,
            }),
            "UPD" => {
                let (old, new) = inside.split_once("->").ok_or("write UPD(old -> new)")?;
                Ok(Self::Update {
                    old: Thought::parse(old.trim())?,
                    new: Thought::parse(new.trim())?,
                })
            }
            "DEL" => Ok(Self::Delete {
                object: Thought::parse(inside)?,
            }),
            "DEL?" => {
                let parts = split(inside, ',');
                let last = parts
                    .get(1)
                    .and_then(|part| part.strip_prefix("last=").map(str::to_owned));
                Ok(Self::DeleteUnknown {
                    object: Thought::parse(parts.first().map_or("", |part| part))?,
                    last: last.map(|last| Thought::parse(&last)).transpose()?,
                })
            }
            "RESET" => Ok(Self::Reset),
            "REPLAY" => Ok(Self::Replay),
            other => Err(super::keys::unknown(
                "call",
                other,
                &["ADD", "ADD*", "UPD", "DEL", "DEL?", "RESET", "REPLAY"],
            )),
        }
    }

    pub(super) fn describes(&self, actual: &Self) -> bool {
        match (self, actual) {
            (
                Self::Add { object, initial },
                Self::Add {
                    object: actual,
                    initial: was,
                },
            ) => object.describes(actual) && initial == was,
            (Self::Update { old, new }, Self::Update { old: from, new: to }) => {
                old.describes(from) && new.describes(to)
            }
            (Self::Delete { object }, Self::Delete { object: actual }) => object.describes(actual),
            (
                Self::DeleteUnknown { object, last },
                Self::DeleteUnknown {
                    object: actual,
                    last: known,
                },
            ) => {
                object.describes(actual)
                    && last.as_ref().is_none_or(|last| {
                        known.as_ref().is_some_and(|known| last.describes(known))
                    })
            }
            (Self::Reset, Self::Reset) | (Self::Replay, Self::Replay) => true,
            _ => false,
        }
    }
}

impl std::fmt::Display for Thought {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.stripped {
            f.write_str("stripped ")?;
        }
        if self.namespace != "ns" {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)?;
        if let Some(uid) = self.uid.as_ref().filter(|uid| *uid != "u") {
            write!(f, "#{uid}")?;
        }
        if !self.zones.is_empty() {
            write!(f, "({})", self.zones.join(","))?;
        }
        if let Some(version) = &self.version {
            write!(f, "@{version}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Add {
                object,
                initial: true,
            } => write!(f, "ADD*({object})"),
            Self::Add { object, .. } => write!(f, "ADD({object})"),
            Self::Update { old, new } => write!(f, "UPD({old} -> {new})"),
            Self::Delete { object } => write!(f, "DEL({object})"),
            Self::DeleteUnknown {
                object,
                last: Some(last),
            } => write!(f, "DEL?({object}, last={last})"),
            Self::DeleteUnknown { object, last: None } => write!(f, "DEL?({object})"),
            Self::Reset => f.write_str("RESET"),
            Self::Replay => f.write_str("REPLAY"),
        }
    }
}
