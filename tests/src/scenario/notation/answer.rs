//! What the transport does with a request: `LIST(rv=0) -> rv=10 [a@5] cont=t1`.
use super::super::trouble::{Place, Reading, Trouble};
use super::super::yaml::{Node, Value, split_at};
use super::{
    Frame, Kind, ListItem, RequestPattern, duration, frames, is_frame, source_error, unquoted,
};
use informant::source::SourceError;
use std::time::Duration;

/// A request that shall come, and what it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Where it is written.
    pub place: Place,
    /// Which source, where it is said.
    pub source: Option<String>,
    /// What the request shall be.
    pub request: RequestPattern,
    /// The answer.
    pub answer: Answer,
    /// The answer takes so long.
    pub delay: Duration,
    /// How often this happens.
    pub times: usize,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a list.
    List(ListAnswer),
    /// To a watch.
    Watch(WatchAnswer),
    /// An error, instead of either.
    Fail(SourceError),
    /// None, ever.
    Hang,
    /// The transport's code panics.
    Panic,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ListAnswer {
    /// The version of the list; may be empty.
    pub version: String,
    /// The objects.
    pub items: Vec<ListItem>,
    /// The token of the next page.
    pub token: Option<String>,
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WatchAnswer {
    /// What it says, one frame after the other.
    pub frames: Vec<Frame>,
}

const LIST_FORMS: &str = "an answer to a list is rv=10 [a@5, b@6], rv=10 [a@5] cont=t1, an error such as 410 or refused, hang, or PANIC";

impl Exchange {
    /// Read `LIST(…) -> answer`, `WATCH(…): frames`, each with an optional source before and an
    /// optional ` xN` after it.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(place: Place, text: &str) -> Reading<Self> {
        let (source, text) = source_and_rest(text);
        let (text, times) = times(text);
        let (request, rest) = RequestPattern::parse(place, text)?;
        let rest = rest.trim();
        let answer_text = rest
            .strip_prefix("->")
            .or_else(|| rest.strip_prefix(':'))
            .or_else(|| rest.strip_prefix('→'));
        let answer_text = match answer_text {
            Some(text) => text.trim(),
            None if rest.is_empty() => "",
            None => {
                return Err(Trouble::new(
                    place,
                    format!("{rest:?} after the request is no answer"),
                )
                .suggest("write LIST(…) -> rv=10 [a@5], or WATCH(…): +a@11, EOF"));
            }
        };
        let (answer, delay) = answer(request.kind, &Node::scalar(place, answer_text))?;
        Ok(Self {
            place,
            source,
            request,
            answer,
            delay,
            times,
        })
    }

    /// Read the mapping `{WATCH(rv=10): frames}` that YAML makes of the same text.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_entry(key: &Node, value: &Node) -> Reading<Self> {
        let (source, text) = source_and_rest(key.expect_text("a request")?);
        let (request, rest) = RequestPattern::parse(key.place, text)?;
        if !rest.trim().is_empty() {
            return Err(key
                .trouble(format!(
                    "{:?} after the request is not understood",
                    rest.trim()
                ))
                .suggest("put the whole text in quotes"));
        }
        let mut times_ = 1;
        let mut value = value.clone();
        if let Value::Scalar { text, .. } = &mut value.value {
            let (rest, n) = times(text);
            times_ = n;
            *text = rest.to_owned();
        }
        let (answer, delay) = answer(request.kind, &value)?;
        Ok(Self {
            place: key.place,
            source,
            request,
            answer,
            delay,
            times: times_,
        })
    }
}

/// `s1 LIST(…)` or `s1.LIST(…)`: the source before the request.
fn source_and_rest(text: &str) -> (Option<String>, &str) {
    let text = text.trim();
    for word in ["LIST", "WATCH"] {
        for separator in [" ", ".", ": "] {
            let mark = format!("{separator}{word}");
            if let Some(at) = text.find(&mark)
                && !text[..at].is_empty()
                && text[..at]
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
            {
                return (Some(text[..at].to_owned()), &text[at + separator.len()..]);
            }
        }
    }
    (None, text)
}

/// ` x50` at the end.
fn times(text: &str) -> (&str, usize) {
    let text = text.trim();
    if let Some(at) = text.rfind(char::is_whitespace)
        && let Some(number) = text[at..].trim().strip_prefix('x')
        && let Ok(number) = number.parse()
    {
        return (text[..at].trim_end(), number);
    }
    (text, 1)
}

/// Read an answer in any notation.
///
/// # Errors
/// When it is none.
pub fn answer(kind: Kind, node: &Node) -> Reading<(Answer, Duration)> {
    let mut delay = Duration::ZERO;
    let text = match &node.value {
        Value::Scalar { text, .. } => text.trim().to_owned(),
        Value::Mapping(entries) => return from_mapping(kind, node, entries),
        Value::Sequence(_) if kind == Kind::Watch => {
            let frames = frames(node)?;
            return Ok((Answer::Watch(WatchAnswer { frames }), delay));
        }
        Value::Sequence(_) => {
            return Err(node
                .trouble("a list of objects needs its version")
                .suggest(LIST_FORMS));
        }
    };
    let mut text = text.as_str();
    if let Some(rest) = text.strip_prefix("after ") {
        let (time, rest) = rest.split_once([' ', ':']).unwrap_or((rest, ""));
        delay = duration(node.place, time)?;
        text = rest.trim();
    }
    let node = Node::scalar(node.place, text);
    let lower = text.to_lowercase();
    let answer = match (kind, lower.as_str()) {
        (_, "hang" | "never" | "(never)") => Answer::Hang,
        (_, "panic") if kind == Kind::List => Answer::Panic,
        (Kind::Watch, "") => Answer::Watch(WatchAnswer::default()),
        (Kind::List, "") => {
            return Err(node.trouble("the list has no answer").suggest(LIST_FORMS));
        }
        (Kind::List, _) if text.starts_with("rv=") || text.starts_with("rv ") => {
            Answer::List(page(&node, text)?)
        }
        (Kind::Watch, _) if is_stream(text) => Answer::Watch(WatchAnswer {
            frames: frames(&node)?,
        }),
        _ => match source_error(&node) {
            Ok(error) => Answer::Fail(error),
            Err(trouble) if kind == Kind::List && text.contains('[') => {
                return Err(Trouble::new(
                    trouble.place,
                    format!("{text:?} is no answer to a list"),
                )
                .suggest(LIST_FORMS));
            }
            Err(trouble) if kind == Kind::Watch && text.contains('@') => {
                return Err(match frames(&node) {
                    Err(told) => told,
                    Ok(_) => trouble,
                });
            }
            Err(trouble) => return Err(trouble),
        },
    };
    Ok((answer, delay))
}

/// Frames, rather than the refusal of the watch: an error frame after others is one of them.
fn is_stream(text: &str) -> bool {
    let first = split_at(text, ',').into_iter().next().unwrap_or_default();
    is_frame(&first) || matches!(first.to_lowercase().as_str(), "open" | "idle" | "(idle)")
}

fn page(node: &Node, text: &str) -> Reading<ListAnswer> {
    let place = node.place;
    let (before, items, after) = match (text.find('['), text.rfind(']')) {
        (Some(open), Some(close)) if open < close => {
            (&text[..open], &text[open + 1..close], &text[close + 1..])
        }
        (None, None) => (text, "", ""),
        _ => {
            return Err(Trouble::new(
                place,
                format!("the brackets in {text:?} do not match"),
            ));
        }
    };
    let mut page = ListAnswer::default();
    for word in split_at(&format!("{before} {after}").replace(',', " "), ' ') {
        match word.split_once('=') {
            Some(("rv", version)) => unquoted(version).clone_into(&mut page.version),
            Some(("cont" | "continue", token)) => page.token = Some(unquoted(token).to_owned()),
            _ => {
                return Err(
                    Trouble::new(place, format!("{word:?} is no part of a list answer"))
                        .suggest(LIST_FORMS),
                );
            }
        }
    }
    for part in Node::scalar(place, items).parts() {
        page.items.push(ListItem::read(&part)?);
    }
    Ok(page)
}

fn from_mapping(kind: Kind, node: &Node, entries: &[(Node, Node)]) -> Reading<(Answer, Duration)> {
    let mut page = ListAnswer::default();
    let (mut answer, mut stream, mut delay) = (None, None, Duration::ZERO);
    let mut versioned = false;
    for (key, value) in entries {
        match key.expect_text("a key")? {
            "rv" | "resourceVersion" | "version" => {
                versioned = true;
                page.version = if value.is_null() {
                    String::new()
                } else {
                    value.expect_text("rv")?.to_owned()
                };
            }
            "objects" | "items" => {
                for part in value.parts() {
                    page.items.push(ListItem::read(&part)?);
                }
            }
            "cont" | "continue" => page.token = Some(value.expect_text("cont")?.to_owned()),
            "frames" => stream = Some(frames(value)?),
            "error" => answer = Some(Answer::Fail(source_error(value)?)),
            "delay" | "after" => delay = duration(value.place, value.expect_text("delay")?)?,
            "hang" => answer = Some(Answer::Hang),
            other => {
                let known = ["rv", "objects", "cont", "frames", "error", "delay", "hang"];
                return Err(Trouble::unknown(
                    key.place,
                    "key of an answer",
                    other,
                    known,
                ));
            }
        }
    }
    let answer = match (answer, stream, kind) {
        (Some(answer), _, _) => answer,
        (None, Some(frames), Kind::Watch) => Answer::Watch(WatchAnswer { frames }),
        (None, None, Kind::Watch) => Answer::Watch(WatchAnswer::default()),
        (None, None, Kind::List) if versioned => Answer::List(page),
        (None, _, Kind::List) => {
            return Err(node
                .trouble("the answer to a list needs its rv")
                .suggest("rv: 10, or rv: \"\" for none"));
        }
    };
    Ok((answer, delay))
}

#[cfg(test)]
mod tests {
    use super::super::super::yaml::documents;
    use super::*;

    fn parse(text: &str) -> Exchange {
        Exchange::parse(Place::default(), text).unwrap()
    }

    #[test]
    fn pages_errors_and_streams() {
        let exchange = parse("LIST(limit=2) -> rv=40 [a, b#u1@5] cont=t1");
        let Answer::List(page) = exchange.answer else {
            panic!()
        };
        assert_eq!(
            (
                page.version.as_str(),
                page.items.len(),
                page.token.as_deref()
            ),
            ("40", 2, Some("t1"))
        );
        let Answer::List(page) = parse("LIST -> rv=\"\" []").answer else {
            panic!()
        };
        assert_eq!(
            (page.version.as_str(), page.items.len(), page.token),
            ("", 0, None)
        );
        assert!(matches!(parse("LIST -> 410").answer, Answer::Fail(_)));
        assert_eq!(parse("LIST -> 500 x50").times, 50);
        let exchange = parse("s1 WATCH(rv=10): +a@11, ERR(410,Expired)");
        assert_eq!(exchange.source.as_deref(), Some("s1"));
        let Answer::Watch(watch) = exchange.answer else {
            panic!()
        };
        assert_eq!(watch.frames.len(), 2);
        assert!(matches!(
            parse("WATCH(rv=10) -> HTTP 410 at open").answer,
            Answer::Fail(_)
        ));
        assert!(matches!(
            parse("WATCH(rv=10) -> 429 retry_after=3s").answer,
            Answer::Fail(_)
        ));
        assert!(matches!(parse("WATCH(rv=10)").answer, Answer::Watch(_)));
        assert_eq!(
            parse("LIST -> after 2s rv=10 [a]").delay,
            Duration::from_secs(2)
        );
    }

    #[test]
    fn yaml_may_take_a_watch_for_a_mapping() {
        let document = &documents("- WATCH(rv=10): +b@12, ERR(410,Expired)").unwrap()[0];
        let Value::Sequence(items) = &document.value else {
            panic!()
        };
        let [(key, value)] = items[0].entries("it").unwrap() else {
            panic!()
        };
        let exchange = Exchange::from_entry(key, value).unwrap();
        assert_eq!(
            exchange,
            Exchange {
                place: exchange.place,
                ..parse("WATCH(rv=10): +b@12, ERR(410,Expired)")
            }
        );
    }
}
