//! What tells two requests for an informer apart.
use crate::source::Selectors;
use std::any::TypeId;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The type of the objects, which part of them, and what is made of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) object: TypeId,
    /// Without a namespace: those are in `namespaces`.
    pub(super) selectors: Selectors,
    /// Empty: all of them.
    pub(super) namespaces: BTreeSet<String>,
    /// The name of the transform.
    pub(super) transform: Option<Arc<str>>,
}

impl Key {
    /// A name for the informer: the type and what narrows it.
    pub(super) fn name(&self, type_name: &str) -> String {
        let mut name = type_name.to_owned();
        let namespaces: Vec<_> = self.namespaces.iter().map(String::as_str).collect();
        let parts: [(&str, Option<&dyn fmt::Display>); 4] = [
            ("labels", self.selectors.labels.as_ref().map(|l| l as _)),
            ("fields", self.selectors.fields.as_ref().map(|f| f as _)),
            ("shard", self.selectors.shard.as_ref().map(|s| s as _)),
            ("transform", self.transform.as_ref().map(|t| t as _)),
        ];
        if !namespaces.is_empty() {
            name = format!("{name} in {}", namespaces.join(","));
        }
        for (what, value) in parts {
            if let Some(value) = value {
                name = format!("{name} {what}={value}");
            }
        }
        name
    }
}
