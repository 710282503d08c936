//! Tests of the delta queue: cases from bug reports, and random scripts against plain oracles.
mod cases;
mod compaction;
mod model;
mod plain;
mod rig;
mod world;
