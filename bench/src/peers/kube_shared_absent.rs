//! Stands in for kube-runtime's shared streams in a build without the feature `peers-kube`.
use crate::pod::World;

/// There is none.
pub(crate) enum Shared {}

impl Shared {
    pub(crate) fn start(_: &World, _: usize) -> Result<Self, String> {
        Err("built without --features peers-kube".to_owned())
    }

    pub(crate) fn pass(&mut self, _: usize) -> [f64; 2] {
        match *self {}
    }
}
