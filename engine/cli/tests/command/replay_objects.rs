//! Faults of objects are reported, kept in quarantine, and do not stop the replay.
use crate::informant::{event, list, replay};
use serde_json::json;

const NAMELESS: &str = r#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}"#;

#[test]
fn the_run_goes_on_to_the_end_and_counts_them() {
    let run = replay(
        &[
            &list(5, &["a@1", "b@2"]),
            NAMELESS,
            r#"{"type":"MODIFIED","object":{"metadata":{"namespace":"ns","name":"a","resourceVersion":"8","labels":[]}}}"#,
            &event("ADDED", "c@9"),
        ],
        &["--json", "--index", "label:name"],
    );
    assert_eq!(run.code, 2);
    let report = run.json();
    assert_eq!(report["errors"], 2);
    assert_eq!(report["objects"], 3);
    assert_eq!(report["resourceVersion"], "9");
    assert_eq!(
        report["indexes"]["label:name"],
        json!({"a": 1, "b": 1, "c": 1})
    );
    let quarantine = report["quarantine"].as_array().unwrap();
    assert_eq!(quarantine.len(), 2);
    let of_a = quarantine.iter().find(|bad| bad["key"] == "ns/a").unwrap();
    assert_eq!(
        (&of_a["lastGood"], &of_a["failedVersion"]),
        (&json!("1"), &json!("8"))
    );
    let told: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(told.len(), 2);
    assert!(told[0].starts_with("FILE:2: object of unknown key at version \"7\" cannot be used: the object has no metadata.name"), "{}", told[0]);
    assert!(
        told[1].starts_with(
            "FILE:3: object ns/a at version \"8\" cannot be used: metadata.labels is an array"
        ),
        "{}",
        told[1]
    );
}

#[test]
fn bad_items_of_a_list_do_not_take_others_with_them() {
    let mut frame = list(5, &["a@1", "b@2"]);
    frame = frame.replace(r#""items":["#, r#""items":[null,7,"text",[],{},{"metadata":{"name":"x","resourceVersion":3}},{"metadata":{"name":"y","resourceVersion":"4"},"spec":{"n":1e999}},"#);
    let run = replay(&[&frame], &["--json"]);
    let report = run.json();
    assert_eq!(
        (run.code, &report["errors"], &report["objects"]),
        (2, &json!(7), &json!(2))
    );
    assert_eq!(run.stderr.lines().count(), 7);
    assert!(
        run.stderr.contains(
            "object x at version \"\" cannot be used: metadata.resourceVersion is a number"
        )
    );
    assert!(run.stderr.contains(
        "object y at version \"4\" cannot be used: it cannot be decoded: number out of range"
    ));
}

#[test]
fn a_good_version_a_deletion_or_a_relist_ends_a_quarantine() {
    let bad = |kind: &str, version: u32| {
        format!(
            r#"{{"type":"{kind}","object":{{"metadata":{{"namespace":"ns","name":"a","resourceVersion":"{version}","annotations":7}}}}}}"#
        )
    };
    let (before, fault) = (list(5, &["a@1"]), bad("MODIFIED", 6));
    for (ending, objects) in [
        (event("MODIFIED", "a@7"), 1),
        (event("DELETED", "a@7"), 0),
        (list(7, &[]), 0),
        (list(7, &["a@7"]), 1),
    ] {
        let run = replay(&[&before, &fault, &ending], &["--json"]);
        let report = run.json();
        assert_eq!(run.code, 2, "{ending}");
        assert_eq!(
            (&report["errors"], &report["quarantine"]),
            (&json!(1), &json!([])),
            "{ending}"
        );
        assert_eq!(report["objects"], objects, "{ending}");
    }
    // A deletion counts even if the last state cannot be used, as long as the key is known.
    let report = replay(&[&before, &bad("DELETED", 6)], &["--json"]).json();
    assert_eq!(
        (&report["errors"], &report["objects"]),
        (&json!(1), &json!(0))
    );
}

#[test]
fn an_object_of_another_kind_is_a_fault_and_touches_nothing() {
    let node = event("DELETED", "a@6").replace(r#"{"metadata""#, r#"{"kind":"Node","metadata""#);
    let run = replay(&[&list(5, &["a@1"]), &node], &["--json"]);
    let report = run.json();
    assert_eq!(
        (run.code, &report["errors"], &report["objects"]),
        (2, &json!(1), &json!(1))
    );
    assert!(
        run.stderr
            .contains("ns/a is a Node in a stream of Pod objects"),
        "{}",
        run.stderr
    );
}

#[test]
fn what_looks_odd_and_is_no_fault() {
    let lines = [
        // Of a key that stands twice, the later one counts.
        r#"{"type":"LIST","object":{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"x","name":"a","resourceVersion":"1"}}]}}"#,
        // Numbers too long for any integer, if they are still numbers.
        r#"{"type":"ADDED","object":{"metadata":{"name":"b","resourceVersion":"6"},"spec":{"n":123456789012345678901234567890,"m":1e-400}}}"#,
        // Unknown fields anywhere.
        r#"{"more":[1],"type":"ADDED","object":{"metadata":{"name":"c","resourceVersion":"7","new":{}},"x":null}}"#,
        // A type with an escape in it.
        r#"{"type":"\u0041DDED","object":{"metadata":{"name":"d","resourceVersion":"8","labels":null}}}"#,
    ];
    let run = replay(&lines, &["--json", "--index", "metadata.name"]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    assert_eq!(
        run.json()["indexes"]["metadata.name"],
        json!({"a": 1, "b": 1, "c": 1, "d": 1})
    );
}
