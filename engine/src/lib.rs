//! A lock-free, high-throughput cache engine for Kubernetes-style informers.
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
