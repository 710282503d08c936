//! The indexer: the cache itself, with lock-free snapshot reads.
//!
//! One writer applies batches ([`IndexWriter::apply`]); any number of readers look at the current
//! version ([`Indexer::load`], [`Indexer::snapshot`]). Objects and all indexes are published
//! together by one pointer swap, so every read of one view is of one moment. Readers never wait;
//! the writer never waits for readers.
//!
//! What it costs: a second (sometimes third) copy of the tables that point to the objects, about
//! 30 bytes an object, kept by the writer to prepare the next version in; and an object that was
//! replaced lives until that copy has caught up, which is the next publish or
//! [`IndexWriter::maintain`].
mod applied;
mod apply;
mod builder;
mod diff;
mod freshness;
pub(crate) mod identity;
mod index;
mod marks;
mod namespaces;
mod objects;
mod owners;
mod posting;
mod publish;
mod quarantine;
mod query;
mod read;
mod table;
mod view;
mod writer;

pub use applied::{Applied, Change, DropCounts, Effective, IndexFailure, Quarantined};
pub use builder::{IndexDeclaration, IndexerBuilder};
pub use diff::{Diff, ForeignSnapshot};
pub use freshness::WaitError;
pub use index::{Emit, Index, IndexConflict, UnknownIndex};
pub use namespaces::NAMESPACES;
pub use objects::{IndexValues, Objects, Values};
pub use query::Query;
pub use read::{Indexer, ReadGuard, Snapshot};
pub use view::View;
pub use writer::IndexWriter;

pub(crate) use index::panic_message;

#[cfg(all(test, informant_loom))]
mod loom;
#[cfg(all(test, not(informant_loom)))]
mod tests;
