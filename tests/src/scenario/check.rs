//! Expectations: lists with alternatives, and how each is flipped to see that it can fail.
use super::keys::unknown;
use super::yaml::{Located, Node, Value};
use std::fmt;

/// An expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The line of the expectation.
    pub line: usize,
    /// What was expected and what happened.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// One element of an expected list.
pub(super) enum Pattern<P> {
    One(P),
    /// Exactly one of these sequences.
    OneOf(Vec<Vec<Pattern<P>>>),
    /// This sequence or nothing.
    Optional(Vec<Pattern<P>>),
    /// All of these, in any order.
    AnyOrder(Vec<Pattern<P>>),
    /// Anything, any number of times: `...`.
    Rest,
}

/// Read an expected list: texts, `...`, and maps `one_of`, `optional`, `any_order`.
pub(super) fn patterns<P>(
    node: &Node,
    parse: &dyn Fn(&str) -> Result<P, String>,
) -> Result<Vec<Pattern<P>>, Located> {
    let mut patterns = Vec::new();
    let items = node.items();
    let mut at = 0;
    while let Some(item) = items.get(at) {
        at += 1;
        if let Value::Map(entries) = &item.value {
            for (key, value) in entries {
                patterns.push(match key.text()? {
                    "one_of" => Pattern::OneOf(
                        value
                            .items()
                            .iter()
                            .map(|alternative| self::patterns(alternative, parse))
                            .collect::<Result<_, _>>()?,
                    ),
                    "optional" => Pattern::Optional(self::patterns(value, parse)?),
                    "any_order" => Pattern::AnyOrder(self::patterns(value, parse)?),
                    other => {
                        let known = ["one_of", "optional", "any_order"];
                        return Err((key.line, unknown("list element", other, &known)));
                    }
                });
            }
            continue;
        }
        // Texts in a row, since a flow list may have cut one at a comma inside parentheses.
        let mut run = vec![item.clone()];
        while let Some(next) = items
            .get(at)
            .filter(|next| matches!(next.value, Value::Text(_)))
        {
            run.push(next.clone());
            at += 1;
        }
        let run = Node {
            line: item.line,
            value: Value::List(run),
        };
        for (line, text) in run.texts()? {
            patterns.push(match text.as_str() {
                "..." => Pattern::Rest,
                text => Pattern::One(parse(text).map_err(|error| (line, error))?),
            });
        }
    }
    Ok(patterns)
}

/// True when the whole of `actual` fits the patterns.
pub(super) fn fits<P, A>(
    patterns: &[Pattern<P>],
    actual: &[A],
    describes: &dyn Fn(&P, &A) -> bool,
) -> bool {
    let patterns: Vec<&Pattern<P>> = patterns.iter().collect();
    fits_refs(&patterns, actual, describes)
}

fn fits_refs<P, A>(
    patterns: &[&Pattern<P>],
    actual: &[A],
    describes: &dyn Fn(&P, &A) -> bool,
) -> bool {
    let Some((first, rest)) = patterns.split_first() else {
        return actual.is_empty();
    };
    let then = |sequence: &[Pattern<P>]| {
        let all: Vec<&Pattern<P>> = sequence.iter().chain(rest.iter().copied()).collect();
        fits_refs(&all, actual, describes)
    };
    match first {
        Pattern::One(pattern) => actual.split_first().is_some_and(|(one, others)| {
            describes(pattern, one) && fits_refs(rest, others, describes)
        }),
        Pattern::OneOf(alternatives) => alternatives.iter().any(|alternative| then(alternative)),
        Pattern::Optional(sequence) => fits_refs(rest, actual, describes) || then(sequence),
        Pattern::AnyOrder(sequence) => {
            let sequence: Vec<&Pattern<P>> = sequence.iter().collect();
            any_order(&sequence, rest, actual, describes)
        }
        Pattern::Rest => (0..=actual.len()).any(|at| fits_refs(rest, &actual[at..], describes)),
    }
}

fn any_order<P, A>(
    remaining: &[&Pattern<P>],
    rest: &[&Pattern<P>],
    actual: &[A],
    describes: &dyn Fn(&P, &A) -> bool,
) -> bool {
    if remaining.is_empty() {
        return fits_refs(rest, actual, describes);
    }
    (0..remaining.len()).any(|at| {
        let mut others = remaining.to_vec();
        let first = others.remove(at);
        // The first element, then the others in any order, then the rest.
        match (first, actual.split_first()) {
            (Pattern::One(pattern), Some((one, behind))) => {
                describes(pattern, one) && any_order(&others, rest, behind, describes)
            }
            (Pattern::Optional(_), _) if any_order(&others, rest, actual, describes) => true,
            (Pattern::Optional(sequence), Some((one, behind))) => match sequence.as_slice() {
                [Pattern::One(pattern)] => {
                    describes(pattern, one) && any_order(&others, rest, behind, describes)
                }
                _ => false,
            },
            _ => false,
        }
    })
}

/// A readable difference of an expected and an actual list.
pub(super) fn difference<A: fmt::Display>(what: &str, expected: &Node, actual: &[A]) -> String {
    let mut text = format!("{what} differ\n  expected:\n");
    for item in expected.items() {
        text.push_str(&line(&show(item)));
    }
    if expected.items().is_empty() {
        text.push_str("    (nothing)\n");
    }
    text.push_str("  actual:\n");
    for item in actual {
        text.push_str(&line(&item.to_string()));
    }
    if actual.is_empty() {
        text.push_str("    (nothing)\n");
    }
    text.truncate(text.trim_end().len());
    text
}

fn line(text: &str) -> String {
    format!("    {text}\n")
}

/// A node as a line of text.
pub(super) fn show(node: &Node) -> String {
    match &node.value {
        Value::Null => "(nothing)".to_owned(),
        Value::Text(text) => text.clone(),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(show).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(k, v)| format!("{}: {}", show(k), show(v)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// How many ways there are to flip an expectation: one for each leaf.
#[must_use]
pub(super) fn leaves(key: &str, node: &Node) -> usize {
    match branches(key, node) {
        Some(entries) => entries
            .iter()
            .map(|(name, value)| leaves(inner(key, name), value))
            .sum(),
        None => 1,
    }
}

/// The parts of an expectation that is a map of expectations, and not one list written as a map.
fn branches<'n>(key: &str, node: &'n Node) -> Option<&'n [(Node, Node)]> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let is_pattern = is_list(key)
        && entries
            .iter()
            .all(|(name, _)| matches!(name.text(), Ok("one_of" | "optional" | "any_order")));
    (!is_pattern).then_some(entries)
}

/// What an inner expectation is: below a list by handler, the same list.
fn inner<'n>(key: &'n str, name: &'n Node) -> &'n str {
    if is_list(key) {
        key
    } else {
        name.text().unwrap_or("")
    }
}

/// True for expectations whose value is a list of patterns, however it is written.
fn is_list(key: &str) -> bool {
    matches!(
        key,
        "calls" | "requests" | "errors" | "store" | "quarantine"
    )
}

/// The same expectation, flipped at its leaf number `at`, so that it must fail.
pub(super) fn flip(key: &str, node: &Node, at: usize) -> Node {
    let line = node.line;
    let text = |text: &str| Node {
        line,
        value: Value::Text(text.to_owned()),
    };
    if let Some(entries) = branches(key, node) {
        let mut passed = 0;
        let flipped = entries.iter().map(|(name, value)| {
            let key = inner(key, name);
            let count = leaves(key, value);
            let here = (passed..passed + count).contains(&at);
            let flipped = if here {
                flip(key, value, at - passed)
            } else {
                value.clone()
            };
            passed += count;
            (name.clone(), flipped)
        });
        let value = Value::Map(flipped.collect());
        return Node { line, value };
    }
    let value = match &node.value {
        Value::Text(old) if !is_list(key) || is_count(old) => Value::Text(flipped_text(old)),
        _ => {
            let mut items = node.items().to_vec();
            items.push(text(match key {
                "calls" => "ADD(flipped@999)",
                "requests" => "LIST(rv=flipped)",
                "errors" => "flipped error",
                _ => "flipped@999",
            }));
            Value::List(items)
        }
    };
    Node { line, value }
}

/// True for `3`, `at most 3` and `at least 3`.
fn is_count(text: &str) -> bool {
    let number = text
        .strip_prefix("at most ")
        .or_else(|| text.strip_prefix("at least "));
    number.unwrap_or(text).parse::<u64>().is_ok()
}

fn flipped_text(text: &str) -> String {
    match text {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        "yes" => "no".to_owned(),
        "no" => "yes".to_owned(),
        "never" => "999h".to_owned(),
        text if super::notation::duration(text).is_ok() && text.parse::<u64>().is_err() => {
            "999h".to_owned()
        }
        text => match text.parse::<u64>() {
            Ok(number) => (number + 1_000_000).to_string(),
            Err(_) if text.starts_with("at most ") => "at most 0".to_owned(),
            Err(_) if text.starts_with("at least ") => "at least 1000000".to_owned(),
            Err(_) => "flipped@999".to_owned(),
        },
    }
}

/// A number, `at most N`, or `at least N`.
pub(super) fn number_fits(node: &Node, actual: u64) -> Result<bool, Located> {
    let text = node.text()?;
    let parse = |text: &str| {
        let parsed = text.trim().parse::<u64>();
        parsed.map_err(|_| {
            (
                node.line,
                format!("expected a number, `at most N` or `at least N`, found {text:?}"),
            )
        })
    };
    if let Some(most) = text.strip_prefix("at most ") {
        return Ok(actual <= parse(most)?);
    }
    if let Some(least) = text.strip_prefix("at least ") {
        return Ok(actual >= parse(least)?);
    }
    Ok(actual == parse(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, actual: &str) -> bool {
        let node = Node::read(pattern).unwrap();
        let patterns = patterns(&node, &|text| Ok(text.to_owned())).unwrap();
        let actual: Vec<String> = actual.split_whitespace().map(str::to_owned).collect();
        fits(&patterns, &actual, &|p, a| p == a)
    }

    #[test]
    fn lists_have_alternatives_options_and_free_order() {
        assert!(check("[a, b]", "a b") && !check("[a, b]", "a") && !check("[a]", "a b"));
        assert!(check("[a, ...]", "a b c") && check("[..., c]", "a b c"));
        let either = "[{one_of: [[a, b], c]}, d]";
        assert!(check(either, "a b d") && check(either, "c d") && !check(either, "a d"));
        let maybe = "[{optional: a}, b]";
        assert!(check(maybe, "a b") && check(maybe, "b") && !check(maybe, "a"));
        let free = "[{any_order: [a, b, {optional: x}]}, c]";
        assert!(check(free, "b a c") && check(free, "b x a c") && !check(free, "a c"));
    }
}
