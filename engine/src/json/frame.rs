//! The text form of list answers and watch frames: one JSON document for each.
use super::meta::without_position;
use super::{JsonObject, type_of};
use crate::object::ResourceVersion;
use crate::source::{ApiStatus, ListPage, StatusCause, WatchEvent};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

/// How deeply the JSON of a frame may be nested; what is deeper is refused before it is decoded.
pub const MAX_DEPTH: usize = 127;

/// One frame of a recorded or received stream: a list answer, or a frame of a watch.
///
/// | text | frame |
/// |---|---|
/// | `{"type":"LIST","object":{"metadata":{"resourceVersion":"…"},"items":[…]}}` | a page of a list |
/// | `{"type":"ADDED","object":{…}}`, `MODIFIED`, `DELETED` | a change of an object |
/// | `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"…"}}}` | progress without a change |
/// | `{"type":"ERROR","object":{"kind":"Status","code":410,…}}` | the watch ended with an error |
///
/// All but `LIST` is what an API server sends on a watch; `LIST` wraps what it answers to a list.
///
/// ```
/// use informant::json::Frame;
/// use informant::source::WatchEvent;
/// let frame = Frame::decode(
///     r#"{"type":"ADDED","object":{"metadata":{"name":"web-0","resourceVersion":"7"}}}"#,
/// )?;
/// assert_eq!(frame.resource_version().unwrap().to_string(), "7");
/// assert!(matches!(frame, Frame::Event(WatchEvent::Added(pod)) if pod.meta.key.name() == "web-0"));
/// # Ok::<_, informant::json::FrameError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// A page of a list; with `continue` in its metadata, more pages follow.
    List {
        /// The list's kind, such as `PodList`, where it says it.
        kind: Option<String>,
        /// What the page holds.
        page: ListPage<JsonObject>,
    },
    /// A frame of a watch.
    Event(WatchEvent<JsonObject>),
    /// The watch ended with an error.
    Error(ApiStatus),
}

/// A frame that cannot be understood. What follows it can't be trusted either, since the frame may
/// have said anything; a fault of a single *object* is no error but a [`BadObject`] in the frame.
///
/// [`BadObject`]: crate::source::BadObject
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The text is no JSON document, or none that has a type and an object.
    #[error("broken frame at column {column}: {message}")]
    Json {
        /// What is wrong.
        message: String,
        /// Where, in bytes, from 1.
        column: usize,
    },
    /// Nested more deeply than anything meant for an API server.
    #[error("the JSON is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// A type that no API server sends.
    #[error("unknown frame type {0:?}, expected LIST, ADDED, MODIFIED, DELETED, BOOKMARK or ERROR")]
    UnknownType(String),
    /// The object of a list, a bookmark or an error is not what it must be.
    #[error("the {frame} frame's {field} is {found}, expected {expected}")]
    WrongType {
        /// The frame's type.
        frame: &'static str,
        /// The field.
        field: &'static str,
        /// What was found there.
        found: &'static str,
        /// What must be there.
        expected: &'static str,
    },
    /// A list or a bookmark without the version that it is about.
    #[error("the {0} frame has no metadata.resourceVersion")]
    NoVersion(&'static str),
}

impl Frame {
    /// Decode one frame.
    ///
    /// # Errors
    /// [`FrameError`] when the frame as a whole makes no sense. An object that makes none is
    /// [`WatchEvent::Bad`], or an `Err` among the items of a list.
    pub fn decode(text: &str) -> Result<Self, FrameError> {
        if is_too_deep(text) {
            return Err(FrameError::TooDeep);
        }
        // Decoding would also take the fields from an array, in their order.
        if matches!(type_of(text), "an array") {
            return Err(FrameError::Json {
                message: "an array, expected an object with a type and an object".to_owned(),
                column: text.len() - text.trim_start().len() + 1,
            });
        }
        let envelope: Envelope<'_> = parse(text, text)?;
        let object = envelope.object.get();
        Ok(match &*envelope.kind {
            "LIST" => list(text, object)?,
            "ADDED" => event(object, false, WatchEvent::Added),
            "MODIFIED" => event(object, false, WatchEvent::Modified),
            "DELETED" => event(object, true, WatchEvent::Deleted),
            "BOOKMARK" => bookmark(text, object)?,
            "ERROR" => error(text, object)?,
            other => return Err(FrameError::UnknownType(other.chars().take(64).collect())),
        })
    }

    /// The version that the frame is about; `None` for an error, and for an object without one.
    #[must_use]
    pub fn resource_version(&self) -> Option<&ResourceVersion> {
        let version = match self {
            Self::List { page, .. } => &page.resource_version,
            Self::Event(
                WatchEvent::Added(object)
                | WatchEvent::Modified(object)
                | WatchEvent::Deleted(object),
            ) => &object.meta.resource_version,
            Self::Event(WatchEvent::Bookmark {
                resource_version, ..
            }) => resource_version,
            Self::Event(WatchEvent::Bad { object, .. }) => &object.resource_version,
            Self::Event(WatchEvent::Foreign { .. }) | Self::Error(_) => return None,
        };
        Some(version).filter(|version| !version.is_empty())
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an object with a type and an object")]
struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The parts of a list, each kept as text until its own turn. A part that is absent is `None`; one
/// that is null is the text `null`.
#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    items: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawListMeta<'a> {
    #[serde(
        rename = "resourceVersion",
        borrow,
        default,
        deserialize_with = "present"
    )]
    resource_version: Option<&'a RawValue>,
    #[serde(rename = "continue", borrow, default, deserialize_with = "present")]
    continue_token: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Parse `part`, which lies inside the frame's text, so that errors can say where.
fn parse<'a, T: Deserialize<'a>>(whole: &str, part: &'a str) -> Result<T, FrameError> {
    serde_json::from_str(part).map_err(|error| FrameError::Json {
        message: without_position(&error),
        column: part.as_ptr().addr() - whole.as_ptr().addr() + error.column(),
    })
}

fn list(whole: &str, object: &str) -> Result<Frame, FrameError> {
    let expect = |field, found: &str, expected| FrameError::WrongType {
        frame: "LIST",
        field,
        found: type_of(found),
        expected,
    };
    if !object.starts_with('{') {
        return Err(expect("object", object, "a list object"));
    }
    let raw: RawList<'_> = parse(whole, object)?;
    let metadata = raw.metadata.map_or("null", RawValue::get);
    if metadata == "null" {
        return Err(FrameError::NoVersion("LIST"));
    }
    if !metadata.starts_with('{') {
        return Err(expect("metadata", metadata, "an object"));
    }
    let metadata: RawListMeta<'_> = parse(whole, metadata)?;
    let text = |field, raw: Option<&RawValue>| match raw.map(RawValue::get) {
        None | Some("null") => Ok(String::new()),
        Some(raw) if raw.starts_with('"') => parse(whole, raw),
        Some(raw) => Err(expect(field, raw, "a string")),
    };
    let resource_version = ResourceVersion::new(&text(
        "metadata.resourceVersion",
        metadata.resource_version,
    )?);
    if resource_version.is_empty() {
        return Err(FrameError::NoVersion("LIST"));
    }
    let continue_token = text("metadata.continue", metadata.continue_token)?;
    let kind = text("kind", raw.kind)?;
    let items: Vec<&RawValue> = match raw.items.map(RawValue::get) {
        // Servers answer null for a list without items.
        Some("null") => Vec::new(),
        Some(items) if items.starts_with('[') => parse(whole, items)?,
        items => return Err(expect("items", items.unwrap_or("null"), "an array")),
    };
    Ok(Frame::List {
        kind: Some(kind).filter(|kind| !kind.is_empty()),
        page: ListPage {
            resource_version,
            continue_token: Some(continue_token).filter(|token| !token.is_empty()),
            items: items
                .into_iter()
                .map(|item| JsonObject::parse(item.get()))
                .collect(),
        },
    })
}

fn event(
    object: &str,
    deleted: bool,
    verb: impl FnOnce(crate::object::Incoming<JsonObject>) -> WatchEvent<JsonObject>,
) -> Frame {
    Frame::Event(match JsonObject::parse(object) {
        Ok(incoming) => verb(incoming),
        Err(object) => WatchEvent::Bad { object, deleted },
    })
}

/// The annotation on the bookmark that ends the initial objects of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

fn bookmark(whole: &str, object: &str) -> Result<Frame, FrameError> {
    let object: Value = parse(whole, object)?;
    let metadata = &object["metadata"];
    let resource_version = match &metadata["resourceVersion"] {
        Value::String(version) if !version.is_empty() => ResourceVersion::new(version),
        Value::String(_) | Value::Null => return Err(FrameError::NoVersion("BOOKMARK")),
        other => {
            return Err(FrameError::WrongType {
                frame: "BOOKMARK",
                field: "metadata.resourceVersion",
                found: super::type_of_value(other),
                expected: "a string",
            });
        }
    };
    let end = &metadata["annotations"][INITIAL_EVENTS_END];
    Ok(Frame::Event(WatchEvent::Bookmark {
        resource_version,
        initial_events_end: end == "true",
    }))
}

/// A `Status`; whatever is missing in it or of another type is left at its default.
fn error(whole: &str, object: &str) -> Result<Frame, FrameError> {
    if !object.starts_with('{') {
        return Err(FrameError::WrongType {
            frame: "ERROR",
            field: "object",
            found: type_of(object),
            expected: "a Status",
        });
    }
    let status: Value = parse(whole, object)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let details = &status["details"];
    let causes = details["causes"].as_array().into_iter().flatten();
    Ok(Frame::Error(ApiStatus {
        code: status["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok())
            .unwrap_or_default(),
        reason: text(&status["reason"]),
        message: text(&status["message"]),
        causes: causes
            .map(|cause| StatusCause {
                reason: text(&cause["reason"]),
                message: text(&cause["message"]),
            })
            .collect(),
        retry_after: details["retryAfterSeconds"]
            .as_u64()
            .filter(|&seconds| seconds > 0)
            .map(Duration::from_secs),
    }))
}

/// Counts brackets outside strings: one pass, no memory, before anything recursive runs.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        Frame::decode(text).unwrap_err().to_string()
    }

    fn list_of(object: &str) -> Result<Frame, FrameError> {
        Frame::decode(&format!(r#"{{"type":"LIST","object":{object}}}"#))
    }

    #[test]
    fn a_list_keeps_its_items_apart() {
        let frame = list_of(
            r#"{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"t","x":1},"items":[
               {"metadata":{"name":"a","resourceVersion":"1"}},
               {"metadata":{"name":"b","resourceVersion":2}},
               null,
               "text",
               {"metadata":{"name":"c","resourceVersion":"3"},"x":1e999}]}"#,
        )
        .unwrap();
        assert_eq!(frame.resource_version().unwrap().to_string(), "9");
        let Frame::List { kind, page } = frame else {
            panic!("{frame:?}")
        };
        assert_eq!(kind.as_deref(), Some("PodList"));
        assert_eq!(page.continue_token.as_deref(), Some("t"));
        let keys: Vec<_> = page
            .items
            .iter()
            .map(|item| match item {
                Ok(item) => Ok(item.meta.key.as_str()),
                Err(bad) => Err(bad.key.as_ref().map(crate::ObjectKey::as_str)),
            })
            .collect();
        assert_eq!(
            keys,
            [
                Ok("a"),
                Err(Some("b")),
                Err(None),
                Err(None),
                Err(Some("c"))
            ]
        );
    }

    #[test]
    fn a_list_without_items_may_say_null() {
        let list = list_of(r#"{"metadata":{"resourceVersion":"9","continue":""},"items":null}"#);
        let Ok(Frame::List { kind: None, page }) = list else {
            panic!("{list:?}")
        };
        assert!(page.items.is_empty() && page.continue_token.is_none());
    }

    #[test]
    fn a_list_that_is_none_is_a_fault_of_the_stream() {
        for (object, says) in [
            (
                r#"{"items":[]}"#,
                "the LIST frame has no metadata.resourceVersion",
            ),
            (
                r#"{"metadata":null,"items":[]}"#,
                "no metadata.resourceVersion",
            ),
            (
                r#"{"metadata":{},"items":[]}"#,
                "no metadata.resourceVersion",
            ),
            (
                r#"{"metadata":{"resourceVersion":null},"items":[]}"#,
                "no metadata.resourceVersion",
            ),
            (
                r#"{"metadata":{"resourceVersion":""},"items":[]}"#,
                "no metadata.resourceVersion",
            ),
            (
                r#"{"metadata":{"resourceVersion":9},"items":[]}"#,
                "metadata.resourceVersion is a number, expected a string",
            ),
            (
                r#"{"metadata":[],"items":[]}"#,
                "metadata is an array, expected an object",
            ),
            (
                r#"{"metadata":{"resourceVersion":"9"}}"#,
                "items is null, expected an array",
            ),
            (
                r#"{"metadata":{"resourceVersion":"9"},"items":{}}"#,
                "items is an object, expected an array",
            ),
            (
                r#"{"metadata":{"resourceVersion":"9","continue":1},"items":[]}"#,
                "metadata.continue is a number",
            ),
            ("[]", "object is an array, expected a list object"),
            ("null", "object is null, expected a list object"),
        ] {
            let error = list_of(object).unwrap_err().to_string();
            assert!(error.contains(says), "{object}: {error}");
        }
    }

    #[test]
    fn events_and_their_bad_objects() {
        let object = r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#;
        let frame = |kind: &str, object: &str| {
            Frame::decode(&format!(r#" {{"object":{object},"type":"{kind}"}} "#)).unwrap()
        };
        let named = |frame: Frame| match frame {
            Frame::Event(WatchEvent::Added(o)) => format!("+{}", o.meta.key),
            Frame::Event(WatchEvent::Modified(o)) => format!("~{}", o.meta.key),
            Frame::Event(WatchEvent::Deleted(o)) => format!("-{}", o.meta.key),
            Frame::Event(WatchEvent::Bad { deleted, .. }) => format!("bad {deleted}"),
            other => format!("{other:?}"),
        };
        assert_eq!(named(frame("ADDED", object)), "+a");
        assert_eq!(named(frame("MODIFIED", object)), "~a");
        assert_eq!(named(frame("DELETED", object)), "-a");
        assert_eq!(named(frame("ADDED", "{}")), "bad false");
        assert_eq!(named(frame("DELETED", "null")), "bad true");
        assert_eq!(frame("ADDED", "{}").resource_version(), None);
    }

    #[test]
    fn bookmarks_carry_a_version_or_are_a_fault() {
        let bookmark =
            |object: &str| Frame::decode(&format!(r#"{{"type":"BOOKMARK","object":{object}}}"#));
        assert_eq!(
            bookmark(r#"{"kind":"Pod","metadata":{"resourceVersion":"5"}}"#),
            Ok(Frame::Event(WatchEvent::Bookmark {
                resource_version: ResourceVersion::new("5"),
                initial_events_end: false
            }))
        );
        let end = r#"{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
        assert!(matches!(
            bookmark(end),
            Ok(Frame::Event(WatchEvent::Bookmark {
                initial_events_end: true,
                ..
            }))
        ));
        for object in ["{}", "null", "7", r#"{"metadata":{"resourceVersion":5}}"#] {
            assert!(bookmark(object).is_err(), "{object}");
        }
    }

    #[test]
    fn errors_are_statuses() {
        let frame = Frame::decode(
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old",
               "details":{"retryAfterSeconds":3,"causes":[{"reason":"r","message":"m"}]}}}"#,
        )
        .unwrap();
        assert_eq!(frame.resource_version(), None);
        let Frame::Error(status) = frame else {
            panic!("{frame:?}")
        };
        assert!(status.is_expired());
        assert_eq!(status.retry_after, Some(Duration::from_secs(3)));
        assert_eq!(status.causes.len(), 1);
        assert!(error_of(r#"{"type":"ERROR","object":"gone"}"#).contains("expected a Status"));
    }

    #[test]
    fn text_that_is_no_frame_says_what_and_where() {
        for (text, says) in [
            ("", "EOF while parsing"),
            ("{", "column 1: EOF while parsing an object"),
            ("null", "expected an object with a type and an object"),
            (" []", "column 2: an array, expected an object"),
            (
                r#"["ADDED",{"metadata":{"name":"a","resourceVersion":"1"}}]"#,
                "column 1: an array",
            ),
            ("{}", "missing field `type`"),
            (r#"{"type":"ADDED"}"#, "missing field `object`"),
            (r#"{"type":7,"object":{}}"#, "invalid type: integer"),
            (
                r#"{"type":"ADDED","type":"DELETED","object":{}}"#,
                "duplicate field `type`",
            ),
            (
                r#"{"type":"ADDED","object":{},"object":{}}"#,
                "duplicate field `object`",
            ),
            (r#"{"type":"ADDED","object":{}} x"#, "trailing characters"),
            (r#"{"type":"ADDED","object":{}}{}"#, "trailing characters"),
            (
                r#"{"type":"ADDED","object":{"a":}}"#,
                "column 31: expected value",
            ),
            (
                "{\"type\":\"ADDED\",\"object\":{}}\0",
                "trailing characters",
            ),
            (
                r#"{"type":"added","object":{}}"#,
                "unknown frame type \"added\"",
            ),
            (r#"{"type":"PATCHED","object":{}}"#, "unknown frame type"),
        ] {
            let error = error_of(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn depth_is_limited_at_the_limit_and_wherever_it_is() {
        let nested = |levels: usize| {
            // The frame and the object are two levels.
            let (open, close) = ("[".repeat(levels - 2), "]".repeat(levels - 2));
            format!(
                r#"{{"type":"ADDED","object":{{"x":{open}{close},"y":"[[[\"{{{{","metadata":{{"name":"a","resourceVersion":"1"}}}}}}"#
            )
        };
        assert!(matches!(
            Frame::decode(&nested(MAX_DEPTH)),
            Ok(Frame::Event(WatchEvent::Added(_)))
        ));
        assert_eq!(
            Frame::decode(&nested(MAX_DEPTH + 1)),
            Err(FrameError::TooDeep)
        );
        assert_eq!(
            Frame::decode(&"[".repeat(1_000_000)),
            Err(FrameError::TooDeep)
        );
        assert_eq!(
            Frame::decode(&r#"{"a":"#.repeat(1_000_000)),
            Err(FrameError::TooDeep)
        );
    }
}
