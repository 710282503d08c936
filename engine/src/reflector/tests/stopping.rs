//! Stopping: from every state, at once, with nothing left open.
use super::rig::{Rig, api};
use crate::reflector::{ReflectorState, RunEnd};

/// I-R12, I-R13: every stream is closed, no call follows, no sleep is waited for.
fn stops_at_once(mut rig: Rig) {
    let (now, calls) = (crate::Clock::now(&rig.clock), rig.calls().len());
    assert_eq!(rig.end, None);
    rig.stop.stop();
    rig.settle();
    assert_eq!(rig.end, Some(RunEnd::Stopped));
    assert_eq!((rig.open_calls(), rig.calls().len()), (0, calls));
    assert_eq!(crate::Clock::now(&rig.clock), now);
    assert_eq!(rig.clock.next_deadline(), None, "no timer is left");
    assert_eq!(rig.status().state, ReflectorState::Stopped);
}

#[test]
fn c021_stop_ends_every_wait_at_once() {
    let mut backing_off = Rig::new(|script| script.lists_fail(9, &api(500, "InternalError")));
    backing_off.pass(60.0);
    assert!(matches!(
        backing_off.status().state,
        ReflectorState::BackingOff { .. }
    ));
    stops_at_once(backing_off);

    let listing = Rig::new(|script| script.list("10 a@5 cont=t1"));
    assert_eq!(
        (listing.status().state, listing.open_calls()),
        (ReflectorState::Listing, 1)
    );
    stops_at_once(listing);

    let watching = Rig::new(|script| script.list("10"));
    assert_eq!(
        (watching.status().state, watching.open_calls()),
        (ReflectorState::Watching, 1)
    );
    stops_at_once(watching);

    let mut retrying = Rig::new(|script| script.list("10").watch_forever("ERR429"));
    retrying.pass(60.0);
    stops_at_once(retrying);
}

/// Fix 16, W-R1: in the middle of a streaming list, in its waits, and right after it.
#[test]
fn c021_stop_within_a_streaming_list_leaks_nothing() {
    stops_at_once(Rig::new(|script| script.streaming().watch("+a@5")));
    stops_at_once(Rig::new(|script| {
        script.streaming().watch_forever("ERR429")
    }));
    stops_at_once(Rig::new(|script| {
        script.streaming().watch("+a@5 BM@6(end)")
    }));
}

#[test]
fn c021_stop_ends_the_wait_for_a_full_queue() {
    let mut rig = Rig::new(|script| script.list("10").watch("5s +a@11"));
    rig.sink.fill();
    rig.pass(5.0);
    assert_eq!(
        rig.status().last_seen_version.to_string(),
        "10",
        "received is not delivered"
    );
    stops_at_once(rig);
}

#[test]
fn a_source_that_never_waits_cannot_keep_the_reflector_from_stopping() {
    // Each watch makes progress and ends, so the reflector never has to wait for anything.
    let frames: Vec<_> = (11..5000).map(|version| format!("+a@{version}")).collect();
    let mut rig = Rig::new(|script| script);
    rig.drop_task();
    let script = frames.join(" ");
    let stop_inside = Rig::with(
        |script_| script_.list("10").watch(&script),
        |config| config.name = "busy".into(),
    );
    assert_eq!(stop_inside.inputs().len(), 1 + frames.len());
    stops_at_once(stop_inside);
}

#[test]
fn a_closed_queue_ends_the_reflector() {
    let mut rig = Rig::new(|script| script.list("10").watch("5s +a@11"));
    rig.sink.close();
    rig.pass(5.0);
    assert_eq!(rig.end, Some(RunEnd::QueueClosed));
    assert_eq!((rig.open_calls(), rig.calls().len()), (0, 2));
}

/// C028, C029: `run` takes the reflector, so a second run cannot be written; a reflector that is
/// dropped, run or not, says so to everyone who waits for it.
#[test]
fn c029_a_dropped_reflector_is_stopped() {
    let mut rig = Rig::new(|script| script.list("10"));
    rig.drop_task();
    assert_eq!(rig.status().state, ReflectorState::Stopped);
    assert_eq!((rig.open_calls(), rig.clock.next_deadline()), (0, None));
}
