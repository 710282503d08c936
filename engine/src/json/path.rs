//! Paths to fields of a schemaless object.
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A path to a field of a [`JsonObject`](super::JsonObject), parsed once and used often.
///
/// | written | means |
/// |---|---|
/// | `status.phase` | the field `phase` in `status` |
/// | `label:app.kubernetes.io/name` | the label of this name |
/// | `annotation:example.com/owner` | the annotation of this name |
/// | `spec.containers.0.image` | an array's element, by number |
/// | `spec.containers.image` | an array without a number: every element |
///
/// A dot inside a key needs no escape: `metadata.labels.app.kubernetes.io/name` is found too. Where
/// two readings exist, the one with the shorter key first wins.
///
/// ```
/// use informant::json::{FieldPath, JsonObject};
/// let pod = JsonObject::parse(
///     r#"{"metadata":{"name":"web-0","resourceVersion":"7","labels":{"app.io/tier":"web"}},
///         "spec":{"containers":[{"image":"nginx"},{"image":"envoy"}]}}"#,
/// )?.object;
/// let values = |path: &str| -> Vec<String> {
///     path.parse::<FieldPath>().unwrap().values(&pod).map(|value| value.into_owned()).collect()
/// };
/// assert_eq!(values("label:app.io/tier"), ["web"]);
/// assert_eq!(values("spec.containers.image"), ["nginx", "envoy"]);
/// assert!(values("status.phase").is_empty());
/// # Ok::<_, informant::source::BadObject>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct FieldPath {
    written: Box<str>,
    kind: Kind,
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// A key of a map of strings inside `metadata`.
    Metadata { map: &'static str, key: Box<str> },
    /// Where each segment begins in the text; a key may be made of several segments.
    Dotted {
        text: Box<str>,
        starts: Box<[usize]>,
    },
}

/// Text that is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is no field path: {reason}; write status.phase, label:NAME or annotation:NAME")]
pub struct FieldPathError {
    /// The text.
    pub path: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl FieldPath {
    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The values at the path in `object`: text, numbers and booleans as text; of an array, those
    /// of its elements. Objects and nulls are no values. Allocates nothing for text.
    pub fn values<'a>(
        &self,
        object: &'a super::JsonObject,
    ) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
        let mut found = Vec::new();
        match &self.kind {
            Kind::Metadata { map, key } => {
                let value = object
                    .get("metadata")
                    .and_then(|metadata| metadata.get(map)?.get(&**key));
                if let Some(value) = value {
                    collect(value, &mut found);
                }
            }
            Kind::Dotted { text, starts } => {
                for length in 1..=starts.len() {
                    let (key, rest) = split(text, starts, length);
                    let Some(value) = object.get(key) else {
                        continue;
                    };
                    if find(value, text, rest, &mut found) {
                        break;
                    }
                }
            }
        }
        found.into_iter()
    }
}

/// The key made of the first `length` segments, and the segments after it.
fn split<'p>(text: &'p str, starts: &'p [usize], length: usize) -> (&'p str, &'p [usize]) {
    let rest = &starts[length..];
    let end = rest.first().map_or(text.len(), |next| next - 1);
    (&text[starts[0]..end], rest)
}

/// Collect what the rest of the path leads to; false when it leads nowhere.
fn find<'a>(value: &'a Value, text: &str, starts: &[usize], found: &mut Vec<Cow<'a, str>>) -> bool {
    if starts.is_empty() {
        return collect(value, found);
    }
    match value {
        Value::Object(map) => (1..=starts.len()).any(|length| {
            let (key, rest) = split(text, starts, length);
            map.get(key)
                .is_some_and(|value| find(value, text, rest, found))
        }),
        Value::Array(elements) => {
            let (segment, rest) = split(text, starts, 1);
            if let Ok(number) = segment.parse::<usize>() {
                return elements
                    .get(number)
                    .is_some_and(|element| find(element, text, rest, found));
            }
            elements.iter().fold(false, |any, element| {
                find(element, text, starts, found) | any
            })
        }
        _ => false,
    }
}

fn collect<'a>(value: &'a Value, found: &mut Vec<Cow<'a, str>>) -> bool {
    match value {
        Value::String(text) => found.push(Cow::Borrowed(text)),
        Value::Number(number) => found.push(Cow::Owned(number.to_string())),
        Value::Bool(truth) => found.push(Cow::Borrowed(if *truth { "true" } else { "false" })),
        Value::Array(elements) => {
            return elements
                .iter()
                .fold(false, |any, element| collect(element, found) | any);
        }
        Value::Null | Value::Object(_) => return false,
    }
    true
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(written: &str) -> Result<Self, FieldPathError> {
        let error = |reason| FieldPathError {
            path: written.to_owned(),
            reason,
        };
        let metadata = |map, key: &str| match key {
            "" => Err(error("the name is missing")),
            key => Ok(Kind::Metadata {
                map,
                key: key.into(),
            }),
        };
        let kind = if let Some(key) = written.strip_prefix("label:") {
            metadata("labels", key)?
        } else if let Some(key) = written.strip_prefix("annotation:") {
            metadata("annotations", key)?
        } else {
            // kubectl's own paths begin with a dot.
            let text = written.strip_prefix('.').unwrap_or(written);
            if text.is_empty() {
                return Err(error("it is empty"));
            }
            if text.split('.').any(str::is_empty) {
                return Err(error("a part of it is empty"));
            }
            let dots = text.match_indices('.').map(|(at, _)| at + 1);
            Kind::Dotted {
                text: text.into(),
                starts: std::iter::once(0).chain(dots).collect(),
            }
        };
        Ok(Self {
            written: written.into(),
            kind,
        })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldPath({})", self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::super::JsonObject;
    use super::*;

    fn pod() -> JsonObject {
        JsonObject::parse(
            r#"{"kind":"Pod","metadata":{"name":"p","resourceVersion":"1",
                "labels":{"app":"web","app.io/tier":"front","a.b":"dotted"},
                "annotations":{"gpu-spec":"V100"}},
              "spec":{"replicas":3,"paused":false,"ports":[80,443],"nothing":null,
                "containers":[{"image":"a","args":["x","y"]},{"image":"b"},{"name":"c"}]},
              "a":{"b":{"c":"nested"},"b.d":"joined"}}"#,
        )
        .unwrap()
        .object
    }

    fn values(path: &str) -> Vec<String> {
        let path: FieldPath = path.parse().unwrap();
        path.values(&pod()).map(Cow::into_owned).collect()
    }

    #[test]
    fn each_kind_of_path_finds_its_values() {
        assert_eq!(values("metadata.name"), ["p"]);
        assert_eq!(values(".metadata.name"), ["p"]);
        assert_eq!(values("kind"), ["Pod"]);
        assert_eq!(values("label:app"), ["web"]);
        assert_eq!(values("label:app.io/tier"), ["front"]);
        assert_eq!(values("annotation:gpu-spec"), ["V100"]);
        assert_eq!(values("metadata.labels.app.io/tier"), ["front"]);
        assert_eq!(values("metadata.labels.a.b"), ["dotted"]);
        assert_eq!(values("a.b.c"), ["nested"]);
        assert_eq!(
            values("a.b.d"),
            ["joined"],
            "one reading fails, the other is taken"
        );
    }

    #[test]
    fn scalars_are_text_and_arrays_are_all_their_elements() {
        assert_eq!(values("spec.replicas"), ["3"]);
        assert_eq!(values("spec.paused"), ["false"]);
        assert_eq!(values("spec.ports"), ["80", "443"]);
        assert_eq!(values("spec.ports.1"), ["443"]);
        assert_eq!(values("spec.containers.image"), ["a", "b"]);
        assert_eq!(values("spec.containers.1.image"), ["b"]);
        assert_eq!(values("spec.containers.args"), ["x", "y"]);
    }

    #[test]
    fn what_is_not_there_is_no_value() {
        for path in [
            "spec",
            "spec.nothing",
            "spec.nothing.deeper",
            "spec.replicas.deeper",
            "spec.containers.7.image",
            "label:missing",
            "missing.field",
        ] {
            assert!(values(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn text_that_is_no_path_is_refused() {
        for path in ["", ".", "a..b", "a.", "..a", "label:", "annotation:"] {
            assert!(path.parse::<FieldPath>().is_err(), "{path:?}");
        }
    }
}
