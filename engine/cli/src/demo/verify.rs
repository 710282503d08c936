//! Is everything that was built from the source equal to it?
use super::controller::Controller;
use super::model::{IndexValue, Pod};
use informant::indexer::Snapshot;
use informant::source::memory::MemorySource;
use informant::{Incoming, KeyRef, ObjectKey, ResourceVersion};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Differences that are told word by word; of more, only the number.
const TOLD: usize = 10;

/// What is not as it must be.
#[derive(Default)]
pub(super) struct Differences {
    pub(super) told: Vec<String>,
    pub(super) count: usize,
}

impl Differences {
    pub(super) fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.told.len() < TOLD {
            self.told.push(text());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The source's state at its end.
pub(super) struct Truth<T> {
    pub(super) version: ResourceVersion,
    objects: Vec<Arc<Incoming<T>>>,
}

impl<T: Clone + PartialEq + Send + Sync + 'static> Truth<T> {
    pub(super) fn of(source: &MemorySource<T>) -> Self {
        let (version, objects) = source.objects();
        Self { version, objects }
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The cache shows this version, and of each object its key, uid, version and content.
    pub(super) fn check_cache(&self, what: &str, cache: &Snapshot<T>, found: &mut Differences) {
        if cache.resource_version() != self.version {
            found.add(|| {
                format!(
                    "the cache of {what} is at version {}, the source at {}",
                    cache.resource_version(),
                    self.version
                )
            });
        }
        if cache.len() != self.objects.len() {
            found.add(|| {
                format!(
                    "the cache of {what} has {} objects, the source {}",
                    cache.len(),
                    self.objects.len()
                )
            });
        }
        for object in &self.objects {
            let key = &object.meta.key;
            match cache.get(key) {
                None => found.add(|| format!("the cache of {what} has no {key}")),
                Some(cached) if cached.meta() != object.meta || **cached != object.object => {
                    found.add(|| format!("the cache of {what} has another state of {key}"));
                }
                Some(_) => (),
            }
        }
        for key in cache.quarantine().filter_map(|object| object.key.as_ref()) {
            found.add(|| format!("{key} is in quarantine"));
        }
    }

    /// Each value of the index has exactly the objects that it has in the source, and there is no
    /// other value.
    pub(super) fn check_index(
        &self,
        cache: &Snapshot<T>,
        (name, value): (&str, IndexValue<T>),
        found: &mut Differences,
    ) {
        let mut expected: BTreeMap<String, BTreeSet<KeyRef<'_>>> = BTreeMap::new();
        for object in &self.objects {
            if let Some(value) = value(&object.meta.key, &object.object) {
                let keys = expected.entry(value).or_default();
                keys.insert(object.meta.key.as_ref());
            }
        }
        let values = match cache.index_values_by_name(name) {
            Ok(values) => values,
            Err(error) => return found.add(|| error.to_string()),
        };
        for (value, objects) in values {
            let keys: BTreeSet<_> = objects.map(|object| object.key_ref()).collect();
            match expected.remove(value) {
                Some(expected) if expected == keys => (),
                _ => found.add(|| format!("the index {name} differs at the value {value:?}")),
            }
        }
        for value in expected.keys() {
            found.add(|| format!("the index {name} has nothing for the value {value:?}"));
        }
    }
}

impl Truth<Pod> {
    /// What the controller's handler was told adds up to the source's state.
    pub(super) fn check_controller(&self, controller: &Controller, found: &mut Differences) {
        let folded = controller.folded();
        let name = &controller.name;
        for violation in &folded.violations {
            found.add(|| format!("the handler of {name} was told nonsense: {violation}"));
        }
        found.count += folded.violation_count - folded.violations.len();
        for object in &self.objects {
            let key: &ObjectKey = &object.meta.key;
            match folded.pods.get(key) {
                None => found.add(|| format!("the handler of {name} knows no {key}")),
                Some(pod) if pod.meta() != object.meta || **pod != object.object => {
                    found.add(|| format!("the handler of {name} knows another state of {key}"));
                }
                Some(_) => (),
            }
        }
        if folded.pods.len() > self.objects.len() {
            let more = folded.pods.len() - self.objects.len();
            found.add(|| format!("the handler of {name} knows {more} pods that are gone"));
        }
    }
}
