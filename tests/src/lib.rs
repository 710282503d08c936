//! What the tests of the whole pipeline share: oracles and the scenario runner.
pub mod scenario;
pub mod trace;
