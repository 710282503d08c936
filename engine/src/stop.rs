//! A stop signal that every wait looks at.
use crate::sync::{AtomicBool, Ordering, WaitSet};
use std::fmt;
use std::sync::Arc;

/// A signal that is given once and seen by every clone: all waits of a pipeline end with it.
///
/// ```
/// use informant::StopToken;
/// let token = StopToken::new();
/// let seen_elsewhere = token.clone();
/// token.stop();
/// assert!(seen_elsewhere.is_stopped());
/// ```
#[derive(Clone)]
pub struct StopToken(Arc<Shared>);

struct Shared {
    stopped: AtomicBool,
    waiters: WaitSet,
}

impl StopToken {
    /// A signal that has not been given.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            stopped: AtomicBool::new(false),
            waiters: WaitSet::new(),
        }))
    }

    /// Give the signal. Giving it again changes nothing.
    pub fn stop(&self) {
        // SeqCst with the load in `is_stopped`: see `WaitSet` for why no wake-up is lost.
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.waiters.notify_all();
    }

    /// True once the signal was given.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Ends when the signal is given, at once if it was.
    pub async fn stopped(&self) {
        self.0
            .waiters
            .until(|| self.is_stopped().then_some(()))
            .await;
    }
}

impl Default for StopToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StopToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StopToken(stopped: {})", self.is_stopped())
    }
}

#[cfg(all(test, not(informant_loom)))]
mod tests {
    use super::*;
    use crate::sync::block_on;

    #[test]
    fn every_waiter_is_woken() {
        let token = StopToken::new();
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                let token = token.clone();
                std::thread::spawn(move || block_on(token.stopped()))
            })
            .collect();
        token.stop();
        for waiter in waiters {
            waiter.join().unwrap();
        }
        block_on(token.stopped());
    }
}
