//! A watch that is open: its frames, its end, and how long it may last.
use super::Fault;
use crate::clock::{Clock, Sleep, Timestamp};
use crate::indexer::panic_message;
use crate::source::{SourceError, WatchEvent, WatchOptions, WatchStream};
use futures_util::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// After so many frames without a wait the task yields, so that a stop and other tasks get a turn.
const FRAMES_A_TURN: u32 = 128;

/// A stream of frames and what is known about it. Dropping it closes the stream.
pub(super) struct OpenWatch<T> {
    stream: WatchStream<T>,
    /// Past the end that the server was asked for: the connection is half-open.
    overdue: Sleep,
    frames: u32,
    pub(super) life: WatchLife,
}

/// What is known of a watch, also when it is over.
pub(super) struct WatchLife {
    pub(super) options: WatchOptions,
    pub(super) opened_at: Timestamp,
    /// It has shown a sign of life: a delta, a quarantine record or a bookmark.
    pub(super) alive: bool,
    /// It has moved the resume point.
    pub(super) moved: bool,
}

impl WatchLife {
    pub(super) fn new(options: WatchOptions, opened_at: Timestamp) -> Self {
        Self {
            options,
            opened_at,
            alive: false,
            moved: false,
        }
    }
}

/// What a watch yields.
pub(super) enum Arrival<T> {
    Frame(WatchEvent<T>),
    /// The ordinary end: by the server, or by a read timeout.
    Ended,
    /// It outlived its timeout.
    Overdue,
    Failed(Fault),
}

impl<T> OpenWatch<T> {
    pub(super) fn new(
        stream: WatchStream<T>,
        options: WatchOptions,
        clock: &dyn Clock,
        grace: Duration,
    ) -> Self {
        let opened_at = clock.now();
        let lasts = options
            .timeout
            .unwrap_or(Duration::MAX)
            .saturating_add(grace);
        Self {
            stream,
            overdue: clock.sleep_until(opened_at + lasts),
            frames: 0,
            life: WatchLife::new(options, opened_at),
        }
    }

    /// Close the stream: before a wait, not after it.
    pub(super) fn close(self) -> WatchLife {
        self.life
    }

    /// The next frame or the end. After anything but a frame the watch is over.
    pub(super) async fn next(&mut self) -> Arrival<T> {
        if self.frames == FRAMES_A_TURN {
            self.frames = 0;
            tokio::task::yield_now().await;
        }
        self.frames += 1;
        tokio::select! {
            biased;
            frame = AssertUnwindSafe(self.stream.next()).catch_unwind() => match frame {
                Ok(Some(Ok(event))) => Arrival::Frame(event),
                Ok(None | Some(Err(SourceError::TimedOut))) => Arrival::Ended,
                Ok(Some(Err(error))) => Arrival::Failed(Fault::Source(error)),
                Err(panic) => Arrival::Failed(Fault::SourcePanicked(panic_message(panic.as_ref()))),
            },
            () = &mut self.overdue => Arrival::Overdue,
        }
    }
}
