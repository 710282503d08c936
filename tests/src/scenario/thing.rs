//! The objects of scenarios: a few named values, and what indexes and transforms make of them.
use super::notation::{ListItem, ObjectText, default_uid};
use super::spec::{IndexSpec, Keep, TransformSpec};
use informant::indexer::IndexDeclaration;
use informant::informer::Transform;
use informant::source::BadObject;
use informant::{Cached, Incoming, KeyRef, Meta, ObjectKey, ResourceVersion, Uid};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The version of an object that is written without one.
const VERSION: &str = "1";

/// What an object holds beside its metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thing {
    /// Values by field; `""` is the field without a name.
    pub fields: Vec<(String, String)>,
    /// The metadata once more: transforms and index functions go by it.
    text: ObjectText,
}

/// An object that a scenario can look into.
pub trait Scripted: Deref<Target = Thing> + From<Thing> + Send + Sync + 'static {}
impl<T: Deref<Target = Thing> + From<Thing> + Send + Sync + 'static> Scripted for T {}

/// What the cache of a single informer holds.
pub type PlainThing = Kinded<0>;

/// The same objects as a type of their own: a factory tells informers apart by their types.
#[derive(Clone, Debug)]
pub struct Kinded<const N: usize>(Thing);

impl<const N: usize> Deref for Kinded<N> {
    type Target = Thing;
    fn deref(&self) -> &Thing {
        &self.0
    }
}

impl<const N: usize> From<Thing> for Kinded<N> {
    fn from(thing: Thing) -> Self {
        Self(thing)
    }
}

/// A text as the object that it describes.
pub fn incoming<T: Scripted>(text: &ObjectText) -> Result<Incoming<T>, BadObject> {
    let version = text.version.clone().unwrap_or_else(|| VERSION.to_owned());
    let uid = text.uid.clone().unwrap_or_else(|| default_uid(&text.key));
    let seen = ObjectText {
        version: Some(version.clone()),
        uid: Some(uid.clone()),
        ..text.clone()
    };
    let (namespace, name) = text.key.split_once('/').unwrap_or(("", &text.key));
    let meta = Meta::new(namespace, name, &uid, &version)
        .map_err(|error| BadObject::without_key(ResourceVersion::new(&version), &error))?;
    let thing = Thing {
        fields: text.fields.clone().unwrap_or_default(),
        text: seen,
    };
    Ok(Incoming::new(meta, T::from(thing)))
}

/// An object that cannot be decoded.
pub fn bad(text: &ObjectText) -> BadObject {
    let key = KeyRef::parse(&text.key).ok().filter(|_| text.key != "?");
    BadObject {
        key: key.map(|key| KeyRef::to_owned(&key)),
        uid: Uid::new(text.uid.as_deref().unwrap_or_default()),
        resource_version: ResourceVersion::new(text.version.as_deref().unwrap_or_default()),
        reason: "it cannot be decoded".to_owned(),
    }
}

/// An entry of a list, or the object of a frame.
pub fn item<T: Scripted>(item: &ListItem) -> Result<Incoming<T>, BadObject> {
    match item {
        ListItem::Good(text) => incoming(text),
        ListItem::Bad(text) => Err(bad(text)),
    }
}

/// A cached object as it is written.
pub fn show<T: Scripted>(object: &Cached<T>) -> ObjectText {
    ObjectText {
        key: object.key().as_str().to_owned(),
        uid: Some(object.uid().to_string()),
        version: Some(object.resource_version().to_string()),
        fields: (!object.fields.is_empty()).then(|| object.fields.clone()),
    }
}

/// A key as an object without anything else.
pub fn key_only(key: &ObjectKey) -> ObjectText {
    ObjectText {
        key: key.as_str().to_owned(),
        ..ObjectText::default()
    }
}

/// True when a filtering wrapper keeps the object.
pub fn kept(keep: Option<&Keep>, item: &ListItem) -> bool {
    let ListItem::Good(object) = item else {
        return true;
    };
    let name = object.key.rsplit('/').next().unwrap_or_default();
    match keep {
        None => true,
        Some(Keep::NamesEndingIn(end)) => name.ends_with(end.as_str()),
        Some(Keep::NamesBeginningWith(begin)) => name.starts_with(begin.as_str()),
    }
}

/// What the index says of an object, as its function does.
pub fn index_values<T: Scripted>(spec: &IndexSpec, object: &Cached<T>) -> BTreeSet<String> {
    match spec.of.as_str() {
        "namespace" => BTreeSet::from([object.namespace().to_owned()]),
        "name" => BTreeSet::from([object.name().to_owned()]),
        of => {
            let named = |name: &str| -> BTreeSet<String> {
                let fields = object.fields.iter().filter(|(field, _)| field == name);
                fields.map(|(_, value)| value.clone()).collect()
            };
            let values = named(of);
            // A field without a name is what an index without a field of its own goes by.
            if values.is_empty() && !object.fields.iter().any(|(field, _)| field == of) {
                named("")
            } else {
                values
            }
        }
    }
}

/// True when the function of the index fails, in one way or the other.
pub fn index_fails(spec: &IndexSpec, object: &ObjectText) -> bool {
    spec.fails_for
        .iter()
        .chain(&spec.panics_for)
        .any(|pattern| pattern.matches(object))
}

/// An index as the engine takes it.
pub fn declaration<T: Scripted>(spec: &IndexSpec) -> IndexDeclaration<T> {
    let function = spec.clone();
    IndexDeclaration::fallible(&spec.name, move |object: &Cached<T>| {
        let seen = show(object);
        let hits = |patterns: &[ObjectText]| patterns.iter().any(|pattern| pattern.matches(&seen));
        if hits(&function.panics_for) {
            std::panic::panic_any("scripted panic of the index function");
        }
        if hits(&function.fails_for) {
            return Err("scripted failure of the index function".to_owned());
        }
        Ok(index_values(&function, object))
    })
}

/// A transform as the engine takes it, and what counts its calls.
pub fn transform<T: Scripted>(spec: &TransformSpec, calls: Arc<AtomicU64>) -> Transform<T> {
    let function = spec.clone();
    Transform::new(&spec.name, move |object: T| {
        calls.fetch_add(1, Ordering::Relaxed);
        apply(&function, &object).map(T::from)
    })
}

/// What a transform makes of an object.
pub fn apply(spec: &TransformSpec, thing: &Thing) -> Result<Thing, String> {
    let hits =
        |patterns: &[ObjectText]| patterns.iter().any(|pattern| pattern.matches(&thing.text));
    if hits(&spec.panics_for) {
        std::panic::panic_any("scripted panic of the transform");
    }
    if hits(&spec.fails_for) {
        return Err("scripted failure of the transform".to_owned());
    }
    let mut thing = thing.clone();
    if spec.name == "strip" {
        thing.fields.clear();
    } else {
        thing.fields.push(("by".to_owned(), spec.name.clone()));
    }
    Ok(thing)
}
