//! Watches: each is a place in the remembered changes, so a slow one costs the source nothing and
//! cannot miss a wake-up.
use super::Shared;
use super::faults::Control;
use super::frames::{ChangeFrame, Frame, Line, Verb};
use super::log::{Change, Item};
use super::selection::Selection;
use super::state::Inbox;
use crate::clock::Sleep;
use crate::object::Incoming;
use crate::source::{SourceError, WatchEvent};
use futures_core::Stream;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Changes that are taken under one hold of the lock.
const AT_ONCE: u64 = 256;

pub(super) struct Watch<T> {
    pub(super) shared: Arc<Shared<T>>,
    /// Of the inbox in the state.
    pub(super) id: usize,
    pub(super) selection: Selection<T>,
    pub(super) bookmarks: bool,
    /// The place of the next change that is to be looked at.
    pub(super) place: u64,
    /// Every change up to this version was looked at.
    pub(super) version: u64,
    pub(super) since_bookmark: u64,
    pub(super) line: Line<T>,
    pub(super) deadline: Option<Sleep>,
    pub(super) pause: Option<Sleep>,
    pub(super) wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    Silent,
    Over,
}

/// What one look at the source found.
struct Taken<T> {
    changes: Vec<Arc<Change<T>>>,
    control: Option<Control<T>>,
    /// What is lost with the connection. It may hold user's objects, so it leaves the lock.
    overtaken: Inbox<T>,
}

impl<T: Clone + Send + Sync + 'static> Watch<T> {
    /// Take what has happened since the last look; false when nothing has.
    fn refill(&mut self) -> bool {
        let taken = match self.take() {
            Ok(taken) => taken,
            Err(error) => {
                self.line.push(Frame::Error(error));
                return true;
            }
        };
        let moved = !taken.changes.is_empty() || taken.control.is_some();
        for change in taken.changes {
            if let Err(error) = self.see(&change) {
                self.line.push(Frame::Error(error));
                return true;
            }
        }
        if let Some(control) = taken.control {
            self.obey(control);
        }
        moved
    }

    /// # Errors
    /// 410, when changes that were not looked at are forgotten.
    fn take(&mut self) -> Result<Taken<T>, SourceError> {
        let mut state = self.shared.state.lock();
        let (first, next, held) = (state.log.first(), state.log.next(), state.faults.held);
        let (version, newest) = (self.version, state.version);
        let inbox = &mut state.watches[self.id];
        let mut taken = Taken {
            changes: Vec::new(),
            control: None,
            overtaken: Inbox::new(),
        };
        taken.overtaken = take_abrupt(inbox);
        if let Some((_, control)) = taken.overtaken.pop_back() {
            taken.control = Some(control);
            return Ok(taken);
        }
        if held {
            return Ok(taken);
        }
        let until = inbox.front().map_or(next, |(place, _)| *place);
        if self.place < until {
            if self.place < first {
                return Err(state.expired(version));
            }
            let until = until.min(self.place + AT_ONCE);
            taken.changes = state.log.range(self.place, until);
            self.place = until;
            if let Some(last) = taken.changes.last() {
                self.version = last.version;
            }
        } else if let Some((_, control)) = inbox.pop_front() {
            taken.control = Some(control);
        } else {
            // At rest: nothing that is selected happened up to the newest version.
            self.version = newest;
        }
        Ok(taken)
    }

    fn see(&mut self, change: &Change<T>) -> Result<(), SourceError> {
        let was_selected = match &change.before {
            Some(before) => self.selection.matches(before)?,
            None => false,
        };
        let is_selected = !change.deleted && self.selection.matches(&change.item)?;
        let verb = match (was_selected, is_selected) {
            (false, true) => Some(Verb::Added),
            (true, true) => Some(Verb::Modified),
            (true, false) => Some(Verb::Deleted),
            (false, false) => None,
        };
        if let Some(verb) = verb {
            let key = &change.item.meta.key;
            let frame = match (change.corrupt, &change.before) {
                (Some(corruption), _) => {
                    let deleted = verb == Verb::Deleted;
                    ChangeFrame::Bad(corruption.bad_object(&change.item.meta), deleted)
                }
                // It left the selection: its last state inside of it, at the version of the change.
                (None, Some(before)) if verb == Verb::Deleted && !change.deleted => {
                    ChangeFrame::Object(verb, self.left(before, change))
                }
                (None, _) => ChangeFrame::Object(verb, change.item.clone()),
            };
            self.line.change(key, &frame);
        }
        self.since_bookmark += 1;
        let every = self.shared.config.bookmark_every;
        if every > 0 && self.since_bookmark >= every {
            #[cfg(informant_mutant = "bookmark_past_pending")]
            let version = self.shared.state.lock().version;
            #[cfg(not(informant_mutant = "bookmark_past_pending"))]
            let version = change.version;
            self.bookmark(version);
        }
        Ok(())
    }

    fn left(&self, before: &Item<T>, change: &Change<T>) -> Item<T> {
        let mut last: Incoming<T> = (**before).clone();
        last.meta.resource_version = change.version.into();
        if let Some(stamp) = &self.shared.config.stamp {
            stamp(&mut last.object, &last.meta);
        }
        Arc::new(last)
    }

    fn obey(&mut self, control: Control<T>) {
        match control {
            Control::Bookmark(version) => self.bookmark(version),
            Control::End => self.line.push(Frame::End),
            Control::Cut => self.line.push(Frame::Error(cut())),
            Control::Silence => self.line.push(Frame::Silence),
            Control::Error(error) => self.line.push(Frame::Error(error)),
            Control::Inject(event) => self.line.push(Frame::Injected(event)),
            Control::Drop(count) => self.line.drop_next(count),
            Control::Duplicate(count) => self.line.duplicate_next(count),
            Control::Reorder(count) => self.line.reorder_next(count),
            Control::Delay(by) => self.line.push(Frame::Pause(by)),
        }
    }

    fn bookmark(&mut self, version: u64) {
        self.since_bookmark = 0;
        if self.bookmarks {
            self.line.push(Frame::Bookmark {
                version,
                ends_initial: false,
            });
        }
    }

    /// What the client gets of a frame: nothing for those that only steer the stream.
    fn give(&mut self, frame: Frame<T>) -> Option<Result<WatchEvent<T>, SourceError>> {
        Some(Ok(match frame {
            Frame::Object(Verb::Added, item) => WatchEvent::Added((*item).clone()),
            Frame::Object(Verb::Modified, item) => WatchEvent::Modified((*item).clone()),
            Frame::Object(Verb::Deleted, item) => WatchEvent::Deleted((*item).clone()),
            Frame::Bad(object, deleted) => WatchEvent::Bad { object, deleted },
            Frame::Injected(event) => (*event).clone(),
            Frame::Bookmark {
                version,
                ends_initial,
            } => WatchEvent::Bookmark {
                resource_version: version.into(),
                initial_events_end: ends_initial,
            },
            Frame::Error(error) => {
                self.close();
                return Some(Err(error));
            }
            Frame::Pause(by) => {
                self.pause = self.sleep(by);
                return None;
            }
            Frame::Silence => {
                self.phase = Phase::Silent;
                return None;
            }
            Frame::End => {
                self.close();
                return None;
            }
        }))
    }

    pub(super) fn sleep(&self, by: Duration) -> Option<Sleep> {
        let clock = self.shared.config.clock.as_ref()?;
        Some(clock.sleep_until(clock.now() + by))
    }

    /// The server ends the watch; it says how far it is before. What happened to the connection
    /// until then goes first: no end comes through one that is half-open.
    fn time_out(&mut self) {
        let mut abrupt = take_abrupt(&mut self.shared.state.lock().watches[self.id]);
        if let Some((_, control)) = abrupt.pop_back() {
            return self.obey(control);
        }
        self.bookmark(self.version);
        self.line.push(Frame::End);
    }

    /// A wait until there is something to take.
    fn arm(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (shared, id, place) = (self.shared.clone(), self.id, self.place);
        Box::pin(async move {
            let moved = || {
                let state = shared.state.lock();
                let inbox = &state.watches[id];
                let waits = state.log.next() > place || !inbox.is_empty();
                let moved = (waits && !state.faults.held)
                    || inbox.iter().any(|(_, control)| control.is_abrupt());
                moved.then_some(())
            };
            shared.changes.until(moved).await;
        })
    }
}

/// Take what is told up to the first control that does not wait, which comes last; nothing when
/// there is none.
fn take_abrupt<T>(inbox: &mut Inbox<T>) -> Inbox<T> {
    match inbox.iter().position(|(_, control)| control.is_abrupt()) {
        Some(at) => {
            let rest = inbox.split_off(at + 1);
            std::mem::replace(inbox, rest)
        }
        None => Inbox::new(),
    }
}

pub(super) fn cut() -> SourceError {
    SourceError::Transport("the connection was cut".to_owned())
}

impl<T> Watch<T> {
    fn close(&mut self) {
        if self.phase == Phase::Over {
            return;
        }
        self.phase = Phase::Over;
        (self.wait, self.deadline) = (None, None);
        // What is left in it may hold user's objects: it is dropped after the lock.
        let _inbox = self.shared.state.lock().watches.remove(self.id);
    }
}

impl<T> Drop for Watch<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> Unpin for Watch<T> {}

impl<T: Clone + Send + Sync + 'static> Stream for Watch<T> {
    type Item = Result<WatchEvent<T>, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match this.phase {
                Phase::Over => return Poll::Ready(None),
                Phase::Silent => return Poll::Pending,
                Phase::Open => {}
            }
            if let Some(pause) = &mut this.pause {
                if pause.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                this.pause = None;
            }
            if let Some(frame) = this.line.pop() {
                match this.give(frame) {
                    Some(item) => return Poll::Ready(Some(item)),
                    None => continue,
                }
            }
            if let Some(deadline) = &mut this.deadline
                && deadline.as_mut().poll(context).is_ready()
            {
                this.deadline = None;
                this.time_out();
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
