//! Watches: each is a cursor in the remembered changes.
use super::list::check_version;
use super::state::{Change, Disconnect, Event, Request, State};
use super::{Shared, selects};
use crate::clock::{Sleep, Timestamp};
use crate::object::Incoming;
use crate::source::{ApiStatus, SourceError, WatchEvent, WatchOptions, WatchStream};
use crate::sync::WaitSet;
use futures_core::Stream;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Frames that are taken under one hold of the lock.
const FRAMES_AT_ONCE: usize = 256;

pub(super) fn open<T: Clone + Send + Sync + 'static>(
    shared: &Arc<Shared<T>>,
    options: WatchOptions,
) -> Result<WatchStream<T>, SourceError> {
    let mut state = shared.state.lock();
    state.requests.push(Request::Watch(options.clone()));
    if let Some(error) = state.watch_faults.pop_front() {
        return Err(error);
    }
    check_version(&state, &options.resource_version)?;
    let from = options.resource_version.as_number().unwrap_or(0);
    let streaming = options.send_initial_events;
    let mut ready = VecDeque::new();
    let cursor = if from == 0 || streaming {
        // The present state first, as synthetic additions.
        let present = state
            .objects
            .values()
            .filter(|item| selects(&options.selectors, &item.meta.key));
        ready.extend(present.map(|item| Frame::Change(Change::Added, item.clone())));
        if streaming {
            ready.push_back(Frame::Bookmark(state.version, true));
        }
        state.version
    } else {
        from
    };
    let generation = state.generation;
    drop(state);
    let deadline = match (&shared.clock, options.timeout) {
        (Some(clock), Some(timeout)) => Some(clock.now() + timeout),
        _ => None,
    };
    Ok(Box::pin(Watch {
        sleep: deadline.and_then(|at| Some(shared.clock.as_ref()?.sleep_until(at))),
        deadline,
        wait: None,
        shared: shared.clone(),
        options,
        generation,
        cursor,
        told: cursor,
        ready,
        over: false,
    }))
}

enum Frame<T> {
    Change(Change, Arc<Incoming<T>>),
    Bookmark(u64, bool),
    End,
    Error(SourceError),
}

struct Watch<T> {
    shared: Arc<Shared<T>>,
    options: WatchOptions,
    generation: u64,
    /// Changes up to here have been looked at.
    cursor: u64,
    /// The client knows that the source has come this far.
    told: u64,
    ready: VecDeque<Frame<T>>,
    deadline: Option<Timestamp>,
    sleep: Option<Sleep>,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    over: bool,
}

impl<T: Clone + Send + Sync + 'static> Watch<T> {
    /// Take what has happened since the last look; false when nothing has.
    fn refill(&mut self) -> bool {
        let shared = self.shared.clone();
        let state = shared.state.lock();
        if self.cursor < state.compacted {
            let text = format!(
                "too old resource version: {} ({})",
                self.cursor,
                state.compacted + 1
            );
            self.ready
                .push_back(Frame::Error(ApiStatus::expired(&text).into()));
            return true;
        }
        let first = state
            .events
            .partition_point(|event| event.version <= self.cursor);
        for event in state.events.range(first..).take(FRAMES_AT_ONCE) {
            self.cursor = event.version;
            self.see(event);
        }
        if self.ready.is_empty() {
            self.at_rest(&state);
        }
        !self.ready.is_empty()
    }

    fn see(&mut self, event: &Event<T>) {
        if event.dropped || !selects(&self.options.selectors, &event.item.meta.key) {
            return;
        }
        self.told = event.version;
        self.ready
            .push_back(Frame::Change(event.change, event.item.clone()));
    }

    /// Every change has been looked at: is there anything else to say?
    fn at_rest(&mut self, state: &State<T>) {
        let asked = state.bookmark_at > self.told;
        let overdue = self.cursor - self.told >= self.shared.bookmark_every;
        if self.options.allow_bookmarks && (asked || overdue) && self.cursor > self.told {
            self.told = self.cursor;
            self.ready.push_back(Frame::Bookmark(self.cursor, false));
        } else if self.generation != state.generation {
            self.ready.push_back(match state.disconnect {
                Disconnect::Clean => Frame::End,
                Disconnect::Broken => {
                    Frame::Error(SourceError::Transport("the connection was cut".to_owned()))
                }
            });
        }
    }

    fn frame(&mut self, frame: Frame<T>) -> Option<Result<WatchEvent<T>, SourceError>> {
        Some(Ok(match frame {
            Frame::Change(Change::Added, item) => WatchEvent::Added((*item).clone()),
            Frame::Change(Change::Modified, item) => WatchEvent::Modified((*item).clone()),
            Frame::Change(Change::Deleted, item) => WatchEvent::Deleted((*item).clone()),
            Frame::Bookmark(version, initial_events_end) => WatchEvent::Bookmark {
                resource_version: version.into(),
                initial_events_end,
            },
            Frame::End => {
                self.over = true;
                return None;
            }
            Frame::Error(error) => {
                self.over = true;
                return Some(Err(error));
            }
        }))
    }

    /// A wait for the next change, registered before the state is looked at again.
    fn arm(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let shared = self.shared.clone();
        let (cursor, told, generation) = (self.cursor, self.told, self.generation);
        Box::pin(async move {
            let moved = || {
                let state = shared.state.lock();
                let moved = state.version > cursor
                    || state.generation != generation
                    || state.compacted > cursor
                    || state.bookmark_at > told;
                moved.then_some(())
            };
            WaitSet::until(&shared.changes, moved).await;
        })
    }
}

impl<T> Unpin for Watch<T> {}

impl<T: Clone + Send + Sync + 'static> Stream for Watch<T> {
    type Item = Result<WatchEvent<T>, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if this.over {
                return Poll::Ready(None);
            }
            if let Some(frame) = this.ready.pop_front() {
                return Poll::Ready(this.frame(frame));
            }
            if let Some(sleep) = &mut this.sleep
                && sleep.as_mut().poll(context).is_ready()
            {
                this.sleep = None;
                // A server says how far it is before it ends a watch.
                if this.deadline.take().is_some() && this.options.allow_bookmarks {
                    this.ready.push_back(Frame::Bookmark(this.cursor, false));
                }
                this.ready.push_back(Frame::End);
                continue;
            }
            if let Some(wait) = &mut this.wait {
                if wait.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                this.wait = None;
            }
            if !this.refill() {
                this.wait = Some(this.arm());
            }
        }
    }
}
