//! Recorded list/watch streams for tests: a generator, and a plain evaluation of any recording.
//!
//! The two know nothing of the engine, nor of each other: the generator writes what a server would
//! have sent, the evaluation reads it as simply as can be.
mod evaluate;
mod generate;

pub use evaluate::{Expectation, evaluate};
pub use generate::{Trace, generate};
