//! Whatever the transport answers: the rules of the resume point, against an oracle that reads the
//! common history of calls and queue inputs.
use super::rig::{Outcome, Rig, api, cut, page, refused, throttled, too_large};
use crate::clock::Clock;
use crate::source::ListPage;
use proptest::prelude::*;

/// A list answer: a version, a few objects, sometimes another page, sometimes a failure.
fn list_answer() -> impl Strategy<Value = Outcome<ListPage<String>>> {
    let good = (1_u8..20, 0_u8..8).prop_map(|(version, shape)| {
        Ok(page(&match shape {
            0 => "_ a@1".to_owned(),
            1 => format!("{version} a@1 cont=t"),
            2 => format!("{version} bad:a@1 bad:?@2"),
            3 => format!("{version} a@"),
            _ => format!("{version} a@1 b@2"),
        }))
    });
    let failed = prop_oneof![
        Just(api(410, "Expired")),
        Just(api(500, "InternalError")),
        Just(api(403, "Forbidden")),
        Just(throttled(7)),
        Just(too_large()),
        Just(cut()),
        Just(refused()),
    ];
    prop_oneof![3 => good, 1 => failed.prop_map(Err)]
}

fn frame() -> impl Strategy<Value = String> {
    let version = 1_u8..25;
    prop_oneof![
        6 => (prop::sample::select(vec!["+", "~", "-"]), 0_u8..3, version.clone())
            .prop_map(|(verb, key, version)| format!("{verb}k{key}@{version}")),
        2 => version.clone().prop_map(|version| format!("BM@{version}")),
        2 => version.clone().prop_map(|version| format!("BM@{version}(end)")),
        1 => version.clone().prop_map(|version| format!("bad:k@{version}")),
        1 => version.clone().prop_map(|version| format!("bad:-k@{version}")),
        1 => version.prop_map(|version| format!("bad:?@{version}")),
        1 => prop::sample::select(vec!["+a@", "BM@", "BM@(end)", "TABLE", "3s", "40s"])
            .prop_map(str::to_owned),
    ]
}

fn watch_script() -> impl Strategy<Value = String> {
    let end = prop::sample::select(vec![
        "EOF", "EOF", "CUT", "TIMEOUT", "ERR410", "ERR429", "ERR500", "ERR403", "STORE",
        "TOOLARGE", "",
    ]);
    (prop::collection::vec(frame(), 0..5), end)
        .prop_map(|(frames, end)| format!("{} {end}", frames.join(" ")))
}

/// The version in `LIST(rv=7,limit=500)`, `WATCH(init,rv=7)`, `+k@7`, `=7 [...]`, `BM@7`.
fn version_in(entry: &str) -> Option<u64> {
    let start = entry.find(['@', '=']).map(|at| at + 1)?;
    let digits: String = entry[start..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// The resume rule, read off the history: what is asked for next is what was last accepted.
fn check_resume_rule(history: &[String]) -> Result<(), TestCaseError> {
    let mut seen: Option<u64> = None;
    let mut asked_for_most_recent = false;
    for entry in history {
        let version = version_in(entry);
        if entry.starts_with("LIST(cont") {
            continue;
        }
        if entry.starts_with("LIST") || entry.starts_with("WATCH(init") {
            asked_for_most_recent = version.is_none();
            let fresh = seen.is_none() && version == Some(0);
            prop_assert!(
                asked_for_most_recent || fresh || version == seen,
                "{entry}, seen {seen:?}"
            );
        } else if entry.starts_with("WATCH") {
            // I-R5, I-R17, and never from an empty version.
            prop_assert!(
                version.is_some() && version == seen,
                "{entry}, seen {seen:?}"
            );
        } else if let Some(list) = entry.strip_prefix('=') {
            let version = version_in(&format!("={list}"));
            let back = version < seen;
            prop_assert_eq!(back, entry.ends_with("reset"), "{}, seen {:?}", entry, seen);
            prop_assert!(
                !back || asked_for_most_recent,
                "{} was not consistent",
                entry
            );
            seen = version;
        } else {
            prop_assert!(seen.is_some(), "{entry} before a list");
            seen = seen.max(version);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// I-R6, I-R8, I-R12, I-R13, I-R17 for any behaviour of the transport.
    #[test]
    fn whatever_the_transport_answers_nothing_is_skipped_and_nothing_spins(
        lists in prop::collection::vec(list_answer(), 0..12),
        watches in prop::collection::vec(watch_script(), 0..12),
        streaming in any::<bool>(),
        stop_after in 0_u32..2000,
    ) {
        let mut rig = Rig::with(
            |mut script| {
                script.streaming = streaming;
                let script = lists.into_iter().fold(script, super::rig::Script::list_answer);
                watches.iter().fold(script, |script, watch| script.watch(watch))
            },
            |config| config.page_size = Some(2),
        );
        rig.pass(f64::from(stop_after));
        check_resume_rule(&rig.history())?;
        prop_assert!(rig.most_open_streams() <= 1);
        prop_assert!(rig.open_calls() <= 1);

        let now = rig.clock.now();
        rig.stop.stop();
        rig.settle();
        prop_assert!(rig.end.is_some());
        prop_assert_eq!((rig.open_calls(), rig.clock.next_deadline()), (0, None));
        prop_assert_eq!(rig.clock.now(), now);
    }

    /// However it was treated, it is there again soon after the transport is well.
    #[test]
    fn a_transport_that_is_well_again_is_followed_again(
        lists in prop::collection::vec(list_answer(), 0..8),
        watches in prop::collection::vec(watch_script(), 0..8),
        streaming in any::<bool>(),
    ) {
        let mut rig = Rig::with(
            |mut script| {
                script.streaming = streaming;
                let script = lists.into_iter().fold(script, super::rig::Script::list_answer);
                let script = watches.iter().fold(script, |script, watch| script.watch(watch));
                script.list_forever(Ok(page("100 a@1"))).watch_forever("BM@200 BM@200(end)")
            },
            |_| {},
        );
        rig.pass(3600.0);
        prop_assert_eq!(rig.status().last_seen_version, "200".into());
        check_resume_rule(&rig.history())?;
    }
}
