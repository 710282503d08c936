//! Secondary indexes: declared once, evaluated once per object version, read from snapshots.
//!
//! An index has two halves. Its *value table* (value → posting of slots) is part of every version
//! of the cache, so that readers see objects and indexes of one moment. Its *driver* belongs to
//! the writer alone: the function, which values each slot has, and the log from which a retired
//! version catches up.
mod assignments;
mod dictionary;
mod driver;
mod function;
mod handle;
mod value_table;

pub(crate) use driver::panic_message;
pub(crate) use driver::{Driver, IndexDriver};
pub use function::Emit;
pub(crate) use function::IndexFunction;
pub use handle::{Index, IndexConflict, UnknownIndex};
pub(crate) use value_table::{IndexPart, Node, NodeIter, ValueTable};
