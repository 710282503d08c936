//! Objects: `a#u1(z1)@5`.
use super::super::trouble::{Place, Reading, Trouble};
use super::super::yaml::{Node, Value, split_at};
use super::{inside, unquoted};
use std::fmt;

/// The namespace of names that are written without one.
const NAMESPACE: &str = "ns";

/// An object, or a pattern of objects: what is not written matches anything.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ObjectText {
    /// `ns/a`, or `node1` where there is no namespace; `*` matches any key.
    pub key: String,
    /// The text after `#`.
    pub uid: Option<String>,
    /// The text after `@`; empty for `@` alone, which is "no version".
    pub version: Option<String>,
    /// What stands in parentheses: the values of fields, `""` being the field without a name.
    pub fields: Option<Vec<(String, String)>>,
}

/// One entry of a list answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// An object.
    Good(ObjectText),
    /// `BAD(a@5)`, one that cannot be decoded. Its key is `?` when not even that can be read.
    Bad(ObjectText),
}

/// The uid of an object that is written without one: every life of a key has the same.
pub fn default_uid(key: &str) -> String {
    format!("uid-of-{key}")
}

/// A key as it is written: without the usual namespace, with `_/` for none.
pub fn show_key(key: &str) -> String {
    match key.split_once('/') {
        Some((NAMESPACE, name)) => name.to_owned(),
        Some(_) => key.to_owned(),
        None if matches!(key, "*" | "?") => key.to_owned(),
        None => format!("_/{key}"),
    }
}

impl ObjectText {
    /// Read an object.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(place: Place, text: &str) -> Reading<Self> {
        let text = text.trim();
        let name_end = text.find(['(', '#', '@']).unwrap_or(text.len());
        let mut object = Self {
            key: key(place, text[..name_end].trim(), text)?,
            ..Self::default()
        };
        let mut rest = &text[name_end..];
        while let Some(mark) = rest.chars().next() {
            let tail = &rest[1..];
            match mark {
                '(' => {
                    let end = tail.find(')').ok_or_else(|| {
                        Trouble::new(place, format!("{text:?} lacks a closing parenthesis"))
                    })?;
                    object.fields = Some(fields(&tail[..end]));
                    rest = &tail[end + 1..];
                }
                '#' => {
                    let end = tail.find(['(', '@']).unwrap_or(tail.len());
                    object.uid = Some(tail[..end].trim().to_owned());
                    rest = &tail[end..];
                }
                '@' => {
                    if let Some(after) = tail.strip_prefix("(empty)") {
                        object.version = Some(String::new());
                        rest = after;
                        continue;
                    }
                    let end = match tail.strip_prefix('"').and_then(|t| t.find('"')) {
                        Some(quote) => quote + 2,
                        None => tail.find(['(', '#']).unwrap_or(tail.len()),
                    };
                    let version = tail[..end].trim();
                    if version.contains(char::is_whitespace) && !version.starts_with('"') {
                        return Err(Trouble::new(
                            place,
                            format!("{version:?} in {text:?} is no version"),
                        )
                        .suggest("a version with blanks needs double quotes"));
                    }
                    object.version = Some(unquoted(version).to_owned());
                    rest = &tail[end..];
                }
                c if c.is_whitespace() => rest = tail,
                _ => {
                    return Err(Trouble::new(
                        place,
                        format!("{rest:?} in {text:?} is no part of an object"),
                    )
                    .suggest("an object is name(fields)#uid@version, such as a#u1(z1)@5"));
                }
            }
        }
        if object.version.as_deref() == Some("*") {
            object.version = None;
        }
        Ok(object)
    }

    /// Read an object in either notation: text, or a mapping of `key`, `uid`, `version`, `fields`.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(node: &Node) -> Reading<Self> {
        let Value::Mapping(entries) = &node.value else {
            return Self::parse(node.place, node.expect_text("an object")?);
        };
        let mut object = Self::default();
        let (mut namespace, mut name) = (None, None);
        for (field, value) in entries {
            match field.expect_text("a key")? {
                "key" => object.key = key(value.place, value.expect_text("key")?, "")?,
                "namespace" => namespace = Some(value.expect_text("namespace")?),
                "name" => name = Some(value.expect_text("name")?),
                "uid" => object.uid = Some(value.expect_text("uid")?.to_owned()),
                "version" | "rv" | "resourceVersion" => {
                    object.version = Some(value.expect_text("version")?.to_owned());
                }
                "fields" => {
                    let mut fields = Vec::new();
                    for (name, value) in value.entries("fields")? {
                        for part in value.parts() {
                            fields.push((
                                name.expect_text("a field")?.to_owned(),
                                part.expect_text("a value")?.to_owned(),
                            ));
                        }
                    }
                    object.fields = Some(fields);
                }
                other => {
                    let known = ["key", "namespace", "name", "uid", "version", "fields"];
                    return Err(Trouble::unknown(
                        field.place,
                        "key of an object",
                        other,
                        known,
                    ));
                }
            }
        }
        if let Some(name) = name {
            object.key = match namespace {
                Some("") => name.to_owned(),
                Some(namespace) => format!("{namespace}/{name}"),
                None => format!("{NAMESPACE}/{name}"),
            };
        }
        if object.key.is_empty() {
            return Err(node.trouble("an object needs a key").suggest("key: ns/a"));
        }
        Ok(object)
    }

    /// True when `seen`, a real object, is what this pattern says.
    pub fn matches(&self, seen: &Self) -> bool {
        let uid = |uid: &Option<String>| uid.clone().unwrap_or_else(|| default_uid(&seen.key));
        (self.key == "*" || self.key == seen.key)
            && (self.uid.is_none() || uid(&self.uid) == uid(&seen.uid))
            && (self.version.is_none() || self.version == seen.version)
            && match &self.fields {
                None => true,
                Some(fields) => {
                    let (mut wanted, mut there) =
                        (fields.clone(), seen.fields.clone().unwrap_or_default());
                    wanted.sort();
                    there.sort();
                    wanted == there
                }
            }
    }
}

impl ListItem {
    /// Read an entry of a list.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(node: &Node) -> Reading<Self> {
        let Some(text) = node.text() else {
            if let Value::Mapping(entries) = &node.value
                && let [(key, value)] = entries.as_slice()
                && key.text() == Some("bad")
            {
                return Ok(Self::Bad(ObjectText::read(value)?));
            }
            return Ok(Self::Good(ObjectText::read(node)?));
        };
        let text = text.trim();
        if text.to_uppercase().starts_with("BAD(") {
            let inner = inside(node.place, &text.replacen("bad", "BAD", 1), "BAD")?.to_owned();
            return Ok(Self::Bad(ObjectText::parse(node.place, &inner)?));
        }
        Ok(Self::Good(ObjectText::parse(node.place, text)?))
    }
}

fn key(place: Place, name: &str, whole: &str) -> Reading<String> {
    let bad = |why: &str| {
        Err(Trouble::new(
            place,
            format!("{:?} {why}", if whole.is_empty() { name } else { whole }),
        )
        .suggest("an object is name(fields)#uid@version, such as a#u1(z1)@5 or ns1/a@5"))
    };
    if name.is_empty() {
        return bad("names no object");
    }
    if name.contains(char::is_whitespace) || name.contains(['[', ']', '{', '}', '>', '=', ';', ':'])
    {
        return bad("is no object");
    }
    match name.split_once('/') {
        None if matches!(name, "*" | "?") => Ok(name.to_owned()),
        None => Ok(format!("{NAMESPACE}/{name}")),
        Some(("_", name)) if !name.contains('/') => Ok(name.to_owned()),
        Some((namespace, rest))
            if !namespace.is_empty() && !rest.is_empty() && !rest.contains('/') =>
        {
            Ok(name.to_owned())
        }
        Some(_) => bad("has no usable key: it is namespace/name, or _/name without a namespace"),
    }
}

fn fields(text: &str) -> Vec<(String, String)> {
    split_at(text, ',')
        .into_iter()
        .map(|part| match part.split_once('=') {
            Some((name, value)) => (name.trim().to_owned(), unquoted(value).to_owned()),
            None => (String::new(), part),
        })
        .collect()
}

impl fmt::Display for ObjectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_key(&self.key))?;
        if let Some(fields) = &self.fields {
            let shown: Vec<_> = fields
                .iter()
                .map(|(name, value)| match name.as_str() {
                    "" => value.clone(),
                    name => format!("{name}={value}"),
                })
                .collect();
            write!(f, "({})", shown.join(","))?;
        }
        if let Some(uid) = &self.uid
            && *uid != default_uid(&self.key)
        {
            write!(f, "#{uid}")?;
        }
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ObjectText {
        ObjectText::parse(Place::default(), text).unwrap()
    }

    #[test]
    fn parts_may_come_in_any_order() {
        let object = parse("a(z1)#u1@5");
        assert_eq!(object.key, "ns/a");
        assert_eq!(
            (object.uid.as_deref(), object.version.as_deref()),
            (Some("u1"), Some("5"))
        );
        assert_eq!(object.fields, Some(vec![(String::new(), "z1".to_owned())]));
        assert_eq!(parse("a#u1(z1)@5"), object);
        assert_eq!(parse("a#u1@5(z1)"), object);
        assert_eq!(object.to_string(), "a(z1)#u1@5");
        assert_eq!(parse("_/node1").key, "node1");
        assert_eq!(parse("ns1/x@\"k1\"").version.as_deref(), Some("k1"));
        assert_eq!(parse("b@(empty)").version.as_deref(), Some(""));
        assert_eq!(parse("a()@1").fields, Some(vec![]));
    }

    #[test]
    fn a_pattern_matches_what_it_says_and_nothing_else() {
        let seen = parse("a(z1)#u1@5");
        for (pattern, fits) in [
            ("a", true),
            ("a@5", true),
            ("a@*", true),
            ("*@5", true),
            ("a#u1", true),
            ("a(z1)", true),
            ("a@6", false),
            ("b@5", false),
            ("a#u2@5", false),
            ("a()@5", false),
            ("ns2/a", false),
        ] {
            assert_eq!(parse(pattern).matches(&seen), fits, "{pattern}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "a b", "a@5 -> a@6", "a/b/c", "/a", "a(z1"] {
            assert!(ObjectText::parse(Place::default(), text).is_err(), "{text}");
        }
    }
}
