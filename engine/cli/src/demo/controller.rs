//! One of the demo's controllers: it folds what its handler is told, and must end at the source's
//! state.
use super::latency::Histogram;
use super::model::Pod;
use informant::delta::Deleted;
use informant::informer::Handler;
use informant::{Cached, ObjectKey};
use std::collections::HashMap;
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
        }
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
    }

    fn on_update(&mut self, old: &Cached<Pod>, new: &Cached<Pod>) {
        self.pass_gate();
        self.controller.called(new);
        let mut folded = self.controller.folded();
        let known = folded.pods.insert(new.key().clone(), new.clone());
        if !known.is_some_and(|known| known.ptr_eq(old)) {
            folded.violation(|| format!("the old state of {} is not what was told", new.key()));
        }
    }

    fn on_delete(&mut self, deleted: &Deleted<Pod>) {
        self.pass_gate();
        self.controller.calls.fetch_add(1, Ordering::Relaxed);
        let mut folded = self.controller.folded();
        if folded.pods.remove(&deleted.key).is_none() {
            folded.violation(|| format!("{} was deleted and had not been added", deleted.key));
        }
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
