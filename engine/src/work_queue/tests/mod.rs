//! Tests of the whole queue; those of its parts stand beside the parts.
mod adding;
mod delaying;
mod ending;
mod getting;
mod holding;
mod limiting;
mod model;
mod oracle;
mod sharing;
mod stress;

use super::{Item, ShutDown, WorkQueue, WorkQueueConfig};
use crate::clock::ManualClock;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

type Queue = WorkQueue<&'static str>;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A queue in virtual time.
fn queue() -> (Queue, ManualClock) {
    queue_of(|config| config)
}

/// A queue in virtual time with these settings.
fn queue_of<K: Hash + Eq + Clone + Send + 'static>(
    settings: impl FnOnce(WorkQueueConfig<K>) -> WorkQueueConfig<K>,
) -> (WorkQueue<K>, ManualClock) {
    let clock = ManualClock::new();
    let config = WorkQueueConfig::new(Arc::new(clock.clone()));
    (WorkQueue::new(settings(config)), clock)
}

/// The next item, which is ready.
fn take<K: Clone>(queue: &WorkQueue<K>) -> Item<K> {
    queue.try_get().unwrap().expect("something is ready")
}

/// Take everything that is ready, ending each at once.
fn take_all<K: Clone>(queue: &WorkQueue<K>) -> Vec<K> {
    let mut taken = Vec::new();
    while let Ok(Some(item)) = queue.try_get() {
        taken.push(item.key().clone());
    }
    taken
}

/// A `get` that is polled by hand and counts how often it was woken.
struct Getter<'q, K> {
    get: Pin<Box<super::Get<'q, K>>>,
    woken: Arc<Woken>,
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<'q, K> Getter<'q, K> {
    fn new(queue: &'q WorkQueue<K>) -> Self {
        Self {
            get: Box::pin(queue.get()),
            woken: Arc::default(),
        }
    }

    /// One that waits.
    fn waiting(queue: &'q WorkQueue<K>) -> Self {
        let mut getter = Self::new(queue);
        assert!(getter.poll().is_pending(), "nothing is ready");
        getter
    }

    fn poll(&mut self) -> Poll<Result<Item<K>, ShutDown>> {
        let waker = Waker::from(self.woken.clone());
        self.get.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Wake-ups since the last call.
    fn wake_ups(&self) -> usize {
        self.woken.0.swap(0, Ordering::SeqCst)
    }
}

impl<K: Clone> Getter<'_, K> {
    /// The key it was given, if it was.
    fn key(&mut self) -> Option<K> {
        match self.poll() {
            Poll::Ready(item) => Some(item.expect("not shut down").key().clone()),
            Poll::Pending => None,
        }
    }
}
