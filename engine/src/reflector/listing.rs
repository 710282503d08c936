//! The plain list: pages, versions, and what a failed list leads to.
use super::cycle::{Cycle, Next, Retry, RunEnd};
use super::resume::Verdict;
use super::sink::DeltaSink;
use super::status::ReflectorState;
use super::streaming::Streamed;
use super::{Call, Fault, NextStep};
use crate::clock::Timestamp;
use crate::delta::PreparedList;
use crate::object::{Cached, Incoming, ResourceVersion};
use crate::source::{BadObject, ListOptions, ListWatch, Recovery, VersionMatch};
use std::time::Duration;

/// Objects a page, where nothing else is set.
const PAGE_SIZE: u32 = 500;

impl<S: ListWatch, K: DeltaSink<S::Object>> Cycle<S, K> {
    /// One attempt to list: streaming where that works, else plain; repeated at once, at the empty
    /// version, when the source cannot serve the version that was asked for.
    pub(super) async fn list(&mut self) -> Result<Next<S::Object>, RunEnd> {
        if self.status.take_relist_wish() {
            self.resume.mark_unavailable();
        }
        if self.streaming {
            match self.streaming_list().await? {
                Streamed::Done(watch) => return Ok(Next::Watch(Some(watch))),
                Streamed::UsePlainList => {}
            }
        }
        loop {
            self.status.enter(ReflectorState::Listing);
            let began = self.now();
            let options = self.list_options();
            let call = Call::List(options.clone());
            let listing = match self.fetch(options).await {
                Ok(listing) => listing,
                Err((page, fault)) => {
                    self.status.count(|metrics| metrics.list_failures += 1);
                    let unavailable = matches!(
                        &fault,
                        Fault::Source(error)
                            if matches!(error.recovery(), Recovery::Relist | Recovery::TooLarge)
                    );
                    if unavailable && !call.resource_version().is_empty() {
                        self.resume.mark_unavailable();
                        let next = self.plain_list_now();
                        self.report(page, fault, next);
                        tokio::task::yield_now().await;
                        continue;
                    }
                    self.back_off(page, fault, Retry::List).await;
                    return Ok(Next::List);
                }
            };
            match self.accept(&call, began, listing)? {
                Verdict::Accepted { .. } => return Ok(Next::Watch(None)),
                Verdict::Refused => tokio::task::yield_now().await,
                Verdict::WithoutVersion => {
                    self.status.count(|metrics| metrics.list_failures += 1);
                    self.back_off(call, Fault::ListWithoutVersion, Retry::List)
                        .await;
                    return Ok(Next::List);
                }
            }
        }
    }

    /// Judge a whole list and give it to the queue if it counts. A refused one is reported here.
    pub(super) fn accept(
        &mut self,
        call: &Call,
        began: Timestamp,
        mut listing: PreparedList<S::Object>,
    ) -> Result<Verdict, RunEnd> {
        let verdict = self
            .resume
            .judge(call.resource_version(), &listing.resource_version);
        let went_back = Fault::WentBack {
            seen: self.resume.seen().clone(),
            got: listing.resource_version.clone(),
        };
        match verdict {
            Verdict::WithoutVersion => return Ok(verdict),
            Verdict::Refused => {
                self.status.count(|metrics| metrics.lists_refused += 1);
                self.resume.mark_unavailable();
                let next = match call {
                    Call::List(_) => self.plain_list_now(),
                    Call::Watch(_) => self.next_step(Retry::List, Duration::ZERO),
                };
                self.report(call.clone(), went_back, next);
                return Ok(verdict);
            }
            Verdict::Accepted { reset: true } => {
                self.status.count(|metrics| metrics.resets += 1);
                self.report(call.clone(), went_back, NextStep::Reset);
                listing.reset = true;
            }
            Verdict::Accepted { reset: false } => {}
        }
        for bad in &listing.bad {
            self.report_bad(call.clone(), bad.clone(), NextStep::Quarantine);
        }
        let version = listing.resource_version.clone();
        RunEnd::unless_accepted(self.sink.replace(listing))?;
        self.listed(call, version, began);
        Ok(verdict)
    }

    /// The object as the queue will store it: what a long list holds until its end is that, not what
    /// the transport sent.
    pub(super) fn prepare(
        &self,
        object: Incoming<S::Object>,
    ) -> Result<Cached<S::Object>, BadObject> {
        if object.meta.resource_version.is_empty() {
            return Err(without_version(&object));
        }
        self.sink.prepare(object)
    }

    fn list_options(&self) -> ListOptions {
        let version = self.resume.list_version();
        let any_state = version.is_empty() || version == ResourceVersion::zero();
        let limit = match self.config.page_size {
            Some(0) => None,
            Some(size) => Some(size),
            None => (any_state || self.pages_from_zero).then_some(PAGE_SIZE),
        };
        ListOptions {
            version_match: (!any_state).then_some(VersionMatch::NotOlderThan),
            resource_version: version,
            limit,
            continue_token: None,
            selectors: self.config.selectors.clone(),
            metadata_only: false,
        }
    }

    /// All pages of one list, at the version of the first. When the token expires on the way the
    /// list is asked for once more, whole.
    async fn fetch(
        &mut self,
        first: ListOptions,
    ) -> Result<PreparedList<S::Object>, (Call, Fault)> {
        let mut listing = no_items();
        let mut options = first.clone();
        loop {
            let follow_up = options.continue_token.is_some();
            self.status.count(|metrics| metrics.list_pages += 1);
            let source = self.source.clone();
            let asked = options.clone();
            let page = match self.call(async move { source.list(asked).await }).await {
                Ok(page) => page,
                Err(fault) if follow_up && is_expired(&fault) => {
                    let next = self.plain_list_now();
                    self.report(Call::List(options), fault, next);
                    listing = no_items();
                    options = ListOptions {
                        limit: None,
                        ..first.clone()
                    };
                    continue;
                }
                Err(fault) => return Err((Call::List(options), fault)),
            };
            self.proof_of_life();
            if !follow_up {
                listing.resource_version = page.resource_version;
            }
            for item in page.items {
                match item.and_then(|object| self.prepare(object)) {
                    Ok(object) => listing.items.push(object),
                    Err(bad) => listing.bad.push(bad),
                }
            }
            let Some(token) = page.continue_token.filter(|token| !token.is_empty()) else {
                return Ok(listing);
            };
            if first.resource_version == ResourceVersion::zero() {
                self.pages_from_zero = true;
            }
            // Servers refuse a version beside a token: the token names the state already.
            options = ListOptions {
                resource_version: ResourceVersion::empty(),
                version_match: None,
                continue_token: Some(token),
                ..first.clone()
            };
            tokio::task::yield_now().await;
        }
    }
}

fn no_items<T>() -> PreparedList<T> {
    PreparedList {
        resource_version: ResourceVersion::empty(),
        items: Vec::new(),
        bad: Vec::new(),
        reset: false,
    }
}

fn is_expired(fault: &Fault) -> bool {
    matches!(fault, Fault::Source(crate::source::SourceError::Api(status)) if status.is_expired())
}

/// Every object of a transport has a version; one without cannot be placed in time.
pub(super) fn without_version<T>(object: &Incoming<T>) -> BadObject {
    BadObject {
        key: Some(object.meta.key.clone()),
        uid: object.meta.uid.clone(),
        resource_version: ResourceVersion::empty(),
        reason: "it carries no resourceVersion".to_owned(),
    }
}
