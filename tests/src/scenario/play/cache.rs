//! What may be expected of a cache: its content, indexes, quarantine and versions.
use super::super::claim::Claim;
use super::super::notation::ObjectText;
use super::super::spec::IndexSpec;
use super::super::thing::{Scripted, index_fails, index_values, show};
use super::{Outcome, equal, same_objects};
use informant::delta::SourceId;
use informant::indexer::{Indexer, View};
use informant::{KeyRef, ObjectKey};
use std::collections::{BTreeMap, BTreeSet};

/// The objects of a view, by key.
pub(super) fn content<T: Scripted>(view: &View<T>) -> Vec<ObjectText> {
    let objects: BTreeMap<_, _> = view
        .iter()
        .map(|object| (object.key().as_str().to_owned(), show(object)))
        .collect();
    objects.into_values().collect()
}

/// Judge an expectation about a cache; `None` when it is about something else.
#[allow(clippy::too_many_lines)] // One arm an expectation, and each arm is short.
pub(super) fn check<T: Scripted>(
    claim: &Claim,
    lister: &Indexer<T>,
    source: impl Fn(Option<&str>) -> Result<SourceId, String>,
) -> Option<Outcome> {
    let view = lister.load();
    Some(match claim {
        Claim::Store { of: None, objects } => same_objects("store", objects, &content(&view)),
        Claim::Stored(objects) => {
            let found = content(&view);
            let missing: Vec<_> = objects
                .iter()
                .filter(|pattern| !found.iter().any(|object| pattern.matches(object)))
                .collect();
            match missing.first() {
                None => Ok(()),
                Some(pattern) => Err(format!(
                    "store: expected {pattern} in it, found {}",
                    list(&found)
                )),
            }
        }
        Claim::NotStored(objects) => {
            let found = content(&view);
            match objects
                .iter()
                .find(|pattern| found.iter().any(|object| pattern.matches(object)))
            {
                None => Ok(()),
                Some(pattern) => Err(format!(
                    "store: expected no {pattern} in it, found {}",
                    list(&found)
                )),
            }
        }
        Claim::StoreSize(count) => number("objects in the store", count, view.len()),
        Claim::Index {
            index,
            value,
            objects,
        } => match view.by_index_name(index, value) {
            Ok(found) => {
                let found: Vec<_> = found.map(show).collect();
                same_objects(&format!("index {index}, value {value:?}"), objects, &found)
            }
            Err(error) => Err(format!("index {index}: {error}")),
        },
        Claim::NoIndex { index, error } => match view.by_index_name(index, "x") {
            Err(told) if !told.to_string().contains(index.as_str()) => {
                Err(format!("index {index}: the error does not name it: {told}"))
            }
            found => equal(
                &format!("index {index} is an error"),
                error,
                &found.is_err(),
            ),
        },
        Claim::IndexValues { index, values } => match view.index_values_by_name(index) {
            Ok(found) => {
                let found: BTreeSet<String> = found.map(|(value, _)| value.clone()).collect();
                let expected: BTreeSet<String> = values.iter().cloned().collect();
                equal(
                    &format!("values of index {index}"),
                    &words(&expected),
                    &words(&found),
                )
            }
            Err(error) => Err(format!("index {index}: {error}")),
        },
        Claim::Poisoned { index, objects } => match view.poisoned(index) {
            Ok(found) => {
                let found: Vec<_> = found.map(show).collect();
                same_objects(&format!("poisoned for index {index}"), objects, &found)
            }
            Err(error) => Err(format!("index {index}: {error}")),
        },
        Claim::Quarantine(objects) => {
            let found: Vec<_> = view
                .quarantine()
                .map(|object| ObjectText {
                    key: object
                        .key
                        .as_ref()
                        .map_or("?".to_owned(), |key| key.as_str().to_owned()),
                    version: Some(object.failed_version.to_string()),
                    ..ObjectText::default()
                })
                .collect();
            same_objects("quarantine", objects, &found)
        }
        Claim::Complete(complete) => equal("complete", complete, &view.is_complete()),
        Claim::Watermark {
            source: name,
            version,
        } => match source(name.as_deref()) {
            Ok(id) => {
                let found = view.versions().iter().find(|(source, _)| *source == id);
                let found = found.map_or(String::new(), |(_, version)| version.to_string());
                equal("watermark", version, &found)
            }
            Err(error) => Err(error),
        },
        Claim::Epoch(count) => number("epoch", count, view.epoch()),
        Claim::Lookup { key, object } => {
            let found = view.get(key.as_str()).map(show);
            match (object, &found) {
                (None, None) => Ok(()),
                (Some(pattern), Some(found)) if pattern.matches(found) => Ok(()),
                _ => {
                    let text = |object: &Option<ObjectText>| {
                        object
                            .as_ref()
                            .map_or("nothing".to_owned(), ToString::to_string)
                    };
                    Err(format!(
                        "look-up of {key:?}: expected {}, found {}",
                        text(object),
                        text(&found)
                    ))
                }
            }
        }
        Claim::Key { text, valid } => equal(
            &format!("{text:?} is a key"),
            valid,
            &KeyRef::parse(text).is_ok(),
        ),
        _ => return None,
    })
}

/// What holds of every version of a cache: its indexes say what their functions say, and nothing else.
pub(super) fn agrees<T: Scripted>(view: &View<T>, indexes: &[IndexSpec]) -> Outcome {
    for index in indexes {
        let mut expected: BTreeMap<String, BTreeSet<&ObjectKey>> = BTreeMap::new();
        for object in view.iter() {
            if index_fails(index, &show(object)) {
                continue;
            }
            for value in index_values(index, object) {
                expected.entry(value).or_default().insert(object.key());
            }
        }
        let found = view
            .index_values_by_name(&index.name)
            .map_err(|error| error.to_string())?;
        let found: BTreeMap<String, BTreeSet<&ObjectKey>> = found
            .map(|(value, objects)| (value.clone(), objects.map(informant::Cached::key).collect()))
            .collect();
        if expected != found {
            return Err(format!(
                "index {} does not agree with the objects: {found:?} instead of {expected:?}",
                index.name
            ));
        }
    }
    Ok(())
}

/// A count against what was found.
pub(super) fn number(
    what: &str,
    count: &super::super::notation::Count,
    found: impl TryInto<u64>,
) -> Outcome {
    let found = found.try_into().unwrap_or(u64::MAX);
    if count.allows(found) {
        return Ok(());
    }
    Err(format!("{what}: expected {count}, found {found}"))
}

fn words(words: &BTreeSet<String>) -> String {
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    format!("[{}]", words.join(", "))
}

fn list(objects: &[ObjectText]) -> String {
    let texts: Vec<_> = objects.iter().map(ToString::to_string).collect();
    format!("{{{}}}", texts.join(", "))
}
