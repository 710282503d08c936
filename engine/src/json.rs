//! Schemaless objects and recorded list/watch frames.
