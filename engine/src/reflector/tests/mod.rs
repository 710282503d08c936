//! The reflector alone, against a scripted transport and a recording sink, in virtual time.
mod consistency;
mod convergence;
mod lists;
mod memory;
mod pipeline;
mod properties;
mod rig;
mod status;
mod stopping;
mod streaming;
mod watches;
