//! Lists: versions, pages, failures, and what a relist asks for.
use super::rig::{Rig, api, cut, refused, throttled, too_large};
use crate::object::ObjectKey;
use crate::reflector::{BackoffConfig, Call, Fault, NextStep, ReflectorState};
use crate::source::{ApiStatus, SourceError, StatusCause};
use std::time::Duration;

/// I-R1, I-R8: a relist asks for the last version seen, once.
#[test]
fn c001_relist_starts_from_the_newest_version_seen() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .watch("+b@12 ERR410")
            .list("15 a@5 b@12 c@15")
    });
    rig.pass(10.0);
    assert_eq!(
        rig.calls(),
        [
            "LIST(rv=0,limit=500)",
            "WATCH(rv=10)",
            "LIST(rv=12,match=NotOlderThan)",
            "WATCH(rv=15)"
        ]
    );
    assert_eq!(rig.inputs(), ["=10 [a@5]", "+b@12", "=15 [a@5 b@12 c@15]"]);
}

#[test]
fn c002_too_large_is_recognised_in_three_dialects() {
    let text = "Too large resource version: 30, current: 20";
    let timeout = |message: &str, causes| {
        let mut status = ApiStatus::new(504, "Timeout", message);
        status.causes = causes;
        SourceError::from(status)
    };
    let cause = |reason: &str, message: &str| StatusCause {
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    for answer in [
        timeout("", vec![cause("ResourceVersionTooLarge", "")]),
        timeout("", vec![cause("", text)]),
        timeout(text, vec![]),
    ] {
        let mut rig = Rig::new(|script| {
            script
                .list("30 a@5")
                .watch("ERR410")
                .lists_fail(1, &answer)
                .list("31 a@5")
        });
        rig.pass_to_next();
        assert_eq!(
            rig.calls()[2..],
            [
                "LIST(rv=30,match=NotOlderThan)",
                "LIST(rv=,limit=500)",
                "WATCH(rv=31)"
            ],
            "in the same attempt, without a wait"
        );
    }

    let unrelated = timeout("the server is tired", vec![]);
    let mut rig = Rig::new(|script| {
        script
            .list("30 a@5")
            .watch("ERR410")
            .lists_fail(1, &unrelated)
    });
    rig.pass_to_next();
    assert_eq!(rig.count_calls("LIST"), 2);
    assert_eq!(rig.errors().last().unwrap().fault, unrelated.into());
    rig.pass(10.0);
    assert_eq!(rig.calls()[3], "LIST(rv=30,match=NotOlderThan)");
}

/// I-R4: the version is that of page one.
#[test]
fn c003_all_pages_reach_the_queue_as_one_list() {
    let rig = Rig::with(
        |script| {
            script
                .list("40 a@1 b@2 cont=t1")
                .list("41 c@3 d@4 cont=t2")
                .list("42 e@5")
        },
        |config| config.page_size = Some(2),
    );
    assert_eq!(
        rig.calls(),
        [
            "LIST(rv=0,limit=2)",
            "LIST(cont=t1,limit=2)",
            "LIST(cont=t2,limit=2)",
            "WATCH(rv=40)"
        ]
    );
    assert_eq!(rig.inputs(), ["=40 [a@1 b@2 c@3 d@4 e@5]"]);
}

#[test]
fn c003_nothing_counts_before_the_last_page() {
    let rig = Rig::new(|script| script.list("40 a@1 cont=t1"));
    assert_eq!(rig.inputs(), [""; 0]);
    assert!(!rig.status().listed);
}

#[test]
fn c004_an_empty_token_is_the_end() {
    let rig = Rig::new(|script| script.list("7 a@5 cont="));
    assert_eq!(rig.calls(), ["LIST(rv=0,limit=500)", "WATCH(rv=7)"]);
}

/// I-R3: follow-up pages carry neither version nor match.
#[test]
fn c005_follow_up_pages_carry_the_token_only() {
    let mut rig = Rig::with(
        |script| {
            script
                .list("10 a@1")
                .watch("ERR410")
                .list("40 a@1 b@2 cont=t1")
                .list("40 c@3")
        },
        |config| config.page_size = Some(2),
    );
    rig.pass_to_next();
    assert_eq!(
        rig.calls()[2..4],
        [
            "LIST(rv=10,match=NotOlderThan,limit=2)",
            "LIST(cont=t1,limit=2)"
        ]
    );
}

#[test]
fn c006_an_empty_page_with_a_token_is_not_the_end() {
    let rig = Rig::new(|script| script.list("40 cont=t1").list("40 y1@2"));
    assert_eq!(rig.inputs(), ["=40 [y1@2]"]);
}

#[test]
fn c007_a_watch_refused_as_gone_leads_to_a_list() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .watches_fail(1, &api(410, "Expired"))
            .list("99 a@5")
    });
    rig.pass(5.0);
    assert_eq!(
        rig.calls()[1..],
        [
            "WATCH(rv=10)",
            "LIST(rv=10,match=NotOlderThan)",
            "WATCH(rv=99)"
        ]
    );
    assert_eq!(rig.errors().len(), 1);
}

/// I-R9: objects that no event will ever mention are found missing by the list.
#[test]
fn c010_store_read_error_forces_a_relist() {
    let mut rig = Rig::new(|script| script.list("1 a@1 b@1").watch("STORE").list("3 a@1"));
    rig.pass(5.0);
    assert_eq!(rig.inputs(), ["=1 [a@1 b@1]", "=3 [a@1]"]);
    assert_eq!(rig.status().last_seen_version.to_string(), "3");
}

#[test]
fn c018_a_list_without_a_version_is_an_error() {
    let mut rig = Rig::new(|script| script.list("_ a@5").list("10 a@5"));
    assert_eq!(rig.inputs(), [""; 0]);
    assert_eq!(rig.errors()[0].fault, Fault::ListWithoutVersion);
    assert_eq!(rig.calls().len(), 1);
    rig.pass(5.0);
    assert_eq!(rig.calls()[1..], ["LIST(rv=0,limit=500)", "WATCH(rv=10)"]);
}

#[test]
fn c019_one_undecodable_object_in_a_list_does_not_take_the_others_down() {
    let rig = Rig::new(|script| {
        script
            .list("10 eggs@5 bad:spam@6 bad:?@7 ham@")
            .watch("~eggs@12")
    });
    assert_eq!(
        rig.inputs(),
        ["=10 [eggs@5 bad:spam@6 bad:?@7 bad:ham@]", "~eggs@12"]
    );
    let keys: Vec<_> = rig
        .errors()
        .iter()
        .map(|error| match &error.fault {
            Fault::BadObject(bad) => bad.key.as_ref().map(ObjectKey::to_string),
            other => panic!("{other}"),
        })
        .collect();
    let key = |name: &str| Some(format!("ns/{name}"));
    assert_eq!(keys, [key("spam"), None, key("ham")], "each is named once");
}

#[test]
fn c020_a_list_of_the_wrong_kind_is_an_error() {
    let table = SourceError::WrongKind {
        expected: "PodList".into(),
        found: "Table".into(),
    };
    let rig = Rig::new(|script| script.lists_fail(1, &table));
    assert!(!rig.status().listed);
    assert_eq!(rig.errors().len(), 1);
    assert!(matches!(
        rig.status().state,
        ReflectorState::BackingOff { .. }
    ));
}

#[test]
fn c022_a_failing_relist_does_not_end_the_loop() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .watch("ERR410")
            .lists_fail(1, &api(429, "TooManyRequests"))
            .lists_fail(1, &api(500, "InternalError"))
            .lists_fail(1, &cut())
            .list("50 a@5")
    });
    rig.pass(60.0);
    assert_eq!(rig.errors().len(), 4);
    assert_eq!(rig.inputs(), ["=10 [a@5]", "=50 [a@5]"]);
    assert_eq!(rig.calls().last().unwrap(), "WATCH(rv=50)");
}

/// I-R11, and "backoff never gives up".
#[test]
fn c023_fifty_failures_are_followed_by_another_try() {
    let mut rig = Rig::with(
        |script| script.lists_fail(50, &api(500, "InternalError")).list("7"),
        |config| {
            config.backoff = BackoffConfig {
                jitter: 0.0,
                ..BackoffConfig::default()
            }
        },
    );
    let mut waits = Vec::new();
    while !rig.status().listed {
        // The timeout of a call is no wait: it is dropped with the call.
        waits.push(rig.pass_to_next());
    }
    assert_eq!(waits.len(), 50);
    let growing = [800, 1600, 3200, 6400, 12_800, 25_600].map(Duration::from_millis);
    assert_eq!(waits[..6], growing);
    assert!(
        waits[6..]
            .iter()
            .all(|&wait| wait == Duration::from_secs(30))
    );
    assert_eq!(rig.calls().last().unwrap(), "WATCH(rv=7)");
}

/// I-R1 with paging: `["0", "10", "", "10"]`.
#[test]
fn i_r1_an_expired_relist_asks_for_the_most_recent_state_and_then_goes_back_to_versions() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .watch("ERR410")
            .lists_fail(1, &api(410, "Gone"))
            .list("20 a@5")
            .watch("ERR410")
            .list("30 a@5")
    });
    rig.pass(20.0);
    assert_eq!(
        rig.calls(),
        [
            "LIST(rv=0,limit=500)",
            "WATCH(rv=10)",
            "LIST(rv=10,match=NotOlderThan)",
            "LIST(rv=,limit=500)",
            "WATCH(rv=20)",
            "LIST(rv=20,match=NotOlderThan)",
            "WATCH(rv=30)",
        ]
    );
}

/// I-R1: the mark stays until a list succeeds.
#[test]
fn i_r1_the_empty_version_is_kept_until_a_list_succeeds() {
    let mut rig = Rig::new(|script| {
        script
            .list("20 a@5")
            .watch("ERR410")
            .lists_fail(1, &too_large())
            .lists_fail(1, &cut())
            .list("30 a@5")
    });
    rig.pass(20.0);
    assert_eq!(
        rig.calls()[2..],
        [
            "LIST(rv=20,match=NotOlderThan)",
            "LIST(rv=,limit=500)",
            "LIST(rv=,limit=500)",
            "WATCH(rv=30)",
        ]
    );
}

/// I-R2: paging at "" and "0" only, unless "0" was paged once, or a page size is set.
#[test]
fn i_r2_lists_at_a_known_version_are_paged_once_the_source_has_shown_that_it_pages() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5 cont=t1")
            .list("10 b@5")
            .watch("ERR410")
            .list("20")
    });
    rig.pass(5.0);
    assert_eq!(rig.calls()[3], "LIST(rv=10,match=NotOlderThan,limit=500)");

    let rig = Rig::with(
        |script| script.list("10"),
        |config| config.page_size = Some(0),
    );
    assert_eq!(rig.calls()[0], "LIST(rv=0)");
}

/// I-R3: an expired token leads to exactly one full list; an expired page one is no such case.
#[test]
fn i_r3_an_expired_token_leads_to_one_full_list() {
    let mut rig = Rig::with(
        |script| {
            script
                .list("10 a@5")
                .watch("ERR410")
                .list("20 a@5 b@6 cont=t1")
                .lists_fail(1, &api(410, "Expired"))
                .list("21 a@5 b@6 c@7")
        },
        |config| config.page_size = Some(2),
    );
    rig.pass(5.0);
    assert_eq!(
        rig.calls()[2..],
        [
            "LIST(rv=10,match=NotOlderThan,limit=2)",
            "LIST(cont=t1,limit=2)",
            "LIST(rv=10,match=NotOlderThan)",
            "WATCH(rv=21)",
        ]
    );
    assert_eq!(
        rig.inputs()[1],
        "=21 [a@5 b@6 c@7]",
        "nothing of the broken list"
    );
}

#[test]
fn i_r3_other_failures_of_a_page_start_the_list_over() {
    let mut rig = Rig::new(|script| {
        script
            .list("20 a@5 cont=t1")
            .lists_fail(1, &cut())
            .list("21 b@6")
    });
    rig.pass(5.0);
    assert_eq!(rig.inputs(), ["=21 [b@6]"]);
}

/// I-R17 and rule "A list is authority": an older list is refused and asked again at the empty
/// version.
#[test]
fn i_r17_a_list_older_than_the_watermark_is_refused() {
    let mut rig = Rig::new(|script| {
        script
            .list("10 a@5")
            .watch("~a@12 ERR410")
            .list("11 a@5")
            .list("13 a@12")
    });
    rig.pass_to_next();
    assert_eq!(
        rig.calls()[2..],
        [
            "LIST(rv=12,match=NotOlderThan)",
            "LIST(rv=,limit=500)",
            "WATCH(rv=13)"
        ]
    );
    assert_eq!(rig.inputs(), ["=10 [a@5]", "~a@12", "=13 [a@12]"]);
    let went_back = Fault::WentBack {
        seen: "12".into(),
        got: "11".into(),
    };
    assert_eq!(rig.errors()[1].fault, went_back);
    assert_eq!((rig.metrics().lists_refused, rig.metrics().resets), (1, 0));
}

/// Rule "A list is authority": only the consistent answer may be older, and it is a declared reset.
#[test]
fn only_a_consistent_older_list_is_a_reset() {
    let mut rig = Rig::new(|script| {
        script
            .list("100 a@50")
            .watch("ERR410")
            .list("30 a@20")
            .list("30 a@20")
            .watch("~a@31")
    });
    rig.pass_to_next();
    assert_eq!(rig.inputs(), ["=100 [a@50]", "=30 [a@20] reset", "~a@31"]);
    assert_eq!(rig.calls().last().unwrap(), "WATCH(rv=30)");
    assert_eq!(rig.metrics().resets, 1);
    assert_eq!(rig.status().last_seen_version.to_string(), "31");
    assert_eq!(rig.errors().last().unwrap().next, NextStep::Reset);
}

#[test]
fn opaque_versions_decide_nothing() {
    let mut rig = Rig::new(|script| {
        script
            .opaque()
            .list("100 a@50")
            .watch("~a@7 BM@3 ERR410")
            .list("1 a@1")
    });
    rig.pass_to_next();
    assert_eq!(
        rig.inputs(),
        ["=100 [a@50]", "~a@7", "BM@3", "=1 [a@1]"],
        "no order, so no refusal and no reset"
    );
    assert_eq!(rig.calls()[2], "LIST(rv=3,match=NotOlderThan)");
}

#[test]
fn c026_c027_same_names_in_several_namespaces_are_several_objects() {
    let rig = Rig::new(|script| {
        script
            .list("10 ns1/x@5 ns2/x@6 /node1@7")
            .watch("-ns1/x@11")
    });
    assert_eq!(rig.inputs(), ["=10 [ns1/x@5 ns2/x@6 node1@7]", "-ns1/x@11"]);
}

#[test]
fn c037_a_list_that_never_works_leaves_its_reason() {
    let missing = api(404, "NotFound");
    let mut rig = Rig::new(|script| script.list_forever(Err(missing.clone())));
    rig.pass(300.0);
    assert!(!rig.status().listed);
    let last = rig.status().last_error.unwrap();
    assert_eq!(last.fault, missing.into());
    assert!(matches!(&last.call, Call::List(_)));
    assert!(rig.calls().len() < 20, "slowly: {}", rig.calls().len());
    assert!(
        matches!(&last.next, NextStep::List { resource_version, .. } if resource_version.to_string() == "0")
    );
}

#[test]
fn c039_an_empty_list_is_a_list() {
    let rig = Rig::new(|script| script.list("10"));
    assert!(rig.status().listed);
    assert_eq!(rig.inputs(), ["=10 []"]);
}

#[test]
fn a_list_that_hangs_is_given_up_and_repeated() {
    let mut rig = Rig::with(
        |script| script,
        |config| config.call_timeout = Duration::from_secs(60),
    );
    rig.pass(59.0);
    assert_eq!((rig.calls().len(), rig.open_calls()), (1, 1));
    rig.pass(1.0);
    assert_eq!(rig.open_calls(), 0);
    assert_eq!(
        rig.errors()[0].fault,
        Fault::NoAnswer(Duration::from_secs(60))
    );
    rig.amend(&["7 a@5"], "");
    rig.pass(2.0);
    assert_eq!(rig.inputs(), ["=7 [a@5]"]);
}

#[test]
fn throttled_lists_wait_as_long_as_the_server_wishes() {
    let mut rig = Rig::new(|script| script.lists_fail(1, &throttled(17)).list("7"));
    assert_eq!(rig.pass_to_next(), Duration::from_secs(17));
    assert!(rig.status().listed);
}

#[test]
fn refused_connections_repeat_the_list_at_the_same_version() {
    let mut rig = Rig::new(|script| script.lists_fail(3, &refused()).list("7"));
    rig.pass(30.0);
    assert_eq!(rig.count_calls("LIST(rv=0"), 4);
}

#[test]
fn a_wanted_relist_asks_for_the_most_recent_state_at_once() {
    let mut rig = Rig::new(|script| script.list("10 a@5").watch("+b@12").list("13 a@5"));
    rig.handle.relist();
    rig.handle.relist();
    rig.settle();
    assert_eq!(rig.inputs(), ["=10 [a@5]", "+b@12", "=13 [a@5]"]);
    assert_eq!(rig.calls()[2..], ["LIST(rv=,limit=500)", "WATCH(rv=13)"]);
    assert_eq!((rig.errors().len(), rig.open_calls()), (0, 1));
}
