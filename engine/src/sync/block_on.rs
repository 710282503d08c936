//! The blocking form of every wait.
use super::Parker;
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

/// When the `block_on` of this thread must poll again although nothing wakes it.
#[derive(Clone, Copy)]
enum PollAgain {
    /// No `block_on` runs on this thread: nobody would see a wish.
    NoOne,
    WhenWoken,
    At(Instant),
}

thread_local! {
    static POLL_AGAIN: Cell<PollAgain> = const { Cell::new(PollAgain::NoOne) };
}

/// Ask the `block_on` that polls on this thread to poll again at `instant`, the earliest wish
/// counting. False when there is none.
pub(crate) fn poll_again_at(instant: Instant) -> bool {
    let wish = match POLL_AGAIN.get() {
        PollAgain::NoOne => return false,
        PollAgain::WhenWoken => instant,
        PollAgain::At(other) => other.min(instant),
    };
    POLL_AGAIN.set(PollAgain::At(wish));
    true
}

/// Puts back what the thread was waiting for outside, also when a poll panics.
struct Outer(PollAgain);

impl Drop for Outer {
    fn drop(&mut self) {
        POLL_AGAIN.set(self.0);
    }
}

/// Drive `future` on this thread, parking it between polls.
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
    let _outer = Outer(POLL_AGAIN.get());
    loop {
        POLL_AGAIN.set(PollAgain::WhenWoken);
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        match POLL_AGAIN.get() {
            PollAgain::At(instant) => parker.0.park_until(instant),
            PollAgain::WhenWoken | PollAgain::NoOne => parker.0.park(),
        }
    }
}
