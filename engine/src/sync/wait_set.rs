//! Waiting for a condition: each waiter has its own waker, so one wake-up reaches all of them.
use super::Mutex;
use slab::Slab;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A set of waiters on one condition that the owner changes and then announces.
///
/// No wake-up is lost, because a waiter registers *first* and looks at the condition *after*: the
/// owner changes the condition first and takes the wakers after. Either the waiter's look sees the
/// change, or its waker was in the set when the owner took it.
pub(crate) struct WaitSet {
    wakers: Mutex<Slab<Option<Waker>>>,
}

impl WaitSet {
    pub(crate) fn new() -> Self {
        Self {
            wakers: Mutex::new(Slab::new()),
        }
    }

    /// Wake every waiter to look again. Call it after the condition has changed. Wakers run
    /// outside the lock, since a waker is foreign code.
    pub(crate) fn notify_all(&self) {
        let woken: Vec<Waker> = {
            let mut wakers = self.wakers.lock();
            if wakers.is_empty() {
                return;
            }
            wakers
                .iter_mut()
                .filter_map(|(_, waker)| waker.take())
                .collect()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// A future that ends when `condition` returns `Some`. Dropping it deregisters the waiter.
    pub(crate) fn until<R, F: FnMut() -> Option<R>>(&self, condition: F) -> Until<'_, F> {
        Until {
            set: self,
            slot: None,
            condition,
        }
    }
}

/// See [`WaitSet::until`].
pub(crate) struct Until<'a, F> {
    set: &'a WaitSet,
    slot: Option<usize>,
    condition: F,
}

impl<F> Unpin for Until<'_, F> {}

impl<R, F: FnMut() -> Option<R>> Future for Until<'_, F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let this = &mut *self;
        if let Some(value) = (this.condition)() {
            return Poll::Ready(value);
        }
        {
            let waker = Some(context.waker().clone());
            let mut wakers = this.set.wakers.lock();
            match this.slot {
                Some(slot) => wakers[slot] = waker,
                None => this.slot = Some(wakers.insert(waker)),
            }
        }
        #[cfg(informant_mutant = "look_once")]
        return Poll::Pending;
        // The second look is what makes a change between the first look and the registration safe.
        match (this.condition)() {
            Some(value) => Poll::Ready(value),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Until<'_, F> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.set.wakers.lock().remove(slot);
        }
    }
}
