//! The reflector: list, watch, resume, relist; it feeds the delta queue and loses nothing.
//!
//! A [`Reflector`] lists a collection, watches it from the list's version, and goes on through every
//! fault of the source until it is stopped. What it promises:
//!
//! - **Nothing received is skipped.** It resumes at the version of the last thing that the queue
//!   *accepted*: a list, a delta, a bookmark, or the record of an object that cannot be used.
//! - **No time travel.** It never asks for a state older than what it has delivered, and refuses one
//!   that comes anyway; only when the source's most recent state is older is that a declared reset.
//! - **No storm.** One backoff covers all failures; a broken connection, a throttled or an ended watch
//!   costs no list; nothing that the source does makes it spin.
//! - **Nothing leaks.** Stopping ends every call, stream and wait at once.
//!
//! It keeps nothing of the collection itself, except, until its end marker, a streaming list.
mod backoff;
mod config;
mod consistency;
mod cycle;
mod digest;
mod error;
mod initial_set;
mod listing;
mod metrics;
mod open_watch;
mod resume;
mod retry_window;
mod sink;
mod status;
mod streaming;
mod watch_end;
mod watching;

pub use backoff::BackoffConfig;
pub use config::{ErrorHook, ReflectorConfig};
pub use consistency::{Comparison, ConsistencyCheck, ConsistencyConfig, Differences, DigestFeed};
pub use cycle::RunEnd;
pub use digest::Digest;
pub use error::{Call, Fault, NextStep, ReflectorError};
pub use metrics::ReflectorMetrics;
pub use sink::DeltaSink;
pub use status::{ReflectorHandle, ReflectorState, ReflectorStatus};

use crate::delta::Producer;
use crate::source::ListWatch;
use crate::stop::StopToken;
use cycle::Cycle;
use std::sync::Arc;

/// Lists and watches one collection into a delta queue; see the [module](self) for its promises.
///
/// ```
/// use informant::delta::{DeltaQueue, QueueConfig, SourceId};
/// use informant::reflector::{Reflector, ReflectorConfig, RunEnd};
/// use informant::source::{ListOptions, ListPage, ListWatch, SourceError, WatchOptions, WatchStream};
/// use informant::{Incoming, Meta, StopToken, SystemClock};
///
/// struct OnePod;
/// impl ListWatch for OnePod {
///     type Object = &'static str;
///     async fn list(&self, _: ListOptions) -> Result<ListPage<&'static str>, SourceError> {
///         let meta = Meta::new("default", "web-0", "u1", "7").unwrap();
///         Ok(ListPage {
///             resource_version: "7".into(),
///             continue_token: None,
///             items: vec![Ok(Incoming::new(meta, "a pod"))],
///         })
///     }
///     async fn watch(&self, _: WatchOptions) -> Result<WatchStream<&'static str>, SourceError> {
///         Ok(Box::pin(futures_util::stream::pending()))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = DeltaQueue::new(QueueConfig::default());
/// let config = ReflectorConfig::new(SystemClock::shared());
/// let reflector = Reflector::new(OnePod.into(), queue.producer(SourceId(0)), config);
/// let (handle, stop) = (reflector.handle(), StopToken::new());
/// let task = tokio::spawn(reflector.run(stop.clone()));
///
/// let batch = queue.drain().await.unwrap();
/// assert_eq!(batch.versions[0].1.to_string(), "7");
/// assert!(handle.status().listed);
/// stop.stop();
/// assert_eq!(task.await.unwrap(), RunEnd::Stopped);
/// # }
/// ```
///
/// It runs once, by its type:
///
/// ```compile_fail
/// # use informant::{StopToken, reflector::{DeltaSink, Reflector}, source::ListWatch};
/// # async fn f<S: ListWatch, K: DeltaSink<S::Object>>(reflector: Reflector<S, K>) {
/// reflector.run(StopToken::new()).await;
/// reflector.run(StopToken::new()).await; // it was used up
/// # }
/// ```
pub struct Reflector<S: ListWatch, K = Producer<<S as ListWatch>::Object>> {
    cycle: Cycle<S, K>,
}

impl<S: ListWatch, K: DeltaSink<S::Object>> Reflector<S, K> {
    /// A reflector that will feed `queue` from `source`. It makes no call before [`Reflector::run`].
    #[must_use]
    pub fn new(source: Arc<S>, queue: K, config: ReflectorConfig) -> Self {
        Self {
            cycle: Cycle::new(source, queue, config),
        }
    }

    /// What watches it from outside: status, counters, relist on demand.
    #[must_use]
    pub fn handle(&self) -> ReflectorHandle {
        self.cycle.handle()
    }

    /// Work until stopped, or until the queue is closed. Dropping the future stops it as well.
    ///
    /// # Cancellation
    /// A stop is seen in every wait, at once: calls in flight, open streams and sleeps are dropped.
    pub async fn run(self, stop: StopToken) -> RunEnd {
        self.cycle.run(stop).await
    }
}

impl<S: ListWatch, K: DeltaSink<S::Object>> std::fmt::Debug for Reflector<S, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reflector").field(&self.handle()).finish()
    }
}

#[cfg(test)]
mod tests;
