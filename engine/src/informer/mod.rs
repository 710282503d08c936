//! The shared informer: one cache, many handlers, and no one waits for anyone.
//!
//! A [`SharedInformer`] runs the flow for one collection: reflector, delta queue, indexer, and the
//! hand-over to handlers. Each handler has a mailbox with a declared [`Policy`] and a task of its
//! own, so a slow, blocked or panicking one delays neither the cache nor the others.
//!
//! What it costs: a handler that keeps up costs one lock and one wake-up a batch, and shares the
//! batch with all others. One that lags costs an entry per changed key (coalescing) or the batches
//! themselves up to its limit (lossless).
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
mod transform;

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
pub use shared::{AddIndexError, InformerStatus, SharedInformer, StartError, StillRunning};
#[cfg(feature = "tokio")]
pub use stream::EventStream;
#[cfg(feature = "tokio")]
pub use transform::{Transform, Transformed};
