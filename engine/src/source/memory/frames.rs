//! The frames that wait in one stream, and the faults that they pass on their way there.
use super::log::Item;
use crate::object::ObjectKey;
use crate::source::{BadObject, SourceError, WatchEvent};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What happened to an object, as one watch sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Added,
    Modified,
    Deleted,
}

pub(super) enum Frame<T> {
    Object(Verb, Item<T>),
    Bad(BadObject, bool),
    Injected(Arc<WatchEvent<T>>),
    Bookmark { version: u64, ends_initial: bool },
    Error(SourceError),
    Pause(Duration),
    Silence,
    End,
}

/// A frame of a change, so that it can be given twice.
pub(super) enum ChangeFrame<T> {
    Object(Verb, Item<T>),
    Bad(BadObject, bool),
}

impl<T> ChangeFrame<T> {
    fn frame(&self) -> Frame<T> {
        match self {
            Self::Object(verb, item) => Frame::Object(*verb, item.clone()),
            Self::Bad(object, deleted) => Frame::Bad(object.clone(), *deleted),
        }
    }
}

pub(super) struct Line<T> {
    ready: VecDeque<Frame<T>>,
    drop: u64,
    duplicate: u64,
    window: Option<Window<T>>,
}

/// Frames that are held back to be given in another order.
struct Window<T> {
    wanted: usize,
    frames: Vec<(ObjectKey, Frame<T>)>,
}

impl<T> Line<T> {
    pub(super) fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            drop: 0,
            duplicate: 0,
            window: None,
        }
    }

    pub(super) fn pop(&mut self) -> Option<Frame<T>> {
        self.ready.pop_front()
    }

    pub(super) fn drop_next(&mut self, count: u64) {
        self.drop += count;
    }

    pub(super) fn duplicate_next(&mut self, count: u64) {
        self.duplicate += count;
    }

    pub(super) fn reorder_next(&mut self, wanted: usize) {
        self.flush();
        self.window = Some(Window {
            wanted,
            frames: Vec::new(),
        });
    }

    /// A change of the object with this key.
    pub(super) fn change(&mut self, key: &ObjectKey, change: &ChangeFrame<T>) {
        if self.drop > 0 {
            self.drop -= 1;
            return;
        }
        let copies = if self.duplicate > 0 { 2 } else { 1 };
        self.duplicate = self.duplicate.saturating_sub(1);
        for _ in 0..copies {
            match &mut self.window {
                Some(window) => window.frames.push((key.clone(), change.frame())),
                None => self.ready.push_back(change.frame()),
            }
        }
        if (self.window.as_ref()).is_some_and(|window| window.frames.len() >= window.wanted) {
            self.flush();
        }
    }

    /// Anything else: what is held back goes before it.
    pub(super) fn push(&mut self, frame: Frame<T>) {
        self.flush();
        self.ready.push_back(frame);
    }

    fn flush(&mut self) {
        let Some(window) = self.window.take() else {
            return;
        };
        let mut keys: Vec<ObjectKey> = Vec::new();
        for (key, _) in &window.frames {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        let mut frames = window.frames;
        // A stable sort leaves the frames of one key in their order.
        frames.sort_by_key(|(key, _)| std::cmp::Reverse(keys.iter().position(|k| k == key)));
        self.ready
            .extend(frames.into_iter().map(|(_, frame)| frame));
    }
}
