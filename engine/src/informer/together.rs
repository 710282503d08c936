//! Snapshots of several caches, taken together.
use crate::indexer::{Indexer, Snapshot};

/// Snapshots of several informers, each stamped with its own version.
#[derive(Clone, Debug)]
pub struct Together<S> {
    /// The snapshots, in the order in which the caches were given.
    pub snapshots: S,
    /// There was a moment at which each of them was the newest of its cache. False only when the
    /// caches kept changing under each of 16 tries.
    pub simultaneous: bool,
}

/// How often snapshots are taken again because a cache has changed meanwhile. Taking them is so
/// quick that more than one try is rare.
const TRIES: usize = 16;

/// Several caches: tuples of up to four [`Indexer`]s.
pub trait Caches: sealed::Caches {}

impl<C: sealed::Caches> Caches for C {}

mod sealed {
    pub trait Caches {
        type Snapshots;
        fn snapshots(&self) -> Self::Snapshots;
        /// Whether each snapshot is still the newest of its cache.
        fn are_newest(&self, snapshots: &Self::Snapshots) -> bool;
    }
}

/// Take snapshots of several caches, such that there was a moment at which all were the newest.
/// Versions of different types are not comparable, so this is the most that "consistent" can mean
/// across types: nobody saw one of these states without being able to see the others.
///
/// ```
/// use informant::{indexer::Indexer, informer::snapshot_together};
/// let (pods, _pod_writer) = Indexer::<String>::builder().build();
/// let (nodes, _node_writer) = Indexer::<u32>::builder().build();
/// let together = snapshot_together(&(&pods, &nodes));
/// assert!(together.simultaneous);
/// let (pods, nodes) = together.snapshots;
/// assert_eq!(pods.len() + nodes.len(), 0);
/// ```
pub fn snapshot_together<C: Caches>(caches: &C) -> Together<C::Snapshots> {
    let mut snapshots = caches.snapshots();
    for _ in 0..TRIES {
        // All were taken before the first check and are still the newest at their checks, so all
        // were the newest at the moment between taking and checking.
        if caches.are_newest(&snapshots) {
            return Together {
                snapshots,
                simultaneous: true,
            };
        }
        snapshots = caches.snapshots();
    }
    Together {
        snapshots,
        simultaneous: false,
    }
}

macro_rules! caches {
    ($($name:ident: $at:tt),+) => {
        impl<$($name: Send + Sync + 'static),+> sealed::Caches for ($(&Indexer<$name>,)+) {
            type Snapshots = ($(Snapshot<$name>,)+);
            fn snapshots(&self) -> Self::Snapshots {
                ($(self.$at.snapshot(),)+)
            }
            fn are_newest(&self, snapshots: &Self::Snapshots) -> bool {
                true $(&& self.$at.load().sequence() == snapshots.$at.sequence())+
            }
        }
    };
}

caches!(A: 0, B: 1);
caches!(A: 0, B: 1, C: 2);
caches!(A: 0, B: 1, C: 2, D: 3);
