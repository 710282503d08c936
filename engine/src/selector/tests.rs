//! The grammar of Kubernetes' label selectors, and what they select.
use super::{LabelSelector, Operator, Requirement};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn parsed(text: &str) -> Vec<Requirement> {
    LabelSelector::parse(text).unwrap().requirements
}

#[test]
fn each_form_is_read_into_its_requirement() {
    for (text, expected) in [
        ("a", Requirement::exists("a")),
        ("!a", Requirement::does_not_exist("a")),
        ("! a", Requirement::does_not_exist("a")),
        ("a=b", Requirement::is_in("a", ["b"])),
        ("a==b", Requirement::is_in("a", ["b"])),
        (" a = b ", Requirement::is_in("a", ["b"])),
        ("a=", Requirement::is_in("a", [""])),
        ("a!=b", Requirement::not_in("a", ["b"])),
        ("a!=", Requirement::not_in("a", [""])),
        ("a in (b)", Requirement::is_in("a", ["b"])),
        ("a in(c,b, c)", Requirement::is_in("a", ["b", "c"])),
        ("a notin ( b , c )", Requirement::not_in("a", ["b", "c"])),
        ("a in (b,)", Requirement::is_in("a", ["", "b"])),
        ("a in (,)", Requirement::is_in("a", [""])),
        ("a=in", Requirement::is_in("a", ["in"])),
        ("a in (in, notin)", Requirement::is_in("a", ["in", "notin"])),
        (
            "example.com/a_B.c-d=1.2_3",
            Requirement::is_in("example.com/a_B.c-d", ["1.2_3"]),
        ),
        ("instant", Requirement::exists("instant")),
    ] {
        assert_eq!(parsed(text), [expected], "{text:?}");
    }
    assert_eq!(parsed("a,b=1 , !c").len(), 3);
    for everything in ["", "  \t\n"] {
        assert!(LabelSelector::parse(everything).unwrap().is_everything());
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, position, reason) in [
        (
            ",a",
            0,
            "found \",\", expected the name of a label or \"!\"",
        ),
        ("a,", 2, "found the end"),
        ("a,,b", 2, "found \",\""),
        ("a b", 2, "found \"b\", expected \"=\""),
        ("a=b c", 4, "found \"c\", expected a comma or the end"),
        ("a=!b", 2, "found \"!\", expected a value"),
        ("a=(b)", 2, "found \"(\", expected a value"),
        ("a in b", 5, "found \"b\", expected \"(\""),
        ("a in ()", 6, "at least one value"),
        ("a in (b", 7, "found the end, expected a comma or \")\""),
        ("a in (b c)", 8, "found \"c\""),
        ("a)", 1, "found \")\""),
        ("in", 0, "found \"in\""),
        ("!notin", 1, "found \"notin\""),
        ("!", 1, "found the end, expected the name"),
        ("a>1", 1, "not supported"),
        ("a=b, c < 2", 7, "not supported"),
        ("a===b", 3, "found \"=\", expected a value"),
        ("-a", 0, "begin and end with a letter or digit"),
        ("a=b-", 2, "begin and end with a letter or digit"),
        ("a/b/c", 0, "only letters, digits"),
        ("/a", 0, "no DNS name"),
        ("A.com/a", 0, "no DNS name"),
        ("a./b", 0, "no DNS name"),
        ("a/", 0, "after the slash is empty"),
        ("a=ü", 2, "only letters, digits"),
        ("ü", 0, "only letters, digits"),
        ("a=b\u{a0}", 2, "only letters, digits"),
    ] {
        let error = LabelSelector::parse(text).expect_err(text);
        assert_eq!(error.position, position, "{text:?}: {error}");
        assert!(error.reason.contains(reason), "{text:?}: {error}");
    }
}

#[test]
fn names_and_values_are_limited_to_63_bytes_and_prefixes_to_253() {
    let (fits, too_long) = ("x".repeat(63), "x".repeat(64));
    assert!(LabelSelector::parse(&format!("{fits}={fits}")).is_ok());
    assert!(LabelSelector::parse(&format!("a={too_long}")).is_err());
    assert!(LabelSelector::parse(&too_long).is_err());
    let prefix = |len: usize| format!("{}/a", "x".repeat(len));
    assert!(LabelSelector::parse(&prefix(253)).is_ok());
    assert!(LabelSelector::parse(&prefix(254)).is_err());
}

#[test]
fn a_missing_label_is_in_no_set_and_outside_of_every_set() {
    let matches = |text: &str, value: Option<&str>| {
        LabelSelector::parse(text)
            .unwrap()
            .matches(|key| value.filter(|_| key == "a"))
    };
    for (text, missing, empty, b, c) in [
        ("", true, true, true, true),
        ("a", false, true, true, true),
        ("!a", true, false, false, false),
        ("a=b", false, false, true, false),
        ("a!=b", true, true, false, true),
        ("a=", false, true, false, false),
        ("a in (b,c)", false, false, true, true),
        ("a notin (b,)", true, false, false, true),
        ("a,a!=b", false, true, false, true),
    ] {
        let found = [None, Some(""), Some("b"), Some("c")].map(|value| matches(text, value));
        assert_eq!(found, [missing, empty, b, c], "{text:?}");
    }
    assert!(!Requirement::is_in("a", [] as [&str; 0]).matches(Some("")));
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let values = prop::collection::vec("[ab]{0,1}", 1..4);
    ("[abx]", 0..4u8, values).prop_map(|(key, operator, values)| match operator {
        0 => Requirement::is_in(&key, values),
        1 => Requirement::not_in(&key, values),
        2 => Requirement::exists(&key),
        _ => Requirement::does_not_exist(&key),
    })
}

/// What selectors mean, without a short cut.
fn oracle(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    for requirement in selector.requirements() {
        let value = labels.get(requirement.key());
        let listed = value.is_some_and(|value| requirement.values().contains(value));
        let met = match requirement.operator() {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        };
        if !met {
            return false;
        }
    }
    true
}

proptest! {
    #[test]
    fn the_text_of_a_selector_parses_into_itself_and_selects_what_it_says(
        requirements in prop::collection::vec(requirement(), 0..4),
        labels in prop::collection::btree_map("[abx]", "[ab]{0,1}", 0..3),
    ) {
        let selector: LabelSelector = requirements.into_iter().collect();
        let again: LabelSelector = selector.to_string().parse().unwrap();
        prop_assert_eq!(&again, &selector, "{}", selector);
        let found = selector.matches(|key| labels.get(key).map(String::as_str));
        prop_assert_eq!(found, oracle(&selector, &labels), "{}", selector);
    }

    #[test]
    fn no_text_makes_the_parser_panic_and_errors_lie_within_it(text in "[ab!=,()<> /.üi-n\\PC]{0,12}") {
        if let Err(error) = LabelSelector::parse(&text) {
            prop_assert!(error.position <= text.len());
            prop_assert!(text.is_char_boundary(error.position));
        }
    }
}
