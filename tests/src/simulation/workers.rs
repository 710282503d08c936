//! The end of the flow: a handler that puts keys into a work queue, and workers that reconcile.
use super::desk::Desk;
use super::handlers::panic_as_planned;
use super::world::{KEYS, Thing, number};
use informant::indexer::Indexer;
use informant::informer::{Event, Registration, SharedInformer, handler_fn};
use informant::work_queue::{Delayed, Drained, Item, WorkQueue, WorkQueueConfig};
use informant::{Cached, ObjectKey};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

#[derive(Default)]
struct Done {
    /// What the last worker that succeeded with a key saw.
    seen: [Option<Cached<Thing>>; KEYS],
    in_work: [bool; KEYS],
}

/// A controller in small.
pub(super) struct Works {
    queue: WorkQueue<ObjectKey>,
    done: Arc<Mutex<Done>>,
    workers: Vec<JoinHandle<()>>,
    _feeding: Registration<Thing>,
}

impl Works {
    pub(super) fn open(
        desk: &Desk,
        informer: &SharedInformer<Thing>,
        workers: u8,
        seed: u64,
    ) -> Self {
        let queue = WorkQueue::new(WorkQueueConfig::new(desk.clock.clone()));
        let feed = queue.clone();
        let handler = handler_fn(move |event: Event<Thing>| {
            if let Some(key) = event.key() {
                feed.add_ref(key);
            }
        });
        let feeding = informer.add_handler(handler).expect("it has not stopped");
        let done = Arc::new(Mutex::new(Done::default()));
        let workers = (0..workers).map(|worker| {
            let worker = Worker {
                desk: desk.clone(),
                cache: informer.lister(),
                done: done.clone(),
                rng: fastrand::Rng::with_seed(seed ^ u64::from(worker)),
            };
            tokio::spawn(worker.work(queue.clone()))
        });
        Self {
            workers: workers.collect(),
            queue,
            done,
            _feeding: feeding,
        }
    }

    /// How what was reconciled differs from the cache, once nothing is left to do.
    pub(super) fn difference(&self, cache: &Indexer<Thing>) -> Option<String> {
        let view = cache.load();
        let done = lock(&self.done);
        (0..KEYS).find_map(|key| {
            let now = view.get(&super::world::key(key));
            let seen = done.seen[key].as_ref();
            let same = match (now, seen) {
                (None, None) => true,
                (Some(now), Some(seen)) => now.ptr_eq(seen),
                _ => false,
            };
            (!same).then(|| format!("k{key} was last reconciled as {seen:?}, and is {now:?}"))
        })
    }

    pub(super) async fn close(self) -> Result<(), String> {
        let drained = self.queue.shut_down_with_drain(Delayed::Drop).await;
        if drained != Drained::Complete {
            return Err(format!("the drain of the work queue ended as {drained:?}"));
        }
        for worker in self.workers {
            worker.await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

struct Worker {
    desk: Desk,
    cache: Indexer<Thing>,
    done: Arc<Mutex<Done>>,
    rng: fastrand::Rng,
}

impl Worker {
    async fn work(mut self, queue: WorkQueue<ObjectKey>) {
        while let Ok(item) = queue.get().await {
            self.reconcile(item).await;
        }
    }

    async fn reconcile(&mut self, item: Item<ObjectKey>) {
        let key = number(item.key());
        self.desk.note(5, key as u64, 0);
        self.desk.observe(&self.cache);
        if std::mem::replace(&mut lock(&self.done).in_work[key], true) {
            self.desk.fail(|| format!("two workers have k{key}"));
        }
        let seen = self.cache.get(item.key());
        let pause = self.rng.u64(..40);
        if pause > 20 {
            let clock = &self.desk.clock;
            clock
                .sleep_until(clock.now() + Duration::from_millis(pause))
                .await;
        }
        let mut done = lock(&self.done);
        done.in_work[key] = false;
        match self.rng.u8(..12) {
            0 => {
                item.retry();
            }
            1 => item.requeue_after(Duration::from_millis(self.rng.u64(..200))),
            2 => {
                // The item is dropped by the panic.
                let work = AssertUnwindSafe(move || {
                    let _item = item;
                    panic_as_planned();
                });
                let _planned = catch_unwind(work);
            }
            _ => {
                done.seen[key] = seen;
                item.succeed();
            }
        }
    }
}

fn lock(done: &Mutex<Done>) -> std::sync::MutexGuard<'_, Done> {
    done.lock().unwrap_or_else(PoisonError::into_inner)
}
