//! What went wrong, on which call, and what happens next.
use crate::object::ResourceVersion;
use crate::source::{BadObject, ListOptions, SourceError, WatchOptions};
use std::fmt;
use std::time::Duration;

/// One fault that the reflector met: given to the error hook, kept as the last error of the
/// status. The reflector has already decided what it does about it.
///
/// ```
/// use informant::reflector::{Call, Fault, NextStep, ReflectorError};
/// use informant::source::{ListOptions, SourceError};
/// let error = ReflectorError {
///     call: Call::List(ListOptions::default()),
///     fault: Fault::Source(SourceError::ConnectionRefused("no route".into())),
///     next: NextStep::List { resource_version: "7".into(), after: std::time::Duration::ZERO },
/// };
/// assert_eq!(
///     error.to_string(),
///     "list(resourceVersion=\"\"): connection refused: no route; next: list at \"7\" now"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {fault}; next: {next}")]
pub struct ReflectorError {
    /// The call during which it happened, with its options.
    pub call: Call,
    /// What happened.
    #[source]
    pub fault: Fault,
    /// What the reflector does next.
    pub next: NextStep,
}

/// A call to the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// One page of a list.
    List(ListOptions),
    /// A watch, or a streaming list.
    Watch(WatchOptions),
}

/// What can happen on a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// No answer came in time; the call was dropped.
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    /// The source's code panicked.
    #[error("the source panicked: {0}")]
    SourcePanicked(String),
    /// One object cannot be used; the others are not affected.
    #[error(transparent)]
    BadObject(#[from] BadObject),
    /// A frame that is no event of this collection.
    #[error("the frame is no event of this collection: {0}")]
    Foreign(String),
    /// A list (or the end marker of a streaming one) names no version, so no watch could follow.
    #[error("the list carries no resourceVersion")]
    ListWithoutVersion,
    /// A bookmark names no version.
    #[error("the bookmark carries no resourceVersion")]
    BookmarkWithoutVersion,
    /// A list or a bookmark is older than what was already seen.
    #[error("version {got} is older than {seen}, which was already seen")]
    WentBack {
        /// The version that was already seen.
        seen: ResourceVersion,
        /// The version that came.
        got: ResourceVersion,
    },
    /// The watch ended at once, without a sign of life.
    #[error("the watch ended after {0:?} without an event")]
    VeryShortWatch(Duration),
    /// A streaming list ended, or fell silent, before its end marker.
    #[error("the streaming list ended without its end marker (try {attempt} of {tries}): {reason}")]
    StreamingListIncomplete {
        /// Which try it was, from 1.
        attempt: u32,
        /// How many are made.
        tries: u32,
        /// How it ended.
        reason: &'static str,
    },
}

/// What the reflector does after a fault. A delay of zero means at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextStep {
    /// The frame is skipped, the call goes on.
    Skip,
    /// The object goes to the quarantine, the call goes on.
    Quarantine,
    /// The object is deleted by its key, which is all that its end needs; the call goes on.
    DeleteByKey,
    /// The list is taken as a declared reset of the source: versions start over from it.
    Reset,
    /// List, after a delay, at this version.
    List {
        /// The version to ask for.
        resource_version: ResourceVersion,
        /// The delay.
        after: Duration,
    },
    /// Streaming list, after a delay, at this version.
    StreamingList {
        /// The version to ask for.
        resource_version: ResourceVersion,
        /// The delay.
        after: Duration,
    },
    /// Watch, after a delay, from this version.
    Watch {
        /// The version to watch from.
        resource_version: ResourceVersion,
        /// The delay.
        after: Duration,
    },
}

impl Fault {
    /// How long the server asked to wait at least.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Source(error) => error.retry_after(),
            _ => None,
        }
    }
}

impl Call {
    /// The version that was asked for.
    #[must_use]
    pub fn resource_version(&self) -> &ResourceVersion {
        match self {
            Self::List(options) => &options.resource_version,
            Self::Watch(options) => &options.resource_version,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(options) => {
                write!(f, "list(resourceVersion={:?}", options.resource_version)?;
                if let Some(limit) = options.limit {
                    write!(f, ", limit={limit}")?;
                }
                if let Some(token) = &options.continue_token {
                    write!(f, ", continue={token:?}")?;
                }
            }
            Self::Watch(options) => {
                write!(f, "watch(resourceVersion={:?}", options.resource_version)?;
                if options.send_initial_events {
                    f.write_str(", sendInitialEvents")?;
                }
            }
        }
        f.write_str(")")
    }
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, version, after) = match self {
            Self::Skip => return f.write_str("skip the frame"),
            Self::Quarantine => return f.write_str("quarantine the object"),
            Self::DeleteByKey => return f.write_str("delete the object by its key"),
            Self::Reset => return f.write_str("take it as a reset of the source"),
            Self::List {
                resource_version,
                after,
            } => ("list at", resource_version, after),
            Self::StreamingList {
                resource_version,
                after,
            } => ("streaming list at", resource_version, after),
            Self::Watch {
                resource_version,
                after,
            } => ("watch from", resource_version, after),
        };
        write!(f, "{what} {version:?} ")?;
        if after.is_zero() {
            f.write_str("now")
        } else {
            write!(f, "after {after:.1?}")
        }
    }
}
