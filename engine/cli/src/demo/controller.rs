//! One of the demo's controllers. Its handler folds what it is told and queues the key; its worker
//! reconciles the key with what is in the cache. Both must end at the source's state.
use super::latency::Histogram;
use super::model::Pod;
use informant::controller::{Action, Controller as Runner};
use informant::delta::Deleted;
use informant::indexer::{Index, Indexer};
use informant::informer::{AddHandlerError, Handler};
use informant::work_queue::WorkQueue;
use informant::{Cached, ObjectKey, ResourceVersion};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Violations that are kept word by word; of more, only the number.
const VIOLATIONS_KEPT: usize = 5;

/// What a controller shares with the verifier.
pub(super) struct Controller {
    pub(super) name: String,
    pub(super) calls: AtomicU64,
    pub(super) lateness: Histogram,
    folded: Mutex<Folded>,
    /// The version at which each living pod was reconciled last.
    reconciled: Mutex<HashMap<ObjectKey, ResourceVersion>>,
    /// Pods on the node of the pod that was reconciled last: what a scheduler would look at.
    neighbours: AtomicU64,
}

/// What adds, updates and deletes amount to.
#[derive(Default)]
pub(super) struct Folded {
    pub(super) pods: HashMap<ObjectKey, Cached<Pod>>,
    /// Calls that did not follow from the ones before.
    pub(super) violations: Vec<String>,
    pub(super) violation_count: usize,
}

impl Controller {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            calls: AtomicU64::new(0),
            lateness: Histogram::new(),
            folded: Mutex::default(),
            reconciled: Mutex::default(),
            neighbours: AtomicU64::new(0),
        }
    }

    /// Start the worker. Its queue is fed by the handler.
    pub(super) fn run(
        self: &Arc<Self>,
        cache: Indexer<Pod>,
        by_node: Index<Pod, String>,
    ) -> Result<Runner<ObjectKey>, AddHandlerError> {
        let this = self.clone();
        Runner::builder(&self.name).run(move |key: ObjectKey| {
            this.reconcile(key, &cache, &by_node);
            std::future::ready(Ok::<_, Infallible>(Action::AwaitChange))
        })
    }

    /// Level-triggered: what the key's events were does not matter, only what the cache shows now.
    fn reconcile(&self, key: ObjectKey, cache: &Indexer<Pod>, by_node: &Index<Pod, String>) {
        let view = cache.load();
        let pod = view.get(&key);
        if let Some(node) = pod.and_then(|pod| pod.node.as_deref()) {
            let neighbours = view.count_by_index(by_node, node).unwrap_or(0);
            self.neighbours.store(neighbours as u64, Ordering::Relaxed);
        }
        let mut reconciled = self.reconciled();
        match pod {
            Some(pod) => reconciled.insert(key, pod.resource_version().clone()),
            None => reconciled.remove(&key),
        };
    }

    pub(super) fn reconciled(&self) -> MutexGuard<'_, HashMap<ObjectKey, ResourceVersion>> {
        self.reconciled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn folded(&self) -> MutexGuard<'_, Folded> {
        self.folded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn called(&self, pod: &Pod) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.lateness.record(pod.written_at.elapsed());
    }
}

impl Folded {
    fn violation(&mut self, text: impl FnOnce() -> String) {
        self.violation_count += 1;
        if self.violations.len() < VIOLATIONS_KEPT {
            self.violations.push(text());
        }
    }
}

/// The handler of a controller.
pub(super) struct Follow {
    pub(super) controller: Arc<Controller>,
    pub(super) queue: WorkQueue<ObjectKey>,
    /// While it is closed, the handler hangs in its first call about a change.
    pub(super) gate: Option<Arc<Gate>>,
}

impl Handler<Pod> for Follow {
    fn on_add(&mut self, pod: &Cached<Pod>, initial: bool) {
        if initial {
            self.controller.calls.fetch_add(1, Ordering::Relaxed);
        } else {
            self.pass_gate();
            self.controller.called(pod);
        }
        let mut folded = self.controller.folded();
        if folded.pods.insert(pod.key().clone(), pod.clone()).is_some() {
            folded.violation(|| format!("{} was added twice", pod.key()));
        }
        drop(folded);
        self.queue.add(pod.key().clone());
    }

    fn on_update(&mut self, old: &Cached<Pod>, new: &Cached<Pod>) {
        self.pass_gate();
        self.controller.called(new);
        let mut folded = self.controller.folded();
        let known = folded.pods.insert(new.key().clone(), new.clone());
        if !known.is_some_and(|known| known.ptr_eq(old)) {
            folded.violation(|| format!("the old state of {} is not what was told", new.key()));
        }
        drop(folded);
        self.queue.add(new.key().clone());
    }

    fn on_delete(&mut self, deleted: &Deleted<Pod>) {
        self.pass_gate();
        self.controller.calls.fetch_add(1, Ordering::Relaxed);
        let mut folded = self.controller.folded();
        if folded.pods.remove(&deleted.key).is_none() {
            folded.violation(|| format!("{} was deleted and had not been added", deleted.key));
        }
        drop(folded);
        self.queue.add(deleted.key.clone());
    }
}

impl Follow {
    fn pass_gate(&self) {
        if let Some(gate) = &self.gate {
            gate.pass();
        }
    }
}

/// Holds up whoever wants to pass while it is closed.
#[derive(Default)]
pub(super) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self
                .opened
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }
}
