//! Every scenario passes, every expectation in one can fail, and what is no scenario is told so.
use informant_tests::scenario::document::{self, read};
use informant_tests::scenario::files::{Tally, files, own_scenarios, run, self_check};
use informant_tests::scenario::play::play;
use informant_tests::scenario::{check, settings, step};
use std::collections::BTreeSet;
use std::path::Path;

fn all(of: impl Fn(&Path) -> Tally) -> Tally {
    let mut tally = Tally::default();
    for file in files(&own_scenarios()).unwrap() {
        tally.add(of(&file));
    }
    let failed: Vec<_> = tally.failed.iter().map(ToString::to_string).collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    tally
}

#[test]
fn every_scenario_passes() {
    assert!(all(run).passed >= 104);
}

#[test]
fn every_expectation_can_fail() {
    assert!(all(self_check).passed >= 500);
}

fn trouble(text: &str) -> String {
    read(text).expect_err("it is wrong").to_string()
}

/// Line, column, what is wrong, and what was perhaps meant.
#[test]
fn mistakes_are_told_with_their_place_and_a_suggestion() {
    for (text, told) in [
        (
            "title: x\nstpes: []\n",
            "2:1: unknown key \"stpes\" (did you mean \"steps\"?)",
        ),
        (
            "steps:\n  - advnace: 3s\n",
            "2:5: unknown verb \"advnace\" (did you mean \"advance\"?)",
        ),
        (
            "steps:\n  - expect: {clals: []}\n",
            "2:14: unknown expectation \"clals\" (did you mean \"calls\"?)",
        ),
        (
            "steps:\n  - LIST(limits=2) -> rv=1 []\n",
            "2:5: unknown option of a request \"limits\" (did you mean \"limit\"?)",
        ),
        ("steps:\n  - LIST -> 4x4\n", "2:5: unknown answer \"4x4\""),
        (
            "steps:\n  - WATCH: +a\n",
            "2:12: the frame about a has no version",
        ),
        (
            "steps:\n  - advance: 3\n",
            "2:14: \"3\" is no time span (write a number with a unit",
        ),
        (
            "steps:\n  - expect: {calls: [UPDATE(a@1)]}\n",
            "unknown call \"UPDATE\"",
        ),
        ("steps: [\n", "bad YAML"),
        ("steps:\n  - s1: WATCH(rv=1): x\n", "put the text in quotes"),
        (
            "handlers: {h: {polcy: coalesce}}\nsteps: []\n",
            "1:16: unknown key of a handler \"polcy\" (did you mean \"policy\"?)",
        ),
        (
            "steps:\n  - settle\n",
            "nothing is expected in this scenario",
        ),
        (
            "steps:\n  - add(a); gte -> a\n",
            "unknown verb \"gte\" (did you mean \"get\"?)",
        ),
        (
            "steps:\n  - {add_handler: h, gives: stoped}\n",
            "unknown outcome \"stoped\" (did you mean \"stopped\"?)",
        ),
        ("- a\n- b\n", "a scenario is a mapping, not a list"),
        ("", "the file holds no scenario"),
    ] {
        let seen = trouble(text);
        assert!(seen.contains(told), "{text}\n{seen}\n{told}");
    }
}

fn failure(text: &str) -> String {
    let scenario = read(text).unwrap().remove(0);
    play(&scenario).expect_err("it fails").message
}

/// What came instead of what was expected.
#[test]
fn failures_show_the_difference() {
    let list = "steps:\n  - LIST -> rv=10 [a@5]\n";
    for (text, parts) in [
        (
            format!("{list}  - expect: {{store: [b@5]}}\n"),
            vec!["store: expected {b@5}, found {a@5}"],
        ),
        (
            format!("{list}  - WATCH(rv=11)\n"),
            vec![
                "expected request: WATCH(rv=11)",
                "the engine asked:  WATCH(rv=10)",
            ],
        ),
        (
            format!("{list}  - LIST -> rv=11 []\n"),
            vec!["expected request: LIST", "the engine asked:  WATCH(rv=10)"],
        ),
        (
            format!("{list}  - expect: {{calls: [ADD*(a@6)]}}\n"),
            vec!["ADD*(a@6)", "ADD*(a@5)   <- not as expected from here on"],
        ),
        (
            format!("{list}  - expect: {{errors: [410]}}\n"),
            vec!["expected errors: 410", "came: none"],
        ),
        (
            format!("{list}  - \"WATCH: EOF\"\n  - +a@6\n  - EOF\n  - +a@7\n"),
            vec!["no watch is open"],
        ),
        (
            "steps:\n  - add(a); get -> b\n".to_owned(),
            vec!["get: expected b, got a"],
        ),
    ] {
        let seen = failure(&text);
        for part in parts {
            assert!(seen.contains(part), "{text}\n{seen}\n{part}");
        }
    }
}

/// The long forms say what the compact ones say.
#[test]
fn the_long_forms_work_like_the_compact_ones() {
    let text = "
sources: {s1: {namespace: ns1}, s2: {namespace: ns2}}
steps:
  - list: {rv: 0, namespace: ns1}
    source: s1
    answer:
      rv: 10
      objects:
        - {key: ns1/a, uid: u1, version: 5, fields: {zone: z1}}
        - bad: {namespace: ns1, name: broken, version: 6}
  - s2 LIST -> rv=7 [ns2/b@6]
  - watch: {rv: 10}
    source: s1
    frames:
      - added: ns1/c@11
      - {bookmark: 14}
      - error: {code: 410, reason: Expired}
  - list: {rv: 14}
    source: s1
    error: {code: 429, retry_after: 3s}
  - s1: LIST -> rv=20 [ns1/c@11]
  - expect:
      - store: [ns1/c@11, ns2/b@6]
      - watermark: {s1: 20, s2: 7}
      - calls:
          any_order: [ADD*(ns1/a(zone=z1)#u1@5), ADD*(ns2/b@6), ADD(ns1/c@11), \"DEL?(ns1/a, last=ns1/a@5)\"]
      - errors: [bad(ns1/broken), 410, 429]
";
    let scenario = read(text)
        .unwrap_or_else(|error| panic!("{error}"))
        .remove(0);
    play(&scenario).unwrap_or_else(|failure| panic!("{}: {}", failure.place.line, failure.message));
}

/// The schema for editors knows the words of the language, and no others.
#[test]
fn the_schema_has_the_words_of_the_language() {
    let text = std::fs::read_to_string(own_scenarios().join("../scenario.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let words = |at: &str| -> BTreeSet<String> {
        let properties = schema.pointer(at).unwrap().as_object().unwrap();
        properties.keys().cloned().collect()
    };
    let set = |words: &[&str]| -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    };
    let keys: Vec<&str> = document::KEYS.into_iter().chain(settings::KEYS).collect();
    assert_eq!(words("/properties"), set(&keys));
    assert_eq!(
        words("/definitions/expect/anyOf/0/properties"),
        set(&check::KEYS)
    );
    assert_eq!(
        words("/definitions/step/anyOf/1/properties"),
        set(&step::VERBS)
    );
}
