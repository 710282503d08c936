//! What may be expected of an informer.
use super::super::cache::{self, number};
use super::super::{Outcome, equal, pending, same_objects};
use super::InformerPlay;
use crate::scenario::claim::{Claim, Gap};
use crate::scenario::errors;
use crate::scenario::notation::{Call, Item, RequestPattern, show_duration};
use crate::scenario::sequence::{Order, compare};
use crate::scenario::stage::compare_requests;
use crate::scenario::transport::Transport;
use informant::Clock;
use informant::informer::Registration;
use informant::reflector::ReflectorState;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl InformerPlay<'_> {
    #[allow(clippy::too_many_lines)] // One arm an expectation, and each arm is short.
    pub(super) fn judge(&mut self, claim: &Claim) -> Outcome {
        if let Some(outcome) = cache::check(claim, &self.lister, |name| self.source_id(name)) {
            return outcome;
        }
        match claim {
            Claim::Calls {
                handler,
                calls,
                order,
            } => self.calls(handler.as_deref(), calls, *order),
            Claim::CallCount { handler, count } => {
                for (name, member) in self.members(handler.as_deref())? {
                    number(
                        &format!("calls of handler {name}"),
                        count,
                        member.recorder.take_count(),
                    )?;
                }
                Ok(())
            }
            Claim::Requests { source, requests } => {
                let log = self.stage.log.all();
                let new: Vec<_> = log[self.requests_taken..]
                    .iter()
                    .filter(|request| {
                        source
                            .as_ref()
                            .is_none_or(|source| *source == request.source)
                    })
                    .cloned()
                    .collect();
                self.requests_taken = log.len();
                compare_requests(requests, &new)
            }
            Claim::RequestCount { like, count } => {
                let log = self.stage.log.all();
                let new = &log[self.requests_taken..];
                let found = new
                    .iter()
                    .filter(|request| like.as_ref().is_none_or(|like| like.matches(request)))
                    .count();
                if like.is_none() {
                    self.requests_taken = log.len();
                }
                let what = like
                    .as_ref()
                    .map_or("requests".to_owned(), |like| format!("requests {like}"));
                number(&what, count, found)
            }
            Claim::Gaps { like, gaps } => self.gaps(like, gaps),
            Claim::Errors(expected) => {
                let told = self.told();
                let new = &told[self.errors_taken..];
                self.errors_taken = told.len();
                errors::compare(expected, new)
            }
            Claim::ErrorCount(count) => {
                let told = self.told().len();
                let new = told - self.errors_taken;
                self.errors_taken = told;
                number("errors", count, new)
            }
            Claim::LastSeen { source, version } => {
                let id = self.source_id(source.as_deref())?;
                let informer = self.informer()?;
                let handle = informer
                    .reflectors()
                    .iter()
                    .find(|(source, _)| *source == id);
                let found = handle.map_or(String::new(), |(_, handle)| {
                    handle.status().last_seen_version.to_string()
                });
                equal("last seen", version, &found)
            }
            Claim::Synced { of: None, synced } => {
                equal("synced", synced, &self.informer()?.has_synced())
            }
            Claim::HandlerSynced { handler, synced } => {
                let handler = if handler.is_empty() {
                    self.handlers.keys().next().cloned().unwrap_or_default()
                } else {
                    handler.clone()
                };
                let member = self.member(&handler)?;
                let found = match &member.registration {
                    Some(registration) => registration.has_synced(),
                    None => self
                        .informer()?
                        .status()
                        .handlers
                        .iter()
                        .any(|status| *status.name == *handler && status.synced),
                };
                equal(&format!("handler {handler} synced"), synced, &found)
            }
            Claim::View { handler, objects } => {
                for (name, member) in self.members(handler.as_deref())? {
                    same_objects(
                        &format!("what handler {name} was told adds up to"),
                        objects,
                        &member.recorder.view(),
                    )?;
                }
                Ok(())
            }
            Claim::Wait { name, outcome } => {
                let ended = self
                    .waits
                    .get(name)
                    .ok_or_else(|| format!("there is no wait {name:?}"))?;
                let found = ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
                equal(
                    &format!("wait {name}"),
                    outcome,
                    &found.unwrap_or_else(|| "pending".to_owned()),
                )
            }
            Claim::State { source, state } => {
                let id = self.source_id(source.as_deref())?;
                let status = self.informer()?.status();
                let found = status
                    .sources
                    .iter()
                    .find(|(source, _)| *source == id)
                    .map(|(_, status)| &status.state);
                equal("state", &state.as_str(), &found.map_or("", state_name))
            }
            Claim::Running(running) => {
                equal("running", running, &self.informer()?.status().running)
            }
            Claim::HandlerNumber {
                handler,
                number: which,
                count,
            } => number(
                &format!("{which} of handler {handler}"),
                count,
                self.handler_number(handler, which)?,
            ),
            Claim::ResyncPeriod { handler, period } => {
                let handler = if handler.is_empty() {
                    self.handlers.keys().next().cloned().unwrap_or_default()
                } else {
                    handler.clone()
                };
                let found = self
                    .member(&handler)?
                    .registration
                    .as_ref()
                    .and_then(Registration::resync_period);
                let text =
                    |period: Option<Duration>| period.map_or("none".to_owned(), show_duration);
                equal(
                    &format!("resync period of {handler}"),
                    &text(*period),
                    &text(found),
                )
            }
            Claim::QueueDepth(count) => number(
                "keys in the queue",
                count,
                self.informer()?.status().queue.depth,
            ),
            Claim::Pending { key, choices } => {
                let found = pending::pending(&self.informer()?.pending(), &self.lister.load(), key);
                pending::compare(key, choices, &found)
            }
            Claim::OpenWatches(count) => number(
                "open watches",
                count,
                self.stage
                    .transports
                    .iter()
                    .map(Transport::open_streams)
                    .sum::<usize>(),
            ),
            Claim::TransformCalls(count) => number(
                "calls of the transform",
                count,
                self.transform_calls.load(Ordering::Relaxed),
            ),
            Claim::Snapshot { name, objects } => {
                let (snapshot, _) = self
                    .snapshots
                    .get(name)
                    .ok_or_else(|| format!("there is no snapshot {name:?}"))?;
                same_objects(
                    &format!("snapshot {name}"),
                    objects,
                    &cache::content(&**snapshot),
                )
            }
            Claim::Now(time) => equal(
                "now",
                &show_duration(*time),
                &show_duration(self.stage.clock.now().since_origin()),
            ),
            other => Err(format!("this cannot be expected of an informer: {other:?}")),
        }
    }

    fn calls(&self, handler: Option<&str>, expected: &[Item], order: Order) -> Outcome {
        let mut wrong = Vec::new();
        for (name, member) in self.members(handler)? {
            let (all, sane) = member.recorder.take();
            // A call that panicked may be written down or left out.
            let fits = |calls: &[Call]| compare(expected, calls, order);
            if let Some(told) = fits(&all)
                && (all.len() == sane.len() || fits(&sane).is_some())
            {
                wrong.push(format!("handler {name}: {told}"));
            }
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("\n    "))
        }
    }

    fn gaps(&self, like: &RequestPattern, gaps: &[Gap]) -> Outcome {
        let times: Vec<_> = self
            .stage
            .log
            .all()
            .iter()
            .filter(|request| like.matches(request))
            .map(|request| request.at)
            .collect();
        let found: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let close = |a: Duration, b: Duration| a.abs_diff(b) < Duration::from_micros(500);
        let fits = gaps.len() == found.len()
            && gaps.iter().enumerate().all(|(at, gap)| match gap {
                Gap::Exactly(time) => close(*time, found[at]),
                Gap::Between(least, most) => (*least..=*most).contains(&found[at]),
                Gap::Growing => at == 0 || found[at] > found[at - 1],
                Gap::Any => true,
            });
        if fits {
            return Ok(());
        }
        let list: Vec<_> = found.iter().map(|gap| show_duration(*gap)).collect();
        Err(format!(
            "gaps between {like}: {} expected, found {}: {}",
            gaps.len(),
            found.len(),
            list.join(", ")
        ))
    }

    fn handler_number(&self, handler: &str, which: &str) -> Result<u64, String> {
        let member = self.member(handler)?;
        let status = match &member.registration {
            Some(registration) => registration.status(),
            None => self
                .informer()?
                .status()
                .handlers
                .into_iter()
                .find(|status| &*status.name == handler)
                .ok_or_else(|| format!("handler {handler:?} is not registered"))?,
        };
        Ok(match which {
            "calls" => status.calls,
            "panics" => status.panics,
            "waiting" => status.waiting as u64,
            "coalesced" => status.coalesced,
            _ => status.replays,
        })
    }
}

fn state_name(state: &ReflectorState) -> &'static str {
    match state {
        ReflectorState::Initialising => "initialising",
        ReflectorState::Listing => "listing",
        ReflectorState::Streaming => "streaming",
        ReflectorState::Watching => "watching",
        ReflectorState::BackingOff { .. } => "backing_off",
        ReflectorState::Stopped => "stopped",
    }
}
