//! kube-runtime's reflector with subscribers of its shared stream.
use crate::pipeline::{AHEAD, wait_until};
use crate::pod::{Pod, World};
use futures_util::{StreamExt, stream};
use kube_runtime::reflector::{reflector, store::Writer};
use kube_runtime::watcher::{self, Event};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

pub(crate) struct Shared {
    runtime: Runtime,
    events: mpsc::Sender<Event<Pod>>,
    calls: Vec<Arc<AtomicU64>>,
    world: World,
    rng: fastrand::Rng,
}

impl Shared {
    /// A reflector that has listed the world, and so many subscribers that were told of all of it.
    #[allow(
        clippy::unnecessary_wraps,
        reason = "a build without the feature has none"
    )]
    pub(crate) fn start(world: &World, subscribers: usize) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .build()
            .expect("a runtime can be made");
        let (events, received) = mpsc::channel(AHEAD);
        let writer = Writer::<Pod>::new_shared(AHEAD, ());
        let calls: Vec<_> = (0..subscribers)
            .map(|_| Arc::new(AtomicU64::new(0)))
            .collect();
        for calls in &calls {
            let mut handle = writer.subscribe().expect("the writer is a shared one");
            let calls = calls.clone();
            runtime.spawn(async move {
                while handle.next().await.is_some() {
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let frames = stream::unfold(received, |mut received| async move {
            let event: Event<Pod> = received.recv().await?;
            Some((watcher::Result::Ok(event), received))
        });
        runtime.spawn(async move {
            let mut root = Box::pin(reflector(writer, frames));
            while root.next().await.is_some() {}
        });
        let shared = Self {
            runtime,
            events,
            calls,
            world: World::new(world.len()),
            rng: fastrand::Rng::with_seed(8),
        };
        let first = std::iter::once(Event::Init)
            .chain(world.pods.iter().cloned().map(Event::InitApply))
            .chain([Event::InitDone]);
        shared.runtime.block_on(async {
            for event in first {
                shared.events.send(event).await.expect("the reflector runs");
            }
        });
        wait_until(|| shared.total() >= (world.len() * subscribers) as u64);
        Ok(shared)
    }

    fn total(&self) -> u64 {
        self.calls
            .iter()
            .map(|calls| calls.load(Ordering::Relaxed))
            .sum()
    }

    /// Events a second, and calls.
    pub(crate) fn pass(&mut self, events: usize) -> [f64; 2] {
        let before = self.total();
        let expected = before + (events * self.calls.len()) as u64;
        let began = Instant::now();
        let Self {
            runtime,
            events: sender,
            world,
            rng,
            ..
        } = self;
        runtime.block_on(async {
            for _ in 0..events {
                let event = Event::Apply(world.modify(rng));
                sender.send(event).await.expect("the reflector runs");
            }
        });
        wait_until(|| self.total() >= expected);
        let rate = events as f64 / began.elapsed().as_secs_f64();
        [rate, (self.total() - before) as f64]
    }
}
