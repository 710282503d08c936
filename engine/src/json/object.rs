//! Any Kubernetes object, as its JSON.
use super::meta::{self, Fault};
use crate::object::{Incoming, Object};
use crate::source::BadObject;
use serde_json::{Map, Value};

/// Any Kubernetes object, as its JSON: for tools and tests that know no schema.
///
/// Costs several times the memory of a typed struct; controllers that know their type should
/// decode into it (or into a slim projection) instead. Read fields with [`JsonObject::get`] or a
/// [`FieldPath`](super::FieldPath).
///
/// ```
/// use informant::json::JsonObject;
/// let pod = JsonObject::parse(
///     r#"{"metadata":{"namespace":"default","name":"web-0","resourceVersion":"7"}}"#,
/// )?;
/// assert_eq!(pod.meta.key.as_str(), "default/web-0");
/// let bad = JsonObject::parse(r#"{"metadata":{"name":"web-0","resourceVersion":7}}"#).unwrap_err();
/// assert_eq!(bad.key.unwrap().as_str(), "web-0");
/// # Ok::<_, informant::source::BadObject>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct JsonObject(Map<String, Value>);

impl JsonObject {
    /// The object in `text`, with its metadata beside it. Of a key that stands twice in an object,
    /// the later one counts, as in the API server.
    ///
    /// # Errors
    /// [`BadObject`] when the text is no JSON object, or its metadata is not what every object of
    /// an API server has: a name, a resourceVersion, each field of its type. Where the object
    /// cannot be decoded, its metadata is read alone, so that the error can name it.
    pub fn parse(text: &str) -> Result<Incoming<Self>, BadObject> {
        let map: Map<String, Value> = match serde_json::from_str(text) {
            Ok(map) => map,
            Err(error) => return Err(meta::of_undecodable(text, &error)),
        };
        Self::from_map(map)
    }

    /// The object in a JSON map, with its metadata beside it.
    ///
    /// # Errors
    /// As [`JsonObject::parse`].
    pub fn from_map(map: Map<String, Value>) -> Result<Incoming<Self>, BadObject> {
        match meta::of(map.get("metadata")) {
            Ok(meta) => Ok(Incoming::new(meta, Self(map))),
            Err(Fault(bad)) => Err(bad),
        }
    }

    /// A field of the object's top level, such as `spec`.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// `kind`, where the object says it.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.get("kind")?.as_str()
    }

    /// The label of this name.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.metadata("labels")?.get(name)?.as_str()
    }

    /// The annotation of this name.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata("annotations")?.get(name)?.as_str()
    }

    /// The whole object.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The whole object, to change it: for transforms. The cache has read the metadata before.
    #[must_use]
    pub fn as_map_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    fn metadata(&self, field: &str) -> Option<&Value> {
        self.get("metadata")?.get(field)
    }
}

impl Object for JsonObject {
    fn namespace(&self) -> Option<&str> {
        self.metadata("namespace")?.as_str()
    }
    fn name(&self) -> Option<&str> {
        self.metadata("name")?.as_str()
    }
    fn uid(&self) -> Option<&str> {
        self.metadata("uid")?.as_str()
    }
    fn resource_version(&self) -> Option<&str> {
        self.metadata("resourceVersion")?.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(text: &str) -> (Option<String>, String, String) {
        let bad = JsonObject::parse(text).unwrap_err();
        (
            bad.key.map(|key| key.as_str().to_owned()),
            bad.resource_version.to_string(),
            bad.reason,
        )
    }

    #[test]
    fn metadata_is_read_beside_the_object() {
        let pod = JsonObject::parse(
            r#"{"kind":"Pod","metadata":{"namespace":"ns","name":"p","uid":"u1",
                "resourceVersion":"7","labels":{"a":"b"},"annotations":null}}"#,
        )
        .unwrap();
        assert_eq!(pod.meta, crate::Meta::of(&pod.object).unwrap());
        assert_eq!(pod.object.label("a"), Some("b"));
        assert_eq!(pod.object.annotation("a"), None);
        assert_eq!(pod.object.kind(), Some("Pod"));
    }

    #[test]
    fn of_a_key_that_stands_twice_the_later_one_counts() {
        let pod = JsonObject::parse(
            r#"{"metadata":{"name":"a","name":"b","resourceVersion":"1","resourceVersion":"2"}}"#,
        )
        .unwrap();
        assert_eq!(pod.meta.key.as_str(), "b");
        assert_eq!(pod.meta.resource_version.to_string(), "2");
    }

    #[test]
    fn metadata_that_is_wrong_names_the_object_as_far_as_it_can() {
        let named = |key: &str| Some(key.to_owned());
        for (text, key, version, reason) in [
            ("{}", None, "", "it has no metadata"),
            (r#"{"metadata":null}"#, None, "", "it has no metadata"),
            (
                r#"{"metadata":[1]}"#,
                None,
                "",
                "metadata is an array, expected an object",
            ),
            (
                r#"{"metadata":{"resourceVersion":"7"}}"#,
                None,
                "7",
                "the object has no metadata.name",
            ),
            (
                r#"{"metadata":{"name":5,"resourceVersion":"7"}}"#,
                None,
                "7",
                "metadata.name is a number, expected a string",
            ),
            (
                r#"{"metadata":{"name":"a/b","resourceVersion":"7"}}"#,
                None,
                "7",
                "must not contain a slash",
            ),
            (
                r#"{"metadata":{"name":"p","namespace":{},"resourceVersion":"7"}}"#,
                None,
                "7",
                "metadata.namespace is an object, expected a string",
            ),
            (
                r#"{"metadata":{"name":"p","namespace":"ns"}}"#,
                named("ns/p"),
                "",
                "it has no resourceVersion",
            ),
            (
                r#"{"metadata":{"name":"p","resourceVersion":7}}"#,
                named("p"),
                "",
                "metadata.resourceVersion is a number, expected a string",
            ),
            (
                r#"{"metadata":{"name":"p","resourceVersion":"7","uid":true}}"#,
                named("p"),
                "7",
                "metadata.uid is a boolean, expected a string",
            ),
            (
                r#"{"metadata":{"name":"p","resourceVersion":"7","labels":["a"]}}"#,
                named("p"),
                "7",
                "metadata.labels is an array, expected an object",
            ),
            (
                r#"{"metadata":{"name":"p","resourceVersion":"7","annotations":{"a":1}}}"#,
                named("p"),
                "7",
                "metadata.annotations holds a number, expected strings",
            ),
        ] {
            let (found_key, found_version, found_reason) = bad(text);
            assert_eq!(found_key, key, "{text}");
            assert_eq!(found_version, version, "{text}");
            assert!(found_reason.contains(reason), "{text}: {found_reason}");
        }
    }

    #[test]
    fn what_cannot_be_decoded_is_named_by_its_metadata_alone() {
        let (key, version, reason) = bad(
            r#"{"metadata":{"name":"p","namespace":"ns","resourceVersion":"7"},"spec":{"x":1e999}}"#,
        );
        assert_eq!((key.as_deref(), version.as_str()), (Some("ns/p"), "7"));
        assert!(reason.contains("number out of range"), "{reason}");
        let (key, ..) = bad(r#"{"spec":"\ud800","metadata":{"name":"p","resourceVersion":"7"}}"#);
        assert_eq!(key.as_deref(), Some("p"));
        assert_eq!(
            bad(r#"[{"name":"p","resourceVersion":"7"}]"#).0,
            None,
            "an array has no fields"
        );
        assert_eq!(bad("").0, None);
    }
}
