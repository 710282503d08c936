//! Scenarios: what a transport does, what happens to handlers and queues, and what must come of it,
//! written in YAML. `tests/README.md` tells how to write one.
//!
//! [`document::read`] makes scenarios of a file, [`play::play`] plays one in virtual time on one
//! thread; [`files`] does both for many and says what came of it.
// Nothing here is a library: what a function gives is used, or it would not be called.
#![allow(clippy::must_use_candidate)]
pub mod action;
pub mod cases;
pub mod check;
pub mod claim;
pub mod document;
pub mod errors;
pub mod files;
pub mod notation;
pub mod play;
pub mod recorder;
pub mod sequence;
pub mod settings;
pub mod spec;
pub mod stage;
pub mod step;
pub mod thing;
pub mod transport;
pub mod trouble;
pub mod work_verb;
pub mod yaml;
