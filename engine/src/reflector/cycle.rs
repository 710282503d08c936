//! The life of a reflector: list, watch, and what follows a fault.
use super::backoff::Backoff;
use super::open_watch::OpenWatch;
use super::resume::ResumePoint;
use super::retry_window::RetryWindow;
use super::sink::DeltaSink;
use super::status::{ReflectorHandle, ReflectorState, StatusBoard};
use super::{Call, Fault, NextStep, ReflectorConfig, ReflectorError};
use crate::clock::Timestamp;
use crate::delta::PushError;
use crate::indexer::panic_message;
use crate::object::ResourceVersion;
use crate::source::{BadObject, ListWatch, SourceError};
use crate::stop::StopToken;
use futures_util::FutureExt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

/// One reflector at work. Everything it holds open (calls, streams, sleeps) lives inside the future
/// of [`Cycle::drive`], so dropping that future, in whatever state, cleans up.
pub(super) struct Cycle<S: ListWatch, K> {
    pub(super) source: Arc<S>,
    pub(super) sink: K,
    pub(super) config: ReflectorConfig,
    pub(super) status: StatusBoard,
    pub(super) rng: fastrand::Rng,
    pub(super) backoff: Backoff,
    pub(super) internal_errors: RetryWindow,
    pub(super) resume: ResumePoint,
    /// The source pages lists at "0", so it has no cache that could serve known versions whole.
    pub(super) pages_from_zero: bool,
    /// Streaming lists are still worth a try.
    pub(super) streaming: bool,
    /// Watches in a row that ended without progress.
    pub(super) fruitless_watches: u32,
    last_logged: Option<(String, bool)>,
}

/// Why a reflector ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Its stop token was given.
    Stopped,
    /// The delta queue was closed, so nothing can be delivered any more.
    QueueClosed,
    /// Another producer of the same source has declared a reset: what this one says is void.
    AbandonedEpoch,
}

impl RunEnd {
    /// Whether the queue accepted an input: it may have put the object into the quarantine, which
    /// is then to be reported.
    pub(super) fn unless_accepted(
        pushed: Result<(), PushError>,
    ) -> Result<Option<BadObject>, Self> {
        match pushed {
            Ok(()) => Ok(None),
            Err(PushError::Transform(object)) => Ok(Some(object)),
            Err(PushError::AbandonedEpoch) => Err(Self::AbandonedEpoch),
            Err(_) => Err(Self::QueueClosed),
        }
    }
}

/// What comes next.
pub(super) enum Next<T> {
    List,
    /// Watch, on the stream that a streaming list left open, or on a new one.
    Watch(Option<OpenWatch<T>>),
}

/// What to try again after a wait.
#[derive(Clone, Copy)]
pub(super) enum Retry {
    List,
    Watch,
}

impl<S: ListWatch, K: DeltaSink<S::Object>> Cycle<S, K> {
    pub(super) fn new(source: Arc<S>, sink: K, config: ReflectorConfig) -> Self {
        let versioning = source.versioning();
        Self {
            streaming: source.supports_streaming_list() && config.streaming_list_tries > 0,
            sink,
            status: StatusBoard::new(config.clock.clone(), &config.name),
            rng: fastrand::Rng::with_seed(config.seed),
            backoff: Backoff::new(config.backoff),
            internal_errors: RetryWindow::new(config.internal_error_retry),
            resume: ResumePoint::new(versioning),
            pages_from_zero: false,
            fruitless_watches: 0,
            last_logged: None,
            source,
            config,
        }
    }

    pub(super) fn handle(&self) -> ReflectorHandle {
        self.status.handle()
    }

    /// Work until stopped, or until the queue is closed. Everything ends with it.
    pub(super) async fn run(mut self, stop: StopToken) -> RunEnd {
        let span = tracing::info_span!("reflector", name = %self.config.name);
        let work = async {
            // Dropping the work in any of its waits is the whole of stopping it.
            let end = tokio::select! {
                biased;
                () = stop.stopped() => RunEnd::Stopped,
                end = self.drive() => end,
            };
            tracing::info!(?end, "the reflector ends");
            end
        };
        work.instrument(span).await
    }

    /// List and watch until the queue takes nothing more. It never gives up on the source.
    pub(super) async fn drive(&mut self) -> RunEnd {
        let mut next = Next::List;
        loop {
            // A source that answers without ever waiting must not keep the task to itself, and a
            // stop must be seen.
            tokio::task::yield_now().await;
            let step = match next {
                Next::List => self.list().await,
                Next::Watch(open) => self.watch(open).await,
            };
            next = match step {
                Ok(next) => next,
                Err(end) => return end,
            };
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    /// Make a call: bounded in time, and a panic of the source is a fault like others.
    pub(super) async fn call<R>(
        &self,
        call: impl Future<Output = Result<R, SourceError>>,
    ) -> Result<R, Fault> {
        let timeout = self.config.call_timeout;
        let overdue = self.config.clock.sleep_until(self.now() + timeout);
        tokio::select! {
            biased;
            answer = AssertUnwindSafe(call).catch_unwind() => match answer {
                Ok(answer) => answer.map_err(Fault::Source),
                Err(panic) => Err(Fault::SourcePanicked(panic_message(panic.as_ref()))),
            },
            () = overdue => Err(Fault::NoAnswer(timeout)),
        }
    }

    /// The source answered: it is there.
    pub(super) fn proof_of_life(&mut self) {
        self.backoff.succeeded(self.now());
        self.status.alive();
    }

    /// Progress was made: what comes next is not part of an earlier trouble.
    pub(super) fn progressed(&mut self) {
        self.fruitless_watches = 0;
        self.last_logged = None;
    }

    /// Report the fault, wait as the backoff says, and at least as long as the server wishes.
    pub(super) async fn back_off(&mut self, call: Call, fault: Fault, retry: Retry) {
        let now = self.now();
        let delay = self.backoff.failed(now, fault.retry_after(), &mut self.rng);
        self.pause(call, fault, retry, delay).await;
    }

    /// Report the fault and wait for `delay`.
    pub(super) async fn pause(&mut self, call: Call, fault: Fault, retry: Retry, delay: Duration) {
        let next = self.next_step(retry, delay);
        let reason = self.report(call, fault, next);
        let until = self.now() + delay;
        self.status
            .enter(ReflectorState::BackingOff { reason, until });
        self.config.clock.sleep_until(until).await;
    }

    pub(super) fn next_step(&self, retry: Retry, after: Duration) -> NextStep {
        match retry {
            Retry::Watch => NextStep::Watch {
                resource_version: self.resume.seen().clone(),
                after,
            },
            Retry::List if self.streaming => NextStep::StreamingList {
                resource_version: self.resume.streaming_version(),
                after,
            },
            Retry::List => NextStep::List {
                resource_version: self.resume.list_version(),
                after,
            },
        }
    }

    pub(super) fn plain_list_now(&self) -> NextStep {
        NextStep::List {
            resource_version: self.resume.list_version(),
            after: Duration::ZERO,
        }
    }

    /// Tell everyone of a fault: status, log, hook.
    pub(super) fn report(
        &mut self,
        call: Call,
        fault: Fault,
        next: NextStep,
    ) -> Arc<ReflectorError> {
        let error = Arc::new(ReflectorError { call, fault, next });
        self.log(&error);
        self.status.failed(error.clone());
        if let Some(hook) = &self.config.on_error
            && catch_unwind(AssertUnwindSafe(|| hook(&error))).is_err()
        {
            self.status.count(|metrics| metrics.hook_panics += 1);
            tracing::warn!("the error hook panicked");
        }
        error
    }

    pub(super) fn report_bad(&mut self, call: Call, object: BadObject, next: NextStep) {
        self.status.count(|metrics| metrics.bad_objects += 1);
        self.report(call, Fault::BadObject(object), next);
    }

    /// The queue accepted the list that `call` began.
    pub(super) fn listed(&mut self, call: &Call, version: ResourceVersion, began: Timestamp) {
        let took = self.now().since(began);
        let streamed = matches!(call, Call::Watch(_));
        self.status.count(|metrics| {
            metrics.lists += 1;
            metrics.streaming_lists += u64::from(streamed);
            metrics.last_list_duration = took;
        });
        tracing::info!(%version, ?took, streamed, "listed");
        self.resume.listed(version);
        self.status.listed(self.resume.seen());
    }

    /// A lasting fault is a warning once, when it begins or changes; its repetitions are detail.
    fn log(&mut self, error: &Arc<ReflectorError>) {
        let what = (
            error.fault.to_string(),
            matches!(error.call, Call::Watch(_)),
        );
        if self.last_logged.as_ref() == Some(&what) {
            tracing::debug!(%error, "the same fault again");
        } else {
            tracing::warn!(%error, "fault");
            self.last_logged = Some(what);
        }
    }
}
