//! What ends a replay: faults of the stream, as against faults of single objects.
use super::lines::LineFault;
use informant::ResourceVersion;
use informant::json::FrameError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// A replay that could not go on: the file, the line where there is one, and why.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) file: PathBuf,
    /// From 1; `None` when the file could not be read at all.
    pub(crate) line: Option<u64>,
    pub(crate) fault: StreamFault,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.fault)
    }
}

impl std::error::Error for Stopped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}

/// Why the stream cannot be followed further: what comes after would be applied to a state that
/// nobody can vouch for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamFault {
    #[error("cannot be opened: {0}")]
    Open(io::Error),
    #[error("is a directory; expected a file of list and watch frames")]
    Directory,
    #[error("holds no frame; expected one JSON document a line (see `informant replay --help`)")]
    Empty,
    #[error("cannot be read further: {0}")]
    Read(io::Error),
    #[error(transparent)]
    Line(LineFault),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(
        "the file ends inside a list: its last page has metadata.continue, but no page follows"
    )]
    ListCutOff,
    #[error(
        "the file ends inside a streaming list: no BOOKMARK with the annotation k8s.io/initial-events-end"
    )]
    StreamingListCutOff,
    #[error(
        "a {found} frame inside a list: its page before has metadata.continue, so another page is due"
    )]
    PageDue { found: &'static str },
    #[error("this page is of version {found}, but the list began at {expected}")]
    OtherList {
        expected: ResourceVersion,
        found: ResourceVersion,
    },
    #[error("a list of {found} in a stream of {expected}: one file holds one collection")]
    OtherKind { expected: String, found: String },
    #[error("the version {found} cannot be compared with --until {until}: it is no decimal number")]
    NotComparable {
        found: ResourceVersion,
        until: ResourceVersion,
    },
}

impl From<LineFault> for StreamFault {
    fn from(fault: LineFault) -> Self {
        match fault {
            LineFault::Io(error) => Self::Read(error),
            fault => Self::Line(fault),
        }
    }
}
