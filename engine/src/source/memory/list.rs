//! Lists, in pages. A continue token names a version and the last key, so a page costs the source
//! no memory, and expires when its version is forgotten.
use super::Shared;
use super::config::{bad_request, invalid};
use super::faults::Corruption;
use super::log::Item;
use super::selection::Selection;
use super::state::{Request, State};
use crate::object::{KeyRef, ObjectKey, ResourceVersion};
use crate::source::{BadObject, ListOptions, ListPage, SourceError, VersionMatch};
use std::collections::HashMap;

/// Objects that are taken under one hold of the lock at least, when selectors have to look inside.
const AT_ONCE: usize = 1_024;

/// Where a page begins.
struct Start {
    version: u64,
    after: Option<ObjectKey>,
}

pub(super) fn page<T: Clone>(
    shared: &Shared<T>,
    options: &ListOptions,
) -> Result<ListPage<T>, SourceError> {
    shared
        .state
        .lock()
        .receive(Request::List(options.clone()))?;
    let selection = Selection::new(&shared.config, &options.selectors)?;
    // As on a server, a limit of zero is none.
    let limit = options.limit.filter(|limit| *limit > 0);
    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
    // One more tells whether there is a next page.
    let at_once = match (limit.saturating_add(1), selection.is_by_key()) {
        (wanted, true) => wanted,
        (wanted, false) => wanted.max(AT_ONCE),
    };

    let mut selected: Vec<Item<T>> = Vec::new();
    let (version, mut batch, corrupt, generation) = {
        let state = shared.state.lock();
        let Start { version, after } = state.start(options)?;
        let batch = state.objects_at(version, selection.namespace(), after.as_ref(), at_once);
        // Metadata is read where the rest of an object cannot be.
        let corrupt = if options.metadata_only {
            HashMap::new()
        } else {
            state.faults.corrupt.clone()
        };
        (version, batch, corrupt, state.tokens)
    };
    loop {
        let is_last = batch.len() < at_once;
        let last = batch.last().map(|item| item.meta.key.clone());
        for item in batch {
            if selected.len() <= limit && selection.matches(&item)? {
                selected.push(item);
            }
        }
        if is_last || selected.len() > limit {
            break;
        }
        let state = shared.state.lock();
        if version < state.log.compacted || generation != state.tokens {
            return Err(state.expired(version));
        }
        batch = state.objects_at(version, selection.namespace(), last.as_ref(), at_once);
    }
    let more = selected.len() > limit;
    selected.truncate(limit);
    let last = selected.last().filter(|_| more);
    Ok(ListPage {
        resource_version: version.into(),
        continue_token: last.map(|item| format!("{generation}.{version}.{}", item.meta.key)),
        // Copying objects is user code, and costs: it is done outside of the lock.
        items: selected
            .iter()
            .map(|item| match corrupt.get(&item.meta.key) {
                None => Ok((**item).clone()),
                Some(corruption) => Err(corruption.bad_object(&item.meta)),
            })
            .collect::<Vec<Result<_, BadObject>>>(),
    })
}

impl<T> State<T> {
    fn start(&self, options: &ListOptions) -> Result<Start, SourceError> {
        if let Some(token) = options.continue_token.as_deref().filter(|t| !t.is_empty()) {
            return self.resume(token, options);
        }
        let asked = number(&options.resource_version)?;
        let limited = options.limit.is_some_and(|limit| limit > 0);
        let exact = match (options.version_match, asked) {
            (Some(_), None) => {
                return Err(invalid("resourceVersionMatch needs a resourceVersion").into());
            }
            (Some(VersionMatch::Exact), Some(0)) => {
                let text = "resourceVersionMatch Exact is forbidden for resourceVersion 0";
                return Err(invalid(text).into());
            }
            (Some(VersionMatch::Exact), Some(_)) => true,
            // What a version meant before resourceVersionMatch was invented, and still does.
            (None, Some(version)) => limited && version > 0,
            (Some(VersionMatch::NotOlderThan), _) | (None, None) => false,
        };
        let asked = asked.unwrap_or(0);
        self.check_not_too_large(asked)?;
        let version = if exact {
            asked
        } else if asked == 0 && !options.resource_version.is_empty() {
            let lagging = self.faults.lag_at.filter(|at| *at >= self.log.compacted);
            lagging.map_or(self.version, |at| at.min(self.version))
        } else {
            self.version
        };
        if version < self.log.compacted {
            return Err(self.expired(version));
        }
        Ok(Start {
            version,
            after: None,
        })
    }

    fn resume(&self, token: &str, options: &ListOptions) -> Result<Start, SourceError> {
        if !options.resource_version.is_empty() || options.version_match.is_some() {
            let text = "a continue token already names a version: neither resourceVersion nor \
                        resourceVersionMatch is allowed with it";
            return Err(bad_request(text).into());
        }
        let broken = || SourceError::from(bad_request("the continue token is not valid"));
        let mut parts = token.splitn(3, '.');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
        let (generation, version) = (number(), number());
        let (Some(generation), Some(version), Some(key)) = (generation, version, parts.next())
        else {
            return Err(broken());
        };
        let key = KeyRef::parse(key).map_err(|_| broken())?;
        if generation != self.tokens || version < self.log.compacted {
            let text = "the continue token is too old to go on with a consistent list";
            return Err(self.dialect().expired(text).into());
        }
        Ok(Start {
            version,
            after: Some(key.to_owned()),
        })
    }
}

/// The number of a version; `None` when it is empty.
pub(super) fn number(version: &ResourceVersion) -> Result<Option<u64>, SourceError> {
    match version.as_number() {
        None if !version.is_empty() => {
            Err(bad_request(&format!("invalid resource version {version:?}")).into())
        }
        number => Ok(number),
    }
}

impl Corruption {
    /// The report of an object that cannot be decoded.
    pub(super) fn bad_object(self, meta: &crate::object::Meta) -> BadObject {
        let reason = "the object cannot be decoded".to_owned();
        match self {
            Self::Body => BadObject {
                key: Some(meta.key.clone()),
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
                reason,
            },
            Self::Everything => BadObject {
                key: None,
                uid: crate::object::Uid::default(),
                resource_version: ResourceVersion::empty(),
                reason,
            },
        }
    }
}
