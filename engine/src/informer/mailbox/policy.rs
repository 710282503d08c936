//! How much a handler may have waiting, and what happens past that.

/// What a handler's mailbox keeps when the handler is slower than the changes.
///
/// Whatever the policy: per key the order is Added, Updated…, Deleted; the `old` of an update is
/// what this handler was given last; and what the handler has been told adds up to the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// One pending entry per changed key: a key that changes a thousand times while the handler is
    /// busy costs one call. Memory is bounded by the number of keys.
    #[default]
    Coalesce,
    /// Every change of each key, in order, as long as no more than `limit` are waiting. (Between
    /// keys the order is that of their first changes in a batch.)
    ///
    /// The store keeps and passes on every step for as long as any lossless handler is registered;
    /// otherwise it only knows the net change of a key per batch.
    Lossless {
        /// How many changes may be waiting, at least 1.
        limit: usize,
        /// What happens past the limit.
        past_limit: PastLimit,
    },
    /// Every change of each key, in order, however many are waiting (client-go's behaviour). Memory is bounded
    /// by nothing: a blocked handler keeps every change alive.
    Unbounded,
}

/// What happens to a lossless handler that has its limit of changes waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastLimit {
    /// The changes past the limit are coalesced by key, until the handler has caught up.
    Coalesce,
    /// The waiting changes are dropped and the handler starts over: it is told `Replay`, then
    /// `Added` for everything that exists.
    Replay,
    /// The cache takes no further batch until the handler has room again. Up to one batch more
    /// than the limit may be waiting. This is the only choice by which a handler can delay others.
    Block,
}

impl Policy {
    /// Every change in order, with a limit of at least 1.
    #[must_use]
    pub const fn lossless(limit: usize, past_limit: PastLimit) -> Self {
        let limit = if limit == 0 { 1 } else { limit };
        Self::Lossless { limit, past_limit }
    }

    /// Whether the handler wants every step rather than the net change of each key.
    #[must_use]
    pub const fn is_lossless(self) -> bool {
        !matches!(self, Self::Coalesce)
    }

    pub(crate) const fn limit(self) -> Option<usize> {
        match self {
            Self::Lossless { limit, .. } => Some(if limit == 0 { 1 } else { limit }),
            Self::Coalesce | Self::Unbounded => None,
        }
    }

    pub(crate) const fn past_limit(self) -> Option<PastLimit> {
        match self {
            Self::Lossless { past_limit, .. } => Some(past_limit),
            Self::Coalesce | Self::Unbounded => None,
        }
    }
}
