//! Stands in for kube-runtime in a build without the feature `peers-kube`.
use crate::pod::{Pod, World};
use crate::store::Store;
use std::sync::Arc;

/// There is none.
pub(crate) enum Kube {}

/// Its read side.
#[derive(Clone)]
pub(crate) enum Reader {}

impl Store for Kube {
    type Reader = Reader;
    type List = Vec<Pod>;

    fn load(_: &World) -> Result<Self, String> {
        Err("built without --features peers-kube".to_owned())
    }

    fn reader(&self) -> Reader {
        match *self {}
    }

    fn apply(&mut self, _: Pod) {
        match *self {}
    }

    fn decoded(pods: &[Pod]) -> Vec<Pod> {
        pods.to_vec()
    }

    fn relist(&mut self, _: Vec<Pod>) {
        match *self {}
    }
}

impl Reader {
    pub(crate) fn get(&self, _: &str, _: &str) -> Option<Arc<Pod>> {
        match *self {}
    }

    pub(crate) fn state(&self) -> Vec<Arc<Pod>> {
        match *self {}
    }

    pub(crate) fn state_filter(&self, _: impl Fn(&Pod) -> bool) -> Vec<Arc<Pod>> {
        match *self {}
    }
}
