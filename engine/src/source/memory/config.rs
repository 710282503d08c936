//! What an embedded source is made of.
use crate::clock::SharedClock;
use crate::object::Meta;
use crate::source::{ApiStatus, StatusCause};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Writes the metadata into an object, where the object type carries its own. It overwrites what
/// is there: the same object may be stamped again with another version.
pub type Stamp<T> = Arc<dyn Fn(&mut T, &Meta) + Send + Sync>;

/// Reads the label of an object with the given name.
pub type LabelOf<T> = Arc<dyn for<'a> Fn(&'a T, &str) -> Option<&'a str> + Send + Sync>;

/// Reads one field of an object; `None` counts as the empty text.
pub type FieldOf<T> = Arc<dyn for<'a> Fn(&'a T) -> Option<Cow<'a, str>> + Send + Sync>;

/// What a [`MemorySource`](super::MemorySource) is made of.
///
/// The closures are called without any lock, so they may use the source themselves. When one
/// panics during a list or a watch, that call is answered with a 500, as a server would.
///
/// ```
/// use informant::ObjectKey;
/// use informant::source::memory::{MemoryConfig, MemorySource};
/// use std::borrow::Cow;
///
/// #[derive(Clone)]
/// struct Pod { app: String, node: Option<String>, version: String }
///
/// let config = MemoryConfig { history: 1_000, ..MemoryConfig::default() }
///     .stamp(|pod: &mut Pod, meta| pod.version = meta.resource_version.to_string())
///     .labels(|pod, name| (name == "app").then_some(pod.app.as_str()))
///     .field("spec.nodeName", |pod| pod.node.as_deref().map(Cow::Borrowed));
/// let pods = MemorySource::with(config);
///
/// let key = ObjectKey::new("default", "web-0")?;
/// let pod = Pod { app: "web".into(), node: None, version: String::new() };
/// let meta = pods.create(key.clone(), pod)?;
/// assert_eq!(pods.get(&key).unwrap().object.version, meta.resource_version.to_string());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryConfig<T> {
    /// Version of the empty collection, at least 1. Default: 1.
    pub first_version: u64,
    /// By how much each write raises the version, at least 1. Default: 1. Servers leave gaps,
    /// since all collections share one counter; see also
    /// [`MemorySource::skip_versions`](super::MemorySource::skip_versions).
    pub version_step: u64,
    /// Changes that are remembered for watches and for lists of old versions; older ones are
    /// compacted away. Default: 100,000.
    pub history: usize,
    /// A bookmark is sent to a watch that allows them after this many changes of the collection,
    /// whether it selects them or not. Zero: none by itself. Default: 1,000.
    pub bookmark_every: u64,
    /// Offer streaming lists. Default: true, as servers do since Kubernetes 1.34.
    pub streaming_lists: bool,
    /// How errors are put. It can be changed later, by
    /// [`MemorySource::speak`](super::MemorySource::speak).
    pub dialect: Dialect,
    /// Ends watches after their timeout; without a clock they never time out.
    pub clock: Option<SharedClock>,
    /// Writes key, uid and version into each object that is stored.
    pub stamp: Option<Stamp<T>>,
    /// Reads labels; without it, label selectors are refused.
    pub labels: Option<LabelOf<T>>,
    /// Reads the fields that selectors may name beside `metadata.name` and `metadata.namespace`.
    pub fields: BTreeMap<String, FieldOf<T>>,
}

impl<T> MemoryConfig<T> {
    /// Write key, uid and version into each object that is stored.
    #[must_use]
    pub fn stamp(mut self, stamp: impl Fn(&mut T, &Meta) + Send + Sync + 'static) -> Self {
        self.stamp = Some(Arc::new(stamp));
        self
    }

    /// Read labels by `label(object, name)`.
    #[must_use]
    pub fn labels(
        mut self,
        label: impl for<'a> Fn(&'a T, &str) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        self.labels = Some(Arc::new(label));
        self
    }

    /// Let field selectors name the field `path`, read by `field(object)`.
    #[must_use]
    pub fn field(
        mut self,
        path: &str,
        field: impl for<'a> Fn(&'a T) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    ) -> Self {
        self.fields.insert(path.to_owned(), Arc::new(field));
        self
    }
}

impl<T> Default for MemoryConfig<T> {
    fn default() -> Self {
        Self {
            first_version: 1,
            version_step: 1,
            history: 100_000,
            bookmark_every: 1_000,
            streaming_lists: true,
            dialect: Dialect::default(),
            clock: None,
            stamp: None,
            labels: None,
            fields: BTreeMap::new(),
        }
    }
}

impl<T> fmt::Debug for MemoryConfig<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryConfig")
            .field("first_version", &self.first_version)
            .field("version_step", &self.version_step)
            .field("history", &self.history)
            .field("bookmark_every", &self.bookmark_every)
            .field("streaming_lists", &self.streaming_lists)
            .field("dialect", &self.dialect)
            .field("clock", &self.clock.is_some())
            .field("stamp", &self.stamp.is_some())
            .field("labels", &self.labels.is_some())
            .field("fields", &self.fields.keys())
            .finish()
    }
}

/// How a server puts the two errors that clients must understand in several spellings.
///
/// ```
/// use informant::source::Recovery;
/// use informant::source::SourceError;
/// use informant::source::memory::{Dialect, GoneReason, TooLargeText};
/// let old_server = Dialect {
///     reason: GoneReason::Gone,
///     too_large: TooLargeText::Message,
///     ..Dialect::default()
/// };
/// assert_eq!(SourceError::from(old_server.expired("compacted")).recovery(), Recovery::Relist);
/// assert_eq!(SourceError::from(old_server.too_large(9, 5)).recovery(), Recovery::TooLarge);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Dialect {
    /// Where a watch from a forgotten version fails.
    pub expired_watch: ExpiredWatch,
    /// The reason of a 410.
    pub reason: GoneReason,
    /// How a version is said to be too large.
    pub too_large: TooLargeText,
}

/// Where a watch from a forgotten version fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ExpiredWatch {
    /// The watch opens, and its only item is the error.
    #[default]
    Frame,
    /// The call itself fails.
    Call,
}

/// The reason of a 410.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum GoneReason {
    /// `Expired`.
    #[default]
    Expired,
    /// `Gone`.
    Gone,
}

/// How a 504 says that the server has not reached a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TooLargeText {
    /// By the reason of a cause: Kubernetes since 1.19.
    #[default]
    Cause,
    /// By the message of a cause.
    CauseMessage,
    /// By the message of the status only.
    Message,
}

impl Dialect {
    /// 410: the version is forgotten.
    #[must_use]
    pub fn expired(self, message: &str) -> ApiStatus {
        let reason = match self.reason {
            GoneReason::Expired => "Expired",
            GoneReason::Gone => "Gone",
        };
        ApiStatus::new(410, reason, message)
    }

    /// 504: the newest version is `current`.
    #[must_use]
    pub fn too_large(self, asked: u64, current: u64) -> ApiStatus {
        let text = "Too large resource version";
        let full = format!("{text}: {asked}, current: {current}");
        let mut status = ApiStatus::new(504, "Timeout", &full);
        let cause = match self.too_large {
            TooLargeText::Cause => StatusCause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: text.to_owned(),
            },
            TooLargeText::CauseMessage => StatusCause {
                reason: String::new(),
                message: text.to_owned(),
            },
            TooLargeText::Message => return status,
        };
        if self.too_large == TooLargeText::CauseMessage {
            "the request timed out".clone_into(&mut status.message);
        }
        status.causes.push(cause);
        status.retry_after = Some(std::time::Duration::from_secs(1));
        status
    }
}

pub(super) fn bad_request(message: &str) -> ApiStatus {
    ApiStatus::new(400, "BadRequest", message)
}

pub(super) fn invalid(message: &str) -> ApiStatus {
    ApiStatus::new(422, "Invalid", message)
}
