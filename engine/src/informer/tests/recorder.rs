//! A handler that writes down what it is told, in the notation of the cases.
use super::cluster::{Pod, show};
use crate::informer::{Event, Handler, handler_fn};
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    pub(crate) fn handler(&self) -> impl Handler<Pod> + Clone + use<> {
        let calls = self.0.clone();
        handler_fn(move |event: Event<Pod>| calls.lock().push(tell(&event)))
    }

    pub(crate) fn push(&self, event: &Event<Pod>) {
        self.0.lock().push(tell(event));
    }

    /// What was told since the last look.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

pub(crate) fn tell(event: &Event<Pod>) -> String {
    match event {
        Event::Added { object, initial } => {
            format!("ADD{}({})", if *initial { "*" } else { "" }, show(object))
        }
        Event::Updated { old, new } => format!("UPD({} -> {})", show(old), show(new)),
        Event::Deleted(deleted) if deleted.final_state_unknown => format!(
            "DEL?({}, last={})",
            deleted.key.name(),
            deleted.last.as_ref().map_or("none".to_owned(), show)
        ),
        Event::Deleted(deleted) => {
            format!("DEL({}@{})", deleted.key.name(), deleted.resource_version)
        }
        Event::Reset(source) => format!("RESET({})", source.0),
        Event::Replay => "REPLAY".to_owned(),
    }
}

/// Folds what it is told into a map, and refuses what breaks the order of a key (I-S1).
#[derive(Default)]
pub(crate) struct Fold {
    pub(crate) objects: BTreeMap<String, String>,
    pub(crate) adds: usize,
    pub(crate) updates: usize,
    pub(crate) deletes: usize,
}

impl Fold {
    pub(crate) fn hear(&mut self, event: &Event<Pod>) {
        match event {
            Event::Added { object, .. } => {
                self.adds += 1;
                let known = self.objects.insert(object.name().to_owned(), show(object));
                assert_eq!(known, None, "added twice");
            }
            Event::Updated { old, new } => {
                self.updates += 1;
                let known = self.objects.insert(new.name().to_owned(), show(new));
                assert_eq!(known, Some(show(old)), "old is what was given last");
            }
            Event::Deleted(deleted) => {
                self.deletes += 1;
                let known = self.objects.remove(deleted.key.name());
                assert!(known.is_some(), "deleted what was never added");
            }
            Event::Replay => self.objects.clear(),
            Event::Reset(_) => {}
        }
    }

    pub(crate) fn shared() -> (Arc<Mutex<Self>>, impl Handler<Pod>) {
        let fold = Arc::new(Mutex::new(Self::default()));
        let handler = {
            let fold = fold.clone();
            handler_fn(move |event: Event<Pod>| fold.lock().hear(&event))
        };
        (fold, handler)
    }

    pub(crate) fn content(&self) -> Vec<String> {
        self.objects.values().cloned().collect()
    }
}
