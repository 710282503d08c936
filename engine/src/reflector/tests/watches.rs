//! Watches: frames, resume points, ends of every kind.
use super::rig::{Rig, api, cut, page, refused, throttled};
use crate::reflector::{BackoffConfig, Fault, NextStep};
use crate::source::{Selectors, SourceError};
use std::time::Duration;

#[test]
fn c008_a_throttled_watch_is_one_error_and_waits_as_told() {
    let mut rig = Rig::new(|script| script.list("10 a@5").watches_fail(1, &throttled(3)));
    assert_eq!(rig.errors().len(), 1);
    rig.pass(2.9);
    assert_eq!(rig.count_calls("WATCH"), 1);
    rig.pass(0.1);
    assert_eq!(rig.calls()[1..], ["WATCH(rv=10)", "WATCH(rv=10)"]);
    assert_eq!(rig.inputs(), ["=10 [a@5]"]);
}

/// I-R7: as many waits as failures, no list, always the same version.
#[test]
fn c009_refused_connections_grow_the_backoff_and_cost_no_list() {
    let mut rig = Rig::with(
        |script| script.list("10 a@5").watches_fail(5, &refused()),
        |config| config.backoff.jitter = 0.0,
    );
    let mut waits = Vec::new();
    for _ in 0..5 {
        waits.push(rig.pass_to_next().as_millis());
    }
    assert_eq!(waits, [800, 1600, 3200, 6400, 12_800]);
    assert_eq!(rig.count_calls("WATCH(rv=10)"), 6);
    assert_eq!(rig.count_calls("LIST"), 1);
    assert!(rig.status().listed);
}

/// I-R7, within a stream.
#[test]
fn i_r7_throttling_within_a_stream_costs_no_list() {
    let mut rig = Rig::new(|script| script.list("10").watch("+a@11 ERR429").watch("ERR429"));
    rig.pass(10.0);
    assert_eq!(
        rig.calls()[1..],
        ["WATCH(rv=10)", "WATCH(rv=11)", "WATCH(rv=11)"]
    );
}

#[test]
fn c011_watches_that_close_at_once_do_not_spin() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .list_forever(Ok(page("10 a@5")))
            .watch_forever("EOF")
    });
    assert_eq!(rig.calls().len(), 2, "on a frozen clock");
    for _ in 0..6000 {
        rig.pass(0.1);
    }
    let calls = rig.calls().len();
    assert!((10..60).contains(&calls), "{calls} calls in ten minutes");
    assert!(rig.count_calls("LIST") <= 3, "no storm of lists");
    assert_eq!(rig.most_open_streams(), 1);
    assert!(matches!(rig.errors()[0].fault, Fault::VeryShortWatch(_)));
}

#[test]
fn c011_frames_that_bring_nothing_do_not_spin_either() {
    for frames in [
        "TABLE EOF",
        "BM@10 EOF",
        "~b@ EOF",
        "+a@5 EOF",
        "BM@ EOF",
        "TIMEOUT",
    ] {
        let mut rig = Rig::new(|script| script.list("10 a@5").watch_forever(frames));
        assert!(rig.calls().len() <= 3, "{frames} on a frozen clock");
        rig.pass(60.0);
        let calls = rig.calls().len();
        assert!(calls < 15, "{frames}: {calls} calls in a minute");
    }
}

#[test]
fn c012_an_ordinary_end_resumes_without_error_or_list() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .watch("+b@12 120s EOF")
            .watch("~b@14 60s TIMEOUT")
    });
    rig.pass(200.0);
    assert_eq!(
        rig.calls(),
        [
            "LIST(rv=0,limit=500)",
            "WATCH(rv=10)",
            "WATCH(rv=12)",
            "WATCH(rv=14)"
        ]
    );
    assert_eq!(rig.errors(), []);
    assert_eq!(rig.inputs(), ["=10 [a@5]", "+b@12", "~b@14"]);
    let ends: Vec<_> = rig.timed_calls()[1..]
        .iter()
        .map(|(at, _)| at.since_origin().as_secs())
        .collect();
    assert_eq!(ends, [0, 120, 180], "at once");
}

#[test]
fn c012_a_quiet_watch_that_lasted_is_an_ordinary_one() {
    let mut rig = Rig::new(|script| script.list("10").watch("1s EOF").watch("1s EOF"));
    rig.pass(5.0);
    assert_eq!(rig.count_calls("WATCH(rv=10)"), 3);
    assert_eq!(rig.errors(), []);
}

#[test]
fn c013_bookmarks_move_the_resume_point() {
    let rig = Rig::new(|script| script.list("10 a@5").watch("BM@500 EOF"));
    assert_eq!(rig.calls()[1..], ["WATCH(rv=10)", "WATCH(rv=500)"]);
    assert_eq!(rig.inputs(), ["=10 [a@5]", "BM@500"]);
    assert_eq!(rig.errors(), [], "a bookmark is a sign of life");
}

#[test]
fn c018_a_frame_without_a_version_never_becomes_the_resume_point() {
    let mut rig = Rig::new(|script| script.list("10 a@5").watch("~b@ 5s EOF"));
    rig.pass(5.0);
    assert_eq!(rig.calls()[1..], ["WATCH(rv=10)", "WATCH(rv=10)"]);
    assert_eq!(
        rig.inputs(),
        ["=10 [a@5]", "bad:b@"],
        "known, and not forgotten"
    );
    assert_eq!(rig.errors().len(), 1);
    assert_eq!(rig.errors()[0].next, NextStep::Quarantine);
}

/// I-R6: a frame that is no event makes no progress.
#[test]
fn c020_a_foreign_frame_is_skipped_and_makes_no_progress() {
    let rig = Rig::new(|script| script.list("10 a@5").watch("TABLE +b@12 EOF"));
    assert_eq!(rig.calls()[1..], ["WATCH(rv=10)", "WATCH(rv=12)"]);
    assert_eq!(rig.inputs(), ["=10 [a@5]", "+b@12"]);
    assert_eq!(rig.errors().len(), 1);
}

/// I-R5: the watch begins exactly at the version of the list, with a timeout of 5 to 10 minutes.
#[test]
fn c024_there_is_no_gap_between_list_and_watch() {
    let rig = Rig::new(|script| script.list("10 a@5").watch("-a@11"));
    assert_eq!(rig.calls()[1], "WATCH(rv=10)");
    assert_eq!(rig.inputs(), ["=10 [a@5]", "-a@11"]);
    assert!((300..600).contains(&rig.watch_timeouts()[0].as_secs()));
}

#[test]
fn c032_c033_frames_are_passed_on_whatever_is_known_of_their_keys() {
    let rig = Rig::new(|script| script.list("10").watch("-ghost@11 ~a@12 ~a@13 EOF"));
    assert_eq!(rig.inputs(), ["=10 []", "-ghost@11", "~a@12", "~a@13"]);
    assert_eq!(rig.calls()[2], "WATCH(rv=13)");
}

#[test]
fn c035_versions_go_back_to_the_source_unchanged() {
    let forty = "1234567890123456789012345678901234567890";
    for versions in [
        ["z9-17", "b0", "~"],
        ["010", "10", forty],
        ["x", "9", "010"],
    ] {
        let [list, object, bookmark] = versions;
        let rig = Rig::new(|script| {
            script
                .list(&format!("{list} a@k1"))
                .watch(&format!("~a@{object} BM@{bookmark} EOF"))
        });
        assert_eq!(
            rig.calls()[1..],
            [format!("WATCH(rv={list})"), format!("WATCH(rv={bookmark})")]
        );
    }
}

#[test]
fn c036_a_permanent_403_is_retried_slowly_and_each_failure_reaches_the_hook() {
    let mut rig = Rig::new(|script| {
        script
            .list_forever(Ok(page("10 a@5")))
            .watches_fail_forever(api(403, "Forbidden"))
    });
    rig.pass(600.0);
    let watches = rig.count_calls("WATCH");
    assert!(rig.calls().len() < 100, "{} calls", rig.calls().len());
    assert_eq!(rig.errors().len(), watches);
    rig.amend(&[], "");
    rig.pass(61.0);
    assert_eq!(rig.open_calls(), 1, "allowed now, without a restart");
    rig.stop.stop();
    rig.settle();
    assert!(rig.end.is_some());
}

/// I-R6: synthetic additions of a watch from "0" come in any order.
#[test]
fn i_r6_a_watch_from_zero_does_not_resume_at_its_synthetic_additions() {
    let mut rig = Rig::new(|script| {
        script
            .list("0")
            .watch("+a@20 +b@15 2s EOF")
            .watch("+a@20 +b@15 ~b@21 2s EOF")
    });
    rig.pass(10.0);
    assert_eq!(
        rig.calls()[1..],
        ["WATCH(rv=0)", "WATCH(rv=0)", "WATCH(rv=21)"]
    );
}

/// I-R9: any other error frame leads to a list, and the stream is closed before the wait.
#[test]
fn i_r9_other_errors_lead_to_a_relist() {
    for error in [
        api(500, "InternalError"),
        api(503, "ServiceUnavailable"),
        SourceError::Decode("nonsense".into()),
    ] {
        let mut rig = Rig::new(|script| {
            script
                .list("10 a@5 b@6")
                .watches_fail(1, &error)
                .list("12 a@5")
        });
        assert_eq!(rig.open_calls(), 0);
        rig.pass(5.0);
        assert_eq!(rig.calls()[2], "LIST(rv=10,match=NotOlderThan)");
    }
}

/// I-R10: one error a second within 30 s gives 31 retries, then a list.
#[test]
fn i_r10_internal_errors_are_retried_within_their_window() {
    let mut rig = Rig::with(
        |script| script.list("10").watch_forever("ERR500"),
        |config| config.internal_error_retry = Duration::from_secs(30),
    );
    rig.pass(40.0);
    assert_eq!(rig.count_calls("WATCH(rv=10)"), 32, "31 retries");
    assert_eq!(rig.count_calls("LIST"), 2);
}

#[test]
fn a_broken_connection_resumes_where_it_was() {
    let mut rig = Rig::new(|script| {
        script
            .list("10")
            .watch("+a@11 CUT")
            .watches_fail(2, &cut())
            .watch("PANIC")
            .list("12")
    });
    rig.pass(10.0);
    assert_eq!(
        rig.calls()[1..5],
        [
            "WATCH(rv=10)",
            "WATCH(rv=11)",
            "WATCH(rv=11)",
            "WATCH(rv=11)"
        ]
    );
    rig.pass(30.0);
    assert_eq!(
        rig.calls()[5],
        "LIST(rv=11,match=NotOlderThan)",
        "a panic starts over"
    );
    assert!(
        rig.errors()
            .iter()
            .any(|error| matches!(error.fault, Fault::SourcePanicked(_)))
    );
}

#[test]
fn a_connection_that_always_breaks_is_given_a_list_in_the_end() {
    let mut rig = Rig::new(|script| script.list("10").watch_forever("CUT"));
    rig.pass(600.0);
    assert!(rig.calls()[1..11].iter().all(|call| call == "WATCH(rv=10)"));
    assert_eq!(rig.calls()[11], "LIST(rv=10,match=NotOlderThan)");
}

#[test]
fn a_half_open_watch_is_dropped_after_its_timeout() {
    let mut rig = Rig::new(|script| script.list("10"));
    rig.pass(640.0);
    assert!(rig.count_calls("WATCH(rv=10)") >= 2);
    assert_eq!(
        rig.metrics().half_open_watches,
        rig.count_calls("WATCH") as u64 - 1
    );
    assert_eq!((rig.errors().len(), rig.most_open_streams()), (0, 1));
}

#[test]
fn an_undecodable_object_of_known_key_is_quarantined_and_progress_is_made() {
    let rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .watch("bad:a@11 bad:-b#u9@12 bad:-c@ +d@13 EOF")
    });
    assert_eq!(
        rig.inputs(),
        ["=10 [a@5]", "bad:a@11", "-b@12(meta)", "bad:c@", "+d@13"],
        "the end of an object needs no content, but a version"
    );
    assert_eq!(rig.calls()[2], "WATCH(rv=13)");
    assert_eq!(rig.errors().len(), 3);
    let rig = Rig::new(|script| script.list("10 a@5").watch("bad:a@11 EOF"));
    assert_eq!(
        rig.calls()[2],
        "WATCH(rv=11)",
        "a quarantine record is progress"
    );
}

/// The rule for the resume point: received is not delivered.
#[test]
fn an_undecodable_object_of_unknown_key_leads_to_one_relist() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .watch("bad:?@15 +b@16")
            .list("16 a@5 bad:?@15 b@16")
    });
    assert_eq!(rig.calls().len(), 2, "not at once: it may happen again");
    assert_eq!(rig.errors().len(), 1);
    rig.pass(5.0);
    assert_eq!(
        rig.calls()[2..],
        ["LIST(rv=10,match=NotOlderThan)", "WATCH(rv=16)"],
        "not at 15, which was never delivered"
    );
    assert_eq!(rig.inputs()[1], "=16 [a@5 b@16 bad:?@15]");
}

#[test]
fn late_frames_are_delivered_and_do_not_move_the_resume_point_back() {
    let rig = Rig::new(|script| script.list("10").watch("+a@15 -b#old@12 EOF"));
    assert_eq!(rig.inputs(), ["=10 []", "+a@15", "-b@12"]);
    assert_eq!(rig.calls()[2], "WATCH(rv=15)");
    assert_eq!(rig.metrics().late_deltas, 1);
}

/// kubernetes/kubernetes#107457: after a restore from a backup bookmarks run backwards.
#[test]
fn a_bookmark_that_goes_back_leads_to_a_relist() {
    let mut rig = Rig::new(|script| {
        script
            .list("100 a@50")
            .watch("BM@40")
            .list("41 a@20")
            .list("41 a@20")
    });
    rig.pass(5.0);
    assert_eq!(
        rig.calls()[2..],
        [
            "LIST(rv=100,match=NotOlderThan)",
            "LIST(rv=,limit=500)",
            "WATCH(rv=41)"
        ]
    );
    assert_eq!(rig.inputs(), ["=100 [a@50]", "=41 [a@20] reset"]);
}

#[test]
fn a_watch_at_a_version_that_the_server_has_not_reached_lists_the_most_recent_state() {
    let mut rig = Rig::new(|script| {
        script
            .list("10")
            .watch("TOOLARGE")
            .list("9")
            .watch("TOOLARGE")
    });
    rig.pass(2.0);
    assert_eq!(
        rig.calls()[1..],
        ["WATCH(rv=10)", "LIST(rv=,limit=500)", "WATCH(rv=9)"]
    );
}

/// W-R2 and fix 44: the waits fall back only after two minutes of health.
#[test]
fn the_backoff_is_shared_and_resets_only_with_health() {
    let mut rig = Rig::with(
        |script| {
            script
                .lists_fail(3, &api(500, "InternalError"))
                .list("10")
                .watches_fail(1, &api(429, "TooManyRequests"))
                .watch("119s ERR429")
                .watch("121s ERR429")
        },
        |config| {
            config.backoff = BackoffConfig {
                jitter: 0.0,
                ..BackoffConfig::default()
            }
        },
    );
    let mut waits = Vec::new();
    for _ in 0..7 {
        rig.pass_to_next();
    }
    for error in rig.errors() {
        if let NextStep::Watch { after, .. } | NextStep::List { after, .. } = error.next {
            waits.push(after.as_millis());
        }
    }
    assert_eq!(waits, [800, 1600, 3200, 6400, 12_800, 800]);
}

#[test]
fn selectors_travel_with_every_call() {
    for streaming in [false, true] {
        let mut rig = Rig::with(
            |script| {
                let script = script.list("10 cont=t1").list("10").watch("CUT ERR410");
                if streaming {
                    script.streaming()
                } else {
                    script
                }
            },
            |config| {
                config.selectors = Selectors {
                    namespace: Some("ns".into()),
                    labels: Some("app=web".into()),
                    fields: Some("spec.nodeName=n1".into()),
                    shard: Some("0-7f".into()),
                }
            },
        );
        rig.pass(10.0);
        assert!(rig.calls().len() >= 4, "each was checked by the transport");
    }
}

/// I-R12: a stream that is over is closed before the wait that follows.
#[test]
fn i_r12_no_stream_is_open_during_a_wait() {
    for frames in ["EOF", "ERR500", "CUT", "bad:?@11", "BM@9", "PANIC"] {
        let rig = Rig::new(|script| script.list("10").watch(frames));
        assert_eq!(rig.open_calls(), 0, "{frames}");
    }
}

/// W-R5: what the transform refuses is reported, stands in the quarantine, and is progress.
#[test]
fn an_object_that_the_transform_refuses_is_reported_and_progress_is_made() {
    let rig = Rig::new(|script| script.list("10 a@5 vetoed1@6").watch("+vetoed2@11 EOF"));
    assert_eq!(rig.inputs(), ["=10 [a@5 bad:vetoed1@6]", "bad:vetoed2@11"]);
    assert_eq!(rig.calls()[2], "WATCH(rv=11)");
    let faults: Vec<_> = rig.errors().into_iter().map(|error| error.fault).collect();
    assert!(matches!(
        &faults[..],
        [Fault::BadObject(_), Fault::BadObject(_)]
    ));
}
