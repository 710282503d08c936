//! Our whole pipeline: a source that yields what it is told, and the shared informer behind it.
use crate::changes::Changes;
use crate::ours::{incoming, text_index};
use crate::pod::{Pod, World};
use futures_core::Stream;
use informant::ResourceVersion;
use informant::informer::{Handler, HandlerOptions, Registration, SharedInformer};
use informant::source::{
    ListOptions, ListPage, ListWatch, SourceError, WatchEvent, WatchOptions, WatchStream,
};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// Frames that the source may be ahead: as many as the channel of the peer's fake watch holds.
pub(crate) const AHEAD: usize = 1_024;

type Frame = Result<WatchEvent<Pod>, SourceError>;

/// Lists the world once and then yields the frames that are sent to it.
struct Source {
    list: Mutex<Option<ListPage<Pod>>>,
    frames: Mutex<Option<mpsc::Receiver<Frame>>>,
}

impl ListWatch for Source {
    type Object = Pod;

    async fn list(&self, _: ListOptions) -> Result<ListPage<Pod>, SourceError> {
        let page = self.list.lock().take();
        Ok(page.expect("the watch never breaks, so there is one list"))
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<Pod>, SourceError> {
        let frames = self.frames.lock().take();
        Ok(Box::pin(Frames(
            frames.expect("the watch never breaks, so there is one"),
        )))
    }
}

struct Frames(mpsc::Receiver<Frame>);

impl Stream for Frames {
    type Item = Frame;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        self.0.poll_recv(context)
    }
}

/// A running informer with three indexes (or one), on a runtime of its own.
pub(crate) struct Pipeline {
    pub(crate) runtime: Runtime,
    pub(crate) informer: SharedInformer<Pod>,
    pub(crate) frames: mpsc::Sender<Frame>,
    pub(crate) changes: Arc<Mutex<Changes>>,
    handlers: Vec<Registration<Pod>>,
}

/// How long anything here may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(120);

impl Pipeline {
    /// List `world`, and wait until the cache has it. As many runtime threads as processors, which is
    /// what Go has.
    pub(crate) fn start(world: &World) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .build()
            .expect("a runtime can be made");
        let (frames, received) = mpsc::channel(AHEAD);
        let source = Source {
            list: Mutex::new(Some(ListPage {
                resource_version: ResourceVersion::from(world.version),
                continue_token: None,
                items: world.pods.iter().cloned().map(incoming).map(Ok).collect(),
            })),
            frames: Mutex::new(Some(received)),
        };
        let informer = SharedInformer::builder(source)
            .declare(text_index("namespace", |pod| &pod.namespace))
            .declare(text_index("node", |pod| &pod.node))
            .declare(text_index("app", |pod| &pod.app))
            .build();
        runtime.block_on(async {
            informer.start().expect("the informer is new");
            let synced = informer.wait_for_sync(PATIENCE).await;
            synced.expect("the list is short");
        });
        Self {
            runtime,
            informer,
            frames,
            changes: Arc::new(Mutex::new(Changes::of(world))),
            handlers: Vec::new(),
        }
    }

    /// Add a handler, and wait until it has been told of all that is there.
    pub(crate) fn handle(&mut self, options: &HandlerOptions, handler: impl Handler<Pod>) {
        let registration = self
            .informer
            .add_handler_with(options, handler)
            .expect("the informer runs");
        self.runtime.block_on(registration.synced());
        self.handlers.push(registration);
    }

    /// Add a handler that will not come to its end.
    pub(crate) fn handle_blocked(&mut self, options: &HandlerOptions, handler: impl Handler<Pod>) {
        let registration = self.informer.add_handler_with(options, handler);
        self.handlers.push(registration.expect("the informer runs"));
    }

    /// Send so many modifications, as fast as the pipeline takes them. The sender is a task, as it is
    /// a goroutine on the other side.
    pub(crate) fn send(&mut self, events: usize) {
        let (frames, changes) = (self.frames.clone(), self.changes.clone());
        let sender = self.runtime.spawn(async move {
            for _ in 0..events {
                let frame = Ok(WatchEvent::Modified(changes.lock().next()));
                frames.send(frame).await.expect("the watch is open");
            }
        });
        self.runtime
            .block_on(sender)
            .expect("the sender does not panic");
    }
}

/// Wait until `done`, which is asked every half millisecond.
///
/// # Panics
/// When it takes minutes: something is stuck, and a figure would be a lie.
pub(crate) fn wait_until(done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "the pipeline is stuck");
        thread::sleep(Duration::from_micros(500));
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let stop = self.informer.stop_within(Duration::from_secs(1));
        // A handler that blocks for ever is left behind, on purpose.
        let _ = self.runtime.block_on(stop);
    }
}
