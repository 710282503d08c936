//! How many copies of the collection a relist holds.
use super::super::cycle::{Cycle, RunEnd};
use super::super::sink::DeltaSink;
use crate::clock::ManualClock;
use crate::delta::{PreparedList, PushError};
use crate::object::{Cached, Incoming, Meta, ResourceVersion};
use crate::reflector::{ReflectorConfig, ReflectorHandle};
use crate::source::{
    BadObject, ListOptions, ListPage, ListWatch, SourceError, WatchEvent, WatchOptions, WatchStream,
};
use crate::stop::StopToken;
use crate::sync::{Mutex, block_on};
use std::sync::Arc;

const OBJECTS: usize = 20_000;
const PAGE: usize = 500;

/// Every live object is one reference to this.
type Live = Arc<()>;

struct Crowd {
    live: Live,
    streaming: bool,
}

impl Crowd {
    fn object(&self, at: usize) -> Incoming<Live> {
        let meta = Meta::new("ns", &format!("o{at}"), "u", &(at + 1).to_string()).unwrap();
        Incoming::new(meta, self.live.clone())
    }
}

impl ListWatch for Crowd {
    type Object = Live;

    async fn list(&self, options: ListOptions) -> Result<ListPage<Live>, SourceError> {
        let from: usize = options
            .continue_token
            .map_or(0, |token| token.parse().unwrap());
        let to = from + PAGE;
        Ok(ListPage {
            resource_version: "99999".into(),
            continue_token: (to < OBJECTS).then(|| to.to_string()),
            items: (from..to).map(|at| self.object(at)).map(Ok).collect(),
        })
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<Live>, SourceError> {
        if !options.send_initial_events {
            return Ok(Box::pin(futures_util::stream::pending()));
        }
        let source = Self {
            live: self.live.clone(),
            streaming: true,
        };
        let frames = (0..=OBJECTS).map(move |at| {
            Ok(if at < OBJECTS {
                WatchEvent::Added(source.object(at))
            } else {
                WatchEvent::Bookmark {
                    resource_version: "99999".into(),
                    initial_events_end: true,
                }
            })
        });
        Ok(Box::pin(futures_util::stream::iter(frames)))
    }

    fn supports_streaming_list(&self) -> bool {
        self.streaming
    }
}

/// Keeps the last list, as a store would, and asks for one relist.
struct Store {
    live: Live,
    kept: Mutex<Vec<Cached<Live>>>,
    peaks: Arc<Mutex<Vec<usize>>>,
    reflector: Arc<Mutex<Option<ReflectorHandle>>>,
}

impl DeltaSink<Live> for Store {
    fn prepare(&self, object: Incoming<Live>) -> Result<Cached<Live>, BadObject> {
        Ok(object.into())
    }

    async fn added(&self, _: Incoming<Live>) -> Result<(), PushError> {
        Ok(())
    }

    async fn updated(&self, _: Incoming<Live>) -> Result<(), PushError> {
        Ok(())
    }

    async fn deleted(&self, _: Incoming<Live>) -> Result<(), PushError> {
        Ok(())
    }

    async fn deleted_meta(&self, _: Meta) -> Result<(), PushError> {
        Ok(())
    }

    fn bad(&self, _: BadObject) -> Result<(), PushError> {
        Ok(())
    }

    fn replace(&self, list: PreparedList<Live>) -> Result<(), PushError> {
        let mut peaks = self.peaks.lock();
        peaks.push(Arc::strong_count(&self.live));
        *self.kept.lock() = list.items;
        if peaks.len() == 2 {
            return Err(PushError::Closed);
        }
        self.reflector.lock().as_ref().unwrap().relist();
        Ok(())
    }

    fn bookmark(&self, _: ResourceVersion) -> Result<(), PushError> {
        Ok(())
    }
}

#[test]
fn c038_a_relist_holds_one_copy_beside_the_store() {
    for streaming in [false, true] {
        let live: Live = Arc::new(());
        let source = Arc::new(Crowd {
            live: live.clone(),
            streaming,
        });
        let peaks: Arc<Mutex<Vec<usize>>> = Arc::default();
        let reflector: Arc<Mutex<Option<ReflectorHandle>>> = Arc::default();
        let store = Store {
            live: live.clone(),
            kept: Mutex::new(Vec::new()),
            peaks: peaks.clone(),
            reflector: reflector.clone(),
        };
        let config = ReflectorConfig::new(Arc::new(ManualClock::new()));
        let cycle = Cycle::new(source, store, config);
        *reflector.lock() = Some(cycle.handle());
        assert_eq!(block_on(cycle.run(StopToken::new())), RunEnd::QueueClosed);
        let peaks = peaks.lock().clone();
        assert!(
            peaks[0] <= OBJECTS + 10,
            "the first list is the only copy: {peaks:?}"
        );
        assert!(
            peaks[1] <= 2 * OBJECTS + 10,
            "streaming {streaming}: {peaks:?}"
        );
        assert_eq!(Arc::strong_count(&live), 1, "nothing is left (C029)");
    }
}
