//! What a cache must hold after a recording, read as plainly as can be.
use serde_json::Value;
use std::collections::BTreeMap;

/// What a cache must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The version of the last frame that counts; empty when none does.
    pub resource_version: String,
    /// How many objects there are.
    pub objects: usize,
    /// How many objects have each value, by index.
    pub indexes: BTreeMap<String, BTreeMap<String, usize>>,
}

/// Follow the frames up to the last one that is not above `until`; count the values of each index
/// (`label:NAME`, or a path of fields without dots in them).
///
/// It believes every frame: no version is compared but with `until`, no uid is looked at. That is
/// right for recordings of a correct server.
///
/// # Panics
/// On anything that is no frame of a correct server.
pub fn evaluate<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    until: Option<u64>,
    indexes: &[&str],
) -> Expectation {
    let mut pods: BTreeMap<String, Value> = BTreeMap::new();
    let mut pages: Vec<Value> = Vec::new();
    let mut reached = String::new();
    for line in lines {
        let frame: Value = serde_json::from_str(line).expect("a line is a frame");
        let object = &frame["object"];
        let metadata = &object["metadata"];
        if let Some(version) = metadata["resourceVersion"].as_str() {
            let number: u64 = version.parse().expect("a version is a number");
            if until.is_some_and(|until| number > until) {
                break;
            }
            version.clone_into(&mut reached);
        }
        match frame["type"].as_str() {
            Some("LIST") => {
                pages.extend(object["items"].as_array().expect("items").clone());
                if metadata["continue"].is_null() {
                    pods = pages.drain(..).map(|pod| (key(&pod), pod)).collect();
                }
            }
            Some("ADDED" | "MODIFIED") => {
                pods.insert(key(object), object.clone());
            }
            Some("DELETED") => {
                pods.remove(&key(object));
            }
            Some("BOOKMARK" | "ERROR") => (),
            other => panic!("no frame type: {other:?}"),
        }
    }
    let counted = indexes.iter().map(|index| {
        let mut counts = BTreeMap::new();
        for value in pods.values().filter_map(|pod| value(pod, index)) {
            *counts.entry(value).or_insert(0) += 1;
        }
        ((*index).to_owned(), counts)
    });
    Expectation {
        resource_version: reached,
        objects: pods.len(),
        indexes: counted.collect(),
    }
}

fn key(pod: &Value) -> String {
    let metadata = &pod["metadata"];
    format!("{}/{}", metadata["namespace"], metadata["name"])
}

fn value(pod: &Value, index: &str) -> Option<String> {
    let found = match index.strip_prefix("label:") {
        Some(label) => &pod["metadata"]["labels"][label],
        None => index.split('.').fold(pod, |value, field| &value[field]),
    };
    found.as_str().map(str::to_owned)
}
