//! The physical floor: a hash map, and nothing that makes it safe to share.
use crate::pod::{Pod, World};
use ahash::RandomState;
use hashbrown::HashMap;
use std::sync::Arc;

pub(crate) type Floor = HashMap<Box<str>, Arc<Pod>, RandomState>;

pub(crate) fn load(world: &World) -> Floor {
    let mut floor = HashMap::default();
    for pod in &world.pods {
        floor.insert(pod.key().into(), Arc::new(pod.clone()));
    }
    floor
}
