//! The shared informer: one cache, many handlers, and no one waits for anyone.
//!
//! A [`SharedInformer`] runs the flow for one collection: reflector, delta queue, indexer, and the
//! hand-over to handlers. Each handler has a mailbox with a declared [`Policy`] and a task of its
//! own, so a slow, blocked or panicking one delays neither the cache nor the others.
//!
//! What it costs: a handler that keeps up costs one lock and one wake-up a batch, and shares the
//! batch with all others. One that lags costs an entry per changed key (coalescing) or the batches
//! themselves up to its limit (lossless).
//!
//! # Metrics
//! With the feature `metrics`, through the facade of that name. Sizes and the counts of handlers are
//! read off a tenth of a second after a change.
//!
//! | name | type | unit | labels |
//! |---|---|---|---|
//! | `informant_informer_batches_total` | counter | batches applied and published | `informer` |
//! | `informant_informer_changes_total` | counter | keys changed by them | `informer` |
//! | `informant_informer_apply_seconds` | histogram | seconds to apply and publish a batch | `informer` |
//! | `informant_informer_objects` | gauge | objects | `informer` |
//! | `informant_informer_quarantined_objects` | gauge | objects | `informer` |
//! | `informant_informer_queue_keys` | gauge | keys that wait to be applied | `informer` |
//! | `informant_informer_queue_age_seconds` | gauge | age of the oldest of them | `informer` |
//! | `informant_handler_calls_total` | counter | calls | `informer`, `handler` |
//! | `informant_handler_panics_total` | counter | calls that panicked | `informer`, `handler` |
//! | `informant_handler_coalesced_total` | counter | changes folded into one that waited | `informer`, `handler` |
//! | `informant_handler_replays_total` | counter | times it had to start over | `informer`, `handler` |
//! | `informant_handler_waiting` | gauge | keys (coalescing) or changes that wait | `informer`, `handler` |
// The models need only a part.
#![cfg_attr(not(feature = "tokio"), allow(dead_code, unused_imports))]
#[cfg(feature = "tokio")]
mod builder;
#[cfg(feature = "tokio")]
mod crew;
mod drive;
mod event;
#[cfg(feature = "tokio")]
mod factory;
mod handler;
#[cfg(feature = "tokio")]
mod hub;
#[cfg(all(test, informant_loom))]
mod loom;
mod mailbox;
#[cfg(feature = "tokio")]
mod metrics;
mod options;
#[cfg(feature = "tokio")]
mod pump;
#[cfg(feature = "tokio")]
mod registration;
mod registry;
#[cfg(feature = "tokio")]
mod report;
mod resync;
#[cfg(feature = "tokio")]
mod shared;
#[cfg(feature = "tokio")]
mod stream;
#[cfg(all(test, feature = "tokio", not(informant_loom)))]
mod tests;
#[cfg(feature = "tokio")]
mod together;
#[cfg(feature = "tokio")]
mod transform;
#[cfg(feature = "tokio")]
mod write_tracker;

#[cfg(feature = "tokio")]
pub use builder::InformerBuilder;
pub use event::Event;
#[cfg(feature = "tokio")]
pub use factory::{
    FactoryBuilder, FactoryError, FactoryNotSynced, InformerFactory, InformerRequest,
};
pub use handler::{
    AsyncHandler, AsyncHandlerFn, Filtered, Handler, HandlerFn, HandlerFuncs, async_handler_fn,
    handler_fn,
};
#[cfg(feature = "tokio")]
pub use hub::AddHandlerError;
pub use mailbox::{PastLimit, Policy};
pub use options::HandlerOptions;
#[cfg(feature = "tokio")]
pub use registration::{HandlerStatus, OwnHandler, Registration};
#[cfg(feature = "tokio")]
pub use report::{InformerError, NotSynced, NotSyncedReason, ReportHook, SourceReport};
pub use resync::{MIN_RESYNC_PERIOD, Resync};
#[cfg(feature = "tokio")]
pub use shared::{AddIndexError, Hold, InformerStatus, SharedInformer, StartError, StillRunning};
#[cfg(feature = "tokio")]
pub use stream::EventStream;
#[cfg(feature = "tokio")]
pub use together::{Caches, Together, snapshot_together};
#[cfg(feature = "tokio")]
pub use transform::{Transform, Transformed};
#[cfg(feature = "tokio")]
pub use write_tracker::WriteTracker;
