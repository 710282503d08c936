//! The part of the collection that a call asks for.
use super::config::{FieldOf, LabelOf, MemoryConfig, bad_request};
use super::field_selector::{self, Term};
use crate::object::Incoming;
use crate::selector::LabelSelector;
use crate::source::{ApiStatus, Selectors, ShardSelector, SourceError};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(super) struct Selection<T> {
    namespace: Option<String>,
    labels: Option<(LabelSelector, LabelOf<T>)>,
    fields: Vec<(Term, Field<T>)>,
    shard: Option<ShardSelector>,
}

enum Field<T> {
    Name,
    Namespace,
    Inside(FieldOf<T>),
}

impl<T> Selection<T> {
    /// # Errors
    /// 400, when a selector cannot be parsed or names what the source cannot read.
    pub(super) fn new(
        config: &MemoryConfig<T>,
        selectors: &Selectors,
    ) -> Result<Self, SourceError> {
        let refuse = |text: String| SourceError::from(bad_request(&text));
        let labels = match selectors.labels.as_deref().map(LabelSelector::parse) {
            None => None,
            Some(Err(error)) => return Err(refuse(error.to_string())),
            Some(Ok(selector)) if selector.is_everything() => None,
            Some(Ok(selector)) => match &config.labels {
                Some(label) => Some((selector, label.clone())),
                None => return Err(refuse("this source was not told how to read labels".into())),
            },
        };
        let terms = field_selector::parse(selectors.fields.as_deref().unwrap_or(""));
        let field = |term: Term| {
            let field = match term.path.as_str() {
                "metadata.name" => Field::Name,
                "metadata.namespace" => Field::Namespace,
                path => match config.fields.get(path) {
                    Some(field) => Field::Inside(field.clone()),
                    None => return Err(refuse(format!("field label not supported: {path}"))),
                },
            };
            Ok((term, field))
        };
        let shard = selectors.shard.as_deref().map(str::parse::<ShardSelector>);
        Ok(Self {
            namespace: selectors.namespace.clone(),
            labels,
            fields: terms
                .map_err(refuse)?
                .into_iter()
                .map(field)
                .collect::<Result<_, _>>()?,
            shard: shard
                .transpose()
                .map_err(|error| refuse(error.to_string()))?,
        })
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// True when nothing but the namespace is looked at.
    pub(super) fn is_by_key(&self) -> bool {
        self.labels.is_none() && self.fields.is_empty() && self.shard.is_none()
    }

    /// # Errors
    /// 500, when the user's code panicked.
    pub(super) fn matches(&self, item: &Incoming<T>) -> Result<bool, SourceError> {
        let key = &item.meta.key;
        let in_namespace = self.namespace().is_none_or(|only| only == key.namespace());
        if !in_namespace || self.is_by_key() {
            return Ok(in_namespace);
        }
        let in_shard = |shard: &ShardSelector| {
            shard.matches(&item.meta.uid.to_string(), item.meta.key.namespace())
        };
        if !self.shard.as_ref().is_none_or(in_shard) {
            return Ok(false);
        }
        // The accessors only read, so nothing is left half-done by a panic.
        catch_unwind(AssertUnwindSafe(|| self.matches_inside(item))).map_err(|_| {
            let text = format!("reading a label or field of {key} panicked");
            ApiStatus::new(500, "InternalError", &text).into()
        })
    }

    fn matches_inside(&self, item: &Incoming<T>) -> bool {
        let by_labels = self
            .labels
            .as_ref()
            .is_none_or(|(selector, label)| selector.matches(|name| label(&item.object, name)));
        by_labels
            && self.fields.iter().all(|(term, field)| {
                let value = match field {
                    Field::Name => Some(Cow::Borrowed(item.meta.key.name())),
                    Field::Namespace => Some(Cow::Borrowed(item.meta.key.namespace())),
                    Field::Inside(field) => field(&item.object),
                };
                term.matches(value.as_deref().unwrap_or(""))
            })
    }
}
