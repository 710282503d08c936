//! The `informant` command as its users meet it: arguments in, text, documents and exit codes out.
mod demo;
mod informant;
mod replay_compressed;
mod replay_objects;
mod replay_order;
mod replay_stream_faults;
mod replay_trace;
