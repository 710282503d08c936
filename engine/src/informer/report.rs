//! What goes wrong around an informer, and whom it is told.
use crate::delta::SourceId;
use crate::indexer::IndexFailure;
use crate::object::ObjectKey;
use crate::reflector::{Differences, ReflectorError, ReflectorState};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Something that went wrong. The engine has already decided what it does about it; nothing here
/// needs the program's help to go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InformerError {
    /// A list, a watch, or an object of one of the sources. An object that cannot be used is told
    /// of here, once; what became of it stands in the snapshot's quarantine.
    #[error("source {}: {error}", .source_id.0)]
    Reflector {
        /// Which of the informer's sources.
        source_id: SourceId,
        /// What happened, and what the reflector does next.
        error: Box<ReflectorError>,
    },
    /// A handler panicked in one call. That call is over, the handler goes on with the next.
    #[error("handler {handler:?} {message} on {}; it goes on with the next change", .key.as_ref().map_or("no object", ObjectKey::as_str))]
    HandlerPanicked {
        /// The handler's name.
        handler: Arc<str>,
        /// The object that the call was about; `None` for a call about all of them.
        key: Option<ObjectKey>,
        /// The panic's message.
        message: String,
    },
    /// An index function failed on one object version.
    #[error(transparent)]
    Index(#[from] IndexFailure),
    /// The consistency check found that the cache is not what its source is; a relist follows.
    #[error("the cache differs from its source in {} objects at version {:?}, such as {:?}; it is listed again", .0.count(), .0.resource_version, .0.first)]
    Inconsistent(Differences),
}

/// Told of every [`InformerError`], on the task on which it happened and outside any lock: it may
/// read the cache and add or remove handlers. It should be quick. A panic in it is caught.
pub type ReportHook = Arc<dyn Fn(&InformerError) + Send + Sync>;

/// The hook, if any, behind a guard.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) name: Arc<str>,
    pub(super) hook: Option<ReportHook>,
}

impl Reporter {
    pub(super) fn report(&self, error: &InformerError) {
        // Faults of sources are in the reflector's own log.
        if !matches!(error, InformerError::Reflector { .. }) {
            tracing::warn!(informer = %self.name, %error, "fault");
        }
        if let Some(hook) = &self.hook
            && catch_unwind(AssertUnwindSafe(|| hook(error))).is_err()
        {
            tracing::warn!(informer = %self.name, "the error hook panicked");
        }
    }
}

/// Why a cache is not synced yet.
#[derive(Clone, Debug, thiserror::Error)]
#[error("informer {informer:?} is not synced after {waited:?}: {reason}")]
pub struct NotSynced {
    /// The informer's name.
    pub informer: Arc<str>,
    /// How long the wait was.
    pub waited: Duration,
    /// What it hangs on.
    pub reason: NotSyncedReason,
}

/// What the first sync of an informer hangs on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NotSyncedReason {
    /// Nobody has started the informer.
    NotStarted,
    /// The informer stopped before it was synced.
    Stopped,
    /// These sources have not delivered their first list.
    Sources(Vec<SourceReport>),
}

/// Where one source stands.
#[derive(Clone, Debug)]
pub struct SourceReport {
    /// Which of the informer's sources.
    pub source_id: SourceId,
    /// What its reflector is doing.
    pub state: ReflectorState,
    /// The last thing that went wrong with it.
    pub last_error: Option<Arc<ReflectorError>>,
}

impl fmt::Display for NotSyncedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("it is not started"),
            Self::Stopped => f.write_str("it was stopped"),
            Self::Sources(sources) => {
                for (at, source) in sources.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}source {} has no first list", source.source_id.0)?;
                    match &source.last_error {
                        Some(error) => write!(f, " ({error})")?,
                        None => write!(f, " (no error so far)")?,
                    }
                }
                Ok(())
            }
        }
    }
}
