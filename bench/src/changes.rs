//! An endless stream of modifications, as a source would hand them on.
use crate::ours::incoming;
use crate::pod::{Pod, World};
use informant::{Incoming, ObjectKey, ResourceVersion};

/// Modified objects whose uid and texts were decoded beforehand. What is left to do for each is what
/// a decoder cannot have done: its key, and one copy, since a source gives objects away.
pub(crate) struct Changes {
    decoded: Vec<Incoming<Pod>>,
    version: u64,
    rng: fastrand::Rng,
}

impl Changes {
    pub(crate) fn of(world: &World) -> Self {
        Self {
            decoded: world.pods.iter().cloned().map(incoming).collect(),
            version: world.version,
            rng: fastrand::Rng::with_seed(7),
        }
    }

    /// The newest version that was given out by [`Changes::next`].
    pub(crate) fn version(&self) -> ResourceVersion {
        ResourceVersion::from(self.version)
    }

    /// The next version of a random object.
    pub(crate) fn next(&mut self) -> Incoming<Pod> {
        self.version += 1;
        let at = self.rng.usize(..self.decoded.len());
        self.next_at(at, self.version)
    }

    /// Another version of one object.
    pub(crate) fn next_at(&mut self, at: usize, version: u64) -> Incoming<Pod> {
        let mut changed = self.decoded[at].clone();
        let pod = &mut changed.object;
        pod.version = version;
        changed.meta.key =
            ObjectKey::new(&pod.namespace, &pod.name).expect("the pod has had a good key before");
        changed.meta.resource_version = ResourceVersion::from(version);
        changed
    }
}
