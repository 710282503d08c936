//! The embedded source: a versioned collection in memory that lists and watches as an API server
//! does. The demo runs on it, and so can your own unit tests.
//!
//! [`MemorySource`] is the collection. Writes are plain calls, lists and watches come through
//! [`ListWatch`], and [faults](MemorySource#faults) happen on demand, at an exact point, so that a
//! test can say "the 410 comes after this write and before that one". Nothing in here needs a
//! runtime, starts a thread or depends on chance: the same calls give the same uids, versions,
//! frames and errors in every run.
//!
//! ```
//! use informant::source::memory::MemorySource;
//! use informant::source::{ListOptions, ListWatch, WatchEvent, WatchOptions};
//! use informant::ObjectKey;
//! use futures_util::StreamExt;
//!
//! # #[cfg(feature = "tokio")]
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let pods = MemorySource::<&str>::new();
//! let web = ObjectKey::new("default", "web-0")?;
//! pods.create(web.clone(), "nginx:1")?;
//!
//! let page = pods.list(ListOptions::default()).await?;
//! assert_eq!(page.items.len(), 1);
//!
//! let mut frames = pods
//!     .watch(WatchOptions { resource_version: page.resource_version, ..WatchOptions::default() })
//!     .await?;
//! pods.update(&web, None, "nginx:2")?;
//! let Some(Ok(WatchEvent::Modified(pod))) = frames.next().await else { panic!() };
//! assert_eq!(pod.object, "nginx:2");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # As a server does
//! - **Versions**: one counter for the collection; each write raises it and puts the new version
//!   on its object. A deletion has a version of its own.
//! - **Lists** at no version or at "0" give the newest state, at `N` with `NotOlderThan` too, with
//!   `Exact` the state at `N`, as long as it is remembered. A version with a limit but without a
//!   match means `Exact`, as it always did. Objects come in key order. All pages of a list are of
//!   the state of the first; a page whose state is forgotten is answered with 410. A continue
//!   token together with a version or a match is a 400.
//! - **Watches** from `N` give every change after it; from no version or "0" they begin with the
//!   present objects as `Added`, in no order. A version that is forgotten is a 410, one that is
//!   not reached a 504 (at once: there is nobody to wait for). A watch that falls behind the
//!   history gets the 410 too.
//! - **Streaming lists** end their initial objects with a bookmark, if bookmarks are allowed.
//! - **Selection**: namespaces, label selectors, field selectors and shard selectors. An object
//!   that begins to be selected is `Added`, one that ceases to be is `Deleted`, with its last
//!   selected content at the version of the change.
//! - **Bookmarks** come every so many changes, on demand, and before a watch times out.
//!
//! # Unlike a server
//! - A list of metadata only gives whole objects: the source does not know what else there is in
//!   a `T`. Everything else about it is the same, and objects that cannot be decoded are in it.
//! - Objects are opaque: nothing defaults, validates or refuses them.
mod config;
mod faults;
mod field_selector;
mod frames;
mod list;
mod log;
mod open;
mod selection;
mod state;
mod watch;
mod write;

use super::{ListOptions, ListPage, ListWatch, SourceError, WatchOptions, WatchStream};
use crate::object::{Incoming, ObjectKey, ResourceVersion};
use crate::sync::{Mutex, WaitSet};
use state::State;
use std::fmt;
use std::sync::Arc;

pub use config::{
    Dialect, ExpiredWatch, FieldOf, GoneReason, LabelOf, MemoryConfig, Stamp, TooLargeText,
};
pub use faults::{Backup, Corruption, Disconnect};
pub use state::Request;
pub use write::{Preconditions, Write, WriteError};

struct Shared<T> {
    config: MemoryConfig<T>,
    state: Mutex<State<T>>,
    /// Announced after every change of the state that an open watch may wait for.
    changes: WaitSet,
}

/// A versioned collection in memory. Clones are handles of one collection; see the
/// [module](self) for what it does.
///
/// ```
/// use informant::ObjectKey;
/// use informant::source::memory::MemorySource;
///
/// let pods = MemorySource::<String>::new();
/// let web = ObjectKey::new("default", "web-0")?;
/// let created = pods.create(web.clone(), "nginx:1".to_owned())?;
/// pods.update(&web, Some(&created.resource_version), "nginx:2".to_owned())?;
/// // Optimistic concurrency: the version above is not the newest any more.
/// assert!(pods.update(&web, Some(&created.resource_version), "nginx:3".to_owned()).is_err());
/// assert_eq!(pods.get(&web).unwrap().object, "nginx:2");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct MemorySource<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for MemorySource<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Default for MemorySource<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Send + Sync + 'static> MemorySource<T> {
    /// An empty collection at version 1.
    #[must_use]
    pub fn new() -> Self {
        Self::with(MemoryConfig::default())
    }

    /// An empty collection, configured.
    #[must_use]
    pub fn with(config: MemoryConfig<T>) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State::new(&config)),
                config,
                changes: WaitSet::new(),
            }),
        }
    }

    /// The object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Incoming<T>> {
        let item = self.shared.state.lock().objects.get(key).cloned()?;
        Some((*item).clone())
    }

    /// All objects at one version, in key order; they are shared, not copied.
    #[must_use]
    pub fn objects(&self) -> (ResourceVersion, Vec<Arc<Incoming<T>>>) {
        let state = self.shared.state.lock();
        let objects = state.objects.values().cloned().collect();
        (state.version.into(), objects)
    }

    /// All objects at an earlier version, in key order; `None` when that state is forgotten or not
    /// reached. It costs the walk over the objects and over the changes since then.
    #[must_use]
    pub fn objects_at(&self, version: &ResourceVersion) -> Option<Vec<Arc<Incoming<T>>>> {
        let version = version.as_number()?;
        let state = self.shared.state.lock();
        let known = (state.log.compacted..=state.version).contains(&version);
        known.then(|| state.objects_at(version, None, None, usize::MAX))
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().objects.len()
    }

    /// True when there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest version.
    #[must_use]
    pub fn resource_version(&self) -> ResourceVersion {
        self.shared.state.lock().version.into()
    }

    /// The oldest version whose state is remembered: from it on, watches and exact lists work.
    #[must_use]
    pub fn oldest_version(&self) -> ResourceVersion {
        self.shared.state.lock().log.compacted.into()
    }

    /// Raise the version by `count` without a change, as writes to other collections do.
    pub fn skip_versions(&self, count: u64) {
        let mut state = self.shared.state.lock();
        state.version += count;
        state.moves += 1;
    }

    /// Forget all changes up to and including `version`: what is from before gets 410, watches,
    /// exact lists and continue tokens alike.
    pub fn compact(&self, version: &ResourceVersion) {
        if let Some(version) = version.as_number() {
            let forgotten = self.shared.state.lock().compact(version);
            self.shared.changes.notify_all();
            drop(forgotten);
        }
    }

    /// How many watches are open: streams that have neither ended nor been dropped.
    #[must_use]
    pub fn open_watches(&self) -> usize {
        self.shared.state.lock().watches.len()
    }

    /// The list and watch calls so far, in order; of more than 65,536 the newest.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state.lock().requests.iter().cloned().collect()
    }

    /// As [`MemorySource::requests`], and begin a new record.
    #[must_use]
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.state.lock().requests).into()
    }
}

impl<T: Clone + Send + Sync + 'static> ListWatch for MemorySource<T> {
    type Object = T;

    async fn list(&self, options: ListOptions) -> Result<ListPage<T>, SourceError> {
        list::page(&self.shared, &options)
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<T>, SourceError> {
        open::open(&self.shared, &options)
    }

    fn supports_streaming_list(&self) -> bool {
        self.shared.config.streaming_lists
    }
}

impl<T> fmt::Debug for MemorySource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        let (objects, version) = (state.objects.len(), state.version);
        write!(f, "MemorySource({objects} objects at version {version})")
    }
}

#[cfg(all(test, informant_loom))]
mod loom;
#[cfg(all(test, not(informant_loom)))]
mod tests;
