//! The `informant` command.
fn main() {}
