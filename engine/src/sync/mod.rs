//! The one place that names an atomic, a lock, a condition variable or the root cell.
//!
//! Everything else in the engine takes these from here, so that `--cfg informant_loom` can swap
//! them for loom's and a model explores the real code of a protocol.
//!
//! What the models do not see: [`Root`] is `arc-swap` in production and a locked pointer under
//! loom, so a model proves *our* protocol around the root cell, not `arc-swap` itself. `Arc` stays
//! the standard library's everywhere: loom runs one thread at a time, so its reference counts are
//! exact, only weak-memory reorderings inside `Arc` are left out.
mod block_on;
#[cfg(informant_loom)]
mod modelled;
#[cfg(not(informant_loom))]
mod native;
mod wait_set;

pub(crate) use block_on::{block_on, poll_again_at};
#[cfg(informant_loom)]
pub(crate) use modelled::*;
#[cfg(not(informant_loom))]
pub(crate) use native::*;
pub(crate) use wait_set::WaitSet;
