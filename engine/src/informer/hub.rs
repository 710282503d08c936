//! What the parts of one informer share: handles, registrations and tasks all hold it.
use super::crew::Crew;
use super::drive::{Driver, OnPanic};
use super::handler::Deliver;
use super::mailbox::{Contents, Mailbox};
use super::options::HandlerOptions;
use super::registration::{HandlerStatus, Registration};
use super::registry::Registry;
use super::report::{InformerError, Reporter};
use super::resync::ResyncSchedule;
use crate::clock::SharedClock;
use crate::delta::{Compaction, DeltaQueue, HandlerId};
use crate::indexer::{Indexer, Snapshot};
use crate::object::Cached;
use crate::stop::StopToken;
use crate::sync::{AtomicBool, Mutex, Ordering, WaitSet};
use std::sync::Arc;

pub(super) struct Hub<T: Send + Sync + 'static> {
    pub(super) reporter: Reporter,
    pub(super) clock: SharedClock,
    pub(super) indexer: Indexer<T>,
    pub(super) queue: DeltaQueue<T>,
    pub(super) registry: Registry<T>,
    pub(super) schedule: Mutex<ResyncSchedule>,
    pub(super) crew: Crew,
    pub(super) life: Life,
}

/// Where the informer is in its life, and who waits for what.
pub(super) struct Life {
    phase: Mutex<Phase>,
    synced: AtomicBool,
    /// Given to end everything.
    pub(super) stop: StopToken,
    /// Given to end also what does not end by itself.
    pub(super) abort: StopToken,
    changed: WaitSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Created,
    Running,
    Stopping,
    Stopped,
}

impl Life {
    pub(super) fn new() -> Self {
        Self {
            phase: Mutex::new(Phase::Created),
            synced: AtomicBool::new(false),
            stop: StopToken::new(),
            abort: StopToken::new(),
            changed: WaitSet::new(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    /// Go from one of `from` to `to`, or say where it is instead: check and change are one step.
    pub(super) fn advance(&self, from: &[Phase], to: Phase) -> Result<(), Phase> {
        {
            let mut phase = self.phase.lock();
            if !from.contains(&phase) {
                return Err(*phase);
            }
            *phase = to;
        }
        self.changed.notify_all();
        Ok(())
    }

    pub(super) fn mark_synced(&self) {
        if !self.synced.swap(true, Ordering::SeqCst) {
            self.changed.notify_all();
        }
    }

    pub(super) fn has_synced(&self) -> bool {
        self.synced.load(Ordering::SeqCst)
    }

    /// Wait until `look` finds what it looks for; it is asked again after each change.
    pub(super) async fn until<R>(&self, look: impl FnMut() -> Option<R>) -> R {
        self.changed.until(look).await
    }
}

/// A handler was not registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddHandlerError {
    /// The informer takes no handlers any more. What it holds can still be read.
    #[error("the handler was not added: informer {informer:?} has stopped already")]
    Stopped {
        /// The informer's name.
        informer: Arc<str>,
    },
    /// The thread that the handler asked for could not be started; nothing is registered.
    #[error("the handler was not added: it can have no thread of its own")]
    NoThread(#[source] std::io::Error),
}

impl<T: Send + Sync + 'static> Hub<T> {
    /// Register a mailbox: it starts from the present state, and each later batch follows.
    pub(super) fn register(
        self: &Arc<Self>,
        options: &HandlerOptions,
    ) -> Result<Registration<T>, AddHandlerError> {
        let mailbox = Arc::new(Mailbox::new(options.policy));
        let joined = self
            .registry
            .join(options.name.clone(), mailbox.clone(), || self.current());
        let Ok((id, name)) = joined else {
            return Err(AddHandlerError::Stopped {
                informer: self.reporter.name.clone(),
            });
        };
        self.adjust_compaction();
        let now = self.clock.now();
        let resync_period = self.schedule.lock().add(id, options.resync, now);
        if resync_period.is_none() && matches!(options.resync, super::Resync::Every(_)) {
            tracing::warn!(
                informer = %self.reporter.name,
                handler = %name,
                "no resync for this handler: the informer was started without"
            );
        }
        Ok(Registration {
            hub: self.clone(),
            mailbox,
            id,
            name,
            resync_period,
            detached: false,
        })
    }

    /// Register a handler and give it a task or a thread.
    pub(super) fn employ<D: Deliver<T>>(
        self: &Arc<Self>,
        options: &HandlerOptions,
        handler: D,
    ) -> Result<Registration<T>, AddHandlerError> {
        let registration = self.register(options)?;
        let (reporter, name) = (self.reporter.clone(), registration.name.clone());
        let on_panic: OnPanic = Arc::new(move |key, message| {
            reporter.report(&InformerError::HandlerPanicked {
                handler: name.clone(),
                key: key.cloned(),
                message,
            });
        });
        let mailbox = registration.mailbox.clone();
        let driver = Driver::new(mailbox, handler, on_panic, self.clock.clone());
        let job = Box::pin(driver.run());
        if options.dedicated_thread {
            // On failure the registration is dropped, which removes the handler.
            self.crew
                .hire_thread(&registration.name, job)
                .map_err(AddHandlerError::NoThread)?;
        } else {
            self.crew.hire(registration.id, job);
        }
        Ok(registration)
    }

    pub(super) fn remove(&self, id: HandlerId, mailbox: &Mailbox<T>) {
        if mailbox.is_closed() {
            return;
        }
        self.registry.leave(id, mailbox);
        self.schedule.lock().remove(id);
        self.crew.dismiss(id);
        self.adjust_compaction();
    }

    /// The queue keeps every delta only while someone wants every step.
    fn adjust_compaction(&self) {
        // One at a time, so that the last word is about the last state.
        let _one_at_a_time = self.schedule.lock();
        self.queue.set_compaction(if self.registry.wants_steps() {
            Compaction::KeepAll
        } else {
            Compaction::FirstAndLast
        });
    }

    pub(super) fn current(&self) -> Box<dyn Contents<T>> {
        Box::new(self.indexer.snapshot())
    }

    pub(super) fn handlers(&self) -> Vec<HandlerStatus> {
        self.registry
            .members()
            .into_iter()
            .map(|member| HandlerStatus::of(member.id, member.name, &member.mailbox))
            .collect()
    }

    /// End everything: at once where nothing runs, else what runs begins to end.
    pub(super) fn shut_down(&self) {
        if self.life.advance(&[Phase::Created], Phase::Stopped).is_ok() {
            self.registry.close();
            self.crew.abandon();
        }
        let _ = self.life.advance(&[Phase::Running], Phase::Stopping);
        self.life.stop.stop();
    }
}

impl<T: Send + Sync + 'static> Contents<T> for Snapshot<T> {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn objects(&self) -> Vec<Cached<T>> {
        self.iter().cloned().collect()
    }
}
