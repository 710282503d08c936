//! What a list or a watch asks for.
use crate::object::ResourceVersion;
use std::time::Duration;

/// How a list's `resource_version` is to be understood by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// Any state at least as new as the version.
    NotOlderThan,
    /// Exactly the state at the version.
    Exact,
}

/// What part of the collection is asked for. The engine never interprets these: they travel to
/// the source as they are, with every call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Selectors {
    /// Only this namespace; all of them when `None`.
    pub namespace: Option<String>,
    /// A label selector in Kubernetes syntax.
    pub labels: Option<String>,
    /// A field selector in Kubernetes syntax.
    pub fields: Option<String>,
    /// A shard of the collection, such as a range of hashes of the uid (KEP-5866).
    pub shard: Option<String>,
}

/// One list call.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ListOptions {
    /// Empty: the most recent state; "0": any state; else as `version_match` says.
    pub resource_version: ResourceVersion,
    /// Unset on follow-up pages, where servers refuse it.
    pub version_match: Option<VersionMatch>,
    /// Objects a page at the most; `None`: all in one answer.
    pub limit: Option<u32>,
    /// The token of the page before, on follow-up pages.
    pub continue_token: Option<String>,
    /// Which part of the collection.
    pub selectors: Selectors,
    /// Only metadata is wanted; the source may leave the rest out.
    pub metadata_only: bool,
}

/// One watch call.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WatchOptions {
    /// Changes after this version are wanted.
    pub resource_version: ResourceVersion,
    /// Ask for bookmarks.
    pub allow_bookmarks: bool,
    /// Ask for the present objects first: a streaming list.
    pub send_initial_events: bool,
    /// How the version of a streaming list is to be understood.
    pub version_match: Option<VersionMatch>,
    /// The server is asked to end the watch after this long.
    pub timeout: Option<Duration>,
    /// Which part of the collection.
    pub selectors: Selectors,
}
