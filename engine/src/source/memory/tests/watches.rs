//! Watches: where they begin, what they say, how they end.
use super::*;
use crate::clock::{Clock, ManualClock};
use crate::source::memory::{Dialect, Disconnect, ExpiredWatch, GoneReason, Request, TooLargeText};
use crate::source::{Recovery, VersionMatch};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_watch_gives_every_later_change_in_order() {
    let source = filled(2);
    source.upsert(key(1), 1);
    source.delete(&key(0), None).unwrap();
    source.create(key(0), 1).unwrap();
    assert_eq!(
        seen(&mut watch_from(&source, &2.into())),
        "+o1@3 ~o1@4 -o0@5 +o0@6"
    );
    assert_eq!(
        seen(&mut watch_from(&source, &1.into())),
        "+o0@2 +o1@3 ~o1@4 -o0@5 +o0@6"
    );
    let mut newest = watch(&source);
    assert_eq!(seen(&mut newest), "");
    source.upsert(key(7), 1);
    assert_eq!(seen(&mut newest), "+o7@7");
}

#[test]
fn without_a_version_the_present_objects_come_first() {
    let source = filled(3);
    for version in ["", "0"] {
        let mut stream = watch_from(&source, &version.into());
        source.upsert(key(1), 1);
        let (frames, _) = take(&mut stream);
        let mut first: Vec<_> = frames[..3].iter().map(word).collect();
        first.sort();
        assert_eq!(first.len(), 3);
        assert!(first.iter().all(|word| word.starts_with('+')), "{first:?}");
        assert_eq!(frames.len(), 4);
        assert!(word(&frames[3]).starts_with("~o1"));
    }
}

#[test]
fn a_watch_from_a_forgotten_version_is_expired_in_each_spelling() {
    let source = filled(2);
    source.compact(&3.into());
    assert_eq!(
        seen(&mut watch_from(&source, &3.into())),
        "",
        "3 is still known"
    );
    let mut stream = watch_from(&source, &2.into());
    let (frames, ended) = take(&mut stream);
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].as_ref().unwrap_err().recovery(), Recovery::Relist);
    assert!(ended);
    source.speak(Dialect {
        expired_watch: ExpiredWatch::Call,
        reason: GoneReason::Gone,
        ..Dialect::default()
    });
    let Err(SourceError::Api(status)) = open(&source, from(&2.into())) else {
        panic!()
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Gone"));
    assert_eq!(
        source.open_watches(),
        0,
        "streams that are dropped are closed"
    );
}

#[test]
fn c002_a_version_that_is_not_reached_is_too_large_in_each_dialect() {
    use TooLargeText::{Cause, CauseMessage, Message};
    let source = filled(1);
    for too_large in [Cause, CauseMessage, Message] {
        source.speak(Dialect {
            too_large,
            ..Dialect::default()
        });
        let Err(error) = open(&source, from(&9.into())) else {
            panic!()
        };
        assert_eq!(error.recovery(), Recovery::TooLarge, "{too_large:?}");
    }
    assert_eq!(code(open(&source, from(&"x".into()))), 400);
}

#[test]
fn a_watch_that_falls_behind_the_history_is_expired() {
    let source = with(MemoryConfig {
        history: 3,
        ..MemoryConfig::default()
    });
    let (mut prompt, mut slow) = (watch(&source), watch(&source));
    for n in 0..3 {
        source.upsert(key(n), 0);
    }
    assert_eq!(seen(&mut prompt), "+o0@2 +o1@3 +o2@4");
    source.upsert(key(3), 0);
    assert_eq!(seen(&mut prompt), "+o3@5");
    assert_eq!(seen(&mut slow), "410 EOF");
    // One that has seen everything stays, whatever is forgotten and skipped.
    source.skip_versions(5);
    source.compact(&source.resource_version());
    source.upsert(key(4), 0);
    assert_eq!(seen(&mut prompt), "+o4@11");
}

#[test]
fn bookmarks_come_on_demand_and_every_so_many_changes_to_those_that_allow_them() {
    let source = with(MemoryConfig {
        bookmark_every: 2,
        ..MemoryConfig::default()
    });
    let only = |name: &str, allow_bookmarks| {
        let mut options = from(&1.into());
        options.selectors.fields = Some(format!("metadata.name={name}"));
        options.allow_bookmarks = allow_bookmarks;
        open(&source, options).unwrap()
    };
    let (mut all, mut some, mut plain) = (watch(&source), only("o1", true), only("o1", false));
    for n in 1..=5 {
        source.upsert(key(n), 0);
    }
    assert_eq!(seen(&mut all), "+o1@2 +o2@3 BM@3 +o3@4 +o4@5 BM@5 +o5@6");
    assert_eq!(seen(&mut some), "+o1@2 BM@3 BM@5");
    source.skip_versions(10);
    source.send_bookmark();
    source.upsert(key(6), 0);
    assert_eq!(seen(&mut all), "BM@16 +o6@17");
    assert_eq!(seen(&mut some), "BM@16");
    assert_eq!(seen(&mut plain), "+o1@2");
}

#[test]
fn a_watch_ends_at_its_timeout_with_a_bookmark_before() {
    let clock = ManualClock::new();
    let source = with(MemoryConfig {
        clock: Some(Arc::new(clock.clone())),
        ..MemoryConfig::default()
    });
    let timed = |allow_bookmarks| WatchOptions {
        timeout: Some(Duration::from_secs(10)),
        allow_bookmarks,
        ..from(&1.into())
    };
    let mut stream = open(&source, timed(true)).unwrap();
    let mut plain = open(&source, timed(false)).unwrap();
    let mut endless = watch(&source);
    source.upsert(key(1), 0);
    assert_eq!(seen(&mut stream), "+o1@2");
    assert_eq!(seen(&mut plain), "+o1@2");
    source.skip_versions(3);
    clock.advance(Duration::from_secs(9));
    assert_eq!(seen(&mut stream), "");
    source.upsert(key(2), 0);
    assert_eq!(seen(&mut stream), "+o2@6");
    clock.advance(Duration::from_secs(1));
    assert_eq!(seen(&mut stream), "BM@6 EOF");
    assert_eq!(
        seen(&mut plain),
        "EOF",
        "without bookmarks, and without what came too late"
    );
    assert_eq!(seen(&mut endless), "+o1@2 +o2@6");
    assert_eq!(clock.next_deadline(), None, "nothing sleeps on");
    assert_eq!(clock.now().since_origin(), Duration::from_secs(10));
}

#[test]
fn a_streaming_list_gives_the_objects_a_marker_and_the_changes() {
    let source = filled(2);
    let mut stream = open(&source, streaming()).unwrap();
    source.upsert(key(0), 1);
    assert_eq!(seen(&mut stream), "+o1@3 +o0@2 BM@3(end) ~o0@4");
    let mut empty = open(&filled(0), streaming()).unwrap();
    assert_eq!(seen(&mut empty), "BM@1(end)");
    let without_bookmarks = WatchOptions {
        allow_bookmarks: false,
        ..streaming()
    };
    let mut unmarked = open(&source, without_bookmarks).unwrap();
    assert_eq!(seen(&mut unmarked), "+o1@3 +o0@4");
    // Not older than a forgotten version: any state will do.
    source.compact(&4.into());
    let old = WatchOptions {
        resource_version: 2.into(),
        ..streaming()
    };
    assert_eq!(
        seen(&mut open(&source, old).unwrap()),
        "+o1@3 +o0@4 BM@4(end)"
    );
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let source = filled(1);
    let matched = |version_match, send_initial_events| WatchOptions {
        send_initial_events,
        version_match,
        ..streaming()
    };
    for options in [
        matched(None, true),
        matched(Some(VersionMatch::Exact), true),
        matched(Some(VersionMatch::NotOlderThan), false),
    ] {
        assert_eq!(code(open(&source, options)), 422);
    }
    let future = WatchOptions {
        resource_version: 9.into(),
        ..streaming()
    };
    assert_eq!(code(open(&source, future)), 504);
    let old_server = with(MemoryConfig {
        streaming_lists: false,
        ..MemoryConfig::default()
    });
    assert!(source.supports_streaming_list() && !old_server.supports_streaming_list());
    assert_eq!(code(open(&old_server, streaming())), 422);
}

#[test]
fn calls_are_recorded_with_their_options_in_order() {
    let source = filled(1);
    let paged = ListOptions {
        limit: Some(500),
        ..ListOptions::default()
    };
    list(&source, paged.clone()).unwrap();
    drop(watch(&source));
    source.fail_next_list(SourceError::TimedOut);
    list(&source, ListOptions::default()).unwrap_err();
    let expected = [
        Request::List(paged),
        Request::Watch(from(&2.into())),
        Request::List(ListOptions::default()),
    ];
    assert_eq!(source.requests(), expected);
    assert_eq!(source.take_requests(), expected);
    assert_eq!(source.requests(), []);
}

#[test]
fn a_clean_end_comes_after_all_changes() {
    let source = filled(0);
    let mut stream = watch(&source);
    source.upsert(key(1), 0);
    source.disconnect(Disconnect::Clean);
    source.upsert(key(2), 0);
    assert_eq!(seen(&mut stream), "+o1@2 EOF");
    let mut resumed = watch_from(&source, &2.into());
    assert_eq!(
        seen(&mut resumed),
        "+o2@3",
        "only the watches of then have ended"
    );
}
