//! What happens in the demo cluster: pods come, are scheduled, fail, finish and go.
use super::model::{Node, Phase, Pod};
use informant::source::memory::{Disconnect, MemorySource};
use informant::{Meta, ObjectKey, ResourceVersion};
use std::sync::Arc;
use std::time::Instant;

const NAMESPACES: usize = 20;
const APPS: usize = 200;
const ZONES: usize = 3;
/// Pods whose status changes far more often than that of others, as in a crash loop.
const HOT_PODS: usize = 32;

/// The writer of both collections: the only one, so it knows what they hold.
pub(super) struct Workload {
    pods: MemorySource<Pod>,
    nodes: MemorySource<Node>,
    rng: fastrand::Rng,
    apps: Vec<Arc<str>>,
    zones: Vec<Arc<str>>,
    target: usize,
    living: Vec<Written<Pod>>,
    machines: Vec<(Arc<str>, Written<Node>)>,
    serial: u64,
}

/// What was written last under a key.
struct Written<T> {
    key: ObjectKey,
    version: ResourceVersion,
    object: T,
}

impl Workload {
    /// Fill the collections: `pods` pods on `nodes` nodes.
    pub(super) fn new(
        sources: (MemorySource<Pod>, MemorySource<Node>),
        pods: usize,
        nodes: usize,
        seed: u64,
    ) -> Self {
        let mut workload = Self {
            pods: sources.0,
            nodes: sources.1,
            rng: fastrand::Rng::with_seed(seed),
            apps: (0..APPS).map(|n| format!("app-{n}").into()).collect(),
            zones: (0..ZONES).map(|n| format!("zone-{n}").into()).collect(),
            target: pods,
            living: Vec::with_capacity(pods),
            machines: Vec::with_capacity(nodes),
            serial: 0,
        };
        for number in 0..nodes {
            workload.create_node(number);
        }
        for _ in 0..pods {
            workload.create_pod();
            // A cluster that has been running: most pods have been scheduled long ago.
            if let Some(at) = workload.living.len().checked_sub(1)
                && workload.rng.u8(..100) < 95
            {
                workload.advance_pod(at);
            }
        }
        workload
    }

    /// Let about `events` things happen.
    pub(super) fn churn(&mut self, events: usize) {
        for _ in 0..events {
            match self.rng.u8(..100) {
                0..=44 => self.change_status(),
                45..=64 => {
                    if let Some(at) = self.any_pod() {
                        self.advance_pod(at);
                    }
                }
                65..=76 => {
                    if self.living.len() <= self.target {
                        self.create_pod();
                    }
                }
                77..=88 => {
                    if let Some(at) = self.any_pod()
                        && self.living.len() >= self.target
                    {
                        self.delete_pod(at);
                    }
                }
                89..=98 => self.heartbeat(),
                _ => self.restart_in_place(),
            }
        }
    }

    /// Every open watch of the pods ends, as after its timeout: it is resumed.
    pub(super) fn disconnect(&self) {
        self.pods.disconnect(Disconnect::Clean);
    }

    /// The pods' history is compacted under a watch that is behind: it gets 410 and must relist.
    pub(super) fn expire(&mut self) {
        self.churn(50);
        self.pods.compact(&self.pods.resource_version());
        self.pods.disconnect(Disconnect::Clean);
    }

    fn any_pod(&mut self) -> Option<usize> {
        (!self.living.is_empty()).then(|| self.rng.usize(..self.living.len()))
    }

    fn any_node(&mut self) -> Option<usize> {
        (!self.machines.is_empty()).then(|| self.rng.usize(..self.machines.len()))
    }

    fn create_node(&mut self, number: usize) {
        let name: Arc<str> = format!("node-{number:04}").into();
        let key = ObjectKey::new("", &name).expect("a node's name has no slash");
        let object = Node {
            zone: self.zones[number % ZONES].clone(),
            ready: true,
            heartbeat: 0,
        };
        let meta = written(self.nodes.create(key, object.clone()));
        self.machines.push((name, Written::of(meta, object)));
    }

    fn create_pod(&mut self) {
        let namespace = format!("team-{:02}", self.rng.usize(..NAMESPACES));
        let app = self.apps[self.rng.usize(..APPS)].clone();
        self.serial += 1;
        let name = format!("{app}-{:06x}", self.serial);
        let key = ObjectKey::new(&namespace, &name).expect("neither part has a slash");
        let object = Pod {
            app,
            phase: Phase::Pending,
            node: None,
            cpu_millis: 100 << self.rng.u32(..6),
            restarts: 0,
            ready: false,
            written_at: Instant::now(),
        };
        let meta = written(self.pods.create(key, object.clone()));
        self.living.push(Written::of(meta, object));
    }

    fn delete_pod(&mut self, at: usize) {
        let pod = self.living.swap_remove(at);
        written(self.pods.delete(&pod.key, Some(&pod.version)));
    }

    /// Pending → Running on some node → finished.
    fn advance_pod(&mut self, at: usize) {
        let node = self.any_node().map(|node| self.machines[node].0.clone());
        let ends_well = self.rng.u8(..10) > 0;
        self.write_pod(at, |pod| {
            match pod.phase {
                Phase::Pending => {
                    pod.phase = Phase::Running;
                    pod.node = node;
                    pod.ready = true;
                }
                Phase::Running if ends_well => pod.phase = Phase::Succeeded,
                Phase::Running => pod.phase = Phase::Failed,
                // Its controller starts it again.
                Phase::Succeeded | Phase::Failed => {
                    pod.phase = Phase::Running;
                    pod.restarts += 1;
                }
            }
            pod.ready = pod.phase == Phase::Running;
        });
    }

    fn change_status(&mut self) {
        let Some(any) = self.any_pod() else { return };
        let hot = self.rng.u8(..10) < 3;
        let at = if hot {
            any % HOT_PODS.min(self.living.len())
        } else {
            any
        };
        self.write_pod(at, |pod| {
            pod.ready = !pod.ready;
            pod.restarts += u32::from(!pod.ready);
        });
    }

    fn heartbeat(&mut self) {
        let Some(at) = self.any_node() else { return };
        let flips = self.rng.u8(..100) == 0;
        let node = &mut self.machines[at].1;
        node.object.heartbeat += 1;
        node.object.ready ^= flips;
        let meta = self
            .nodes
            .update(&node.key, Some(&node.version), node.object.clone());
        node.version = written(meta).resource_version;
    }

    /// As a stateful set does it: the pod goes, and another one of the same name comes.
    fn restart_in_place(&mut self) {
        let Some(at) = self.any_pod() else { return };
        let pod = &mut self.living[at];
        written(self.pods.delete(&pod.key, Some(&pod.version)));
        pod.object.phase = Phase::Pending;
        pod.object.node = None;
        pod.object.ready = false;
        pod.object.written_at = Instant::now();
        let meta = self.pods.create(pod.key.clone(), pod.object.clone());
        pod.version = written(meta).resource_version;
    }

    fn write_pod(&mut self, at: usize, change: impl FnOnce(&mut Pod)) {
        let pod = &mut self.living[at];
        change(&mut pod.object);
        pod.object.written_at = Instant::now();
        let meta = self
            .pods
            .update(&pod.key, Some(&pod.version), pod.object.clone());
        pod.version = written(meta).resource_version;
    }
}

impl<T> Written<T> {
    fn of(meta: Meta, object: T) -> Self {
        Self {
            key: meta.key,
            version: meta.resource_version,
            object,
        }
    }
}

/// The workload is the only writer, so no write of it is refused.
fn written(result: Result<Meta, informant::source::memory::WriteError>) -> Meta {
    result.expect("the only writer meets no conflict")
}
