//! The controller runner: events become keys, keys are reconciled by workers.
//!
//! A controller watches informers through handlers of its own, maps what they tell to keys, and
//! runs workers that reconcile one key at a time. Reconcilers read the caches through snapshots;
//! they are told *that* something about a key changed, not what: they compare what is with what
//! should be.
mod builder;
mod runner;

pub use builder::ControllerBuilder;
pub use runner::{Action, Controller, ControllerMetrics, ReconcileError};

#[cfg(all(test, not(informant_loom)))]
mod tests;
