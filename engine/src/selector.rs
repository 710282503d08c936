//! Label selectors: Kubernetes' text form, parsed into requirements.
mod parse;

use std::fmt;
use std::str::FromStr;

/// A parsed label selector: an object is selected when it meets *every* requirement.
///
/// The text form is Kubernetes' own: `app=web`, `app==web`, `tier!=db`, `env in (a, b)`,
/// `env notin (a, b)`, `canary`, `!canary`, joined by commas. Empty text selects everything. The
/// numeric comparisons `<` and `>` are not supported.
///
/// ```
/// use informant::{LabelSelector, Operator};
/// use std::collections::BTreeMap;
///
/// let selector: LabelSelector = "app=web, env in (prod, stage), !canary".parse()?;
/// let labels = BTreeMap::from([("app", "web"), ("env", "prod")]);
/// assert!(selector.matches(|key| labels.get(key).copied()));
/// assert!(!selector.matches(|_| None));
///
/// let env = &selector.requirements()[1];
/// assert_eq!((env.key(), env.operator()), ("env", Operator::In));
/// assert_eq!(env.values(), ["prod", "stage"]);
///
/// let error = "app=web,,env".parse::<LabelSelector>().unwrap_err();
/// assert_eq!(error.position, 8);
/// # Ok::<_, informant::SelectorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// The selector of everything.
    #[must_use]
    pub const fn everything() -> Self {
        Self {
            requirements: Vec::new(),
        }
    }

    /// Parse the text form; the same as [`str::parse`].
    ///
    /// # Errors
    /// [`SelectorError`] says where the text stops being a selector, and what was expected there.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::selector(text).map(|requirements| Self { requirements })
    }

    /// The requirements, in the order of the text.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// True when everything is selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True when an object with these labels is selected; `label` gives the value of a label, or
    /// `None` where the object does not have it. It is called once a requirement, until one fails.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(label(&requirement.key)))
    }
}

impl FromIterator<Requirement> for LabelSelector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self {
            requirements: requirements.into_iter().collect(),
        }
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for LabelSelector {
    /// A text that parses into the same selector.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

/// How a [`Requirement`] compares. The text forms `=` and `==` are `In` with one value, `!=` is
/// `NotIn` with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The label is there, with one of the values.
    In,
    /// The label is not there, or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

/// One condition on one label.
///
/// ```
/// use informant::{LabelSelector, Requirement};
/// let built: LabelSelector =
///     [Requirement::is_in("env", ["stage", "prod"]), Requirement::exists("app")].into_iter().collect();
/// assert_eq!(built.to_string(), "env in (prod,stage),app");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Ascending, each once; none for the two existence operators.
    values: Vec<String>,
}

impl Requirement {
    fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self {
            key: key.to_owned(),
            operator,
            values,
        }
    }

    /// The label has one of the values; without values this selects nothing.
    pub fn is_in<V: Into<String>>(key: &str, values: impl IntoIterator<Item = V>) -> Self {
        Self::new(
            key,
            Operator::In,
            values.into_iter().map(Into::into).collect(),
        )
    }

    /// The label is missing or has none of the values.
    pub fn not_in<V: Into<String>>(key: &str, values: impl IntoIterator<Item = V>) -> Self {
        Self::new(
            key,
            Operator::NotIn,
            values.into_iter().map(Into::into).collect(),
        )
    }

    /// The label is there.
    #[must_use]
    pub fn exists(key: &str) -> Self {
        Self::new(key, Operator::Exists, Vec::new())
    }

    /// The label is not there.
    #[must_use]
    pub fn does_not_exist(key: &str) -> Self {
        Self::new(key, Operator::DoesNotExist, Vec::new())
    }

    /// The name of the label.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label is compared.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What the label is compared with: ascending, each value once.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// True when a label with this value (`None`: without the label) meets the condition.
    #[must_use]
    pub fn matches(&self, value: Option<&str>) -> bool {
        let among = |value: &str| {
            self.values
                .binary_search_by(|candidate| candidate.as_str().cmp(value))
                .is_ok()
        };
        match self.operator {
            Operator::In => value.is_some_and(among),
            Operator::NotIn => !value.is_some_and(among),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match (self.operator, self.values.as_slice()) {
            (Operator::In, [value]) => write!(f, "{key}={value}"),
            (Operator::NotIn, [value]) => write!(f, "{key}!={value}"),
            (Operator::In, values) => write!(f, "{key} in ({})", values.join(",")),
            (Operator::NotIn, values) => write!(f, "{key} notin ({})", values.join(",")),
            (Operator::Exists, _) => f.write_str(key),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
        }
    }
}

/// Why a text is no label selector. Nothing is selected by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a label selector: at byte {position}: {reason}")]
pub struct SelectorError {
    /// Where in the text, in bytes from its beginning.
    pub position: usize,
    /// What was found there, and what was expected.
    pub reason: String,
}

#[cfg(test)]
mod tests;
