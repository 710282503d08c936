//! Opening a watch: from a version, or with the present objects first.
use super::Shared;
use super::config::{ExpiredWatch, invalid};
use super::faults::{Corruption, Disconnect};
use super::frames::{Frame, Line, Verb};
use super::list::number;
use super::log::Item;
use super::selection::Selection;
use super::state::{Inbox, Request, State};
use super::watch::{Phase, Watch, cut};
use crate::object::ObjectKey;
use crate::source::{SourceError, VersionMatch, WatchOptions, WatchStream};
use std::collections::HashMap;
use std::sync::Arc;

/// Where a watch begins.
struct Opening<T> {
    id: usize,
    place: u64,
    version: u64,
    initial: Option<Initial<T>>,
    /// The version is forgotten: this is the only item.
    expired: Option<SourceError>,
}

/// The present objects.
struct Initial<T> {
    items: Vec<Item<T>>,
    corrupt: HashMap<ObjectKey, Corruption>,
    end_marker: bool,
    broken: Option<(usize, Disconnect)>,
}

pub(super) fn open<T: Clone + Send + Sync + 'static>(
    shared: &Arc<Shared<T>>,
    options: &WatchOptions,
) -> Result<WatchStream<T>, SourceError> {
    let request = Request::Watch(options.clone());
    shared.state.lock().receive(request)?;
    let selection = Selection::new(&shared.config, &options.selectors)?;
    let offered = shared.config.streaming_lists;
    let opening = {
        let mut state = shared.state.lock();
        state.opening(options, offered, selection.namespace())?
    };
    let mut watch = Watch {
        shared: shared.clone(),
        id: opening.id,
        selection,
        bookmarks: options.allow_bookmarks,
        place: opening.place,
        version: opening.version,
        since_bookmark: 0,
        line: Line::new(),
        deadline: None,
        pause: None,
        wait: None,
        phase: Phase::Open,
    };
    watch.deadline = options.timeout.and_then(|timeout| watch.sleep(timeout));
    if let Some(initial) = opening.initial {
        watch.begin(initial)?;
    }
    if let Some(error) = opening.expired {
        watch.line.push(Frame::Error(error));
    }
    Ok(Box::pin(watch))
}

impl<T: Clone + Send + Sync + 'static> Watch<T> {
    fn begin(&mut self, initial: Initial<T>) -> Result<(), SourceError> {
        let mut left = initial.broken.map_or(usize::MAX, |(after, _)| after);
        // The order is unspecified. Theirs is not that of keys here, nor that of versions, so that
        // a client that counts on either is found out.
        for item in initial.items.into_iter().rev() {
            if left == 0 {
                break;
            }
            if self.selection.matches(&item)? {
                left -= 1;
                self.line.push(match initial.corrupt.get(&item.meta.key) {
                    Some(corruption) => Frame::Bad(corruption.bad_object(&item.meta), false),
                    None => Frame::Object(Verb::Added, item),
                });
            }
        }
        match initial.broken {
            Some((_, Disconnect::Clean)) => self.line.push(Frame::End),
            Some((_, Disconnect::Broken)) => self.line.push(Frame::Error(cut())),
            None if initial.end_marker => self.line.push(Frame::Bookmark {
                version: self.version,
                ends_initial: true,
            }),
            None => {}
        }
        Ok(())
    }
}

impl<T> State<T> {
    /// Register a watch; nothing is registered on an error.
    fn opening(
        &mut self,
        options: &WatchOptions,
        offered: bool,
        namespace: Option<&str>,
    ) -> Result<Opening<T>, SourceError> {
        let streaming = options.send_initial_events;
        if streaming && (!offered || self.faults.refuse_streaming) {
            return Err(invalid("sendInitialEvents is forbidden: the feature is off").into());
        }
        match options.version_match {
            Some(VersionMatch::NotOlderThan) if streaming => {}
            None if !streaming => {}
            _ => {
                let text =
                    "sendInitialEvents and resourceVersionMatch NotOlderThan need each other";
                return Err(invalid(text).into());
            }
        }
        let from = number(&options.resource_version)?.unwrap_or(0);
        self.check_not_too_large(from)?;
        let mut opening = Opening {
            id: 0,
            place: self.log.next(),
            version: self.version,
            initial: None,
            expired: None,
        };
        if streaming || from == 0 {
            opening.initial = Some(self.initial(options, namespace));
        } else if from < self.log.compacted {
            let error = self.expired(from);
            if self.dialect().expired_watch == ExpiredWatch::Call {
                return Err(error);
            }
            opening.expired = Some(error);
        } else {
            opening.place = self.log.place_after(from);
            opening.version = from;
        }
        opening.id = self.watches.insert(Inbox::new());
        Ok(opening)
    }

    fn initial(&mut self, options: &WatchOptions, namespace: Option<&str>) -> Initial<T> {
        let mut end_marker = options.send_initial_events && options.allow_bookmarks;
        if end_marker && self.faults.omit_end_markers > 0 {
            self.faults.omit_end_markers -= 1;
            end_marker = false;
        }
        Initial {
            items: self.objects_at(self.version, namespace, None, usize::MAX),
            corrupt: self.faults.corrupt.clone(),
            end_marker,
            broken: self.faults.break_initial.pop_front(),
        }
    }
}
