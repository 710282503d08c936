//! Queries that combine indexes: intersection, union and negation of postings, label selectors,
//! and predicates on what is left.
use super::builder::IndexDeclaration;
use super::index::{Emit, Index, UnknownIndex};
use super::objects::Values;
use super::posting::{Posting, Seeker};
use super::table::Slot;
use super::view::View;
use crate::object::Cached;
use crate::selector::{LabelSelector, Operator, Requirement};
use std::cell::RefCell;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

type Resolve<T> = Arc<dyn Fn(&View<T>) -> Result<Option<&Posting>, UnknownIndex> + Send + Sync>;
type Predicate<T> = Arc<dyn Fn(&Cached<T>) -> bool + Send + Sync>;

/// A set of objects, described by indexes and predicates: see [`View::select`].
///
/// An intersection begins with its smallest posting and passes through the others in step, so its
/// cost depends on the smallest part, not on the size of the cache. Predicates run last, on what
/// the indexes have left.
///
/// ```
/// use informant::delta::{Batch, Delta, SourceId};
/// use informant::indexer::{IndexDeclaration, Indexer, Query};
/// use informant::{Cached, Incoming, Meta};
///
/// // An object here is its labels.
/// type Labels = Vec<(&'static str, &'static str)>;
/// let (indexer, mut writer) = Indexer::<Labels>::builder()
///     .index("namespace", |o: &Cached<Labels>| Some(o.namespace().to_owned()))
///     .declare(IndexDeclaration::labels("labels", |o: &Cached<Labels>, label| {
///         o.iter().for_each(|(key, value)| label(key, value));
///     }))
///     .build();
/// for (version, name, labels) in [("1", "a", vec![("app", "web")]), ("2", "b", vec![("app", "web"), ("canary", "")])] {
///     let object = Incoming::new(Meta::new("default", name, "", version)?, labels);
///     writer.apply(Batch::of(SourceId(0), Delta::Added(object.into())));
/// }
///
/// let namespace = indexer.index::<String>("namespace")?;
/// let labels = indexer.index::<String>("labels")?;
/// let query = Query::has(&namespace, "default".to_owned())
///     .and(Query::labels(&labels, &"app in (web, api), !canary".parse()?));
/// let snapshot = indexer.snapshot();
/// let found: Vec<_> = snapshot.select(&query)?.map(|o| o.name()).collect();
/// assert_eq!(found, ["a"]);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Query<T>(Node<T>);

enum Node<T> {
    Everything,
    Posting { name: Arc<str>, resolve: Resolve<T> },
    All(Vec<Query<T>>),
    Any(Vec<Query<T>>),
    Not(Box<Query<T>>),
    Matches(Predicate<T>),
}

impl<T> Clone for Query<T> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Node::Everything => Node::Everything,
            Node::Posting { name, resolve } => Node::Posting {
                name: name.clone(),
                resolve: resolve.clone(),
            },
            Node::All(parts) => Node::All(parts.clone()),
            Node::Any(parts) => Node::Any(parts.clone()),
            Node::Not(part) => Node::Not(part.clone()),
            Node::Matches(predicate) => Node::Matches(predicate.clone()),
        })
    }
}

impl<T: Send + Sync + 'static> Query<T> {
    /// Every object.
    #[must_use]
    pub fn everything() -> Self {
        Self(Node::Everything)
    }

    /// The objects that have `value` under `index`.
    pub fn has<V>(index: &Index<T, V>, value: V) -> Self
    where
        V: Hash + Eq + Send + Sync + 'static,
    {
        let name = index.name.clone();
        let index = index.clone();
        Self(Node::Posting {
            name,
            resolve: Arc::new(move |view| Ok(view.value_table(&index)?.posting(&value))),
        })
    }

    /// The objects that a label selector selects. `index` is one that
    /// [`IndexDeclaration::labels`] declared.
    #[must_use]
    pub fn labels(index: &Index<T, String>, selector: &LabelSelector) -> Self {
        let parts = selector.requirements().iter();
        let parts: Vec<_> = parts.map(|part| requirement(index, part)).collect();
        if parts.is_empty() {
            Self::everything()
        } else {
            Self(Node::All(parts))
        }
    }

    /// The objects for which `predicate` holds. By itself it looks at every object; combined with
    /// an index, only at those that the index leaves.
    pub fn matches(predicate: impl Fn(&Cached<T>) -> bool + Send + Sync + 'static) -> Self {
        Self(Node::Matches(Arc::new(predicate)))
    }

    /// The objects in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(match (self.0, other.0) {
            (Node::All(mut parts), Node::All(more)) => {
                parts.extend(more);
                Node::All(parts)
            }
            (Node::All(mut parts), other) => {
                parts.push(Self(other));
                Node::All(parts)
            }
            (this, other) => Node::All(vec![Self(this), Self(other)]),
        })
    }

    /// The objects in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(match (self.0, other.0) {
            (Node::Any(mut parts), other) => {
                parts.push(Self(other));
                Node::Any(parts)
            }
            (this, other) => Node::Any(vec![Self(this), Self(other)]),
        })
    }

    /// The objects that are not in it.
    #[must_use]
    #[allow(clippy::should_implement_trait)] // It is the third of `and`, `or`, `not`.
    pub fn not(self) -> Self {
        Self(match self.0 {
            Node::Not(part) => return *part,
            part => Node::Not(Box::new(Self(part))),
        })
    }
}

fn requirement<T: Send + Sync + 'static>(
    index: &Index<T, String>,
    requirement: &Requirement,
) -> Query<T> {
    let key = requirement.key();
    let exists = || Query::has(index, key.to_owned());
    let one_of = || {
        let values = requirement.values().iter();
        Query(Node::Any(
            values
                .map(|value| Query::has(index, format!("{key}={value}")))
                .collect(),
        ))
    };
    match requirement.operator() {
        Operator::In => one_of(),
        Operator::NotIn => one_of().not(),
        Operator::Exists => exists(),
        Operator::DoesNotExist => exists().not(),
    }
}

impl<T: Send + Sync + 'static> IndexDeclaration<T> {
    /// An index of labels, for [`Query::labels`]: `function` calls its second argument with key and
    /// value of each label. Each label has two values in it, `key` and `key=value`.
    pub fn labels<F>(name: &str, function: F) -> Self
    where
        F: Fn(&Cached<T>, &mut dyn FnMut(&str, &str)) + Send + 'static,
    {
        let text = RefCell::new(String::new());
        Self::with(name, move |object, emit: &mut Emit<'_, String>| {
            function(object, &mut |key, value| {
                let mut text = text.borrow_mut();
                text.clear();
                text.push_str(key);
                emit.borrowed(text.as_str());
                text.push('=');
                text.push_str(value);
                emit.borrowed(text.as_str());
            });
            Ok(())
        })
    }
}

impl<T: Send + Sync + 'static> View<T> {
    /// The objects that a query describes, each once. What is looked up is of this view, whatever
    /// is published meanwhile.
    ///
    /// # Errors
    /// [`UnknownIndex`] when the query names an index that is not part of this view.
    pub fn select(&self, query: &Query<T>) -> Result<Values<'_, T>, UnknownIndex> {
        let slots = self.plan(query)?.slots(self);
        Ok(Values::new(&self.table, slots))
    }

    /// How a query would be answered, for people: which postings of which length, and what is
    /// left to a scan.
    ///
    /// # Errors
    /// As [`View::select`].
    pub fn explain(&self, query: &Query<T>) -> Result<String, UnknownIndex> {
        Ok(match &query.0 {
            Node::Everything => format!("everything ({})", self.len()),
            Node::Posting { name, resolve } => {
                format!(
                    "{name} ({})",
                    resolve(self)?.map_or(0, |posting| posting.iter().len())
                )
            }
            Node::Matches(_) => format!("scan ({})", self.len()),
            Node::Not(part) => format!("not {}", self.explain(part)?),
            Node::All(parts) => format!("all of [{}]", self.explain_parts(parts)?),
            Node::Any(parts) => format!("any of [{}]", self.explain_parts(parts)?),
        })
    }

    fn explain_parts(&self, parts: &[Query<T>]) -> Result<String, UnknownIndex> {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| self.explain(part))
            .collect::<Result<_, _>>()?;
        Ok(parts.join(", "))
    }

    fn plan<'v>(&'v self, query: &'v Query<T>) -> Result<Plan<'v, T>, UnknownIndex> {
        let plans = |parts: &'v [Query<T>]| {
            let plans = parts.iter().map(|part| self.plan(part));
            plans.collect::<Result<Vec<_>, _>>()
        };
        Ok(match &query.0 {
            Node::Everything => Plan::Everything,
            Node::Posting { resolve, .. } => match resolve(self)? {
                Some(posting) => Plan::Posting(posting),
                None => Plan::Any(Vec::new()),
            },
            Node::Matches(predicate) => Plan::Matches(predicate),
            Node::Not(part) => Plan::Not(Box::new(self.plan(part)?)),
            Node::All(parts) => Plan::All(plans(parts)?),
            Node::Any(parts) => Plan::Any(plans(parts)?),
        })
    }
}

/// A query whose postings have been looked up in one view.
enum Plan<'v, T> {
    Everything,
    Posting(&'v Posting),
    All(Vec<Plan<'v, T>>),
    Any(Vec<Plan<'v, T>>),
    Not(Box<Plan<'v, T>>),
    Matches(&'v Predicate<T>),
}

impl<'v, T> Plan<'v, T> {
    /// More objects than this it does not hold.
    fn bound(&self, view: &View<T>) -> usize {
        match self {
            Self::Everything | Self::Not(_) | Self::Matches(_) => view.len(),
            Self::Posting(posting) => posting.iter().len(),
            Self::All(parts) => {
                let bounds = parts.iter().map(|part| part.bound(view));
                bounds.min().unwrap_or(view.len())
            }
            Self::Any(parts) => {
                let bounds = parts.iter().map(|part| part.bound(view));
                bounds.sum::<usize>().min(view.len())
            }
        }
    }

    /// What a test of one slot costs, roughly: predicates are the user's and come last.
    fn weight(&self) -> usize {
        match self {
            Self::Everything | Self::Posting(_) => 0,
            Self::All(parts) | Self::Any(parts) => parts.iter().map(Self::weight).sum(),
            Self::Not(part) => part.weight(),
            Self::Matches(_) => 1,
        }
    }

    /// The slots, ascending.
    fn slots(self, view: &'v View<T>) -> Vec<Slot> {
        match self {
            Self::Posting(posting) => posting.iter().collect(),
            Self::Any(parts) => {
                let mut slots: Vec<Slot> = Vec::new();
                for part in parts {
                    slots.extend(part.slots(view));
                }
                slots.sort_unstable();
                slots.dedup();
                slots
            }
            Self::All(mut parts) => {
                // The smallest part leads; the others only pass or refuse what it names.
                let smallest = (0..parts.len()).min_by_key(|&at| parts[at].bound(view));
                let Some(smallest) = smallest else {
                    return Self::Everything.slots(view);
                };
                let mut slots = parts.swap_remove(smallest).slots(view);
                parts.sort_by_key(|part| (part.weight(), part.bound(view)));
                let mut tests: Vec<_> = parts.into_iter().map(Plan::test).collect();
                slots.retain(|&slot| tests.iter_mut().all(|test| test.passes(view, slot)));
                slots
            }
            Self::Everything => view.table.slots().map(|(slot, _)| slot).collect(),
            Self::Not(_) | Self::Matches(_) => {
                let mut test = self.test();
                let mut slots = Self::Everything.slots(view);
                slots.retain(|&slot| test.passes(view, slot));
                slots
            }
        }
    }

    fn test(self) -> Test<'v, T> {
        match self {
            Self::Everything => Test::All(Vec::new()),
            Self::Posting(posting) => Test::Posting(posting.seeker()),
            Self::All(parts) => Test::All(parts.into_iter().map(Plan::test).collect()),
            Self::Any(parts) => Test::Any(parts.into_iter().map(Plan::test).collect()),
            Self::Not(part) => Test::Not(Box::new(part.test())),
            Self::Matches(predicate) => Test::Matches(predicate),
        }
    }
}

/// Says of slots, asked in ascending order, whether a plan holds them.
enum Test<'v, T> {
    Posting(Seeker<'v>),
    All(Vec<Test<'v, T>>),
    Any(Vec<Test<'v, T>>),
    Not(Box<Test<'v, T>>),
    Matches(&'v Predicate<T>),
}

impl<T> Test<'_, T> {
    fn passes(&mut self, view: &View<T>, slot: Slot) -> bool {
        match self {
            Self::Posting(seeker) => seeker.holds(slot),
            Self::All(tests) => tests.iter_mut().all(|test| test.passes(view, slot)),
            Self::Any(tests) => tests.iter_mut().any(|test| test.passes(view, slot)),
            Self::Not(test) => !test.passes(view, slot),
            Self::Matches(predicate) => {
                view.table.get(slot).is_some_and(|object| predicate(object))
            }
        }
    }
}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Node::Everything => f.write_str("everything"),
            Node::Posting { name, .. } => write!(f, "{name}"),
            Node::All(parts) => f.debug_tuple("all").field(parts).finish(),
            Node::Any(parts) => f.debug_tuple("any").field(parts).finish(),
            Node::Not(part) => f.debug_tuple("not").field(part).finish(),
            Node::Matches(_) => f.write_str("predicate"),
        }
    }
}
