//! The streaming list: the present objects as frames of a watch, up to an end marker.
use super::cycle::{Cycle, Retry, RunEnd};
use super::initial_set::InitialSet;
use super::listing::without_version;
use super::open_watch::{Arrival, OpenWatch};
use super::resume::Verdict;
use super::sink::DeltaSink;
use super::status::ReflectorState;
use super::{Call, Fault, NextStep};
use crate::delta::PreparedList;
use crate::object::Meta;
use crate::source::{ListWatch, Recovery, VersionMatch, WatchEvent, WatchOptions};

/// Without any frame for this long, before the end marker, it is worth a line in the log.
const SILENCE_WORTH_A_WARNING: std::time::Duration = std::time::Duration::from_secs(10);

/// What came of an attempt.
pub(super) enum Streamed<T> {
    /// The queue has the list; the same stream goes on as the watch.
    Done(OpenWatch<T>),
    /// It did not work: use a plain list, at once. The reason was reported.
    UsePlainList,
}

/// How the initial phase ended.
enum Phase<T> {
    Complete(PreparedList<T>),
    Incomplete(&'static str),
    Failed(Fault),
}

impl<S: ListWatch, K: DeltaSink<S::Object>> Cycle<S, K> {
    /// List by streaming. Objects reach the queue only with the end marker; those of an incomplete
    /// stream are dropped with it.
    pub(super) async fn streaming_list(&mut self) -> Result<Streamed<S::Object>, RunEnd> {
        let tries = self.config.streaming_list_tries;
        let mut attempt = 1;
        loop {
            self.status.enter(ReflectorState::Streaming);
            let began = self.now();
            let options = self.streaming_options();
            let call = Call::Watch(options.clone());
            let (phase, watch) = match self.open(options).await {
                Err(fault) => (Phase::Failed(fault), None),
                Ok(mut watch) => (self.initial_phase(&mut watch).await, Some(watch)),
            };
            match phase {
                Phase::Complete(listing) => match self.accept(&call, began, listing)? {
                    Verdict::Accepted { .. } => {
                        let Some(mut watch) = watch else {
                            unreachable!("only an open stream completes");
                        };
                        (watch.life.alive, watch.life.moved) = (true, true);
                        return Ok(Streamed::Done(watch));
                    }
                    Verdict::Refused => tokio::task::yield_now().await,
                    Verdict::WithoutVersion => {
                        return Ok(self.fall_back(call, Fault::ListWithoutVersion));
                    }
                },
                Phase::Incomplete(reason) => {
                    drop(watch);
                    self.status.count(|metrics| metrics.list_failures += 1);
                    let fault = Fault::StreamingListIncomplete {
                        attempt,
                        tries,
                        reason,
                    };
                    if attempt >= tries {
                        // It will not get better, and each try is as costly as a list.
                        self.streaming = false;
                        return Ok(self.fall_back(call, fault));
                    }
                    attempt += 1;
                    self.back_off(call, fault, Retry::List).await;
                }
                Phase::Failed(fault) => {
                    drop(watch);
                    self.status.count(|metrics| metrics.list_failures += 1);
                    let recovery = match &fault {
                        Fault::Source(error) => error.recovery(),
                        _ => Recovery::BackOff,
                    };
                    match recovery {
                        Recovery::RetryLater => self.back_off(call, fault, Retry::List).await,
                        Recovery::Relist | Recovery::TooLarge
                            if !call.resource_version().is_empty() =>
                        {
                            self.resume.mark_unavailable();
                            let next = self.next_step(Retry::List, std::time::Duration::ZERO);
                            self.report(call, fault, next);
                            tokio::task::yield_now().await;
                        }
                        _ => return Ok(self.fall_back(call, fault)),
                    }
                }
            }
        }
    }

    fn streaming_options(&mut self) -> WatchOptions {
        WatchOptions {
            resource_version: self.resume.streaming_version(),
            allow_bookmarks: true,
            send_initial_events: true,
            version_match: Some(VersionMatch::NotOlderThan),
            timeout: Some(self.config.watch_timeout(&mut self.rng)),
            selectors: self.config.selectors.clone(),
        }
    }

    fn fall_back(&mut self, call: Call, fault: Fault) -> Streamed<S::Object> {
        self.status
            .count(|metrics| metrics.streaming_fallbacks += 1);
        let next = self.plain_list_now();
        self.report(call, fault, next);
        Streamed::UsePlainList
    }

    /// Gather the present objects until the end marker.
    async fn initial_phase(&mut self, watch: &mut OpenWatch<S::Object>) -> Phase<S::Object> {
        let clock = self.config.clock.clone();
        let patience = self.config.streaming_list_patience;
        let mut set = InitialSet::new(self.source.versioning());
        let mut last_frame = clock.now();
        // One timer for all frames: it looks at the last frame when it fires.
        let mut silence = clock.sleep_until(last_frame + SILENCE_WORTH_A_WARNING.min(patience));
        loop {
            let arrival = tokio::select! {
                biased;
                arrival = watch.next() => arrival,
                () = &mut silence => {
                    let silent = clock.now().since(last_frame);
                    if silent >= patience {
                        return Phase::Incomplete("it fell silent");
                    }
                    let mut next_look = SILENCE_WORTH_A_WARNING.min(patience);
                    if silent >= SILENCE_WORTH_A_WARNING {
                        tracing::warn!(?silent, "a streaming list is silent before its end marker");
                        next_look = patience;
                    }
                    silence = clock.sleep_until(last_frame + next_look);
                    continue;
                }
            };
            last_frame = clock.now();
            let event = match arrival {
                Arrival::Frame(event) => event,
                Arrival::Ended => return Phase::Incomplete("it was closed"),
                Arrival::Overdue => return Phase::Incomplete("it outlived its timeout"),
                Arrival::Failed(fault) => return Phase::Failed(fault),
            };
            self.proof_of_life();
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    match self.prepare(object) {
                        Ok(object) => set.insert(object),
                        Err(bad) => set.insert_bad(bad),
                    }
                }
                WatchEvent::Deleted(object) if object.meta.resource_version.is_empty() => {
                    set.insert_bad(without_version(&object));
                }
                WatchEvent::Deleted(object) => set.remove(&object.meta),
                WatchEvent::Bad { object, deleted } => match &object.key {
                    Some(key) if deleted && !object.resource_version.is_empty() => {
                        set.remove(&Meta {
                            key: key.clone(),
                            uid: object.uid.clone(),
                            resource_version: object.resource_version.clone(),
                        });
                    }
                    _ => set.insert_bad(object),
                },
                WatchEvent::Bookmark {
                    resource_version,
                    initial_events_end: true,
                } => {
                    return Phase::Complete(set.into_list(resource_version));
                }
                // Progress of the server; the version counts only with the marker.
                WatchEvent::Bookmark { .. } => {}
                WatchEvent::Foreign { description } => {
                    self.status.count(|metrics| metrics.foreign_frames += 1);
                    let call = Call::Watch(watch.life.options.clone());
                    self.report(call, Fault::Foreign(description), NextStep::Skip);
                }
            }
        }
    }
}
