//! Waiting for a condition: each waiter has its own waker, so one wake-up reaches all of them.
use super::{Mutex, Parker};
use slab::Slab;
use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

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

    /// Wake one waiter to look again, if any is asleep: enough when what became available serves
    /// one. A waiter that is woken and then dropped without having been served passes the wake-up
    /// on, so it is never lost with the waiter.
    pub(crate) fn notify_one(&self) {
        let woken = {
            let mut wakers = self.wakers.lock();
            wakers.iter_mut().find_map(|(_, waker)| waker.take())
        };
        if let Some(waker) = woken {
            waker.wake();
        }
    }

    /// A future that ends when `condition` returns `Some`. Dropping it deregisters the waiter.
    pub(crate) fn until<R, F: FnMut() -> Option<R>>(&self, condition: F) -> Until<'_, F> {
        Until {
            set: self,
            slot: None,
            served: false,
            condition,
        }
    }
}

/// See [`WaitSet::until`].
pub(crate) struct Until<'a, F> {
    set: &'a WaitSet,
    slot: Option<usize>,
    served: bool,
    condition: F,
}

impl<F> Unpin for Until<'_, F> {}

impl<R, F: FnMut() -> Option<R>> Future for Until<'_, F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let this = &mut *self;
        if let Some(value) = (this.condition)() {
            this.served = true;
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
            Some(value) => {
                this.served = true;
                Poll::Ready(value)
            }
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Until<'_, F> {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        let woken = self.set.wakers.lock().remove(slot).is_none();
        #[cfg(not(informant_mutant = "keep_the_baton"))]
        if woken && !self.served {
            self.set.notify_one();
        }
    }
}

/// Drive `future` on this thread, parking it between polls: the blocking form of every wait.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Parker);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let parker = Arc::new(Unpark(Parker::new()));
    let waker = Waker::from(parker.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        PARK_UNTIL.set(None);
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        match PARK_UNTIL.take() {
            Some(deadline) => parker.0.park_until(deadline),
            None => parker.0.park(),
        }
    }
}

thread_local! {
    /// The earliest time for which what `block_on` polls on this thread wants to be polled again.
    static PARK_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Have the [`block_on`] of this thread poll again at `deadline`: how a sleep works that has
/// neither a runtime nor a thread of its own.
pub(crate) fn poll_again_at(deadline: Instant) {
    PARK_UNTIL.set(Some(match PARK_UNTIL.get() {
        Some(earlier) => earlier.min(deadline),
        None => deadline,
    }));
}
