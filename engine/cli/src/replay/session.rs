//! Frames in, a cache out: the same flow as in a live informer.
use super::fault::StreamFault;
use super::list::Listing;
use informant::delta::{DeltaQueue, ListSnapshot, Producer, PushError, QueueConfig, SourceId};
use informant::indexer::{IndexDeclaration, IndexWriter, Indexer, Snapshot};
use informant::json::{FieldPath, Frame, JsonObject};
use informant::source::{BadObject, ListPage, WatchEvent};
use informant::{Cached, Incoming, ResourceVersion, Versioning};
use std::cmp::Ordering;

/// Frames that are queued before they are drained and applied as one batch.
const BATCH_FRAMES: usize = 1024;

/// What came in, by type of frame, and what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) lists: u64,
    pub(crate) added: u64,
    pub(crate) modified: u64,
    pub(crate) deleted: u64,
    pub(crate) bookmarks: u64,
    pub(crate) errors: u64,
    /// Lists at a lower version than was reached before.
    pub(crate) resets: u64,
    /// Objects that could not be used.
    pub(crate) bad_objects: u64,
    /// Batches that were applied.
    pub(crate) batches: u64,
}

/// What the user should know and the run goes on after.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Notice {
    /// A fault of one object.
    #[error("{0}; it is in quarantine, and the replay goes on")]
    BadObject(BadObject),
    /// The source went back in time.
    #[error(
        "the list is at version {to}, below {from}: taken as a reset of the source, as after a restore"
    )]
    Reset {
        from: ResourceVersion,
        to: ResourceVersion,
    },
}

/// Whether the replay goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    GoOn,
    /// The frame is above `--until`: it was not applied, and nothing after it will be.
    UntilReached,
}

/// One replay: the producer of a delta queue at one end, the writer of a cache at the other.
pub(crate) struct Session {
    queue: DeltaQueue<JsonObject>,
    producer: Producer<JsonObject>,
    writer: IndexWriter<JsonObject>,
    cache: Indexer<JsonObject>,
    until: Option<ResourceVersion>,
    /// The version of the newest frame, for telling a list that goes back.
    reached: ResourceVersion,
    listing: Listing,
    /// What the stream is about, such as `Pod`, once a frame has said it.
    kind: Option<String>,
    queued: usize,
    counts: Counts,
}

impl Session {
    pub(crate) fn new(indexes: &[FieldPath], until: Option<ResourceVersion>) -> Self {
        let queue = DeltaQueue::new(QueueConfig::default());
        let mut builder = Indexer::builder().versioning(Versioning::Decimal);
        for path in indexes {
            let values = path.clone();
            builder = builder.declare(IndexDeclaration::with::<String, _>(
                path.as_str(),
                move |object: &Cached<JsonObject>, emit| {
                    values
                        .values(object)
                        .for_each(|value| emit.borrowed(&*value));
                    Ok(())
                },
            ));
        }
        let (cache, writer) = builder.build();
        Self {
            producer: queue.producer(SourceId(0)),
            queue,
            writer,
            cache,
            until,
            reached: ResourceVersion::empty(),
            listing: Listing::Complete,
            kind: None,
            queued: 0,
            counts: Counts::default(),
        }
    }

    /// Take one frame.
    pub(crate) fn feed(
        &mut self,
        frame: Frame,
        notify: &mut dyn FnMut(Notice),
    ) -> Result<Progress, StreamFault> {
        if self.is_above_until(&frame)? {
            return Ok(Progress::UntilReached);
        }
        match frame {
            Frame::List { kind, page } => {
                self.counts.lists += 1;
                self.page(kind.as_deref(), page, notify)?;
            }
            Frame::Event(event) => {
                let event = self.checked(event);
                self.count(&event);
                if let WatchEvent::Bad { object, .. } = &event {
                    self.counts.bad_objects += 1;
                    notify(Notice::BadObject(object.clone()));
                }
                self.event(event, notify)?;
            }
            Frame::Error(status) => {
                self.counts.errors += 1;
                // A list that was under way is abandoned with its watch.
                self.listing = if status.is_expired() || self.listing.is_under_way() {
                    Listing::Due(Vec::new())
                } else {
                    Listing::Complete
                };
            }
        }
        self.queued += 1;
        if self.queued >= BATCH_FRAMES {
            self.apply();
        }
        Ok(Progress::GoOn)
    }

    /// The end of the stream: apply what waits.
    pub(crate) fn finish(&mut self, cut_off: bool) -> Result<(), StreamFault> {
        self.apply();
        if cut_off {
            return Ok(());
        }
        match &self.listing {
            Listing::Paged { .. } => Err(StreamFault::ListCutOff),
            Listing::Due(items) if !items.is_empty() => Err(StreamFault::StreamingListCutOff),
            Listing::Due(_) | Listing::Complete => Ok(()),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot<JsonObject> {
        self.cache.snapshot()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Frames that took no place of their own in a batch: another one of their key was there.
    pub(crate) fn coalesced(&self) -> u64 {
        self.queue.metrics().coalesced
    }

    /// True once a list, paged or streaming, was applied.
    pub(crate) fn has_synced(&self) -> bool {
        self.queue.has_synced()
    }

    /// A frame without a version belongs to the one before it.
    fn is_above_until(&self, frame: &Frame) -> Result<bool, StreamFault> {
        let Some((until, version)) = self.until.as_ref().zip(frame.resource_version()) else {
            return Ok(false);
        };
        match version.compare(until, Versioning::Decimal) {
            Some(order) => Ok(order == Ordering::Greater),
            None => Err(StreamFault::NotComparable {
                found: version.clone(),
                until: until.clone(),
            }),
        }
    }

    fn count(&mut self, event: &WatchEvent<JsonObject>) {
        match event {
            WatchEvent::Added(_) => self.counts.added += 1,
            WatchEvent::Modified(_) => self.counts.modified += 1,
            WatchEvent::Deleted(_) => self.counts.deleted += 1,
            WatchEvent::Bookmark { .. } => self.counts.bookmarks += 1,
            WatchEvent::Bad { .. } | WatchEvent::Foreign { .. } => (),
        }
    }

    /// An object of another kind than the stream's is a fault of that object.
    fn checked(&mut self, event: WatchEvent<JsonObject>) -> WatchEvent<JsonObject> {
        type Verb = fn(Incoming<JsonObject>) -> WatchEvent<JsonObject>;
        let (verb, object): (Verb, _) = match event {
            WatchEvent::Added(object) => (WatchEvent::Added, object),
            WatchEvent::Modified(object) => (WatchEvent::Modified, object),
            WatchEvent::Deleted(object) => (WatchEvent::Deleted, object),
            other => return other,
        };
        match self.of_this_kind(object) {
            Ok(object) => verb(object),
            // It says nothing about an object of this collection, not even that one is gone.
            Err(object) => WatchEvent::Bad {
                object,
                deleted: false,
            },
        }
    }

    fn of_this_kind(
        &mut self,
        object: Incoming<JsonObject>,
    ) -> Result<Incoming<JsonObject>, BadObject> {
        match (object.object.kind(), &self.kind) {
            (Some(found), Some(expected)) if found != expected => Err(BadObject {
                // The key is that of an object of another collection.
                key: None,
                uid: object.meta.uid,
                resource_version: object.meta.resource_version,
                reason: format!(
                    "{} is a {found} in a stream of {expected} objects",
                    object.meta.key
                ),
            }),
            (Some(found), None) => {
                self.kind = Some(found.to_owned());
                Ok(object)
            }
            _ => Ok(object),
        }
    }

    fn page(
        &mut self,
        list_kind: Option<&str>,
        page: ListPage<JsonObject>,
        notify: &mut dyn FnMut(Notice),
    ) -> Result<(), StreamFault> {
        // `PodList` is a list of `Pod`; a mere `List`, as kubectl writes it, may be of anything.
        let kind = list_kind.and_then(|kind| kind.strip_suffix("List"));
        match (kind.filter(|kind| !kind.is_empty()), &self.kind) {
            (Some(found), Some(expected)) if found != expected => {
                return Err(StreamFault::OtherKind {
                    expected: expected.clone(),
                    found: found.to_owned(),
                });
            }
            (Some(found), None) => self.kind = Some(found.to_owned()),
            _ => (),
        }
        let mut items = match std::mem::replace(&mut self.listing, Listing::Complete) {
            Listing::Paged { version, .. } if version != page.resource_version => {
                return Err(StreamFault::OtherList {
                    expected: version,
                    found: page.resource_version,
                });
            }
            Listing::Paged { items, .. } => items,
            Listing::Due(_) | Listing::Complete => Vec::new(),
        };
        for item in page.items {
            let item = item.and_then(|object| self.of_this_kind(object));
            if let Err(bad) = &item {
                self.counts.bad_objects += 1;
                notify(Notice::BadObject(bad.clone()));
            }
            items.push(item);
        }
        if page.continue_token.is_some() {
            self.listing = Listing::Paged {
                version: page.resource_version,
                items,
            };
        } else {
            self.replace(items, page.resource_version, notify);
        }
        Ok(())
    }

    fn event(
        &mut self,
        event: WatchEvent<JsonObject>,
        notify: &mut dyn FnMut(Notice),
    ) -> Result<(), StreamFault> {
        match &mut self.listing {
            Listing::Complete => {
                let version = version_of(&event);
                self.push(event);
                self.advance(version);
            }
            Listing::Paged { .. } => {
                return Err(StreamFault::PageDue {
                    found: name_of(&event),
                });
            }
            Listing::Due(items) => match event {
                WatchEvent::Bookmark {
                    resource_version,
                    initial_events_end: true,
                } => {
                    let items = std::mem::take(items);
                    self.listing = Listing::Complete;
                    self.replace(items, resource_version, notify);
                }
                event => super::list::collect(items, event),
            },
        }
        Ok(())
    }

    fn replace(
        &mut self,
        items: Vec<Result<Incoming<JsonObject>, BadObject>>,
        resource_version: ResourceVersion,
        notify: &mut dyn FnMut(Notice),
    ) {
        let reset = resource_version.is_older_than(&self.reached, Versioning::Decimal);
        if reset {
            self.counts.resets += 1;
            notify(Notice::Reset {
                from: self.reached.clone(),
                to: resource_version.clone(),
            });
        }
        self.reached = resource_version.clone();
        let list = ListSnapshot {
            resource_version,
            items,
            reset,
        };
        let refused = self.producer.replace(list);
        debug_assert!(
            matches!(&refused, Ok(refused) if refused.is_empty()),
            "the queue is open and has no transform: {refused:?}"
        );
        // A list may be large: it need not wait in the queue.
        self.apply();
    }

    fn push(&mut self, event: WatchEvent<JsonObject>) {
        let pushed: Result<(), PushError> = match event {
            WatchEvent::Added(object) => self.producer.try_added(object),
            WatchEvent::Modified(object) => self.producer.try_updated(object),
            WatchEvent::Deleted(object) => self.producer.try_deleted(object),
            WatchEvent::Bookmark {
                resource_version, ..
            } => self.producer.bookmark(resource_version),
            WatchEvent::Bad { object, deleted } => self.producer.bad(object, deleted),
            WatchEvent::Foreign { .. } => Ok(()),
        };
        debug_assert_eq!(
            pushed,
            Ok(()),
            "the queue is open, has no bound and no transform"
        );
    }

    fn advance(&mut self, version: Option<ResourceVersion>) {
        if let Some(version) = version
            && !version.is_older_than(&self.reached, Versioning::Decimal)
        {
            self.reached = version;
        }
    }

    fn apply(&mut self) {
        self.queued = 0;
        let Some(batch) = self.queue.try_drain() else {
            return;
        };
        self.writer.apply(batch);
        self.queue.acknowledge();
        self.writer.maintain();
        self.counts.batches += 1;
    }
}

fn version_of(event: &WatchEvent<JsonObject>) -> Option<ResourceVersion> {
    let version = match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            &object.meta.resource_version
        }
        WatchEvent::Bookmark {
            resource_version, ..
        } => resource_version,
        WatchEvent::Bad { object, .. } => &object.resource_version,
        WatchEvent::Foreign { .. } => return None,
    };
    (!version.is_empty()).then(|| version.clone())
}

fn name_of(event: &WatchEvent<JsonObject>) -> &'static str {
    match event {
        WatchEvent::Bookmark { .. } => "BOOKMARK",
        _ => "watch",
    }
}
