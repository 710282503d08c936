//! What a store must do to be measured beside a writer.
use crate::beside::{Layout, Outcome, beside};
use crate::pod::{Pod, World};
use std::hint::black_box;

/// A cache with one writer and readers on other threads.
pub(crate) trait Store: Send + Sized {
    /// What the readers share.
    type Reader: Sync;
    /// A list as the store's decoder would leave it, ready for a relist.
    type List: Send;

    /// The store with all pods of the world in it.
    ///
    /// # Errors
    /// Why this store cannot be measured here.
    fn load(world: &World) -> Result<Self, String>;
    fn reader(&self) -> Self::Reader;
    fn apply(&mut self, pod: Pod);
    fn decoded(pods: &[Pod]) -> Self::List;
    fn relist(&mut self, list: Self::List);
}

/// No store at all: what the threads of a layout cost by themselves.
pub(crate) struct Nothing;

impl Store for Nothing {
    type Reader = ();
    type List = ();

    fn load(_: &World) -> Result<Self, String> {
        Ok(Self)
    }

    fn reader(&self) {}

    fn apply(&mut self, pod: Pod) {
        black_box(pod);
    }

    fn decoded(_: &[Pod]) {}

    fn relist(&mut self, (): ()) {}
}

/// A store, and a world from which its changes come.
pub(crate) struct Churn<S> {
    pub(crate) store: S,
    world: World,
    rng: fastrand::Rng,
}

/// Readers begin at places far apart in the queries.
const STRIDE: usize = 22_369;

impl<S: Store> Churn<S> {
    /// # Errors
    /// Why this store cannot be measured here.
    pub(crate) fn new(objects: usize) -> Result<Self, String> {
        let world = World::new(objects);
        Ok(Self {
            store: S::load(&world)?,
            world,
            rng: fastrand::Rng::with_seed(2),
        })
    }

    /// Threads that call `read` with a running number, beside one that modifies single pods.
    pub(crate) fn beside(
        &mut self,
        layout: Layout,
        read: impl Fn(&S::Reader, usize) + Sync,
    ) -> Outcome {
        let reader = self.store.reader();
        let Self { store, world, rng } = self;
        let (reader, read) = (&reader, &read);
        let readers = |at: usize| {
            let mut next = at * STRIDE;
            move || {
                next += 1;
                read(reader, next);
            }
        };
        beside(layout, readers, || store.apply(world.modify(rng)))
    }

    /// The next list: every object anew, so many of them in a new version.
    pub(crate) fn next_list(&mut self, changed: usize) -> S::List {
        for _ in 0..changed {
            self.world.modify(&mut self.rng);
        }
        S::decoded(&self.world.pods)
    }

    /// Threads that call `read`, beside one that relists over and over; making the lists is part of
    /// what the writer does.
    pub(crate) fn beside_relists(
        &mut self,
        layout: Layout,
        changed: usize,
        read: impl Fn(&S::Reader, usize) + Sync,
    ) -> Outcome {
        let reader = self.store.reader();
        let (reader, read) = (&reader, &read);
        let readers = |at: usize| {
            let mut next = at * STRIDE;
            move || {
                next += 1;
                read(reader, next);
            }
        };
        beside(layout, readers, || {
            let list = self.next_list(changed);
            self.store.relist(list);
        })
    }
}
