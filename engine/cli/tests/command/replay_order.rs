//! Frames in every order in which they may come.
use crate::informant::{GONE, bookmark, event, list, page, replay, replay_bytes};
use serde_json::{Value, json};

fn report(lines: &[&str], arguments: &[&str]) -> Value {
    let mut all = vec!["--json", "--index", "label:name"];
    all.extend(arguments);
    let run = replay(lines, &all);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.json()
}

/// The names of the objects, and the version.
fn state(lines: &[&str], arguments: &[&str]) -> (String, String) {
    let report = report(lines, arguments);
    let names = report["indexes"]["label:name"].as_object().unwrap();
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    let version = report["resourceVersion"].as_str().unwrap();
    (names.join(" "), version.to_owned())
}

fn at(names: &str, version: &str) -> (String, String) {
    (names.to_owned(), version.to_owned())
}

#[test]
fn only_the_last_page_of_a_list_publishes() {
    let lines = [
        &*list(5, &["old@1"]),
        &page(9, &["a@6"]),
        &page(9, &["b@7"]),
        &list(9, &["c@8"]),
        &event("ADDED", "d@10"),
    ];
    assert_eq!(state(&lines, &[]), at("a b c d", "10"));
    assert_eq!(state(&lines, &["--until", "9"]), at("a b c", "9"));
    assert_eq!(state(&lines, &["--until", "8"]), at("old", "5"));
    // The pages stop before the list is whole, because of --until: no fault.
    let unfinished = [&*list(5, &["old@1"]), &page(9, &["a@6"])];
    assert_eq!(state(&unfinished, &["--until", "8"]), at("old", "5"));
}

#[test]
fn an_error_abandons_a_list_that_is_under_way() {
    let lines = [
        &*list(5, &["old@1"]),
        &page(9, &["a@6"]),
        GONE,
        &list(12, &["b@10"]),
    ];
    assert_eq!(state(&lines, &[]), at("b", "12"));
}

#[test]
fn an_error_counts_with_the_frame_before_it() {
    let lines = [
        &*list(5, &["a@1"]),
        &event("ADDED", "b@7"),
        GONE,
        &list(20, &["c@15"]),
    ];
    let until = |version: &str| report(&lines, &["--until", version])["frames"]["ERROR"].clone();
    assert_eq!(until("6"), 0);
    assert_eq!(until("7"), 1);
    assert_eq!(state(&lines, &["--until", "19"]), at("a b", "7"));
    assert_eq!(state(&lines, &["--until", "20"]), at("c", "20"));
    // After the last frame, it ends nothing.
    assert_eq!(state(&lines[..3], &[]), at("a b", "7"));
}

#[test]
fn an_error_may_come_first_and_one_that_is_not_expired_needs_no_list() {
    assert_eq!(state(&[GONE, &list(5, &["a@1"])], &[]), at("a", "5"));
    assert_eq!(state(&[GONE], &[]), at("", ""));
    let internal =
        r#"{"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError"}}"#;
    let lines = [&*list(5, &["a@1"]), internal, &event("ADDED", "b@6")];
    assert_eq!(state(&lines, &[]), at("a b", "6"));
}

#[test]
fn a_streaming_list_replaces_at_its_bookmark() {
    let end = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"20","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    let lines = [
        &*list(5, &["ghost@1", "b@2"]),
        GONE,
        &event("ADDED", "c@15"),
        &event("ADDED", "b@2"),
        &event("ADDED", "gone@12"),
        &event("DELETED", "gone@17"),
        end,
        &event("ADDED", "d@21"),
    ];
    assert_eq!(state(&lines, &[]), at("b c d", "21"));
    assert_eq!(state(&lines, &["--until", "20"]), at("b c", "20"));
    assert_eq!(state(&lines, &["--until", "18"]), at("b ghost", "5"));
}

#[test]
fn frames_before_any_list_are_what_the_watch_told() {
    let lines = [
        &*event("ADDED", "a@9"),
        &event("ADDED", "b@4"),
        &event("MODIFIED", "c@10"),
    ];
    assert_eq!(state(&lines, &[]), at("a b c", "10"));
    assert_eq!(report(&lines, &[])["synced"], false);
    assert_eq!(report(&[&list(1, &[])], &[])["synced"], true);
    let text = replay(&lines, &[]).stdout;
    assert!(text.contains("no list in the stream"), "{text}");
}

#[test]
fn frames_that_change_nothing() {
    let lines = [
        &*list(5, &["a@1"]),
        // Unknown, older than what is known, the same again.
        &event("DELETED", "z@6"),
        &event("MODIFIED", "a@8"),
        &event("DELETED", "a@7"),
        &event("ADDED", "a@8"),
        &bookmark(9),
    ];
    assert_eq!(state(&lines, &[]), at("a", "9"));
}

#[test]
fn a_list_at_a_lower_version_is_a_reset() {
    let lines = [
        &*list(100, &["a@90", "b@91"]),
        &list(50, &["a@40"]),
        &event("ADDED", "c@51"),
    ];
    let run = replay(&lines, &["--json", "--index", "label:name"]);
    assert_eq!(run.code, 0);
    assert_eq!(
        run.stderr.trim_end(),
        "FILE:2: the list is at version 50, below 100: taken as a reset of the source, as after a restore"
    );
    let report = run.json();
    assert_eq!(
        (&report["resets"], &report["resourceVersion"]),
        (&json!(1), &json!("51"))
    );
    assert_eq!(report["indexes"]["label:name"], json!({"a": 1, "c": 1}));
}

#[test]
fn until_compares_versions_as_numbers_of_any_length() {
    let long = "12345678901234567890123";
    let lines = [
        &*list(9, &["a@1"]),
        &event("ADDED", "b@10"),
        &event("ADDED", &format!("c@{long}")),
    ];
    assert_eq!(state(&lines, &["--until", "9"]), at("a", "9"));
    assert_eq!(state(&lines, &["--until", "10"]), at("a b", "10"));
    assert_eq!(
        state(&lines, &["--until", "12345678901234567890122"]),
        at("a b", "10")
    );
    assert_eq!(state(&lines, &["--until", long]), at("a b c", long));
    assert_eq!(state(&lines, &["--until", "8"]), at("", ""));
}

#[test]
fn ends_of_lines_blank_lines_and_a_byte_order_mark_are_no_matter() {
    let (first, second) = (list(5, &["a@1"]), event("ADDED", "b@6"));
    for bytes in [
        format!("\u{feff}{first}\r\n\r\n  \n{second}\r\n"),
        format!("{first}\n{second}"),
        format!("  {first}\t\n\n\n{second}\n\n"),
    ] {
        let run = replay_bytes(bytes.as_bytes(), &["--json"]);
        assert_eq!((run.code, &*run.stderr), (0, ""), "{bytes:?}");
        assert_eq!(run.json()["objects"], 2, "{bytes:?}");
    }
}
