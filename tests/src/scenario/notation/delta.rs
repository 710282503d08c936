//! Deltas, as inputs of the queue and as what waits in it: `Added(a@11)`, `TOMB(a, last=a@5)`.
use super::super::trouble::{Place, Reading, Trouble};
use super::super::yaml::{Node, Value, split_at};
use super::{ListItem, ObjectText, function, unquoted};
use std::fmt;

/// What kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaKind {
    /// The object appeared.
    Added,
    /// The object changed.
    Updated,
    /// The object is gone, and its final state came.
    Deleted,
    /// The object was in a relist.
    Replaced,
    /// The object is announced again.
    Sync,
    /// The object is gone: a relist (or only its metadata) showed it.
    Tombstone,
}

const KINDS: [(&str, DeltaKind); 6] = [
    ("Added", DeltaKind::Added),
    ("Updated", DeltaKind::Updated),
    ("Deleted", DeltaKind::Deleted),
    ("Replaced", DeltaKind::Replaced),
    ("Sync", DeltaKind::Sync),
    ("TOMB", DeltaKind::Tombstone),
];

/// A delta, or what one shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaPattern {
    /// What kind.
    pub kind: DeltaKind,
    /// The object; of a tombstone, its last state (with the key alone: anything).
    pub object: ObjectText,
}

/// An input of the queue, or something done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueVerb {
    /// `Added(a@11)`, `Updated(…)`, `Deleted(…)`.
    Input(DeltaKind, ObjectText),
    /// `Bad(a@7)`: an object that cannot be used.
    Bad(ObjectText),
    /// `Replace([a@5], rv=20)`; `reset` when the source says that it was reset.
    Replace {
        /// What the list holds.
        items: Vec<ListItem>,
        /// Its version.
        version: String,
        /// The source was reset.
        reset: bool,
    },
    /// `Bookmark(14)`.
    Bookmark(String),
    /// `Resync()`.
    Resync,
}

fn kind_of(name: &str) -> Option<DeltaKind> {
    let name = match name {
        "Add" => "Added",
        "Modified" | "Update" => "Updated",
        "Delete" => "Deleted",
        other => other,
    };
    KINDS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, kind)| *kind)
}

impl DeltaPattern {
    /// Read `Added(a@11)`, `Added a@11`, `TOMB(a, last=a@5)` or `Deleted TOMB(a, last=a@5)`.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(place: Place, text: &str) -> Reading<Self> {
        let mut text = text.trim();
        if let Some(tomb) = text.find("TOMB(") {
            text = &text[tomb..];
        }
        let (name, inner) = match function(text) {
            Some((name, inner, "")) if !name.contains(' ') => (name, inner),
            _ => text.split_once(' ').unwrap_or((text, "")),
        };
        let Some(kind) = kind_of(name) else {
            return Err(Trouble::unknown(
                place,
                "delta",
                name,
                KINDS.iter().map(|(name, _)| *name),
            ));
        };
        let mut object = ObjectText::default();
        for (at, part) in split_at(inner, ',').into_iter().enumerate() {
            match part
                .strip_prefix("last")
                .map(str::trim_start)
                .and_then(|p| p.strip_prefix('='))
            {
                Some(last) => object = ObjectText::parse(place, last)?,
                None if at == 0 => object = ObjectText::parse(place, &part)?,
                None => {
                    return Err(Trouble::new(
                        place,
                        format!("{part:?} is no part of a delta"),
                    ));
                }
            }
        }
        if object.key.is_empty() {
            return Err(Trouble::new(place, format!("{text:?} names no object")));
        }
        Ok(Self { kind, object })
    }

    /// True when `seen` is what this says.
    pub fn matches(&self, seen: &Self) -> bool {
        self.kind == seen.kind && self.object.matches(&seen.object)
    }
}

impl QueueVerb {
    /// Read an input of the queue; `None` when the text is none of them at all.
    ///
    /// # Errors
    /// When it is one, and not a right one.
    pub fn parse(place: Place, text: &str) -> Reading<Option<Self>> {
        let Some((name, inner, after)) = function(text) else {
            return Ok(None);
        };
        if !after.trim().is_empty() {
            return Ok(None);
        }
        Ok(Some(match name {
            "Replace" => {
                let (mut objects, mut version, mut reset) = (Vec::new(), None, false);
                for part in split_at(inner, ',') {
                    match part.split_once('=') {
                        _ if part.starts_with('[') => {
                            for item in Node::scalar(place, &part).parts() {
                                objects.push(ListItem::read(&item)?);
                            }
                        }
                        Some(("rv", rv)) => version = Some(unquoted(rv).to_owned()),
                        None if part == "reset" => reset = true,
                        _ => {
                            return Err(Trouble::new(
                                place,
                                format!("{part:?} is no part of a Replace"),
                            )
                            .suggest("write Replace([a@5, b@6], rv=20)"));
                        }
                    }
                }
                let version = version.unwrap_or_else(|| newest(&objects));
                Self::Replace {
                    items: objects,
                    version,
                    reset,
                }
            }
            "Resync" => Self::Resync,
            "Bookmark" | "BM" => Self::Bookmark(unquoted(inner).to_owned()),
            "Bad" => Self::Bad(ObjectText::parse(place, inner)?),
            name => match kind_of(name) {
                Some(kind @ (DeltaKind::Added | DeltaKind::Updated | DeltaKind::Deleted))
                    if name.chars().next().is_some_and(char::is_uppercase) =>
                {
                    Self::Input(kind, ObjectText::parse(place, inner)?)
                }
                _ => return Ok(None),
            },
        }))
    }

    /// Read `{replace: {objects: […], rv: 20}}` and the like.
    ///
    /// # Errors
    /// When it is one, and not a right one.
    pub fn from_entry(key: &Node, value: &Node) -> Reading<Option<Self>> {
        let verb = key.expect_text("a verb")?;
        if verb == "replace" {
            let (mut items, mut version, mut reset) = (Vec::new(), None, false);
            if let Value::Mapping(entries) = &value.value {
                for (key, value) in entries {
                    match key.expect_text("a key")? {
                        "objects" | "items" => {
                            for part in value.parts() {
                                items.push(ListItem::read(&part)?);
                            }
                        }
                        "rv" | "version" => version = Some(value.expect_text("rv")?.to_owned()),
                        "reset" => reset = value.text() == Some("true"),
                        other => {
                            return Err(Trouble::unknown(
                                key.place,
                                "key of replace",
                                other,
                                ["objects", "rv", "reset"],
                            ));
                        }
                    }
                }
            } else {
                for part in value.parts() {
                    items.push(ListItem::read(&part)?);
                }
            }
            let version = version.unwrap_or_else(|| newest(&items));
            return Ok(Some(Self::Replace {
                items,
                version,
                reset,
            }));
        }
        let kind = match verb {
            "added" => DeltaKind::Added,
            "updated" => DeltaKind::Updated,
            "deleted" => DeltaKind::Deleted,
            "bookmark" => {
                return Ok(Some(Self::Bookmark(
                    value.expect_text("a version")?.to_owned(),
                )));
            }
            _ => return Ok(None),
        };
        Ok(Some(Self::Input(kind, ObjectText::read(value)?)))
    }
}

/// The newest version in a list: what a relist without `rv` is taken to be at.
fn newest(items: &[ListItem]) -> String {
    items
        .iter()
        .filter_map(|item| match item {
            ListItem::Good(object) | ListItem::Bad(object) => {
                object.version.as_ref()?.parse::<u64>().ok()
            }
        })
        .max()
        .unwrap_or(1)
        .to_string()
}

impl fmt::Display for DeltaPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS
            .iter()
            .find(|(_, kind)| *kind == self.kind)
            .map_or("", |(name, _)| name);
        match self.kind {
            DeltaKind::Tombstone => {
                write!(
                    f,
                    "TOMB({}, last={})",
                    super::show_key(&self.object.key),
                    self.object
                )
            }
            _ => write!(f, "{name}({})", self.object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_read_as_the_cases_write_them() {
        let parse = |text| {
            DeltaPattern::parse(Place::default(), text)
                .unwrap()
                .to_string()
        };
        assert_eq!(parse("Added a@11"), "Added(a@11)");
        assert_eq!(parse("Added(a@11)"), "Added(a@11)");
        assert_eq!(parse("Deleted TOMB(a, last=a@11)"), "TOMB(a, last=a@11)");
        assert_eq!(parse("TOMB(a)"), "TOMB(a, last=a)");
        let verb = QueueVerb::parse(Place::default(), "Replace([a@5, b@6], rv=20)").unwrap();
        assert!(
            matches!(verb, Some(QueueVerb::Replace { items, version, .. }) if items.len() == 2 && version == "20")
        );
        assert_eq!(QueueVerb::parse(Place::default(), "add(a)").unwrap(), None);
    }
}
