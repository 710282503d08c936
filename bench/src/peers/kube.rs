//! kube-runtime's own `Writer` and `Store`, fed with its own events.
//!
//! The pods of this bench go in as they are: copying one costs five reference counts and no
//! allocation of its own, which is cheaper than a handle around an `Arc` (the store would put that
//! into a second `Arc`, to be followed on every read).
use crate::pod::{Pod, World};
use kube_runtime::reflector::store::{Store, Writer};
use kube_runtime::reflector::{Lookup, ObjectRef};
use kube_runtime::watcher::Event;
use std::borrow::Cow;
use std::sync::Arc;

pub(crate) struct Kube {
    writer: Writer<Pod>,
}

/// Its read side.
#[derive(Clone)]
pub(crate) struct Reader(Store<Pod>);

impl Lookup for Pod {
    type DynamicType = ();

    fn kind(&(): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group(&(): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version(&(): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(&(): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.name))
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.namespace))
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(self.version.to_string()))
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.uid))
    }
}

impl crate::store::Store for Kube {
    type Reader = Reader;
    type List = Vec<Pod>;

    fn load(world: &World) -> Result<Self, String> {
        let mut kube = Self {
            writer: Writer::new(()),
        };
        kube.relist(world.pods.clone());
        Ok(kube)
    }

    fn reader(&self) -> Reader {
        Reader(self.writer.as_reader())
    }

    fn apply(&mut self, pod: Pod) {
        self.writer.apply_watcher_event(&Event::Apply(pod));
    }

    fn decoded(pods: &[Pod]) -> Vec<Pod> {
        pods.to_vec()
    }

    fn relist(&mut self, pods: Vec<Pod>) {
        self.writer.apply_watcher_event(&Event::Init);
        for pod in pods {
            self.writer.apply_watcher_event(&Event::InitApply(pod));
        }
        self.writer.apply_watcher_event(&Event::InitDone);
    }
}

impl Reader {
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.0.get(&ObjectRef::new(name).within(namespace))
    }

    pub(crate) fn state(&self) -> Vec<Arc<Pod>> {
        self.0.state()
    }

    pub(crate) fn state_filter(&self, predicate: impl Fn(&Pod) -> bool) -> Vec<Arc<Pod>> {
        self.0.state_filter(predicate)
    }
}
