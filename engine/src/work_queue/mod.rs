//! The work queue: deduplicated, delayed, rate-limited, drained. Every event ends here as a key.
