//! Events as a stream: a mailbox without a task.
use super::event::Event;
use super::mailbox::Chunk;
use super::registration::Registration;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The events of one subscriber, read when it likes.
///
/// It is a handler like others: what it does not read waits under its policy, and nobody waits for
/// it. An event counts as handled when the next one is asked for. Dropping the stream removes it;
/// it ends when the informer stops.
#[must_use = "a stream that is dropped is removed"]
pub struct EventStream<T: Send + Sync + 'static> {
    pub(super) registration: Registration<T>,
    chunk: Option<Chunk<T>>,
    /// The next telling of the chunk, and whether its first notice was given already.
    at: usize,
    first_given: bool,
    initial_given: usize,
}

impl<T: Send + Sync + 'static> EventStream<T> {
    pub(super) fn new(registration: Registration<T>) -> Self {
        // There are no calls, so none to wait for.
        registration.mailbox.mark_ended();
        Self {
            registration,
            chunk: None,
            at: 0,
            first_given: false,
            initial_given: 0,
        }
    }

    /// The registration behind the stream: sync, status, removal.
    pub fn registration(&self) -> &Registration<T> {
        &self.registration
    }

    /// The next event; `None` once the stream was removed or the informer stopped.
    pub async fn next(&mut self) -> Option<Event<T>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    fn next_of_chunk(&mut self) -> Option<Event<T>> {
        let chunk = self.chunk.as_ref()?;
        if self.at == chunk.len() {
            self.chunk = None;
            return None;
        }
        let telling = chunk.telling(self.at);
        let event = match telling.second {
            Some(second) if self.first_given => second.to_owned(),
            _ => telling.first.to_owned(),
        };
        if telling.second.is_some() && !self.first_given {
            self.first_given = true;
        } else {
            self.first_given = false;
            self.at += 1;
            self.initial_given += usize::from(telling.initial);
        }
        Some(event)
    }
}

impl<T: Send + Sync + 'static> Stream for EventStream<T> {
    type Item = Event<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        let this = self.get_mut();
        let mailbox = this.registration.mailbox.clone();
        // Asking for the next event says that the ones before are handled.
        mailbox.initial_returned(std::mem::take(&mut this.initial_given));
        loop {
            if mailbox.is_closed() {
                this.chunk = None;
                return Poll::Ready(None);
            }
            if let Some(event) = this.next_of_chunk() {
                mailbox.count_calls(1);
                return Poll::Ready(Some(event));
            }
            match mailbox.poll_take(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(chunk) => {
                    this.chunk = chunk;
                    this.at = 0;
                    this.first_given = false;
                }
            }
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventStream")
            .field(&self.registration)
            .finish()
    }
}
