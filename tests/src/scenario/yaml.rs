//! YAML as a tree whose nodes know their place.
use super::trouble::{Place, Reading, Trouble};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// One node of a document.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text; `plain` when it stands there without quotes.
    Scalar {
        /// The text.
        text: String,
        /// Without quotes: may mean a number, a boolean or nothing.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values, in order; keys are unique.
    Mapping(Vec<(Node, Node)>),
}

/// The documents of a file.
///
/// # Errors
/// Bad YAML, a key that stands twice, an alias or a tag.
pub fn documents(text: &str) -> Reading<Vec<Node>> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
    };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => return Ok(documents),
            (Event::DocumentStart(_), _) => {
                let first = reader.next()?;
                documents.push(reader.node(first)?);
            }
            _ => {}
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

type Spanned<'a> = (Event<'a>, Span);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Reading<Spanned<'a>> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let at = error.marker();
                let trouble = Trouble::new(
                    Place {
                        line: at.line(),
                        column: at.col() + 1,
                    },
                    format!("bad YAML: {}", error.info()),
                );
                Err(if error.info().contains("mapping values") {
                    trouble.suggest("put the text in quotes, or the value on a line of its own")
                } else {
                    trouble.suggest(
                        "text with \": \", or that begins with @ * & ! % or `, needs quotes",
                    )
                })
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, (event, span): Spanned<'a>) -> Reading<Node> {
        let place = Place {
            line: span.start.line(),
            column: span.start.col() + 1,
        };
        let value = match event {
            Event::Scalar(text, style, _, None) => Value::Scalar {
                text: text.into_owned(),
                plain: style == ScalarStyle::Plain,
            },
            Event::SequenceStart(_, None) => Value::Sequence(self.sequence()?),
            Event::MappingStart(_, None) => Value::Mapping(self.mapping()?),
            Event::Alias(_) => {
                let message = "YAML aliases are not used in scenarios";
                return Err(Trouble::new(place, message).suggest("put text with * first in quotes"));
            }
            _ => {
                let message = "YAML tags are not used in scenarios";
                return Err(Trouble::new(place, message).suggest("put text with ! first in quotes"));
            }
        };
        Ok(Node { place, value })
    }

    fn sequence(&mut self) -> Reading<Vec<Node>> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                event => items.push(self.node(event)?),
            }
        }
    }

    fn mapping(&mut self) -> Reading<Vec<(Node, Node)>> {
        let mut entries: Vec<(Node, Node)> = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Ok(entries),
                event => self.node(event)?,
            };
            let twice = entries
                .iter()
                .any(|(other, _)| other.text().is_some() && other.text() == key.text());
            if twice {
                let text = key.text().unwrap_or_default();
                return Err(
                    Trouble::new(key.place, format!("key {text:?} stands here twice"))
                        .suggest("make it two entries of the list of steps"),
                );
            }
            let value = self.next()?;
            let value = self.node(value)?;
            entries.push((key, value));
        }
    }
}

impl Node {
    /// A plain text at a place.
    pub fn scalar(place: Place, text: impl Into<String>) -> Self {
        Self {
            place,
            value: Value::Scalar {
                text: text.into(),
                plain: true,
            },
        }
    }

    /// Its text, where it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// True for nothing, `null` and `~`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// What kind of node it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar { .. } if self.is_null() => "nothing",
            Value::Scalar { .. } => "a text",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    /// Its text.
    ///
    /// # Errors
    /// When it is something else.
    pub fn expect_text(&self, what: &str) -> Reading<&str> {
        self.text()
            .ok_or_else(|| self.trouble(format!("{what} must be a text, not {}", self.kind())))
    }

    /// Something is wrong with this node.
    pub fn trouble(&self, message: impl Into<String>) -> Trouble {
        Trouble::new(self.place, message)
    }

    /// Its entries, where it is a mapping; none for nothing.
    ///
    /// # Errors
    /// When it is something else.
    pub fn entries(&self, what: &str) -> Reading<&[(Node, Node)]> {
        match &self.value {
            Value::Mapping(entries) => Ok(entries),
            _ if self.is_null() => Ok(&[]),
            _ => Err(self.trouble(format!("{what} must be a mapping, not {}", self.kind()))),
        }
    }

    /// The parts of a list in any of its notations: a YAML list, one text with commas (with or
    /// without brackets or braces around it), or the `{a, b}` that YAML takes for a mapping. Commas
    /// inside of parentheses and quotes are no separators, whatever YAML says.
    pub fn parts(&self) -> Vec<Node> {
        match &self.value {
            Value::Scalar { .. } if self.is_null() => Vec::new(),
            Value::Scalar { text, .. } => split(self.place, text),
            Value::Mapping(entries) if entries.iter().all(|(_, value)| value.is_null()) => {
                rejoin(entries.iter().map(|(key, _)| key))
            }
            Value::Mapping(_) => vec![self.clone()],
            Value::Sequence(items) => rejoin(items.iter()),
        }
    }
}

/// Put back together what YAML split at commas inside of parentheses, then split at the others.
fn rejoin<'a>(items: impl Iterator<Item = &'a Node>) -> Vec<Node> {
    let mut parts = Vec::new();
    let mut open: Option<(Place, String)> = None;
    for item in items {
        let Some(text) = item.text() else {
            parts.push(item.clone());
            continue;
        };
        let (place, text) = match open.take() {
            Some((place, begun)) => (place, format!("{begun}, {text}")),
            None => (item.place, text.to_owned()),
        };
        if depth(&text) > 0 {
            open = Some((place, text));
        } else {
            parts.extend(split(place, &text));
        }
    }
    if let Some((place, text)) = open {
        parts.push(Node::scalar(place, text));
    }
    parts
}

fn depth(text: &str) -> i32 {
    let mut depth = 0;
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
    }
    depth
}

fn split(place: Place, text: &str) -> Vec<Node> {
    let mut text = text.trim();
    for (open, close) in [('[', ']'), ('{', '}')] {
        if let Some(inner) = text.strip_prefix(open).and_then(|t| t.strip_suffix(close))
            && depth(inner) == 0
        {
            text = inner.trim();
        }
    }
    split_at(text, ',')
        .into_iter()
        .map(|part| Node::scalar(place, part))
        .collect()
}

/// The parts between separators that stand outside of all parentheses and quotes, trimmed.
pub fn split_at(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        if c == separator && depth == 0 && !quoted {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
        .into_iter()
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<String> {
        let node = &documents(text).unwrap()[0];
        let parts = node.parts();
        parts
            .iter()
            .map(|part| part.text().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_list_is_the_same_in_each_of_its_notations() {
        let expected = ["DEL?(a, last=a@5)", "ADD*(b#u1@6)"];
        for text in [
            "[DEL?(a, last=a@5), ADD*(b#u1@6)]",
            "- DEL?(a, last=a@5)\n- ADD*(b#u1@6)",
            "DEL?(a, last=a@5), ADD*(b#u1@6)",
            "\"[DEL?(a, last=a@5), ADD*(b#u1@6)]\"",
            "{DEL?(a, last=a@5), ADD*(b#u1@6)}",
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
        assert_eq!(parts("[]"), [""; 0]);
        assert_eq!(parts("{}"), [""; 0]);
        assert_eq!(parts("+a@11, ~a@12, -a@13"), ["+a@11", "~a@12", "-a@13"]);
    }

    #[test]
    fn places_are_those_of_the_file() {
        let document = &documents("a: 1\nb:\n  - c: 2\n").unwrap()[0];
        let entries = document.entries("it").unwrap();
        assert_eq!(entries[1].1.place, Place { line: 3, column: 3 });
    }

    #[test]
    fn bad_yaml_is_told_with_its_place() {
        let trouble = documents("a: [1, 2\nb: 3\n").unwrap_err();
        assert!(trouble.message.starts_with("bad YAML"), "{trouble}");
        assert!(trouble.place.line >= 1);
        let trouble = documents("a: 1\na: 2\n").unwrap_err();
        assert_eq!(
            trouble.to_string(),
            "2:1: key \"a\" stands here twice (make it two entries of the list of steps)"
        );
        assert!(
            documents("- s1: WATCH(rv=1): x\n")
                .unwrap_err()
                .suggestion
                .unwrap()
                .contains("quotes")
        );
    }
}
