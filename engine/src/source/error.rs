//! Errors of a source, classified by what the reflector must do.
use std::time::Duration;

/// A `Status` of the API server, as far as anything depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Default, thiserror::Error)]
#[error("the server answered {code} {reason}: {message}")]
pub struct ApiStatus {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `Expired`.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// `details.causes`.
    pub causes: Vec<StatusCause>,
    /// `details.retryAfterSeconds`, or the `Retry-After` header.
    pub retry_after: Option<Duration>,
}

/// One of the `details.causes` of a [`ApiStatus`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StatusCause {
    /// Machine-readable cause, such as `ResourceVersionTooLarge`.
    pub reason: String,
    /// Text for people.
    pub message: String,
}

/// Why a list or a watch failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The server answered with a `Status`, on the call or as an error frame of a watch.
    #[error(transparent)]
    Api(#[from] ApiStatus),
    /// Nothing listens there, or the name cannot be resolved.
    #[error("connection refused: {0}")]
    ConnectionRefused(String),
    /// The connection broke, or bytes made no sense.
    #[error("transport failed: {0}")]
    Transport(String),
    /// A read timed out on an otherwise healthy watch.
    #[error("the watch timed out")]
    TimedOut,
    /// The answer is no list of this kind (a `Table`, a `Status` where a list was due, another kind).
    #[error("the answer is a {found}, expected {expected}")]
    WrongKind {
        /// The kind that was asked for.
        expected: String,
        /// The kind that came.
        found: String,
    },
    /// The answer as a whole could not be decoded.
    #[error("the answer cannot be decoded: {0}")]
    Decode(String),
}

/// What the reflector does after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The version is gone, or the server could not tell what happened: list again.
    Relist,
    /// The server has not reached the version yet: list again at the empty version, at once.
    TooLarge,
    /// The ordinary end of a watch: go on from the last version, without an error.
    Resume,
    /// Wait (at least the server's retry-after), then repeat the same call at the same version.
    RetryLater,
    /// The server had an internal error: retry the watch for a while, then relist.
    InternalError,
    /// Not allowed, or no such collection: wait, then start over; it will not heal quickly.
    Refused,
    /// Anything else: report, wait, then start over.
    BackOff,
}

impl SourceError {
    /// What the reflector does after this error.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        match self {
            Self::Api(status) => status.recovery(),
            Self::ConnectionRefused(_) => Recovery::RetryLater,
            Self::TimedOut => Recovery::Resume,
            Self::Transport(_) | Self::WrongKind { .. } | Self::Decode(_) => Recovery::BackOff,
        }
    }

    /// How long the server asked to wait at least.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api(status) => status.retry_after,
            _ => None,
        }
    }
}

/// The text by which servers before 1.19 said that a version is too large.
const TOO_LARGE_TEXT: &str = "Too large resource version";

impl ApiStatus {
    /// A status with a code and a reason, for sources and tests.
    #[must_use]
    pub fn new(code: u16, reason: &str, message: &str) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// 410: the version is older than what the server remembers.
    #[must_use]
    pub fn expired(message: &str) -> Self {
        Self::new(410, "Expired", message)
    }

    /// True for "gone" in each spelling: code 410, reason `Expired` or `Gone`.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }

    /// True when the server has not reached the version yet, in each of the three dialects: a
    /// cause type, a cause's text, the text of the message (kubernetes/client-go@7685b5191).
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        let timed_out = self.code == 504 || self.reason == "Timeout";
        self.causes.iter().any(|c| {
            c.reason == "ResourceVersionTooLarge"
                || (timed_out && c.message.contains(TOO_LARGE_TEXT))
        }) || (timed_out && self.message.contains(TOO_LARGE_TEXT))
    }

    fn recovery(&self) -> Recovery {
        if self.is_too_large() {
            return Recovery::TooLarge;
        }
        if self.is_expired() {
            return Recovery::Relist;
        }
        match (self.code, self.reason.as_str()) {
            // A stored object that the server cannot read any more: no event will ever tell.
            (_, "StoreReadError") => Recovery::Relist,
            (429, _) | (_, "TooManyRequests") => Recovery::RetryLater,
            (401 | 403 | 404, _) | (_, "Unauthorized" | "Forbidden" | "NotFound") => {
                Recovery::Refused
            }
            (500, _) | (_, "InternalError") => Recovery::InternalError,
            _ => Recovery::BackOff,
        }
    }
}
