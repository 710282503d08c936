//! A lock-free, high-throughput cache engine for Kubernetes-style informers.
//!
//! List a collection once, watch it from the list's resourceVersion, keep an indexed local copy, and
//! let dozens of controllers read it and be told of changes. Readers never wait, the writer never
//! waits for readers, and every reader sees exactly one resourceVersion of all objects and indexes.
//!
//! # What it is
//! The stages of an informer, each a module and each usable by itself, in the order in which data
//! flows: a [`source`] is listed and watched by a `reflector`, which fills a [`delta`] queue,
//! which is drained in batches into an [`indexer`]; an `informer` tells handlers what changed;
//! keys go through a [`work_queue`] to the workers of a `controller`.
//!
//! # What it is not
//! No client: it knows no HTTP and no authentication; [`source::ListWatch`] is to be implemented
//! over one. No database: it holds in memory what its source holds.
//!
//! # What it costs
//! - A second copy of the tables that point to the objects (not of the objects), so that the next
//!   version can be prepared while readers use the current one.
//! - A replaced object lives until that copy has caught up: until the next publish, or the next
//!   round of housekeeping.
//! - A snapshot that is held keeps alive what has changed since, and nothing else.
//! - Freshness is that of the last batch: what is pending is applied as a whole, and nothing in
//!   between is ever shown.
//!
//! # Features
//! `tokio` (default): the reflector, informer and controller layers. `json`: objects without a
//! schema. `metrics`: counters, gauges and histograms through the facade of that name.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod object;
mod selector;
mod stop;
mod sync;

// The stages, in the order in which data flows.
pub mod source;
#[cfg(feature = "tokio")]
pub mod reflector;
pub mod delta;
pub mod indexer;
// Its mailboxes need no runtime and are modelled without one.
#[cfg(any(feature = "tokio", informant_loom))]
pub mod informer;
pub mod work_queue;
#[cfg(feature = "tokio")]
pub mod controller;

#[cfg(feature = "json")]
pub mod json;

#[cfg(feature = "tokio")]
pub use clock::SystemClock;
pub use clock::{Clock, ManualClock, SharedClock, Sleep, StdClock, Timestamp};
#[cfg(feature = "tokio")]
pub use informer::{InformerFactory, SharedInformer};
pub use object::{
    Cached, Incoming, KeyError, KeyRef, Meta, MetaError, Object, ObjectKey, ResourceVersion, Uid,
    Versioning,
};
pub use selector::{LabelSelector, Operator, Requirement, SelectorError};
pub use stop::StopToken;

/// The example in the README is compiled and run.
#[cfg(all(doctest, feature = "tokio"))]
#[doc = include_str!("../../README.md")]
struct Readme;
