//! A small scripted cluster: objects with a zone, versions that rise, watches that can be cut.
use crate::object::{Cached, Incoming, Meta};
use crate::source::{
    ApiStatus, ListOptions, ListPage, ListWatch, SourceError, WatchEvent, WatchOptions, WatchStream,
};
use crate::sync::Mutex;
use futures_util::stream;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) zone: String,
}

type Frame = Result<WatchEvent<Pod>, SourceError>;

#[derive(Default)]
struct State {
    version: u64,
    objects: BTreeMap<String, Incoming<Pod>>,
    /// What watches from older versions are caught up with.
    log: Vec<(u64, WatchEvent<Pod>)>,
    watchers: Vec<mpsc::UnboundedSender<Frame>>,
    list_error: Option<SourceError>,
    list_delay: Duration,
    lists: Vec<ListOptions>,
}

#[derive(Clone, Default)]
pub(crate) struct Cluster(Arc<Mutex<State>>);

impl Cluster {
    /// A cluster with these objects, all at versions up to 10, listed as version 10.
    pub(crate) fn with(names: &[&str]) -> Self {
        let cluster = Self::default();
        for name in names {
            cluster.put(name, "z1");
        }
        cluster.0.lock().version = 10;
        cluster
    }

    /// Create or change an object. Returns its version.
    pub(crate) fn put(&self, name: &str, zone: &str) -> u64 {
        let state = &mut *self.0.lock();
        state.version += 1;
        let version = state.version;
        let known = state.objects.get(name);
        let uid = known.map_or_else(
            || format!("{name}-u{version}"),
            |object| object.meta.uid.to_string(),
        );
        let is_new = known.is_none();
        let meta = Meta::new("ns", name, &uid, &version.to_string()).unwrap();
        let zone = zone.to_owned();
        let object = Incoming::new(meta, Pod { zone });
        state.objects.insert(name.to_owned(), object.clone());
        state.send(&if is_new {
            WatchEvent::Added(object)
        } else {
            WatchEvent::Modified(object)
        });
        version
    }

    pub(crate) fn delete(&self, name: &str) {
        let state = &mut *self.0.lock();
        state.version += 1;
        let mut object = state.objects.remove(name).expect("there");
        object.meta.resource_version = state.version.into();
        state.send(&WatchEvent::Deleted(object));
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.lock().objects.contains_key(name)
    }

    /// Cut all watches and forget history: what happens before the next list is seen only by it.
    pub(crate) fn disrupt(&self, meanwhile: impl FnOnce(&Self)) {
        self.0.lock().watchers.clear();
        meanwhile(self);
        let state = &mut *self.0.lock();
        state.version += 1;
        state.log.clear();
        state.watchers.clear();
    }

    /// Bring the cluster back to an older state, as from a backup.
    pub(crate) fn restore(&self, version: u64, names: &[&str]) {
        let state = &mut *self.0.lock();
        state.watchers.clear();
        state.log.clear();
        state.version = version;
        state
            .objects
            .retain(|name, _| names.contains(&name.as_str()));
        for object in state.objects.values_mut() {
            object.meta.resource_version = version.into();
        }
    }

    pub(crate) fn fail_lists(&self, error: Option<SourceError>) {
        self.0.lock().list_error = error;
    }

    pub(crate) fn delay_lists(&self, delay: Duration) {
        self.0.lock().list_delay = delay;
    }

    pub(crate) fn lists(&self) -> Vec<ListOptions> {
        self.0.lock().lists.clone()
    }

    pub(crate) fn watchers(&self) -> usize {
        let watchers = &mut self.0.lock().watchers;
        watchers.retain(|watcher| !watcher.is_closed());
        watchers.len()
    }

    /// What is there now, as the recorder names it.
    pub(crate) fn names(&self) -> Vec<String> {
        let objects = &self.0.lock().objects;
        objects
            .iter()
            .map(|(name, object)| format!("{name}@{}", object.meta.resource_version))
            .collect()
    }
}

impl State {
    fn send(&mut self, event: &WatchEvent<Pod>) {
        self.log.push((self.version, event.clone()));
        self.watchers
            .retain(|watcher| watcher.send(Ok(event.clone())).is_ok());
    }
}

impl ListWatch for Cluster {
    type Object = Pod;

    async fn list(&self, options: ListOptions) -> Result<ListPage<Pod>, SourceError> {
        let delay = self.0.lock().list_delay;
        tokio::time::sleep(delay).await;
        let mut state = self.0.lock();
        let namespace = options.selectors.namespace.clone();
        let labels = options.selectors.labels.clone();
        state.lists.push(options);
        if let Some(error) = &state.list_error {
            return Err(error.clone());
        }
        let wanted = |object: &&Incoming<Pod>| {
            namespace
                .as_ref()
                .is_none_or(|ns| ns == object.meta.key.namespace())
                && labels.as_ref().is_none_or(|l| *l == object.object.zone)
        };
        Ok(ListPage {
            resource_version: state.version.into(),
            continue_token: None,
            items: state
                .objects
                .values()
                .filter(wanted)
                .cloned()
                .map(Ok)
                .collect(),
        })
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<Pod>, SourceError> {
        let mut state = self.0.lock();
        let from = options.resource_version.as_number().unwrap_or(0);
        let oldest = state.log.first().map_or(state.version + 1, |(v, _)| *v);
        if from + 1 < oldest || from > state.version {
            return Err(SourceError::Api(ApiStatus::expired("too old")));
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        for (version, event) in &state.log {
            if *version > from {
                sender.send(Ok(event.clone())).expect("just made");
            }
        }
        state.watchers.push(sender);
        Ok(Box::pin(stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|frame| (frame, receiver))
        })))
    }
}

/// `a@5`: an object as the cases write it.
pub(crate) fn show(object: &Cached<Pod>) -> String {
    format!("{}@{}", object.name(), object.resource_version())
}
