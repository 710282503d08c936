//! Field selectors in Kubernetes' syntax: `path=value`, `path==value` and `path!=value`, joined by
//! commas; in a value, a comma, an equals sign and a backslash are escaped by a backslash.

/// One condition of a field selector.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) path: String,
    pub(super) negated: bool,
    pub(super) value: String,
}

impl Term {
    pub(super) fn matches(&self, value: &str) -> bool {
        (value == self.value) != self.negated
    }
}

/// The conditions, all of which must hold; empty parts are skipped, as servers do.
pub(super) fn parse(text: &str) -> Result<Vec<Term>, String> {
    let parts = split(text);
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(term)
        .collect()
}

/// Split at commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn term(part: &str) -> Result<Term, String> {
    for (at, _) in part.match_indices(['!', '=']) {
        for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some(value) = part[at..].strip_prefix(operator) {
                return Ok(Term {
                    path: part[..at].to_owned(),
                    negated,
                    value: unescaped(value)
                        .ok_or_else(|| format!("invalid field selector: bad escape in {part:?}"))?,
                });
            }
        }
    }
    Err(format!(
        "invalid field selector: {part:?} has none of \"=\", \"==\", \"!=\""
    ))
}

fn unescaped(value: &str) -> Option<String> {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(chars.next().filter(|c| matches!(c, '\\' | ',' | '='))?),
            // Servers refuse it, since it is most likely a missing comma.
            '=' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, negated: bool, value: &str) -> Term {
        Term {
            path: path.to_owned(),
            negated,
            value: value.to_owned(),
        }
    }

    #[test]
    fn conditions_are_read_with_their_escapes() {
        assert_eq!(
            parse("a=b,c.d==e,,f!=g").unwrap(),
            [
                of("a", false, "b"),
                of("c.d", false, "e"),
                of("f", true, "g")
            ]
        );
        assert_eq!(parse(r"a=b\,c\=d\\").unwrap(), [of("a", false, r"b,c=d\")]);
        assert_eq!(parse("a=").unwrap(), [of("a", false, "")]);
        assert_eq!(parse("").unwrap(), []);
        for broken in ["a", "a=b=c", r"a=\x", r"a=\", "a!b"] {
            assert!(parse(broken).is_err(), "{broken:?}");
        }
    }
}
