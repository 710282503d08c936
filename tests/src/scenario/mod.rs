//! The scenario language: fault reports as event sequences with the right outcome, without Rust.
//!
//! `tests/README.md` describes the language. A scenario is read ([`Scenario::read`]), run in
//! virtual time on one thread ([`run`]), and every expectation in it can be flipped, to see that it
//! can fail ([`self_check`]).
pub mod cases;
mod check;
mod keys;
mod notation;
mod queue_world;
mod run;
mod transport;
mod work_queue_world;
mod world;
mod yaml;

pub use check::Failure;
pub use run::{Scenario, run, self_check};
pub use yaml::ReadError;
