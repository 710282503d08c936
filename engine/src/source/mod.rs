//! The port to the outside: a collection that can be listed and watched.
//!
//! [`ListWatch`] is the only thing the engine asks of a transport. The embedded source
//! (`source::memory`) implements it in memory; other crates implement it over a real client.
mod error;
mod event;
pub mod memory;
mod options;
mod shard;

pub use error::{ApiStatus, Recovery, SourceError, StatusCause};
pub use event::{BadObject, ListPage, WatchEvent, WatchStream};
pub use options::{ListOptions, Selectors, VersionMatch, WatchOptions};
pub use shard::{ShardField, ShardRange, ShardSelector, ShardSelectorError, shard_hash};

use crate::object::Versioning;
use std::future::Future;
use std::sync::Arc;

/// A collection that can be listed (in pages) and watched: the port that adapters implement.
///
/// # Contract
/// - A list is a consistent state of the collection at the page's `resource_version`; all pages of
///   one list belong to the same state.
/// - A watch from version `v` yields every later change, in order, or ends with an error that says
///   that it can't ([`Recovery::Relist`]).
/// - Dropping the future or the stream cancels the call; the implementation cleans up by itself.
/// - Errors are classified by [`SourceError::recovery`]; nothing else decides what happens next.
pub trait ListWatch: Send + Sync + 'static {
    /// The objects of the collection.
    type Object: Send + Sync + 'static;

    /// One page of a list.
    fn list(
        &self,
        options: ListOptions,
    ) -> impl Future<Output = Result<ListPage<Self::Object>, SourceError>> + Send;

    /// Open a watch. With [`WatchOptions::send_initial_events`] the present objects come first, as
    /// `Added`, then a bookmark with `initial_events_end` set (a streaming list).
    fn watch(
        &self,
        options: WatchOptions,
    ) -> impl Future<Output = Result<WatchStream<Self::Object>, SourceError>> + Send;

    /// Whether versions of this source can be compared.
    fn versioning(&self) -> Versioning {
        Versioning::Decimal
    }

    /// Whether streaming lists are worth trying; a source that says no is never asked for one.
    fn supports_streaming_list(&self) -> bool {
        false
    }
}

/// A source that is shared is a source.
impl<S: ListWatch> ListWatch for Arc<S> {
    type Object = S::Object;

    async fn list(&self, options: ListOptions) -> Result<ListPage<Self::Object>, SourceError> {
        (**self).list(options).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<Self::Object>, SourceError> {
        (**self).watch(options).await
    }

    fn versioning(&self) -> Versioning {
        (**self).versioning()
    }

    fn supports_streaming_list(&self) -> bool {
        (**self).supports_streaming_list()
    }
}
