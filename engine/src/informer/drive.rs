//! The loop that a handler's task (or thread) runs: mailbox to handler.
use super::handler::Deliver;
use super::mailbox::{Chunk, Mailbox};
use crate::clock::SharedClock;
use crate::indexer::panic_message;
use crate::object::ObjectKey;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How long a handler with much to do goes on before it lets others run, and how many tellings at
/// the most where that time does not pass (a clock that stands).
const TURN: Duration = Duration::from_micros(200);
const TELLINGS_PER_TURN: usize = 4096;

/// Told of a call that panicked: the key that the call was about, and the panic's message.
pub(crate) type OnPanic = Arc<dyn Fn(Option<&ObjectKey>, String) + Send + Sync>;

/// A handler and its mailbox, ready to be run by a task or a thread.
///
/// The order of the fields is the order in which they are dropped: when whoever waits for the end
/// goes on, the handler is gone. That holds too when this is dropped without ever having run, or in
/// the middle of a call.
pub(crate) struct Driver<T, D> {
    handler: D,
    on_panic: OnPanic,
    clock: SharedClock,
    ended: MarkEnded<T>,
}

struct MarkEnded<T>(Arc<Mailbox<T>>);

impl<T> Drop for MarkEnded<T> {
    fn drop(&mut self) {
        self.0.mark_ended();
    }
}

impl<T: Send + Sync + 'static, D: Deliver<T>> Driver<T, D> {
    pub(crate) fn new(
        mailbox: Arc<Mailbox<T>>,
        handler: D,
        on_panic: OnPanic,
        clock: SharedClock,
    ) -> Self {
        Self {
            handler,
            on_panic,
            clock,
            ended: MarkEnded(mailbox),
        }
    }

    /// Deliver until the mailbox is closed.
    pub(crate) async fn run(mut self) {
        let (mut told, mut since) = (0, self.clock.now());
        while let Some(chunk) = self.ended.0.take().await {
            told += chunk.len();
            self.deliver(&chunk).await;
            let now = self.clock.now();
            if told >= TELLINGS_PER_TURN || now.since(since) >= TURN {
                yield_now().await;
                (told, since) = (0, now);
            }
        }
    }

    async fn deliver(&mut self, chunk: &Chunk<T>) {
        let mailbox = &self.ended.0;
        let mut calls = 0;
        let mut initial_returned = 0;
        for at in 0..chunk.len() {
            let telling = chunk.telling(at);
            if !telling.initial && initial_returned > 0 {
                mailbox.initial_returned(std::mem::take(&mut initial_returned));
            }
            for notice in [Some(telling.first), telling.second].into_iter().flatten() {
                if mailbox.is_closed() {
                    mailbox.count_calls(calls);
                    return;
                }
                calls += 1;
                if let Err(message) = guard(mailbox, self.handler.deliver(notice)).await {
                    mailbox.count_panic();
                    (self.on_panic)(notice.key(), message);
                }
            }
            // A call that panicked has returned too: the handler's readiness does not hang on it.
            let returned = telling.initial;
            #[cfg(informant_mutant = "panic_never_returns")]
            let returned = returned && mailbox.stats().panics == 0;
            initial_returned += usize::from(returned);
        }
        mailbox.count_calls(calls);
        mailbox.initial_returned(initial_returned);
    }
}

thread_local! {
    /// The address of the mailbox whose handler runs on this thread now.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// True inside a call of this mailbox's own handler: waiting for its end there would never end.
pub(crate) fn runs_here<T>(mailbox: &Arc<Mailbox<T>>) -> bool {
    RUNNING.get() == address(mailbox)
}

fn address<T>(mailbox: &Arc<Mailbox<T>>) -> usize {
    Arc::as_ptr(mailbox).addr()
}

/// Await user code; a panic in it becomes an error.
async fn guard<T, F: Future>(mailbox: &Arc<Mailbox<T>>, call: F) -> Result<F::Output, String> {
    struct Restore(usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    let here = address(mailbox);
    let mut call = pin!(call);
    poll_fn(move |context| {
        let _restore = Restore(RUNNING.replace(here));
        // The handler is not looked at after a panic except by its own later calls, which is what
        // the documentation of handlers promises.
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic_message(&*panic))),
        }
    })
    .await
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
