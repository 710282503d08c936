//! Frames of a watch: `+a@11`, `~a@12`, `-a@13`, `BM@14(end)`, `ERR(410,Expired)`, `EOF`, `CUT`.
use super::super::trouble::{Reading, Trouble};
use super::super::yaml::{Node, Value};
use super::{ListItem, ObjectText, duration, function, source_error, unquoted};
use informant::source::SourceError;
use std::time::Duration;

/// One thing that a watch does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// `+a@11`.
    Added(ListItem),
    /// `~a@12`.
    Modified(ListItem),
    /// `-a@13`.
    Deleted(ListItem),
    /// `BM@14`, `BM@14(end)`.
    Bookmark {
        /// The version; may be empty.
        version: String,
        /// It ends the initial objects.
        end: bool,
    },
    /// `FOREIGN(Table)`: a frame of another kind.
    Foreign(String),
    /// `ERR(…)`, `CUT`: the stream ends with an error.
    Fail(SourceError),
    /// `EOF`: the stream ends as streams do.
    End,
    /// `PANIC`: the transport's code panics.
    Panic,
    /// `WAIT(5m)`: nothing for so long.
    Wait(Duration),
    /// `BURST(+a@1, +b@2)`: these arrive together, before anything else can run.
    Burst(Vec<Frame>),
}

const FORMS: &str = "a frame is +a@11, ~a@12, -a@13, BM@14, BM@14(end), ERR(410,Expired), EOF, CUT, WAIT(5m), BAD frames +BAD(a@5), FOREIGN(Table) or BURST(…)";

/// True when the text begins as a frame does.
pub fn is_frame(text: &str) -> bool {
    let text = text.trim();
    (text.starts_with(['+', '~', '-']) && !text.starts_with("->"))
        || text.starts_with("BM@")
        || text.starts_with("BM ")
        || matches!(
            text.split(['(', ',', ' ']).next(),
            Some("ERR" | "EOF" | "CUT" | "WAIT" | "FOREIGN" | "BURST" | "PANIC" | "BM")
        )
}

/// Read frames in any notation of lists.
///
/// # Errors
/// When one of them is none.
pub fn frames(node: &Node) -> Reading<Vec<Frame>> {
    let mut frames = Vec::new();
    for part in node.parts() {
        let idle = part
            .text()
            .is_some_and(|text| matches!(text.to_lowercase().as_str(), "open" | "idle" | "(idle)"));
        if !idle {
            frames.push(frame(&part)?);
        }
    }
    Ok(frames)
}

/// Read one frame.
///
/// # Errors
/// When it is none.
pub(super) fn frame(node: &Node) -> Reading<Frame> {
    let place = node.place;
    if let Value::Mapping(entries) = &node.value {
        return from_mapping(node, entries);
    }
    let text = node.expect_text("a frame")?.trim();
    let item = |rest: &str| -> Reading<ListItem> {
        let item = ListItem::read(&Node::scalar(place, rest))?;
        check_version(node, &item)?;
        Ok(item)
    };
    if let Some(rest) = text.strip_prefix('+') {
        return Ok(Frame::Added(item(rest)?));
    }
    if let Some(rest) = text.strip_prefix('~') {
        return Ok(Frame::Modified(item(rest)?));
    }
    if let Some(rest) = text.strip_prefix('-') {
        return Ok(Frame::Deleted(item(rest)?));
    }
    if let Some(rest) = text.strip_prefix("BM") {
        let rest = rest.trim().trim_start_matches('@');
        let (version, end) = match rest.strip_suffix("(end)") {
            Some(version) => (version, true),
            None => (rest, false),
        };
        let version = if version == "(empty)" {
            ""
        } else {
            unquoted(version)
        };
        return Ok(Frame::Bookmark {
            version: version.to_owned(),
            end,
        });
    }
    match text {
        "EOF" => return Ok(Frame::End),
        "PANIC" => return Ok(Frame::Panic),
        _ => {}
    }
    match function(text) {
        Some(("WAIT", inner, "")) => return Ok(Frame::Wait(duration(place, inner)?)),
        Some(("FOREIGN" | "KIND", inner, _)) => return Ok(Frame::Foreign(inner.to_owned())),
        Some(("BURST", inner, "")) => {
            return Ok(Frame::Burst(frames(&Node::scalar(place, inner))?));
        }
        _ => {}
    }
    if let Some(rest) = text.strip_prefix("WAIT ") {
        return Ok(Frame::Wait(duration(place, rest)?));
    }
    match source_error(node) {
        Ok(error) => Ok(Frame::Fail(error)),
        Err(_) if !text.starts_with("ERR") => {
            Err(Trouble::new(place, format!("{text:?} is no frame")).suggest(FORMS))
        }
        Err(trouble) => Err(trouble),
    }
}

/// Frames move the resume point, so what their version is must be said.
fn check_version(node: &Node, item: &ListItem) -> Reading<()> {
    match item {
        ListItem::Good(ObjectText {
            version: None, key, ..
        }) => Err(node
            .trouble(format!(
                "the frame about {} has no version",
                super::show_key(key)
            ))
            .suggest("write the version after @, as in +a@11, or a@(empty) for none")),
        _ => Ok(()),
    }
}

fn from_mapping(node: &Node, entries: &[(Node, Node)]) -> Reading<Frame> {
    let [(verb, value), options @ ..] = entries else {
        return Err(node.trouble("an empty mapping is no frame").suggest(FORMS));
    };
    let item = || -> Reading<ListItem> {
        let item = ListItem::read(value)?;
        check_version(node, &item)?;
        Ok(item)
    };
    let mut end = false;
    for (option, value) in options {
        match option.expect_text("a key")? {
            "end" | "initial_events_end" => end = value.text() == Some("true"),
            other => {
                return Err(Trouble::unknown(
                    option.place,
                    "key of a frame",
                    other,
                    ["end"],
                ));
            }
        }
    }
    let verb_text = verb.expect_text("a frame's verb")?;
    Ok(match verb_text {
        "added" | "ADDED" => Frame::Added(item()?),
        "modified" | "MODIFIED" => Frame::Modified(item()?),
        "deleted" | "DELETED" => Frame::Deleted(item()?),
        "bookmark" | "BOOKMARK" => Frame::Bookmark {
            version: value.expect_text("a bookmark's version")?.to_owned(),
            end,
        },
        "error" | "ERROR" => Frame::Fail(source_error(value)?),
        "foreign" => Frame::Foreign(value.expect_text("a kind")?.to_owned()),
        "wait" => Frame::Wait(duration(value.place, value.expect_text("a time span")?)?),
        "burst" => Frame::Burst(frames(value)?),
        other => {
            let known = [
                "added", "modified", "deleted", "bookmark", "error", "foreign", "wait", "burst",
            ];
            return Err(Trouble::unknown(verb.place, "frame", other, known));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::yaml::documents;
    use super::*;

    fn read(text: &str) -> Reading<Vec<Frame>> {
        frames(&documents(text).unwrap()[0])
    }

    #[test]
    fn frames_are_read_in_both_notations() {
        let compact = read("+a@11, ~a#u1@12, -a@13, BM@14(end), ERR(410,Expired), EOF").unwrap();
        let long = read(
            "- {added: a@11}\n- modified: {key: ns/a, uid: u1, version: 12}\n- deleted: a@13\n\
             - {bookmark: 14, end: true}\n- error: {code: 410, reason: Expired}\n- EOF",
        );
        assert_eq!(long.unwrap(), compact);
        assert_eq!(read("[+a@11, ERR(410,Expired)]").unwrap().len(), 2);
        assert_eq!(read("WAIT(5m), BURST(~a@1, ~a@2)").unwrap().len(), 2);
        assert!(matches!(
            &read("+BAD(spam@7)").unwrap()[0],
            Frame::Added(ListItem::Bad(_))
        ));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert!(read("+a").unwrap_err().message.contains("no version"));
        assert!(
            read("a@11")
                .unwrap_err()
                .suggestion
                .unwrap()
                .contains("+a@11")
        );
        assert!(
            read("{addd: a@1}")
                .unwrap_err()
                .suggestion
                .unwrap()
                .contains("added")
        );
    }
}
