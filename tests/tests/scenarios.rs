//! Every scenario passes, every expectation in one can fail, and every case is covered.
use informant_tests::scenario::{Scenario, cases, run, self_check};
use std::path::Path;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn all() -> Vec<(String, Scenario)> {
    let files = cases::files(&folder().join("scenarios"), "yaml").unwrap();
    let read = |file: std::path::PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let scenario = Scenario::read(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        (name, scenario)
    };
    files.into_iter().map(read).collect()
}

/// Panics that scenarios ask for are caught by the engine.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<&str>().copied();
            let text = text.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
            if !text.is_some_and(|text| text.contains("the scenario asks for")) {
                loud(info);
            }
        }));
    });
}

#[test]
fn every_scenario_passes() {
    quiet();
    let mut failed = Vec::new();
    for (name, scenario) in all() {
        match run(&scenario) {
            Ok(failures) => {
                failed.extend(failures.iter().map(|failure| format!("{name}: {failure}")));
            }
            Err(error) => failed.push(error.to_string()),
        }
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

#[test]
fn every_expectation_can_fail() {
    quiet();
    let mut survivors = Vec::new();
    for (name, scenario) in all() {
        let (count, alive) = self_check(&scenario).unwrap();
        assert!(count > 0, "{name} expects nothing");
        survivors.extend(alive.iter().map(|failure| format!("{name}: {failure}")));
    }
    assert!(survivors.is_empty(), "\n{}", survivors.join("\n"));
}

#[test]
fn every_case_is_covered_and_each_component_by_scenarios() {
    let cases = cases::list(&folder().join("..")).unwrap();
    assert_eq!(cases.len(), 104);
    let bare: Vec<_> = cases.iter().filter(|case| !case.is_covered()).collect();
    assert!(bare.is_empty(), "nothing runs for {bare:?}");
    for component in [
        "reflector",
        "deltafifo",
        "indexer",
        "sharedinformer",
        "workqueue",
    ] {
        let count = cases
            .iter()
            .filter(|case| case.component == component && !case.scenarios.is_empty())
            .count();
        assert!(count >= 5, "{component} has {count} scenarios");
    }
}

/// What is said of a scenario that is not in the language.
fn error(text: &str) -> String {
    match Scenario::read("x.yaml", text).and_then(|scenario| run(&scenario)) {
        Err(error) => error.to_string(),
        Ok(failures) => panic!("it was read: {failures:?}"),
    }
}

#[test]
fn errors_name_file_and_line_and_what_was_perhaps_meant() {
    let expect = "expect: {store: []}\n";
    for (text, expected) in [
        (
            format!("id: C1\nhanlders: {{}}\n{expect}"),
            r#"x.yaml:2: unknown key "hanlders"; did you mean "handlers"?"#,
        ),
        (
            format!("steps:\n  - strat\n{expect}"),
            r#"x.yaml:2: unknown step "strat"; did you mean "start"?"#,
        ),
        (
            "expect:\n  stroe: []\n".to_owned(),
            r#"x.yaml:2: unknown expectation "stroe"; did you mean "store"?"#,
        ),
        (
            format!("transport:\n  - LITS -> rv=1 []\n{expect}"),
            r#"x.yaml:2: unknown request "LITS"; did you mean "LIST"?"#,
        ),
        (
            format!("transport:\n  - WATCH -> +a@1, EOFF\n{expect}"),
            r#"x.yaml:2: unknown frame "EOFF"; did you mean "EOF"?"#,
        ),
        (
            format!("transport:\n  - LIST rv=1\n{expect}"),
            "x.yaml:2: \"LIST rv=1\" has no answer",
        ),
        (
            format!("steps:\n  - advance: 5 parsecs\n{expect}"),
            r#"x.yaml:2: "parsecs" is no unit of time"#,
        ),
        (
            "steps: [start]\n".to_owned(),
            "x.yaml:1: the scenario expects nothing",
        ),
        ("a: [1\nb: 2\n".to_owned(), "this is no YAML"),
        (String::new(), "x.yaml:1: the file is empty"),
        (
            "id: a\nid: b\n".to_owned(),
            r#"x.yaml:2: the key "id" stands here twice"#,
        ),
        (
            "work_queue:\nsteps: [{addd: a}]\nexpect: {len: 0}\n".to_owned(),
            r#"unknown step "addd"; did you mean "add"?"#,
        ),
        (
            "queue:\nsteps: [{replace: a}]\nexpect: {store: []}\n".to_owned(),
            "write rv=20 [a@5, b@6]",
        ),
        (
            "expect: {calls: [ADDED(a@1)]}\n".to_owned(),
            r#"unknown call "ADDED"; did you mean "ADD"?"#,
        ),
    ] {
        let actual = error(&text);
        assert!(
            actual.contains(expected),
            "{text}\n  {actual}\n  {expected}"
        );
    }
}

#[test]
fn a_failure_shows_what_was_expected_and_what_happened() {
    let text = "transport:\n  - LIST -> rv=10 [a@5]\nexpect:\n  calls: [ADD*(b@5)]\n";
    let scenario = Scenario::read("x.yaml", text).unwrap();
    let failures = run(&scenario).unwrap();
    assert_eq!(failures.len(), 1);
    let text = failures[0].to_string();
    assert!(
        text.starts_with("line 4: calls: calls of handler h differ"),
        "{text}"
    );
    assert!(
        text.contains("ADD*(b@5)") && text.contains("ADD*(a@5)"),
        "{text}"
    );
}
