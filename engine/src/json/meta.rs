//! Reading metadata out of JSON, strictly enough that a wrong type is a fault of that object.
use super::{type_of, type_of_value};
use crate::object::{KeyRef, Meta, ResourceVersion, Uid};
use crate::source::BadObject;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// An object that cannot be used, boxed by its rarity: see [`BadObject`].
pub(super) struct Fault(pub(super) BadObject);

/// The metadata of an object that was decoded.
pub(super) fn of(metadata: Option<&Value>) -> Result<Meta, Fault> {
    let fields = match metadata {
        Some(Value::Object(fields)) => fields,
        Some(Value::Null) | None => return Err(nameless("it has no metadata".to_owned())),
        Some(other) => {
            let found = type_of_value(other);
            return Err(nameless(format!("metadata is {found}, expected an object")));
        }
    };
    // All that is wrong is read before judging, so that the fault names the object if it can.
    let mut wrong = None;
    let mut text = |name: &'static str| match fields.get(name) {
        None | Some(Value::Null) => Some(""),
        Some(Value::String(text)) => Some(&**text),
        Some(other) => {
            let found = type_of_value(other);
            wrong.get_or_insert_with(|| format!("metadata.{name} is {found}, expected a string"));
            None
        }
    };
    let (name, namespace) = (text("name"), text("namespace"));
    let (version, uid) = (text("resourceVersion"), text("uid"));
    if version == Some("") {
        wrong.get_or_insert_with(|| "it has no resourceVersion".to_owned());
    }
    for map in ["labels", "annotations"] {
        if let Some(fault) = wrong_map(map, fields.get(map)) {
            wrong.get_or_insert(fault);
        }
    }
    let key = match name.zip(namespace) {
        None => None,
        Some((name, namespace)) => {
            let key = KeyRef::new(namespace, name);
            match key.check() {
                Ok(()) => Some(key.to_owned()),
                Err(error) => {
                    // The key's fault says more than any other.
                    wrong = Some(error.to_string());
                    None
                }
            }
        }
    };
    let resource_version = ResourceVersion::new(version.unwrap_or(""));
    let uid = Uid::new(uid.unwrap_or(""));
    match (key, wrong) {
        (Some(key), None) => Ok(Meta {
            key,
            uid,
            resource_version,
        }),
        (key, wrong) => Err(Fault(BadObject {
            key,
            uid,
            resource_version,
            reason: wrong.unwrap_or_else(|| "it has no key".to_owned()),
        })),
    }
}

/// What is known of an object that could not be decoded: its metadata is read alone.
pub(super) fn of_undecodable(text: &str, error: &serde_json::Error) -> BadObject {
    #[derive(Deserialize)]
    struct MetadataOnly<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let reason = match type_of(text) {
        "an object" => format!("it cannot be decoded: {}", without_position(error)),
        found => return nameless(format!("it is {found}, expected an object")).0,
    };
    let metadata = serde_json::from_str::<MetadataOnly<'_>>(text)
        .ok()
        .and_then(|object| serde_json::from_str::<Value>(object.metadata.get()).ok());
    match of(metadata.as_ref()) {
        Ok(Meta {
            key,
            uid,
            resource_version,
        }) => BadObject {
            key: Some(key),
            uid,
            resource_version,
            reason,
        },
        Err(Fault(known)) => BadObject { reason, ..known },
    }
}

/// An error's text without "at line 1 column 7", which is relative to a part of the frame.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn wrong_map(name: &str, value: Option<&Value>) -> Option<String> {
    match value {
        None | Some(Value::Null) => None,
        Some(Value::Object(map)) => map
            .values()
            .find(|value| !value.is_string() && !value.is_null())
            .map(|value| {
                let found = type_of_value(value);
                format!("metadata.{name} holds {found}, expected strings")
            }),
        Some(other) => {
            let found = type_of_value(other);
            Some(format!("metadata.{name} is {found}, expected an object"))
        }
    }
}

fn nameless(reason: String) -> Fault {
    Fault(BadObject {
        key: None,
        uid: Uid::default(),
        resource_version: ResourceVersion::empty(),
        reason,
    })
}
