//! Faults of the stream stop with one error that names file and line, and exit code 2.
use crate::informant::{
    GONE, bookmark, event, informant, informant_fed, list, page, replay, replay_bytes,
};

fn fault(lines: &[&str]) -> String {
    replay(lines, &[]).fault().to_owned()
}

#[test]
fn a_file_that_is_not_there_or_is_a_directory() {
    let run = informant(&["replay", "no/such/file"]);
    assert!(
        run.fault().starts_with("no/such/file: cannot be opened:"),
        "{}",
        run.stderr
    );
    let directory = env!("CARGO_TARGET_TMPDIR");
    let run = informant(&["replay", directory]);
    assert!(
        run.fault()
            .starts_with(&format!("{directory}: is a directory")),
        "{}",
        run.stderr
    );
}

#[test]
fn a_file_without_a_frame() {
    for bytes in [&b""[..], b"\n", b"\n \t\r\n\n", b"\xef\xbb\xbf"] {
        let run = replay_bytes(bytes, &[]);
        assert!(
            run.fault().starts_with("FILE: holds no frame"),
            "{}",
            run.stderr
        );
    }
    assert!(
        informant_fed(&["replay", "-"], b"")
            .fault()
            .starts_with("-: holds no frame")
    );
}

#[test]
fn broken_json_names_its_line_and_column() {
    let good = list(1, &["a@1"]);
    for (line, says) in [
        (
            "{",
            "FILE:3: broken frame at column 1: EOF while parsing an object",
        ),
        (
            "nonsense",
            "FILE:3: broken frame at column 2: expected ident",
        ),
        ("[]", "FILE:3: broken frame at column 1: an array"),
        (
            r#"{"type":"ADDED","object":{"a":}}"#,
            "FILE:3: broken frame at column 31",
        ),
        (
            r#"{"type":"ADDED","object":{}} trailing"#,
            "FILE:3: broken frame at column 30: trailing characters",
        ),
        (
            r#"{"type":"ADDED","object":{}}{"type":"ADDED","object":{}}"#,
            "trailing characters",
        ),
        (
            "{\"type\":\"ADDED\",\"object\":{}}\0",
            "trailing characters",
        ),
        ("{\"type\":\"AD\0DED\",\"object\":{}}", "control character"),
        (
            r#"{"type":"ADDED","type":"ADDED","object":{}}"#,
            "duplicate field `type`",
        ),
        (r#"{"type":"ADDED"}"#, "missing field `object`"),
        (
            r#"{"type":null,"object":{}}"#,
            "FILE:3: broken frame at column 12: invalid type: null",
        ),
        ("\u{feff}{}", "FILE:3: broken frame"),
    ] {
        let found = fault(&[&good, "", line, &good]);
        assert!(found.contains(says), "{line}: {found}");
    }
}

#[test]
fn nesting_is_limited_whatever_its_form() {
    let deep = [
        "[".repeat(200_000),
        r#"{"a":"#.repeat(200_000),
        format!(
            r#"{{"type":"ADDED","object":{}}}"#,
            r#"{"a":"#.repeat(100_000)
        ),
        format!(
            r#"{{"type":"LIST","object":{{"metadata":{{"resourceVersion":"1"}},"items":[],"x":{}{}}}}}"#,
            "[".repeat(1000),
            "]".repeat(1000)
        ),
    ];
    for line in deep {
        assert_eq!(
            fault(&[&line]),
            "FILE:1: the JSON is nested more than 127 levels deep"
        );
    }
}

#[test]
fn bytes_that_are_not_text() {
    let mut bytes = list(1, &["a@1"]).into_bytes();
    bytes.extend(b"\n{\"type\":\"\xff\"}\n");
    let run = replay_bytes(&bytes, &[]);
    assert_eq!(run.fault(), "FILE:2: bytes that are not UTF-8 at column 10");
    // Text in another encoding, and no text at all.
    for bytes in [
        &b"\xff\xfe{\0}\0"[..],
        b"\x7fELF\x02\x01\x01\xff",
        b"BZh91AY&SY\xe1",
    ] {
        assert!(replay_bytes(bytes, &[]).fault().starts_with("FILE:1: "));
    }
}

#[test]
fn a_frame_of_unknown_type() {
    let frame = r#"{"type":"PATCHED","object":{}}"#;
    assert_eq!(
        fault(&[frame]),
        "FILE:1: unknown frame type \"PATCHED\", expected LIST, ADDED, MODIFIED, DELETED, BOOKMARK or ERROR"
    );
    assert!(fault(&[&frame.replace("PATCHED", "added")]).contains("unknown frame type"));
}

#[test]
fn a_list_that_is_none() {
    for (object, says) in [
        (r#"{"items":[]}"#, "no metadata.resourceVersion"),
        (
            r#"{"metadata":{"resourceVersion":""},"items":[]}"#,
            "no metadata.resourceVersion",
        ),
        (
            r#"{"metadata":{"resourceVersion":7},"items":[]}"#,
            "resourceVersion is a number",
        ),
        (
            r#"{"metadata":{"resourceVersion":"7"},"items":{}}"#,
            "items is an object",
        ),
        (r#"{"metadata":{"resourceVersion":"7"}}"#, "items is null"),
        (
            r#"{"kind":"Status","code":403}"#,
            "no metadata.resourceVersion",
        ),
        ("null", "object is null"),
    ] {
        let found = fault(&[&format!(r#"{{"type":"LIST","object":{object}}}"#)]);
        assert!(
            found.starts_with("FILE:1: ") && found.contains(says),
            "{object}: {found}"
        );
    }
}

#[test]
fn a_line_over_the_limit() {
    let frame = list(1, &["a@1"]);
    let exact = frame.len().to_string();
    assert_eq!(replay(&[&frame], &["--max-line", &exact]).code, 0);
    let less = (frame.len() - 1).to_string();
    let run = replay(&[&bookmark(1), &frame], &["--max-line", &less]);
    assert_eq!(
        run.fault(),
        format!("FILE:2: the line is longer than {less} bytes; --max-line allows more")
    );
    // The last line of a file may lack its end; that does not make it shorter.
    let run = replay_bytes(frame.as_bytes(), &["--max-line", &less]);
    assert!(run.fault().starts_with("FILE:1: the line is longer"));
}

#[test]
fn a_list_that_does_not_end() {
    let first = page(5, &["a@1"]);
    assert!(fault(&[&first]).starts_with("FILE:1: the file ends inside a list"));
    assert!(fault(&[&list(4, &[]), &first, &first]).starts_with("FILE:3: the file ends"));
    assert!(
        fault(&[&first, &event("ADDED", "b@6")]).starts_with("FILE:2: a watch frame inside a list")
    );
    assert!(fault(&[&first, &bookmark(6)]).contains("a BOOKMARK frame inside a list"));
    assert!(
        fault(&[&first, &list(6, &[])])
            .starts_with("FILE:2: this page is of version 6, but the list began at 5")
    );
    let cut_off = fault(&[&list(4, &[]), GONE, &event("ADDED", "b@6")]);
    assert!(
        cut_off.starts_with("FILE:3: the file ends inside a streaming list"),
        "{cut_off}"
    );
}

#[test]
fn a_bookmark_without_a_version_and_an_error_without_a_status() {
    let says = fault(&[r#"{"type":"BOOKMARK","object":{"metadata":{}}}"#]);
    assert_eq!(
        says,
        "FILE:1: the BOOKMARK frame has no metadata.resourceVersion"
    );
    let says = fault(&[r#"{"type":"ERROR","object":"gone"}"#]);
    assert_eq!(
        says,
        "FILE:1: the ERROR frame's object is a string, expected a Status"
    );
}

#[test]
fn a_list_of_another_kind() {
    let nodes = list(2, &[]).replace("PodList", "NodeList");
    assert_eq!(
        fault(&[&list(1, &[]), &nodes]),
        "FILE:2: a list of Node in a stream of Pod: one file holds one collection"
    );
}

#[test]
fn a_version_that_until_cannot_be_compared_with() {
    let opaque = list(1, &[]).replace("\"1\"", "\"abc\"");
    let run = replay(&[&opaque], &["--until", "5"]);
    assert!(
        run.fault()
            .starts_with("FILE:1: the version abc cannot be compared with --until"),
        "{}",
        run.stderr
    );
    assert_eq!(
        replay(&[&opaque], &["--json"]).json()["resourceVersion"],
        "abc"
    );
}

#[test]
fn wrong_arguments_are_exit_code_2_and_say_why() {
    for (arguments, says) in [
        (&["replay"][..], "<FILE>"),
        (
            &["replay", "f", "--until", "abc"],
            "a version must be a decimal number",
        ),
        (&["replay", "f", "--until", "-1"], "unexpected argument"),
        (&["replay", "f", "--index", "a..b"], "is no field path"),
        (&["replay", "f", "--max-line", "0"], "is no size"),
        (&["replay", "f", "--max-line", "many"], "is no size"),
        (&["reply", "f"], "unrecognized subcommand"),
    ] {
        let run = informant(arguments);
        assert_eq!(run.code, 2, "{arguments:?}");
        assert!(run.stderr.contains(says), "{arguments:?}: {}", run.stderr);
    }
}
