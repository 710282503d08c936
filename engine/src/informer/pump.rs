//! The one task that turns the queue into published snapshots and handed-over batches.
use super::hub::Hub;
use super::mailbox::Round;
use super::metrics::Exporter;
use super::report::InformerError;
use crate::clock::Sleep;
use crate::delta::{Batch, HandlerId, ResyncTargets, SourceId};
use crate::indexer::{IndexConflict, IndexDeclaration, IndexFailure, IndexWriter};
use crate::reflector::DigestFeed;
use std::collections::BTreeSet;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How long after a publication, and between two slices, the writer does its housekeeping.
const MAINTENANCE_DELAY: Duration = Duration::from_millis(100);

/// Something that only the writer can do, asked for by a handle.
pub(super) enum Request<T> {
    AddIndex {
        index: IndexDeclaration<T>,
        reply: oneshot::Sender<Result<Vec<IndexFailure>, IndexConflict>>,
    },
    /// Apply nothing until the other end is dropped.
    Hold { released: oneshot::Receiver<()> },
}

pub(super) struct Pump<T: Send + Sync + 'static> {
    pub(super) hub: Arc<Hub<T>>,
    pub(super) writer: IndexWriter<T>,
    pub(super) requests: mpsc::UnboundedReceiver<Request<T>>,
    /// Sources whose first list has not been applied.
    pub(super) unsynced: BTreeSet<SourceId>,
    pub(super) digest: Option<DigestFeed>,
    pub(super) exporter: Exporter,
}

impl<T: Send + Sync + 'static> Pump<T> {
    /// Work until stopped. The writer is dropped at the end: waiters for a version are told.
    pub(super) async fn run(mut self) {
        let hub = self.hub.clone();
        let mut maintenance: Option<Sleep> = None;
        loop {
            let housekeeping = async {
                match &mut maintenance {
                    Some(sleep) => sleep.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = hub.life.stop.stopped() => return,
                Some(request) = self.requests.recv() => match request {
                    Request::AddIndex { index, reply } => self.add_index(index, reply),
                    Request::Hold { released } => tokio::select! {
                        biased;
                        () = hub.life.stop.stopped() => return,
                        _ = released => {}
                    },
                },
                batch = hub.queue.drain() => match batch {
                    Ok(batch) => {
                        let delayed = self.step(batch);
                        tokio::select! {
                            biased;
                            () = hub.life.stop.stopped() => return,
                            () = delayed => {}
                        }
                        // Those who were woken have their turn before the next batch grows.
                        tokio::task::yield_now().await;
                        maintenance = Some(hub.clock.sleep_until(hub.clock.now() + MAINTENANCE_DELAY));
                    }
                    Err(_closed) => return,
                },
                () = housekeeping => {
                    self.exporter.observe(&hub);
                    let done = self.writer.maintain();
                    let next = hub.clock.now() + MAINTENANCE_DELAY;
                    maintenance = (!done).then(|| hub.clock.sleep_until(next));
                }
            }
        }
    }

    /// Apply, publish, hand over. Returns the wait for the handlers that may delay the next batch.
    fn step(&mut self, batch: Batch<T>) -> impl Future<Output = ()> + use<T> {
        let hub = self.hub.clone();
        let wants_steps = hub.registry.begin();
        self.writer.set_effective(wants_steps);
        #[cfg(informant_mutant = "resync_over_pending")]
        let before = hub.indexer.snapshot();
        let began = hub.clock.now();
        let applied = self.writer.apply(batch);
        let took = hub.clock.now().since(began);
        self.exporter.applied(applied.changes.len(), took);
        if let Some(digest) = &self.digest {
            digest.follow(&applied, hub.indexer.load().sequence());
        }
        for source in &applied.synced {
            self.unsynced.remove(source);
        }
        let synced = self.unsynced.is_empty();
        if synced {
            // Before any handler can be: a synced handler implies a synced informer (I-S4).
            hub.life.mark_synced();
        }
        let round = Round::new(applied.changes, applied.effective, applied.resets);
        let current = || {
            #[cfg(informant_mutant = "resync_over_pending")]
            if !applied.resyncs.is_empty() {
                return Box::new(before.clone()) as Box<dyn super::mailbox::Contents<T>>;
            }
            hub.current()
        };
        let delaying = hub
            .registry
            .dispatch(&round, &applied.resyncs, synced, &current);
        hub.queue.acknowledge();
        for failure in applied.index_failures {
            hub.reporter.report(&InformerError::Index(failure));
        }
        async move {
            for mailbox in delaying {
                poll_fn(|context| mailbox.poll_room(context)).await;
            }
        }
    }

    fn add_index(
        &mut self,
        index: IndexDeclaration<T>,
        reply: oneshot::Sender<Result<Vec<IndexFailure>, IndexConflict>>,
    ) {
        let added = self.writer.add_index(index);
        if let Some(digest) = &self.digest {
            digest.republished(self.hub.indexer.load().sequence());
        }
        // Nobody may wait any more; the index is there all the same.
        let _gone = reply.send(added);
    }
}

/// Ask for resyncs on the informer's grid until stopped.
pub(super) async fn resync<T: Send + Sync + 'static>(hub: Arc<Hub<T>>) {
    loop {
        let Some(tick) = hub.schedule.lock().next_tick() else {
            return;
        };
        tokio::select! {
            biased;
            () = hub.life.stop.stopped() => return,
            () = hub.clock.sleep_until(tick) => {}
        }
        let due: Vec<HandlerId> = hub.schedule.lock().due(hub.clock.now());
        if due.is_empty() {
            continue;
        }
        // A fresh end of the queue each time: one from before a reset of the source is void, and a
        // reset must not end resyncs.
        let producer = hub.queue.producer(SourceId::default());
        if let Err(error) = producer.resync(ResyncTargets::Handlers(due.into())) {
            tracing::debug!(informer = %hub.reporter.name, %error, "no resync at this tick");
        }
    }
}
