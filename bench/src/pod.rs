//! The objects that every scenario stores: slim pods with keys of 39 bytes.
use std::sync::Arc;

pub(crate) const NAMESPACES: usize = 100;
pub(crate) const NODES: usize = 1_000;
pub(crate) const APPS: usize = 300;

/// A slim pod, as a projection would keep it. Its texts are shared, so a copy costs no allocation
/// but its own: an object that every peer can keep at its cheapest.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
    pub(crate) node: Arc<str>,
    pub(crate) app: Arc<str>,
    /// The resourceVersion; also the one field that measured reads look at.
    pub(crate) version: u64,
}

impl Pod {
    /// `namespace/name`.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Pods in the order of a list that is in no particular order, and all index values.
pub(crate) struct World {
    pub(crate) pods: Vec<Pod>,
    pub(crate) namespaces: Vec<Arc<str>>,
    pub(crate) nodes: Vec<Arc<str>>,
    /// The newest version that was given out.
    pub(crate) version: u64,
}

impl World {
    /// `count` pods, spread evenly over namespaces and nodes and at random over apps. The same for
    /// every call: what differs between runs is the machine.
    pub(crate) fn new(count: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(39);
        let namespaces = texts(NAMESPACES, |at| format!("namespace-{at:03}"));
        let nodes = texts(NODES, |at| format!("node-{at:04}.example"));
        let apps = texts(APPS, |at| format!("app-{at:03}"));
        let mut pods: Vec<_> = (0..count)
            .map(|at| {
                let app = rng.usize(..APPS);
                // Unique, and without an order that a store could profit from.
                let hash = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                Pod {
                    namespace: namespaces[at % NAMESPACES].clone(),
                    name: format!("app-{app:03}-{hash:011x}-{:05}", rng.u32(..100_000)).into(),
                    uid: uid(&mut rng).into(),
                    node: nodes[(at * 7_919 + at / NODES) % NODES].clone(),
                    app: apps[app].clone(),
                    version: 0,
                }
            })
            .collect();
        rng.shuffle(&mut pods);
        let mut version = 1_000_000;
        for pod in &mut pods {
            version += 1;
            pod.version = version;
        }
        Self {
            pods,
            namespaces,
            nodes,
            version,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pods.len()
    }

    /// A new version of a random pod: nothing but its version changed.
    pub(crate) fn modify(&mut self, rng: &mut fastrand::Rng) -> Pod {
        let at = rng.usize(..self.pods.len());
        self.version += 1;
        let pod = &mut self.pods[at];
        pod.version = self.version;
        pod.clone()
    }

    /// A new version of a random pod, on another node.
    pub(crate) fn reschedule(&mut self, rng: &mut fastrand::Rng) -> Pod {
        let mut pod = self.modify(rng);
        pod.node = self.nodes[rng.usize(..self.nodes.len())].clone();
        pod
    }
}

fn texts(count: usize, text: impl Fn(usize) -> String) -> Vec<Arc<str>> {
    (0..count).map(|at| text(at).into()).collect()
}

/// A canonical UUID, as the API server gives them.
fn uid(rng: &mut fastrand::Rng) -> String {
    let (high, low) = (rng.u64(..), rng.u64(..));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn keys_are_unique_and_of_39_bytes_and_index_values_are_spread_evenly() {
        let world = World::new(50_000);
        let keys: HashSet<_> = world.pods.iter().map(Pod::key).collect();
        assert_eq!(keys.len(), 50_000);
        assert!(keys.iter().all(|key| key.len() == 39));
        let mut per_node = HashMap::new();
        let mut per_namespace = HashMap::new();
        for pod in &world.pods {
            *per_node.entry(&pod.node).or_insert(0) += 1;
            *per_namespace.entry(&pod.namespace).or_insert(0) += 1;
        }
        assert!(per_node.len() == NODES && per_node.values().all(|&count| count == 50));
        assert!(per_namespace.len() == NAMESPACES && per_namespace.values().all(|&c| c == 500));
    }
}
