//! Waiting for work.
use super::item::Item;
use super::operation::{Effects, Found, HandOut, Next, Now};
use super::queue::ShutDown;
use super::shared::Shared;
use super::state::State;
use super::waiters::WaiterId;
use crate::clock::{Sleep, Timestamp};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The wait for one item: see [`WorkQueue::get`](super::WorkQueue::get).
#[must_use = "futures do nothing unless polled"]
pub struct Get<'q, K> {
    waiting: Waiting<'q, K>,
}

/// The wait for several items: see [`WorkQueue::get_batch`](super::WorkQueue::get_batch).
#[must_use = "futures do nothing unless polled"]
pub struct GetBatch<'q, K> {
    waiting: Waiting<'q, K>,
    max: usize,
}

/// A waiter of the queue. Dropping it passes on a wake-up that it has not used.
struct Waiting<'q, K> {
    queue: &'q Arc<Shared<K>>,
    waiter: Option<WaiterId>,
    /// As the timekeeper: the sleep until the next delay is due.
    sleep: Option<(Timestamp, Sleep)>,
}

impl<K> Waiting<'_, K> {
    fn poll<R: Admit<K>>(
        &mut self,
        context: &mut Context<'_>,
        take: impl Fn(&mut State<K>, &mut Now<'_>, &mut Effects<K>) -> Found<R>,
    ) -> Poll<Result<R, ShutDown>> {
        // Asked for only when there is nothing: a waker is foreign code, so not under the lock.
        let mut waker = None;
        let mut poll_holds = true;
        loop {
            let next = self.queue.locked(|state, now, effects| {
                let waker = waker.take();
                state.look(&take, &mut self.waiter, waker, poll_holds, now, effects)
            });
            match next {
                Next::Work(work) => {
                    if let Some(work) = work.admit(self.queue) {
                        return Poll::Ready(Ok(work));
                    }
                    // What is held now is to be polled.
                    poll_holds = true;
                }
                Next::End => return Poll::Ready(Err(ShutDown)),
                Next::PollHolds => {
                    self.queue.poll_holds();
                    poll_holds = false;
                }
                Next::LookAgain => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Next::BringWaker => waker = Some(context.waker().clone()),
                Next::Wait(until) => {
                    if self.sleep_until(until, context).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn sleep_until(&mut self, until: Option<Timestamp>, context: &mut Context<'_>) -> Poll<()> {
        let Some(until) = until else {
            self.sleep = None;
            return Poll::Pending;
        };
        let (_, sleep) = match self.sleep.take() {
            Some((other, sleep)) if other == until => self.sleep.insert((until, sleep)),
            _ => {
                let sleep = self.queue.clock.sleep_until(until);
                self.sleep.insert((until, sleep))
            }
        };
        let ended = sleep.as_mut().poll(context);
        if ended.is_ready() {
            self.sleep = None;
        }
        ended
    }
}

impl<K> Drop for Waiting<'_, K> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.queue
                .locked(|state, _, effects| state.leave(waiter, false, effects));
        }
    }
}

impl<'q, K> Get<'q, K> {
    pub(super) fn new(queue: &'q Arc<Shared<K>>) -> Self {
        Self {
            waiting: Waiting {
                queue,
                waiter: None,
                sleep: None,
            },
        }
    }
}

impl<K> Future for Get<'_, K> {
    type Output = Result<Item<K>, ShutDown>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waiting = &mut self.waiting;
        let hand_out = waiting.poll(context, State::take);
        hand_out.map_ok(|work| Item::new(waiting.queue.clone(), work))
    }
}

impl<'q, K> GetBatch<'q, K> {
    pub(super) fn new(queue: &'q Arc<Shared<K>>, max: usize) -> Self {
        Self {
            waiting: Get::new(queue).waiting,
            max: max.max(1),
        }
    }
}

impl<K> Future for GetBatch<'_, K> {
    type Output = Result<Vec<Item<K>>, ShutDown>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let max = self.max;
        let waiting = &mut self.waiting;
        let batch = waiting.poll(context, |state, now, effects| {
            state.take_batch(max, now, effects)
        });
        batch.map_ok(|batch| items(waiting.queue, batch))
    }
}

/// What is handed out by the rules of the queue, and must still pass the gate.
pub(super) trait Admit<K>: Sized {
    /// `None` when all of it is held instead.
    fn admit(self, queue: &Arc<Shared<K>>) -> Option<Self>;
}

impl<K> Admit<K> for HandOut<K> {
    #[inline]
    fn admit(self, queue: &Arc<Shared<K>>) -> Option<Self> {
        queue.admit(self)
    }
}

impl<K> Admit<K> for Vec<HandOut<K>> {
    fn admit(self, queue: &Arc<Shared<K>>) -> Option<Self> {
        let admitted = self
            .into_iter()
            .filter_map(|hand_out| queue.admit(hand_out));
        let admitted: Self = admitted.collect();
        (!admitted.is_empty()).then_some(admitted)
    }
}

/// Take what is ready and passes the gate, without waiting.
#[inline]
pub(super) fn try_get<K, R: Admit<K>>(
    queue: &Arc<Shared<K>>,
    take: impl Fn(&mut State<K>, &mut Now<'_>, &mut Effects<K>) -> Found<R>,
) -> Result<Option<R>, ShutDown> {
    let mut poll_holds = true;
    loop {
        let found = queue.locked(|state, now, effects| {
            let holds_first = poll_holds && state.holds.is_woken();
            (!holds_first).then(|| take(state, now, effects))
        });
        match found {
            None => {
                queue.poll_holds();
                poll_holds = false;
            }
            Some(Found::Work(work)) => {
                if let Some(work) = work.admit(queue) {
                    return Ok(Some(work));
                }
                // What is held now is to be polled.
                poll_holds = true;
            }
            Some(Found::Nothing) => return Ok(None),
            Some(Found::End) => return Err(ShutDown),
        }
    }
}

pub(super) fn items<K>(queue: &Arc<Shared<K>>, batch: Vec<HandOut<K>>) -> Vec<Item<K>> {
    let item = |hand_out| Item::new(queue.clone(), hand_out);
    batch.into_iter().map(item).collect()
}
