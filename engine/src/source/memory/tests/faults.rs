//! Faults: each takes effect at its point, on the watches that are open then, and nowhere else.
use super::*;
use crate::clock::ManualClock;
use crate::object::Incoming;
use crate::object::Meta;
use crate::source::memory::{Corruption, Disconnect};
use crate::source::{ApiStatus, Recovery};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn dropped_frames_are_lost_without_a_word() {
    let source = filled(0);
    let mut stream = watch(&source);
    source.upsert(key(1), 1);
    source.drop_frames(2);
    let mut later = watch(&source);
    for n in 2..5 {
        source.upsert(key(n), 1);
    }
    source.send_bookmark();
    assert_eq!(seen(&mut stream), "+o1@2 +o4@5 BM@5");
    assert_eq!(seen(&mut later), "+o2@3 +o3@4 +o4@5 BM@5");
}

#[test]
fn doubled_frames_come_twice() {
    let source = filled(1);
    let mut stream = watch(&source);
    source.duplicate_frames(2);
    source.upsert(key(0), 1);
    source.delete(&key(0), None).unwrap();
    source.upsert(key(1), 1);
    assert_eq!(seen(&mut stream), "~o0@3 ~o0@3 -o0@4 -o0@4 +o1@5");
}

#[test]
fn reordered_frames_keep_the_order_of_each_key() {
    let source = filled(0);
    let mut stream = watch(&source);
    source.reorder_frames(4);
    for (name, value) in [(1, 1), (2, 1), (1, 2)] {
        source.upsert(key(name), value);
    }
    assert_eq!(seen(&mut stream), "", "held back until there are four");
    source.delete(&key(2), None).unwrap();
    source.upsert(key(3), 1);
    assert_eq!(seen(&mut stream), "+o2@3 -o2@5 +o1@2 ~o1@4 +o3@6");
    source.reorder_frames(10);
    source.upsert(key(4), 1);
    source.upsert(key(5), 1);
    source.send_bookmark();
    source.disconnect(Disconnect::Clean);
    assert_eq!(
        seen(&mut stream),
        "+o5@8 +o4@7 BM@8 EOF",
        "no bookmark overtakes"
    );
}

#[test]
fn held_frames_come_when_they_are_released() {
    let source = filled(0);
    let mut stream = watch(&source);
    source.upsert(key(1), 1);
    source.hold_frames();
    assert_eq!(seen(&mut stream), "");
    source.send_bookmark();
    source.disconnect(Disconnect::Clean);
    assert_eq!(seen(&mut stream), "");
    source.release_frames();
    assert_eq!(seen(&mut stream), "+o1@2 BM@2 EOF");
    source.hold_frames();
    let mut cut = watch(&source);
    source.upsert(key(2), 1);
    source.disconnect(Disconnect::Broken);
    assert_eq!(seen(&mut cut), "CUT EOF", "a cut does not wait");
}

#[test]
fn delayed_frames_come_in_order_when_the_time_is_over() {
    let clock = ManualClock::new();
    let source = with(MemoryConfig {
        clock: Some(Arc::new(clock.clone())),
        ..MemoryConfig::default()
    });
    let mut stream = watch(&source);
    source.upsert(key(1), 1);
    source.delay_frames(Duration::from_secs(5));
    source.upsert(key(2), 1);
    assert_eq!(seen(&mut stream), "+o1@2");
    let mut other = watch(&source);
    source.upsert(key(3), 1);
    clock.advance(Duration::from_secs(4));
    assert_eq!(seen(&mut stream), "");
    assert_eq!(seen(&mut other), "+o3@4", "opened later, not concerned");
    clock.advance(Duration::from_secs(1));
    assert_eq!(seen(&mut stream), "+o2@3 +o3@4");
}

#[test]
#[should_panic(expected = "delays need a clock")]
fn a_delay_without_a_clock_is_a_mistake() {
    filled(0).delay_frames(Duration::from_secs(1));
}

#[test]
fn a_half_open_stream_never_says_anything_again() {
    let clock = ManualClock::new();
    let source = with(MemoryConfig {
        clock: Some(Arc::new(clock.clone())),
        ..MemoryConfig::default()
    });
    let mut stream = open(
        &source,
        WatchOptions {
            timeout: Some(Duration::from_secs(10)),
            ..from(&1.into())
        },
    )
    .unwrap();
    source.upsert(key(1), 1);
    source.go_silent();
    source.upsert(key(2), 1);
    source.disconnect(Disconnect::Broken);
    clock.advance(Duration::from_secs(60));
    assert_eq!(seen(&mut stream), "");
    assert_eq!(source.open_watches(), 1);
    drop(stream);
    assert_eq!(source.open_watches(), 0);
    assert_eq!(clock.next_deadline(), None);
    assert_eq!(seen(&mut watch_from(&source, &1.into())), "+o1@2 +o2@3");
}

#[test]
fn errors_answer_one_call_each_in_turn() {
    let source = filled(1);
    let throttled = ApiStatus {
        retry_after: Some(Duration::from_secs(7)),
        ..ApiStatus::new(429, "TooManyRequests", "slow down")
    };
    source.fail_next_list(throttled.clone());
    source.fail_next_list(ApiStatus::new(500, "InternalError", "scripted"));
    source.fail_next_watch(ApiStatus::new(403, "Forbidden", "scripted"));
    let first = list(&source, ListOptions::default()).unwrap_err();
    assert_eq!(first.recovery(), Recovery::RetryLater);
    assert_eq!(first.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(code(list(&source, ListOptions::default())), 500);
    assert!(list(&source, ListOptions::default()).is_ok());
    assert_eq!(code(open(&source, from(&1.into()))), 403);
    let mut stream = watch(&source);
    source.upsert(key(0), 1);
    source.fail_watches(throttled);
    source.upsert(key(0), 2);
    assert_eq!(seen(&mut stream), "~o0@3 429 EOF");
    assert_eq!(seen(&mut stream), "EOF", "an error is the last item");
}

#[test]
fn a_late_deletion_of_an_old_uid() {
    let source = filled(1);
    assert!(!source.resend_delete(&key(0)), "there was none");
    let old = source.delete(&key(0), None).unwrap();
    let new = source.create(key(0), 1).unwrap();
    let mut stream = watch(&source);
    assert!(source.resend_delete(&key(0)));
    source.upsert(key(0), 2);
    let (frames, _) = take(&mut stream);
    let Ok(WatchEvent::Deleted(late)) = &frames[0] else {
        panic!()
    };
    assert_eq!(late.meta, old);
    assert_ne!(late.meta.uid, new.uid);
    assert_eq!(word(&frames[1]), "~o0@5");
}

#[test]
fn any_frame_can_be_injected() {
    let source = filled(1);
    let mut stream = watch(&source);
    source.inject(WatchEvent::Foreign {
        description: "Table".into(),
    });
    let stale = Incoming::new(Meta::new("ns", "o0", "u0", "1").unwrap(), 0);
    source.inject(WatchEvent::Modified(stale));
    source.upsert(key(0), 1);
    assert_eq!(seen(&mut stream), "Table ~o0@1 ~o0@3");
}

/// C001: after a restore from backup versions go back and are used again.
#[test]
fn a_restore_brings_versions_uids_and_contents_back() {
    let source = filled(2);
    let backup = source.backup();
    let token = list(
        &source,
        ListOptions {
            limit: Some(1),
            ..ListOptions::default()
        },
    )
    .unwrap()
    .continue_token;
    let mut stream = watch(&source);
    let original = source.get(&key(0)).unwrap();
    source.delete(&key(0), None).unwrap();
    let lost = source.create(key(0), 7).unwrap();
    source.upsert(key(5), 1);
    source.restore(&backup);
    assert_eq!(seen(&mut stream), "CUT EOF");
    assert_eq!(source.resource_version(), 3.into());
    assert_eq!(source.get(&key(0)).unwrap(), original);
    assert_eq!(source.len(), 2);
    assert_eq!(
        code(open(&source, from(&6.into()))),
        504,
        "from the lost future"
    );
    let options = ListOptions {
        continue_token: token,
        ..ListOptions::default()
    };
    assert_eq!(code(list(&source, options)), 410);
    let reused = source.create(key(6), 1).unwrap();
    assert_eq!(reused.resource_version, 4.into());
    assert_ne!(reused.uid, lost.uid, "uids are never used again");
    assert_eq!(seen(&mut watch_from(&source, &3.into())), "+o6@4");
    source.restore(&backup);
    assert_eq!(source.len(), 2, "a backup can be used again");
}

/// C019: what cannot be decoded stands alone in lists and frames.
#[test]
fn undecodable_objects_are_bad_in_lists_and_frames_until_mended() {
    let source = filled(2);
    let mut stream = watch(&source);
    source.corrupt(key(0), Corruption::Body);
    source.corrupt(key(1), Corruption::Everything);
    source.upsert(key(0), 1);
    source.upsert(key(1), 1);
    source.delete(&key(1), None).unwrap();
    let page = list(&source, ListOptions::default()).unwrap();
    assert_eq!(items(&page), "?o0");
    let bad = page.items[0].as_ref().unwrap_err();
    assert_eq!(bad.resource_version, 4.into());
    assert!(!bad.uid.is_missing());
    source.mend(&key(0));
    source.mend(&key(1));
    source.upsert(key(0), 2);
    assert_eq!(seen(&mut stream), "?o0@4 ?unknown@ -?unknown@ ~o0@7");
    assert_eq!(
        items(&list(&source, ListOptions::default()).unwrap()),
        "o0@7"
    );
    source.corrupt(key(0), Corruption::Body);
    let mut streamed = open(&source, streaming()).unwrap();
    assert_eq!(seen(&mut streamed), "?o0@7 BM@7(end)");
}

/// C014, C015 and the ghosts of a broken initial stream.
#[test]
fn streaming_lists_can_be_refused_cut_short_or_left_without_their_marker() {
    let source = filled(3);
    source.omit_end_markers(1);
    let mut unmarked = open(&source, streaming()).unwrap();
    source.upsert(key(0), 1);
    assert_eq!(seen(&mut unmarked), "+o2@4 +o1@3 +o0@2 ~o0@5");
    source.break_next_initial_events(2, Disconnect::Broken);
    source.break_next_initial_events(0, Disconnect::Clean);
    assert_eq!(
        seen(&mut open(&source, streaming()).unwrap()),
        "+o2@4 +o1@3 CUT EOF"
    );
    assert_eq!(seen(&mut watch_from(&source, &0.into())), "EOF");
    let whole = "+o2@4 +o1@3 +o0@5 BM@5(end)";
    assert_eq!(seen(&mut open(&source, streaming()).unwrap()), whole);
    source.refuse_streaming_lists(true);
    assert!(source.supports_streaming_list());
    assert_eq!(code(open(&source, streaming())), 422);
    source.refuse_streaming_lists(false);
    assert_eq!(seen(&mut open(&source, streaming()).unwrap()), whole);
}
