//! The production side of the switch: `parking_lot` locks, std atomics, arc-swap as the root cell.
use std::ops::Deref;
use std::sync::Arc;

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(test)]
pub(crate) use std::sync::atomic::AtomicUsize;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The cell that holds the current version; loads never wait, a swap never waits for readers.
pub(crate) struct Root<T>(arc_swap::ArcSwap<T>);

/// A short borrow of the root's value that does not touch its reference count.
pub(crate) struct RootGuard<T>(arc_swap::Guard<Arc<T>>);

impl<T> Root<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self(arc_swap::ArcSwap::new(value))
    }

    /// Borrow the current value. Hold it briefly: it occupies one of a thread's few fast slots.
    #[inline]
    pub(crate) fn load(&self) -> RootGuard<T> {
        RootGuard(self.0.load())
    }

    /// Own the current value: one reference count.
    #[inline]
    pub(crate) fn load_full(&self) -> Arc<T> {
        self.0.load_full()
    }

    /// Publish `value` and return what it replaced. When this returns, every outstanding guard of
    /// the old value is visible in its reference count, so `Arc::get_mut` on it is exact.
    pub(crate) fn swap(&self, value: Arc<T>) -> Arc<T> {
        self.0.swap(value)
    }
}

impl<T> Deref for RootGuard<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// One thread's parking spot, used by the blocking forms of waits.
pub(crate) struct Parker(Mutex<bool>, Condvar);

impl Parker {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(false), Condvar::new())
    }

    /// Wait until [`Parker::unpark`]; a call made before counts.
    pub(crate) fn park(&self) {
        let mut token = self.0.lock();
        while !*token {
            self.1.wait(&mut token);
        }
        *token = false;
    }

    /// As [`Parker::park`], until `deadline` at the latest.
    pub(crate) fn park_until(&self, deadline: std::time::Instant) {
        let mut token = self.0.lock();
        while !*token {
            if self.1.wait_until(&mut token, deadline).timed_out() {
                break;
            }
        }
        *token = false;
    }

    pub(crate) fn unpark(&self) {
        *self.0.lock() = true;
        self.1.notify_one();
    }
}
