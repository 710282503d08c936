//! The informer: one cache, many handlers, no one waits for anyone.
