//! The loom side of the switch. The wrappers give loom's types the shape of the production ones.
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);
pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);
pub(crate) struct Condvar(loom::sync::Condvar);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect("models do not poison locks")))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0
            .as_ref()
            .expect("a guard is empty only while it waits")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0
            .as_mut()
            .expect("a guard is empty only while it waits")
    }
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard
            .0
            .take()
            .expect("a guard is empty only while it waits");
        guard.0 = Some(self.0.wait(inner).expect("models do not poison locks"));
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    #[allow(dead_code)] // Part of the shape of the production type.
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

pub(crate) struct Root<T>(Mutex<Arc<T>>);
pub(crate) struct RootGuard<T>(Arc<T>);

impl<T> Root<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn load(&self) -> RootGuard<T> {
        RootGuard(self.load_full())
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        self.0.lock().clone()
    }

    pub(crate) fn swap(&self, value: Arc<T>) -> Arc<T> {
        std::mem::replace(&mut *self.0.lock(), value)
    }
}

impl<T> Deref for RootGuard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

pub(crate) struct Parker(Mutex<bool>, Condvar);

impl Parker {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(false), Condvar::new())
    }

    pub(crate) fn park(&self) {
        let mut token = self.0.lock();
        while !*token {
            self.1.wait(&mut token);
        }
        *token = false;
    }

    /// Models have no time: they use the manual clock, whose sleeps wake.
    pub(crate) fn park_until(&self, _deadline: std::time::Instant) {
        self.park();
    }

    pub(crate) fn unpark(&self) {
        *self.0.lock() = true;
        self.1.notify_one();
    }
}
