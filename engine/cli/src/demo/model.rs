//! The objects of the demo cluster, slimmed to what its controllers look at, and their indexes.
use informant::indexer::IndexDeclaration;
use informant::{Cached, ObjectKey};
use std::sync::Arc;
use std::time::Instant;

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    pub(super) const ALL: [Self; 4] = [Self::Pending, Self::Running, Self::Succeeded, Self::Failed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

/// A pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pod {
    pub(super) app: Arc<str>,
    pub(super) phase: Phase,
    pub(super) node: Option<Arc<str>>,
    pub(super) cpu_millis: u32,
    pub(super) restarts: u32,
    pub(super) ready: bool,
    /// When this state was written: handlers tell by it how late they are.
    pub(super) written_at: Instant,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) zone: Arc<str>,
    pub(super) ready: bool,
    pub(super) heartbeat: u64,
}

/// The value of an object under an index, in a form that the verifier can use too.
pub(super) type IndexValue<T> = fn(&ObjectKey, &T) -> Option<String>;

/// The indexes over pods.
pub(super) const POD_INDEXES: [(&str, IndexValue<Pod>); 4] = [
    ("namespace", |key, _| Some(key.namespace().to_owned())),
    ("app", |_, pod| Some(pod.app.to_string())),
    ("phase", |_, pod| Some(pod.phase.name().to_owned())),
    ("node", |_, pod| pod.node.as_deref().map(str::to_owned)),
];

/// The indexes over nodes.
pub(super) const NODE_INDEXES: [(&str, IndexValue<Node>); 2] = [
    ("zone", |_, node| Some(node.zone.to_string())),
    ("ready", |_, node| Some(node.ready.to_string())),
];

/// An index for the cache.
pub(super) fn declare<T: Send + Sync + 'static>(
    (name, value): (&str, IndexValue<T>),
) -> IndexDeclaration<T> {
    IndexDeclaration::new(name, move |object: &Cached<T>| value(object.key(), object))
}
