//! What the tests of the whole pipeline share: oracles, the scenario runner and the simulation.
pub mod scenario;
pub mod simulation;
pub mod trace;
