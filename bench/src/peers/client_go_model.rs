//! A fair Rust model of client-go's thread-safe store: one lock around a map of objects and a map
//! of key sets for each index.
//!
//! It is what the design costs without Go: keys are borrowed for look-ups and shared between the
//! map and the sets, index values are compared before anything is touched, and what was replaced
//! is freed after the lock is released.
use crate::pod::{Pod, World};
use crate::store::Store;
use ahash::RandomState;
use hashbrown::{HashMap, HashSet};
use parking_lot::RwLock;
use std::sync::Arc;

type Key = Arc<str>;
type Keys = HashSet<Key, RandomState>;

/// Which index: namespace, node, app.
#[derive(Clone, Copy)]
pub(crate) enum By {
    Namespace = 0,
    Node = 1,
    App = 2,
}

const INDEXES: [By; 3] = [By::Namespace, By::Node, By::App];

impl By {
    pub(crate) fn value(self, pod: &Pod) -> &Arc<str> {
        match self {
            Self::Namespace => &pod.namespace,
            Self::Node => &pod.node,
            Self::App => &pod.app,
        }
    }
}

#[derive(Default)]
struct Inner {
    items: HashMap<Key, Arc<Pod>, RandomState>,
    indexes: [HashMap<Arc<str>, Keys, RandomState>; 3],
}

#[derive(Clone, Default)]
pub(crate) struct Model(Arc<RwLock<Inner>>);

impl Model {
    pub(crate) fn load(world: &World) -> Self {
        let model = Self::default();
        let items = world.pods.iter().map(|pod| Arc::new(pod.clone())).collect();
        model.replace(items);
        model
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<Pod>> {
        self.0.read().items.get(key).cloned()
    }

    pub(crate) fn list(&self) -> Vec<Arc<Pod>> {
        self.0.read().items.values().cloned().collect()
    }

    pub(crate) fn by_index(&self, by: By, value: &str) -> Vec<Arc<Pod>> {
        let inner = self.0.read();
        let Some(keys) = inner.indexes[by as usize].get(value) else {
            return Vec::new();
        };
        keys.iter().map(|key| inner.items[key].clone()).collect()
    }

    /// Store the objects as one transaction. What they replace is swapped into the slice, so that
    /// the caller frees it.
    pub(crate) fn update(&self, keys: &[String], objects: &mut [Arc<Pod>]) {
        let mut inner = self.0.write();
        for (key, object) in keys.iter().zip(objects) {
            inner.update(key, object);
        }
    }

    /// Replace everything, as client-go does: a new map, and all indexes rebuilt under the lock.
    /// What was there is freed after the lock is released.
    pub(crate) fn replace(&self, objects: Vec<Arc<Pod>>) {
        let mut new = Inner::default();
        new.items.reserve(objects.len());
        for object in objects {
            new.items.insert(object.key().into(), object);
        }
        let mut inner = self.0.write();
        for (key, object) in &new.items {
            insert(&mut new.indexes, key, object);
        }
        let old = std::mem::replace(&mut *inner, new);
        drop(inner);
        drop(old);
    }
}

impl Store for Model {
    type Reader = Self;
    type List = Vec<Arc<Pod>>;

    fn load(world: &World) -> Result<Self, String> {
        Ok(Self::load(world))
    }

    fn reader(&self) -> Self {
        self.clone()
    }

    fn apply(&mut self, pod: Pod) {
        self.update(&[pod.key()], &mut [Arc::new(pod)]);
    }

    fn decoded(pods: &[Pod]) -> Vec<Arc<Pod>> {
        pods.iter().cloned().map(Arc::new).collect()
    }

    fn relist(&mut self, list: Vec<Arc<Pod>>) {
        self.replace(list);
    }
}

impl Inner {
    fn update(&mut self, key: &str, object: &mut Arc<Pod>) {
        let Some((key, stored)) = self.items.get_key_value_mut(key) else {
            let key: Key = key.into();
            insert(&mut self.indexes, &key, object);
            self.items.insert(key, object.clone());
            return;
        };
        std::mem::swap(stored, object);
        let (new, old) = (&*stored, &*object);
        for by in INDEXES {
            // As texts: that the pods of this bench share theirs is no merit of the design.
            if **by.value(new) != **by.value(old) {
                let index = &mut self.indexes[by as usize];
                if let Some(keys) = index.get_mut(by.value(old)) {
                    keys.remove(key);
                    if keys.is_empty() {
                        index.remove(by.value(old));
                    }
                }
                add(index, by.value(new), key);
            }
        }
    }
}

fn insert(indexes: &mut [HashMap<Arc<str>, Keys, RandomState>; 3], key: &Key, object: &Pod) {
    for by in INDEXES {
        add(&mut indexes[by as usize], by.value(object), key);
    }
}

fn add(index: &mut HashMap<Arc<str>, Keys, RandomState>, value: &Arc<str>, key: &Key) {
    match index.get_mut(value) {
        Some(keys) => {
            keys.insert(key.clone());
        }
        None => {
            index.entry(value.clone()).or_default().insert(key.clone());
        }
    }
}
