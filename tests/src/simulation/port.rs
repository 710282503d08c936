//! The way to the source: it looks at every request and every frame, and has the faults that the
//! embedded source itself does not.
use super::desk::{Answering, Desk, Port, UnderWay};
use super::world::{Thing, number};
use futures_util::Stream;
use informant::indexer::Indexer;
use informant::source::{
    ListOptions, ListPage, ListWatch, SourceError, VersionMatch, WatchEvent, WatchOptions,
    WatchStream,
};
use informant::{ResourceVersion, Sleep};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

/// One source of one informer.
pub(super) struct Way {
    desk: Desk,
    number: usize,
    incarnation: u32,
    streaming: bool,
    /// Known once the informer is built.
    cache: Arc<OnceLock<Indexer<Thing>>>,
}

impl Way {
    pub(super) fn new(
        desk: Desk,
        number: usize,
        incarnation: u32,
        streaming: bool,
        cache: Arc<OnceLock<Indexer<Thing>>>,
    ) -> Self {
        Self {
            desk,
            number,
            incarnation,
            streaming,
            cache,
        }
    }

    fn port(&self) -> Port<'_> {
        let cache = self.cache.get();
        if let Some(cache) = cache {
            self.desk.observe(cache);
        }
        Port {
            source: self.number,
            incarnation: self.incarnation,
            cache,
        }
    }

    async fn begin(&self, answering: &Answering) {
        if answering.panics {
            std::panic::resume_unwind(Box::new("a call that was to panic"));
        }
        if answering.hangs {
            std::future::pending::<()>().await;
        }
        if let Some((millis, false)) = answering.delay {
            self.pass(millis).await;
        }
    }

    async fn end(&self, answering: &Answering) {
        if let Some((millis, true)) = answering.delay {
            self.pass(millis).await;
        }
    }

    async fn pass(&self, millis: u64) {
        let clock = &self.desk.clock;
        clock
            .sleep_until(clock.now() + Duration::from_millis(millis))
            .await;
    }

    /// What a replica that is behind would answer.
    async fn stale(&self, options: &ListOptions) -> Option<ListPage<Thing>> {
        let options = ListOptions {
            resource_version: self.desk.source.oldest_version(),
            version_match: Some(VersionMatch::Exact),
            limit: None,
            ..options.clone()
        };
        self.desk.source.list(options).await.ok()
    }
}

impl ListWatch for Way {
    type Object = Thing;

    async fn list(&self, options: ListOptions) -> Result<ListPage<Thing>, SourceError> {
        let _under_way = self.desk.under_way();
        let answering = self.desk.list_begins(self.port(), &options);
        self.begin(&answering).await;
        let metadata_only = options.metadata_only;
        let stale = if answering.stale {
            self.stale(&options).await
        } else {
            None
        };
        let page = match stale {
            Some(page) => Ok(page),
            None => self.desk.source.list(options).await,
        };
        self.end(&answering).await;
        if let Ok(page) = &page
            && !metadata_only
        {
            self.desk.offered(self.number, &page.resource_version);
        }
        self.desk.log(|| match &page {
            Ok(page) => format!(
                "listed {} at {}, more: {}",
                page.items.len(),
                page.resource_version,
                page.continue_token.is_some()
            ),
            Err(error) => format!("list failed: {error}"),
        });
        page
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<Thing>, SourceError> {
        let under_way = self.desk.under_way();
        let answering = self.desk.watch_begins(self.port(), &options);
        self.begin(&answering).await;
        let streams = options.send_initial_events;
        let frames = self.desk.source.watch(options).await;
        self.end(&answering).await;
        let frames = frames.inspect_err(|error| self.desk.log(|| format!("refused: {error}")))?;
        let late_marker = if streams {
            std::mem::take(&mut self.desk.book().faults.late_marker)
        } else {
            0
        };
        Ok(Box::pin(Frames {
            stream: frames,
            desk: self.desk.clone(),
            source: self.number,
            late_marker,
            held: None,
            _under_way: under_way,
        }))
    }

    fn supports_streaming_list(&self) -> bool {
        self.streaming
    }
}

/// The frames of one watch, on their way.
struct Frames {
    stream: WatchStream<Thing>,
    desk: Desk,
    source: usize,
    /// The end marker shall come after so many further frames.
    late_marker: u8,
    held: Option<Held>,
    _under_way: UnderWay,
}

/// An end marker that is held back: servers may send changes before it, and it then says that they
/// were sent.
struct Held {
    version: ResourceVersion,
    frames: u8,
    patience: Sleep,
}

type Frame = Result<WatchEvent<Thing>, SourceError>;

impl Frames {
    fn marker(&mut self, held: Held) -> WatchEvent<Thing> {
        self.late_marker = 0;
        WatchEvent::Bookmark {
            resource_version: held.version,
            initial_events_end: true,
        }
    }

    /// Hold the marker back, or see what is sent before it.
    fn hold(&mut self, frame: Frame) -> Option<Frame> {
        match (&frame, &mut self.held) {
            (
                Ok(WatchEvent::Bookmark {
                    resource_version,
                    initial_events_end: true,
                }),
                None,
            ) if self.late_marker > 0 => {
                let clock = &self.desk.clock;
                self.held = Some(Held {
                    version: resource_version.clone(),
                    frames: self.late_marker,
                    patience: clock.sleep_until(clock.now() + Duration::from_millis(700)),
                });
                None
            }
            // The source repeats a deletion to every watch, whatever it selects; no server does.
            (Ok(WatchEvent::Deleted(object)), _)
                if !self.desk.parts[self.source]
                    .owns(number(&object.meta.key), &object.meta.uid) =>
            {
                None
            }
            // It would be believed without the objects before it.
            (Ok(WatchEvent::Bookmark { .. }), Some(_)) => None,
            (Ok(event), Some(held)) => {
                held.frames = held.frames.saturating_sub(1);
                if let Some(version) = version_of(event)
                    && version.as_number() > held.version.as_number()
                {
                    held.version = version.clone();
                }
                Some(frame)
            }
            _ => Some(frame),
        }
    }

    fn seen(&self, frame: &Frame) {
        let source = self.source;
        self.desk.log(|| match frame {
            Ok(event) => format!("frame for {source}: {}", tell(event)),
            Err(error) => format!("frame for {source}: {error}"),
        });
        let version = frame.as_ref().ok().and_then(version_of);
        self.desk.note(
            2,
            source as u64,
            version.and_then(ResourceVersion::as_number).unwrap_or(0),
        );
        self.desk.book().frames += 1;
        if let Some(version) = version {
            self.desk.offered(source, version);
        }
    }
}

impl Stream for Frames {
    type Item = Frame;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        let this = &mut *self;
        if std::mem::take(&mut this.desk.book().faults.panic_in_stream) {
            std::panic::resume_unwind(Box::new("a stream that was to panic"));
        }
        loop {
            if let Some(held) = &mut this.held
                && (held.frames == 0 || held.patience.as_mut().poll(context).is_ready())
                && let Some(held) = this.held.take()
            {
                let marker = Ok(this.marker(held));
                this.seen(&marker);
                return Poll::Ready(Some(marker));
            }
            match this.stream.as_mut().poll_next(context) {
                Poll::Ready(Some(frame)) => {
                    if let Some(frame) = this.hold(frame) {
                        this.seen(&frame);
                        return Poll::Ready(Some(frame));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(None),
                // The timer of a marker that has just been held back must be heard of.
                Poll::Pending => {
                    let due = |held: &mut Held| held.patience.as_mut().poll(context).is_ready();
                    if !this.held.as_mut().is_some_and(due) {
                        return Poll::Pending;
                    }
                    this.held.iter_mut().for_each(|held| held.frames = 0);
                }
            }
        }
    }
}

/// The version of a frame that counts.
fn version_of(event: &WatchEvent<Thing>) -> Option<&ResourceVersion> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            Some(&object.meta.resource_version)
        }
        WatchEvent::Bookmark {
            resource_version, ..
        } => Some(resource_version),
        WatchEvent::Bad { object, .. } if object.key.is_some() => Some(&object.resource_version),
        WatchEvent::Bad { .. } | WatchEvent::Foreign { .. } => None,
    }
}

fn tell(event: &WatchEvent<Thing>) -> String {
    let show = |object: &informant::Incoming<Thing>| {
        let meta = &object.meta;
        format!("{}@{}", meta.key.name(), meta.resource_version)
    };
    match event {
        WatchEvent::Added(object) => format!("+{}", show(object)),
        WatchEvent::Modified(object) => format!("~{}", show(object)),
        WatchEvent::Deleted(object) => format!("-{}", show(object)),
        WatchEvent::Bookmark {
            resource_version,
            initial_events_end,
        } => format!("BM@{resource_version} end: {initial_events_end}"),
        WatchEvent::Bad { object, deleted } => format!("{object}, deleted: {deleted}"),
        WatchEvent::Foreign { description } => description.clone(),
    }
}
