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
    /// What the controller's handler was told adds up to the source's state, and its worker has
    /// reconciled each pod at its last version.
    pub(super) fn check_controller(&self, controller: &Controller, found: &mut Differences) {
        self.check_handler(controller, found);
        let name = &controller.name;
        let reconciled = controller.reconciled();
        for object in &self.objects {
            let (key, version) = (&object.meta.key, &object.meta.resource_version);
            if reconciled.get(key) != Some(version) {
                found.add(|| format!("{name} did not reconcile {key} at version {version}"));
            }
        }
        if reconciled.len() > self.objects.len() {
            let more = reconciled.len() - self.objects.len();
            found.add(|| format!("{name} did not notice that {more} pods are gone"));
        }
    }

    fn check_handler(&self, controller: &Controller, found: &mut Differences) {
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

#[cfg(test)]
mod tests {
    use super::super::model::{POD_INDEXES, Phase, declare};
    use super::*;
    use informant::delta::{Batch, Deleted, Delta, SourceId};
    use informant::indexer::Indexer;
    use informant::informer::Handler;
    use informant::work_queue::{WorkQueue, WorkQueueConfig};
    use informant::{Cached, SystemClock};
    use std::time::Instant;

    fn pod(node: &str) -> Pod {
        Pod {
            app: "web".into(),
            phase: Phase::Running,
            node: Some(node.into()),
            cpu_millis: 100,
            restarts: 0,
            ready: true,
            written_at: Instant::now(),
        }
    }

    fn source() -> MemorySource<Pod> {
        let source = MemorySource::new();
        for name in ["a", "b"] {
            let key = ObjectKey::new("team", name).unwrap();
            source.create(key, pod("node-1")).unwrap();
        }
        source
    }

    /// What is found in a cache that holds these objects.
    fn found_in(truth: &Truth<Pod>, objects: &[Incoming<Pod>]) -> Vec<String> {
        let builder = POD_INDEXES.into_iter().map(declare);
        let (cache, mut writer) = builder
            .fold(
                Indexer::builder(),
                informant::indexer::IndexerBuilder::declare,
            )
            .build();
        for object in objects {
            writer.apply(Batch::of(SourceId(0), Delta::Added(object.clone().into())));
        }
        let mut found = Differences::default();
        truth.check_cache("pods", &cache.snapshot(), &mut found);
        for index in POD_INDEXES {
            truth.check_index(&cache.snapshot(), index, &mut found);
        }
        found.told
    }

    #[test]
    fn every_kind_of_difference_in_a_cache_is_found() {
        let truth = Truth::of(&source());
        let objects: Vec<Incoming<Pod>> = truth
            .objects
            .iter()
            .map(|object| (**object).clone())
            .collect();
        assert_eq!(found_in(&truth, &objects), [""; 0]);

        let says = |objects: &[Incoming<Pod>], what: &str| {
            let found = found_in(&truth, objects);
            assert!(
                found.iter().any(|told| told.contains(what)),
                "{what}: {found:?}"
            );
        };
        says(&objects[..1], "the cache of pods has no team/b");
        says(&objects[..1], "has 1 objects, the source 2");
        says(&objects[..1], "is at version");
        says(
            &objects[..1],
            "the index node differs at the value \"node-1\"",
        );
        says(&[], "the index app has nothing for the value \"web\"");

        let mut moved = objects.clone();
        moved[0].object.node = Some("node-2".into());
        says(&moved, "another state of team/a");
        says(&moved, "the index node differs at the value \"node-2\"");

        let mut more = objects.clone();
        let mut ghost = objects[0].clone();
        ghost.meta.key = ObjectKey::new("team", "ghost").unwrap();
        more.insert(0, ghost);
        says(&more, "has 3 objects, the source 2");
        says(&more, "the index namespace differs");
    }

    #[test]
    fn every_kind_of_difference_of_a_controller_is_found() {
        let truth = Truth::of(&source());
        let objects: Vec<Cached<Pod>> = truth
            .objects
            .iter()
            .map(|object| (**object).clone().into())
            .collect();
        let check = |tell: &dyn Fn(&mut super::super::controller::Follow)| {
            let controller = Arc::new(Controller::new("c".to_owned()));
            let mut follow = super::super::controller::Follow {
                controller: controller.clone(),
                queue: WorkQueue::new(WorkQueueConfig::new(SystemClock::shared())),
                gate: None,
            };
            tell(&mut follow);
            for object in &objects[..follow.queue.len().min(2)] {
                let version = object.resource_version().clone();
                controller
                    .reconciled()
                    .insert(object.key().clone(), version);
            }
            let mut found = Differences::default();
            truth.check_controller(&controller, &mut found);
            found.told.join("; ")
        };
        let add_both = |follow: &mut super::super::controller::Follow| {
            for object in &objects {
                follow.on_add(object, true);
            }
        };
        assert_eq!(check(&add_both), "");
        assert!(check(&|follow| follow.on_add(&objects[0], true)).contains("knows no team/b"));
        assert!(
            check(&|follow| follow.on_add(&objects[0], true)).contains("did not reconcile team/b")
        );
        let told = check(&|follow| {
            add_both(follow);
            follow.on_add(&objects[0], false);
        });
        assert!(told.contains("team/a was added twice"), "{told}");
        let told = check(&|follow| {
            add_both(follow);
            follow.on_update(&objects[1], &objects[0]);
        });
        assert!(told.contains("the old state of team/a"), "{told}");
        let told = check(&|follow| {
            add_both(follow);
            follow.on_delete(&Deleted::known(objects[1].clone()));
        });
        assert!(told.contains("knows no team/b"), "{told}");
    }
}
