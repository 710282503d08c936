//! The faults of a plan, done to the source or to the way to it.
use super::desk::PortFaults;
use super::oracle::Doubt;
use super::plan::{ErrorKind, Fault};
use super::stage::Stage;
use super::world::{self, KEYS, Thing, World, number_of};
use informant::source::memory::{Backup, Corruption};
use informant::source::{ApiStatus, BadObject, SourceError, StatusCause, WatchEvent};
use informant::{ResourceVersion, Uid};
use std::time::Duration;

/// Errors that may wait for calls: each costs a backoff.
const MOST_ERRORS: u32 = 6;

#[derive(Default)]
pub(super) struct Backups {
    last: Option<(Backup<Thing>, World)>,
    list_errors: u32,
    watch_errors: u32,
}

pub(super) fn fault(stage: &mut Stage, fault: &Fault) {
    let desk = stage.desk.clone();
    let source = &desk.source;
    match *fault {
        Fault::FailList(kind) => {
            stage.backups.list_errors += 1;
            if stage.backups.list_errors <= MOST_ERRORS {
                source.fail_next_list(error(kind));
            }
        }
        Fault::FailWatch(kind) => {
            stage.backups.watch_errors += 1;
            if stage.backups.watch_errors <= MOST_ERRORS {
                source.fail_next_watch(error(kind));
            }
        }
        Fault::FailOpen(kind) => source.fail_watches(error(kind)),
        Fault::Disconnect(how) => source.disconnect(how),
        Fault::Silence => source.go_silent(),
        Fault::HoldFrames => source.hold_frames(),
        Fault::ReleaseFrames => source.release_frames(),
        Fault::Duplicate(count) => source.duplicate_frames(count),
        Fault::Reorder(count) => source.reorder_frames(count),
        Fault::Drop(count) => source.drop_frames(count),
        Fault::Delay(millis) => source.delay_frames(Duration::from_millis(millis)),
        Fault::Foreign => source.inject(WatchEvent::Foreign {
            description: "a Table".to_owned(),
        }),
        Fault::EmptyBookmark => source.inject(bookmark(ResourceVersion::empty())),
        Fault::OldBookmark => {
            let old = number_of(&source.resource_version()).saturating_sub(4);
            source.inject(bookmark(old.max(1).into()));
        }
        Fault::KeylessFrame => source.inject(WatchEvent::Bad {
            object: BadObject {
                key: None,
                uid: Uid::default(),
                // Not one that was given with anything that counts.
                resource_version: (number_of(&source.resource_version()) + 1).into(),
                reason: "no name".to_owned(),
            },
            deleted: false,
        }),
        Fault::ResendDelete(key) => {
            let _remembered = source.resend_delete(&world::key(key));
        }
        Fault::Corrupt(key, corruption) => {
            source.corrupt(world::key(key), corruption);
            let doubt = &mut desk.book().oracle.doubts[key];
            match corruption {
                Corruption::Everything => *doubt = Doubt::Unreadable,
                Corruption::Body if *doubt == Doubt::None => *doubt = Doubt::Unusable,
                Corruption::Body => {}
            }
        }
        Fault::Mend(key) => source.mend(&world::key(key)),
        Fault::Speak(dialect) => source.speak(dialect),
        Fault::RefuseStreaming(refuse) => source.refuse_streaming_lists(refuse),
        Fault::OmitMarkers(count) => source.omit_end_markers(count),
        Fault::BreakInitial(after, how) => source.break_next_initial_events(after, how),
        Fault::ExpireTokens => source.expire_continue_tokens(),
        Fault::Lag(by) => {
            let newest = number_of(&source.resource_version());
            let at = by.map(|by| ResourceVersion::from(newest.saturating_sub(by)));
            source.lag_at(at.as_ref());
        }
        Fault::Backup => {
            let world = desk.book().history.now().clone();
            stage.backups.last = Some((source.backup(), world));
        }
        Fault::Restore => restore(stage),
        Fault::StaleLists(count) => desk.book().faults.stale_lists = count,
        Fault::LateMarker(frames) => desk.book().faults.late_marker = frames,
        Fault::SlowCalls(count, millis, after) => {
            desk.book().faults.slow = (count, millis, after);
        }
        Fault::Hang => desk.book().faults.hang = true,
        Fault::PanicInCall => desk.book().faults.panic_in_call = true,
        Fault::PanicInStream => desk.book().faults.panic_in_stream = true,
    }
}

fn restore(stage: &mut Stage) {
    let source = &stage.desk.source;
    let Some((backup, world)) = &stage.backups.last else {
        return;
    };
    source.restore(backup);
    let version = number_of(&source.resource_version());
    let mut book = stage.desk.book();
    book.history.restore(version, world.clone());
    book.under_way.push(0);
    book.oracle.restores += 1;
    drop(book);
    stage.settled = false;
}

/// End every fault that lasts.
pub(super) fn end_all(stage: &mut Stage) {
    let source = &stage.desk.source;
    source.release_frames();
    source.refuse_streaming_lists(false);
    source.omit_end_markers(0);
    source.lag_at(None);
    for key in 0..KEYS {
        source.mend(&world::key(key));
    }
    stage.desk.book().faults = PortFaults::default();
}

fn bookmark(resource_version: ResourceVersion) -> WatchEvent<Thing> {
    WatchEvent::Bookmark {
        resource_version,
        initial_events_end: false,
    }
}

fn error(kind: ErrorKind) -> SourceError {
    let status = match kind {
        ErrorKind::Expired => ApiStatus::expired("scripted"),
        ErrorKind::Gone => ApiStatus::new(410, "Gone", "scripted"),
        ErrorKind::GoneByReason => ApiStatus::new(0, "Expired", "scripted"),
        ErrorKind::Throttled => ApiStatus::new(429, "TooManyRequests", "scripted"),
        ErrorKind::ThrottledFor(seconds) => {
            let mut status = ApiStatus::new(429, "TooManyRequests", "scripted");
            status.retry_after = Some(Duration::from_secs(seconds));
            status
        }
        ErrorKind::Internal => ApiStatus::new(500, "InternalError", "scripted"),
        ErrorKind::StoreRead => ApiStatus::new(500, "StoreReadError", "scripted"),
        ErrorKind::TooLarge => {
            let mut status = ApiStatus::new(504, "Timeout", "scripted");
            status.causes.push(StatusCause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: String::new(),
            });
            status
        }
        ErrorKind::Timeout => ApiStatus::new(504, "Timeout", "scripted"),
        ErrorKind::Forbidden => ApiStatus::new(403, "Forbidden", "scripted"),
        ErrorKind::Unauthorized => ApiStatus::new(401, "Unauthorized", "scripted"),
        ErrorKind::NotFound => ApiStatus::new(404, "NotFound", "scripted"),
        ErrorKind::Transport => return SourceError::Transport("scripted".to_owned()),
        ErrorKind::Refused => return SourceError::ConnectionRefused("scripted".to_owned()),
        ErrorKind::TimedOut => return SourceError::TimedOut,
        ErrorKind::WrongKind => {
            return SourceError::WrongKind {
                expected: "ThingList".to_owned(),
                found: "Table".to_owned(),
            };
        }
        ErrorKind::Decode => return SourceError::Decode("scripted".to_owned()),
    };
    status.into()
}
