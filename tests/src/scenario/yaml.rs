//! YAML as a tree that knows its lines, and errors that say where and what was perhaps meant.
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::fmt;

/// A node of a YAML document.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

/// What a node holds; scalars stay text.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// Why a scenario cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The file, as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was perhaps meant.
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for ReadError {}

/// An error before the file's name is known.
pub(super) type Located = (usize, String);

impl Node {
    /// Read one document.
    pub(super) fn read(text: &str) -> Result<Self, Located> {
        let mut events = Vec::new();
        for event in Parser::new_from_str(text) {
            match event {
                Ok(event) => events.push(event),
                Err(error) => {
                    let line = error.marker().line().max(1);
                    return Err((line, format!("this is no YAML: {}", error.info())));
                }
            }
        }
        let mut events = events.into_iter().peekable();
        while let Some((event, span)) = events.next() {
            if matches!(
                event,
                Event::StreamStart
                    | Event::DocumentStart(_)
                    | Event::DocumentEnd
                    | Event::StreamEnd
                    | Event::Nothing
            ) {
                continue;
            }
            return build(&event, span, &mut events);
        }
        Err((1, "the file is empty".to_owned()))
    }

    pub(super) fn text(&self) -> Result<&str, Located> {
        match &self.value {
            Value::Text(text) => Ok(text),
            other => Err((self.line, format!("expected text, found {}", other.kind()))),
        }
    }

    pub(super) fn map(&self) -> Result<&[(Node, Node)], Located> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            other => Err((self.line, format!("expected a map, found {}", other.kind()))),
        }
    }

    /// The items of a list; anything else is a list of itself, nothing an empty one.
    pub(super) fn items(&self) -> &[Node] {
        match &self.value {
            Value::Null => &[],
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// Texts of a list. What a flow list has cut at commas inside parentheses is put together
    /// again, and a text is cut at its commas outside of them.
    pub(super) fn texts(&self) -> Result<Vec<(usize, String)>, Located> {
        let mut texts: Vec<(usize, String)> = Vec::new();
        for item in self.items() {
            let text = item.text()?;
            match texts.last_mut() {
                Some((_, last)) if depth(last) > 0 => {
                    last.push_str(", ");
                    last.push_str(text);
                }
                _ => texts.push((item.line, text.to_owned())),
            }
        }
        let cut = texts
            .into_iter()
            .flat_map(|(line, text)| split(&text, ',').into_iter().map(move |part| (line, part)));
        Ok(cut.filter(|(_, part)| !part.is_empty()).collect())
    }

    pub(super) fn number<N: std::str::FromStr>(&self) -> Result<N, Located> {
        let text = self.text()?;
        let parsed = text.parse();
        parsed.map_err(|_| (self.line, format!("expected a number, found {text:?}")))
    }

    pub(super) fn boolean(&self) -> Result<bool, Located> {
        match self.text()? {
            "true" | "yes" => Ok(true),
            "false" | "no" => Ok(false),
            other => Err((
                self.line,
                format!("expected true or false, found {other:?}"),
            )),
        }
    }
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

fn depth(text: &str) -> i32 {
    text.chars().fold(0, |depth, c| match c {
        '(' | '[' => depth + 1,
        ')' | ']' => depth - 1,
        _ => depth,
    })
}

/// Cut a text at a separator that is outside of parentheses and brackets.
pub(super) fn split(text: &str, separator: char) -> Vec<String> {
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0);
    for c in text.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(std::mem::take(&mut part).trim().to_owned());
                continue;
            }
            _ => (),
        }
        part.push(c);
    }
    parts.push(part.trim().to_owned());
    parts
}

type Events<'a> = std::iter::Peekable<std::vec::IntoIter<(Event<'a>, Span)>>;

fn build(event: &Event<'_>, span: Span, events: &mut Events<'_>) -> Result<Node, Located> {
    let line = span.start.line().max(1);
    let value = match event {
        Event::Scalar(text, style, ..) => {
            let plain = *style == ScalarStyle::Plain;
            if plain && matches!(&**text, "" | "~" | "null") {
                Value::Null
            } else {
                Value::Text(text.trim().to_owned())
            }
        }
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            while let Some((event, span)) = events.next() {
                if event == Event::SequenceEnd {
                    break;
                }
                items.push(build(&event, span, events)?);
            }
            Value::List(items)
        }
        Event::MappingStart(..) => {
            let mut entries: Vec<(Node, Node)> = Vec::new();
            while let Some((event, span)) = events.next() {
                if event == Event::MappingEnd {
                    break;
                }
                let key = build(&event, span, events)?;
                let Some((event, span)) = events.next() else {
                    return Err((line, "a key without a value".to_owned()));
                };
                let value = build(&event, span, events)?;
                let text = key.text()?;
                if entries
                    .iter()
                    .any(|(k, _)| k.text().is_ok_and(|k| k == text))
                {
                    return Err((key.line, format!("the key {text:?} stands here twice")));
                }
                entries.push((key, value));
            }
            Value::Map(entries)
        }
        _ => return Err((line, "aliases are not part of the language".to_owned())),
    };
    Ok(Node { line, value })
}
