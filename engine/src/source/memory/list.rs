//! Lists, in pages.
use super::state::{Paging, Request, State};
use super::{Shared, selects};
use crate::object::{Incoming, ResourceVersion};
use crate::source::{ApiStatus, ListOptions, ListPage, SourceError, VersionMatch};
use std::sync::Arc;

pub(super) fn page<T: Clone>(
    shared: &Shared<T>,
    options: &ListOptions,
) -> Result<ListPage<T>, SourceError> {
    let (version, items, continue_token) = {
        let mut state = shared.state.lock();
        state.requests.push(Request::List(options.clone()));
        if let Some(error) = state.list_faults.pop_front() {
            return Err(error);
        }
        let mut list = match &options.continue_token {
            Some(token) => resume(&mut state, token, options)?,
            None => start(&state, options)?,
        };
        let limit = options
            .limit
            .map_or(usize::MAX, |limit| limit.max(1) as usize);
        let rest = list.rest.split_off(limit.min(list.rest.len()));
        let version = list.version;
        let token = (!rest.is_empty()).then(|| state.keep_page(Paging { version, rest }));
        (version, list.rest, token)
    };
    // Objects are copied outside the lock.
    Ok(ListPage {
        resource_version: version.into(),
        continue_token,
        items: items.into_iter().map(|item| Ok(owned(item))).collect(),
    })
}

fn owned<T: Clone>(item: Arc<Incoming<T>>) -> Incoming<T> {
    Arc::unwrap_or_clone(item)
}

fn start<T>(state: &State<T>, options: &ListOptions) -> Result<Paging<T>, SourceError> {
    check_version(state, &options.resource_version)?;
    if options.version_match == Some(VersionMatch::Exact)
        && options.resource_version.as_number() != Some(state.version)
    {
        // Only the newest state is kept.
        return Err(ApiStatus::expired("the provided resource version is not available").into());
    }
    let rest = state
        .objects
        .iter()
        .filter(|(key, _)| selects(&options.selectors, key))
        .map(|(_, item)| item.clone())
        .collect();
    Ok(Paging {
        version: state.version,
        rest,
    })
}

fn resume<T>(
    state: &mut State<T>,
    token: &str,
    options: &ListOptions,
) -> Result<Paging<T>, SourceError> {
    if !options.resource_version.is_empty() || options.version_match.is_some() {
        let text = "a continue token must not be combined with a resource version";
        return Err(ApiStatus::new(400, "BadRequest", text).into());
    }
    state.paging.remove(token).ok_or_else(|| {
        ApiStatus::expired("the continue token is too old; list from the start").into()
    })
}

/// A version that the source has not reached yet is refused, as a server's cache does.
pub(super) fn check_version<T>(
    state: &State<T>,
    version: &ResourceVersion,
) -> Result<(), SourceError> {
    match version.as_number() {
        Some(asked) if asked > state.version => {
            let mut status = ApiStatus::new(
                504,
                "Timeout",
                &format!(
                    "Too large resource version: {asked}, current: {}",
                    state.version
                ),
            );
            status.causes.push(crate::source::StatusCause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
            });
            Err(status.into())
        }
        None if !version.is_empty() => {
            let text = format!("invalid resource version {version}");
            Err(ApiStatus::new(400, "BadRequest", &text).into())
        }
        _ => Ok(()),
    }
}
