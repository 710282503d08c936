//! Requests: `LIST(rv=10, limit=2)`, `WATCH(init)`.
use super::super::trouble::{Place, Reading, Trouble};
use super::super::yaml::{Node, Value};
use super::{arguments, function};
use informant::Timestamp;
use std::collections::BTreeMap;
use std::fmt;

/// Which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One page of a list.
    List,
    /// A watch.
    Watch,
}

/// A call that the transport saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which source.
    pub source: String,
    /// Which call.
    pub kind: Kind,
    /// The options that were set, by their names here.
    pub options: BTreeMap<&'static str, String>,
    /// When.
    pub at: Timestamp,
}

/// What an option shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// Exactly this.
    Is(String),
    /// Not set.
    Unset,
    /// Set or not.
    Any,
}

/// What a call shall be. Options that are not written may be anything, but: a list without `cont`
/// is no follow-up page, and a watch without `init` is no streaming list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPattern {
    /// Which call.
    pub kind: Kind,
    /// What the options shall be.
    pub options: Vec<(&'static str, Matcher)>,
    /// No word about the options: `LIST`.
    pub bare: bool,
}

const OPTIONS: [&str; 12] = [
    "rv",
    "match",
    "limit",
    "cont",
    "init",
    "bookmarks",
    "timeout",
    "namespace",
    "labels",
    "fields",
    "shard",
    "metadata",
];

fn option(place: Place, name: &str) -> Reading<&'static str> {
    let name = match name {
        "resourceVersion" | "resource_version" | "version" => "rv",
        "continue" | "token" => "cont",
        "version_match" | "resourceVersionMatch" => "match",
        "selector" | "labelSelector" => "labels",
        "fieldSelector" => "fields",
        "ns" => "namespace",
        "sendInitialEvents" | "send_initial_events" => "init",
        other => other,
    };
    OPTIONS
        .into_iter()
        .find(|known| *known == name)
        .ok_or_else(|| Trouble::unknown(place, "option of a request", name, OPTIONS))
}

/// True when the text begins as a request does.
pub fn is_request(text: &str) -> bool {
    let word = text
        .trim()
        .split(['(', ' ', ':'])
        .next()
        .unwrap_or_default();
    matches!(word, "LIST" | "WATCH")
}

impl RequestPattern {
    /// Read `LIST(…)` or `WATCH(…)`; what follows the parentheses comes back.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(place: Place, text: &str) -> Reading<(Self, String)> {
        let text = text.trim();
        let word = text.split(['(', ' ', ':']).next().unwrap_or_default();
        let kind = match word {
            "LIST" => Kind::List,
            "WATCH" => Kind::Watch,
            other => return Err(Trouble::unknown(place, "request", other, ["LIST", "WATCH"])),
        };
        let after = &text[word.len()..];
        if !after.starts_with('(') {
            let pattern = Self {
                kind,
                options: Vec::new(),
                bare: true,
            };
            return Ok((pattern, after.to_owned()));
        }
        let (_, inner, rest) = function(text)
            .ok_or_else(|| Trouble::new(place, format!("{text:?} lacks a closing parenthesis")))?;
        let mut pattern = Self {
            kind,
            options: Vec::new(),
            bare: false,
        };
        for (name, value) in arguments(inner, ',') {
            if matches!(name.as_str(), "?" | "*" | "...") {
                pattern.bare = true;
            } else {
                pattern.set(place, &name, value.as_deref())?;
            }
        }
        Ok((pattern, rest.to_owned()))
    }

    /// Read the options of a request from a mapping, `{rv: 10, cont: none}`.
    ///
    /// # Errors
    /// When an option is unknown.
    pub fn from_options(kind: Kind, node: &Node) -> Reading<Self> {
        let mut pattern = Self {
            kind,
            options: Vec::new(),
            bare: node.is_null(),
        };
        match &node.value {
            Value::Scalar { text, .. } if !node.is_null() => {
                let word = if kind == Kind::List { "LIST" } else { "WATCH" };
                let (pattern, _) = Self::parse(node.place, &format!("{word}({text})"))?;
                return Ok(pattern);
            }
            _ => {}
        }
        for (name, value) in node.entries("the options of a request")? {
            let name_text = name.expect_text("an option")?;
            if value.is_null() {
                pattern.set(name.place, name_text, Some("none"))?;
            } else {
                pattern.set(name.place, name_text, Some(value.expect_text(name_text)?))?;
            }
        }
        Ok(pattern)
    }

    fn set(&mut self, place: Place, name: &str, value: Option<&str>) -> Reading<()> {
        let (name, value) = match (
            name.strip_prefix("no-")
                .or_else(|| name.strip_prefix("no_")),
            value,
        ) {
            (Some(name), None) => (name, Some("none")),
            _ => (name, value),
        };
        let name = option(place, name)?;
        let is_flag = matches!(name, "init" | "bookmarks" | "metadata");
        let matcher = match value {
            None if is_flag => Matcher::Is("true".to_owned()),
            None => {
                return Err(
                    Trouble::new(place, format!("option {name} needs a value")).suggest(format!(
                        "{name}=…, {name}=none for unset, {name}=* for anything"
                    )),
                );
            }
            Some("*" | "?") => Matcher::Any,
            // A version that is not set is an empty one, and the other way round.
            Some("" | "none" | "unset") => Matcher::Unset,
            Some("false") if is_flag => Matcher::Unset,
            Some(value) => Matcher::Is(value.to_owned()),
        };
        self.options.push((name, matcher));
        Ok(())
    }

    /// True when this call was made.
    pub fn matches(&self, request: &Request) -> bool {
        if self.kind != request.kind {
            return false;
        }
        let says = |option: &str| self.options.iter().any(|(name, _)| *name == option);
        let implied = match self.kind {
            Kind::List => "cont",
            Kind::Watch => "init",
        };
        if !self.bare && !says(implied) && request.options.contains_key(implied) {
            return false;
        }
        self.options.iter().all(|(name, matcher)| {
            let value = request.options.get(name);
            match matcher {
                Matcher::Any => true,
                Matcher::Unset => value.is_none(),
                Matcher::Is(wanted) => value == Some(wanted),
            }
        })
    }

    /// The options of `request` that this says something about, for messages.
    pub fn show_alike(&self, request: &Request) -> String {
        let mut shown = request.clone();
        shown.options.retain(|name, _| {
            matches!(*name, "rv" | "cont" | "init") || self.options.iter().any(|(n, _)| n == name)
        });
        shown.to_string()
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::List => "LIST",
        Kind::Watch => "WATCH",
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options: Vec<String> = Vec::new();
        for name in OPTIONS {
            match (name, self.options.get(name)) {
                ("rv", None) => options.push("rv=\"\"".to_owned()),
                ("init" | "bookmarks" | "metadata", Some(_)) => options.push(name.to_owned()),
                (name, Some(value)) => options.push(format!("{name}={value}")),
                (_, None) => {}
            }
        }
        write!(f, "{}({})", word(self.kind), options.join(", "))
    }
}

impl fmt::Display for RequestPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word(self.kind))?;
        if self.bare && self.options.is_empty() {
            return Ok(());
        }
        let options: Vec<_> = self
            .options
            .iter()
            .map(|(name, matcher)| match matcher {
                Matcher::Is(value) if value == "true" => (*name).to_owned(),
                Matcher::Is(value) => format!("{name}={value}"),
                Matcher::Unset => format!("{name}=none"),
                Matcher::Any => format!("{name}=*"),
            })
            .collect();
        write!(f, "({})", options.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: Kind, options: &[(&'static str, &str)]) -> Request {
        Request {
            source: String::new(),
            kind,
            options: options.iter().map(|(n, v)| (*n, (*v).to_owned())).collect(),
            at: Timestamp::default(),
        }
    }

    fn parse(text: &str) -> RequestPattern {
        RequestPattern::parse(Place::default(), text).unwrap().0
    }

    #[test]
    fn what_is_written_must_be_so_and_the_rest_may_be_anything() {
        let list = request(Kind::List, &[("rv", "10"), ("limit", "2")]);
        for (pattern, fits) in [
            ("LIST", true),
            ("LIST()", true),
            ("LIST(rv=10)", true),
            ("LIST(rv=10, limit=2)", true),
            ("LIST(limit=none)", false),
            ("LIST(rv=\"\")", false),
            ("LIST(cont=t1)", false),
            ("WATCH(rv=10)", false),
        ] {
            assert_eq!(parse(pattern).matches(&list), fits, "{pattern}");
        }
        let page = request(Kind::List, &[("cont", "t1")]);
        assert!(parse("LIST(cont=t1, no-rv, match=none)").matches(&page));
        assert!(!parse("LIST()").matches(&page), "a follow-up page says so");
        assert!(parse("LIST").matches(&page));
        let streaming = request(Kind::Watch, &[("init", "true")]);
        assert!(
            parse("WATCH(init)").matches(&streaming)
                && !parse("WATCH(rv=\"\")").matches(&streaming)
        );
    }

    #[test]
    fn an_unknown_option_is_told() {
        let told = RequestPattern::parse(Place::default(), "LIST(limits=2)").unwrap_err();
        assert_eq!(told.suggestion.as_deref(), Some("did you mean \"limit\"?"));
    }
}
