//! Streaming lists: the end marker, incomplete streams, falling back.
use super::rig::{Rig, api, cut, throttled, too_large};
use crate::reflector::{Fault, NextStep, ReflectorState};
use std::time::Duration;

/// I-R14: one list with the marker's version, on the same stream, without a list call.
#[test]
fn i_r14_the_queue_sees_nothing_before_the_end_marker() {
    let mut rig = Rig::new(|script| {
        script
            .streaming()
            .watch("+a@5 +b@6 BM@7 5s ~a@8 BM@9(end) +c@10 5s EOF")
    });
    assert_eq!(rig.inputs(), [""; 0]);
    assert_eq!(rig.status().state, ReflectorState::Streaming);
    rig.pass(5.0);
    assert_eq!(rig.inputs(), ["=9 [a@8 b@6]", "+c@10"]);
    assert_eq!(rig.status().state, ReflectorState::Watching);
    rig.pass(5.0);
    assert_eq!(rig.calls(), ["WATCH(init,rv=)", "WATCH(rv=10)"]);
    assert_eq!(rig.most_open_streams(), 1);
}

#[test]
fn c014_incomplete_streams_are_tried_a_few_times_and_then_replaced_by_a_list() {
    let mut rig = Rig::new(|script| {
        script
            .streaming()
            .watch("+a@5 20s +b@6 20s EOF")
            .watch("+a@5 20s +b@6 20s EOF")
            .watch("+a@5 20s +b@6 20s EOF")
            .list("9 a@5 b@6")
            .watch("ERR410")
            .list("9 a@5 b@6")
    });
    rig.pass(300.0);
    assert_eq!(
        rig.calls()[..5],
        [
            "WATCH(init,rv=)",
            "WATCH(init,rv=)",
            "WATCH(init,rv=)",
            "LIST(rv=0,limit=500)",
            "WATCH(rv=9)"
        ]
    );
    assert_eq!(rig.inputs()[0], "=9 [a@5 b@6]");
    assert!(matches!(
        rig.errors()[2].fault,
        Fault::StreamingListIncomplete {
            attempt: 3,
            tries: 3,
            ..
        }
    ));
    assert_eq!(
        rig.calls()[5],
        "LIST(rv=9,match=NotOlderThan)",
        "and plain lists from then on"
    );
}

/// W-R4: a stream that closes at once is no hot loop.
#[test]
fn c014_streams_that_close_at_once_do_not_spin() {
    let mut rig = Rig::new(|script| script.streaming().watch_forever("EOF").list("9"));
    assert_eq!(rig.calls().len(), 1, "on a frozen clock");
    rig.pass(10.0);
    assert_eq!(rig.count_calls("WATCH(init"), 3);
    assert_eq!(rig.count_calls("LIST"), 1);
}

#[test]
fn c014_a_silent_stream_counts_as_incomplete() {
    let mut rig = Rig::new(|script| {
        script
            .streaming()
            .watch("+a@5 25s +b@6")
            .watch("")
            .watch("")
            .list("9")
    });
    rig.pass(25.0 + 29.9);
    assert_eq!(rig.errors(), []);
    rig.pass(100.0);
    assert_eq!(rig.inputs(), ["=9 []"]);
    assert_eq!(rig.count_calls("WATCH(init"), 3);
}

/// I-R15: any other refusal leads to a plain list in the same attempt.
#[test]
fn c015_a_refused_streaming_list_is_replaced_by_a_list_at_once() {
    for error in [
        api(422, "Invalid"),
        api(400, "BadRequest"),
        api(500, "InternalError"),
        cut(),
    ] {
        let rig = Rig::new(|script| script.streaming().watches_fail(1, &error).list("10 a@5"));
        assert_eq!(
            rig.calls(),
            ["WATCH(init,rv=)", "LIST(rv=0,limit=500)", "WATCH(rv=10)"]
        );
        assert_eq!(rig.open_calls(), 1, "nothing of the refused try is left");
        assert_eq!(rig.errors().len(), 1);
        assert!(matches!(
            rig.errors()[0].next,
            NextStep::List {
                after: Duration::ZERO,
                ..
            }
        ));
    }
}

/// I-R15: also when the stream breaks within the initial phase.
#[test]
fn i_r15_an_error_within_the_initial_phase_leads_to_a_list() {
    let rig = Rig::new(|script| script.streaming().watch("+a@5 ERR500").list("10 b@6"));
    assert_eq!(rig.inputs(), ["=10 [b@6]"]);
}

#[test]
fn i_r7_a_throttled_streaming_list_is_repeated_as_such() {
    let mut rig = Rig::new(|script| {
        script
            .streaming()
            .watches_fail(1, &throttled(5))
            .watch("+a@5 BM@6(end)")
    });
    assert_eq!(rig.pass_to_next(), Duration::from_secs(5));
    assert_eq!(rig.inputs(), ["=6 [a@5]"]);
    assert_eq!(rig.calls(), ["WATCH(init,rv=)", "WATCH(init,rv=)"]);
}

#[test]
fn i_r1_an_unavailable_version_is_asked_for_as_the_most_recent_one() {
    for error in [api(410, "Expired"), too_large()] {
        let mut rig = Rig::new(|script| {
            script
                .streaming()
                .watch("BM@20(end) ERR410")
                .watches_fail(1, &error)
                .watch("BM@30(end)")
        });
        rig.pass(5.0);
        assert_eq!(
            rig.calls(),
            ["WATCH(init,rv=)", "WATCH(init,rv=20)", "WATCH(init,rv=)"]
        );
    }
}

#[test]
fn c016_a_reconnect_never_asks_for_the_initial_objects_again() {
    let rig = Rig::new(|script| script.streaming().watch("+a@5 BM@6(end) ~a@8 EOF"));
    assert_eq!(rig.calls(), ["WATCH(init,rv=)", "WATCH(rv=8)"]);
}

#[test]
fn c017_a_delete_within_the_initial_phase_is_honoured() {
    let rig = Rig::new(|script| script.streaming().watch("+a@5 +b@6 -a@7 BM@8(end)"));
    assert_eq!(rig.inputs(), ["=8 [b@6]"]);
}

#[test]
fn bad_objects_within_the_initial_phase_are_reported_and_kept_in_the_list() {
    let rig = Rig::new(|script| {
        script
            .streaming()
            .watch("+a@5 bad:a@6 bad:?@7 +c@ +d@8 bad:-d@9 TABLE BM@10(end)")
    });
    assert_eq!(rig.inputs(), ["=10 [bad:a@6 bad:?@7 bad:c@]"]);
    assert_eq!(rig.errors().len(), 4);
}

#[test]
fn an_end_marker_without_a_version_is_no_end() {
    let rig = Rig::new(|script| script.streaming().watch("+a@5 BM@(end)").list("10 a@5"));
    assert_eq!(rig.inputs(), ["=10 [a@5]"]);
    assert_eq!(rig.errors()[0].fault, Fault::ListWithoutVersion);
}

/// Rule "A list is authority", for streaming lists.
#[test]
fn an_older_marker_is_refused_and_then_a_reset() {
    let mut rig = Rig::new(|script| {
        script
            .streaming()
            .watch("BM@20(end) ERR410")
            .watch("+a@5 BM@15(end)")
            .watch("+a@5 BM@15(end)")
    });
    rig.pass(5.0);
    assert_eq!(rig.inputs(), ["=20 []", "=15 [a@5] reset"]);
    assert_eq!(
        rig.calls(),
        ["WATCH(init,rv=)", "WATCH(init,rv=20)", "WATCH(init,rv=)"]
    );
    assert_eq!(
        rig.most_open_streams(),
        1,
        "the refused stream was closed first"
    );
}

#[test]
fn a_source_or_a_setting_without_streaming_is_never_asked() {
    let rig = Rig::with(
        |script| script.streaming().list("10"),
        |config| config.streaming_list_tries = 0,
    );
    assert_eq!(rig.calls(), ["LIST(rv=0,limit=500)", "WATCH(rv=10)"]);
}
