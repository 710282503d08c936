//! The watch: its frames into the queue.
use super::cycle::{Cycle, Next, Retry, RunEnd};
use super::listing::without_version;
use super::open_watch::{Arrival, OpenWatch, WatchLife};
use super::sink::DeltaSink;
use super::status::ReflectorState;
use super::{Call, Fault, NextStep, ReflectorMetrics};
use crate::object::{Incoming, Meta, ResourceVersion};
use crate::source::{BadObject, ListWatch, WatchEvent, WatchOptions};

/// What a frame means for the watch.
enum Delivered {
    GoOn,
    /// Something happened that only a list can make good.
    Relist(Fault),
}

/// Which delta a frame is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Added,
    Modified,
    Deleted,
}

impl<S: ListWatch, K: DeltaSink<S::Object>> Cycle<S, K> {
    /// One watch from its opening to its end.
    pub(super) async fn watch(
        &mut self,
        open: Option<OpenWatch<S::Object>>,
    ) -> Result<Next<S::Object>, RunEnd> {
        self.status.enter(ReflectorState::Watching);
        self.resume.watch_begins();
        let began = self.now();
        let mut watch = if let Some(watch) = open {
            watch
        } else {
            let options = self.watch_options();
            match self.open(options.clone()).await {
                Ok(watch) => watch,
                Err(fault) => return Ok(self.failed(WatchLife::new(options, began), fault).await),
            }
        };
        loop {
            // Looked at before each frame, so that a stream without pauses cannot hide it.
            if self.status.is_relist_wanted() {
                return Ok(Next::List);
            }
            let arrival = tokio::select! {
                biased;
                arrival = watch.next() => arrival,
                () = self.status.relist_wanted() => return Ok(Next::List),
            };
            match arrival {
                Arrival::Frame(event) => {
                    if let Delivered::Relist(fault) = self.deliver(event, &mut watch.life).await? {
                        let call = Call::Watch(watch.close().options);
                        self.back_off(call, fault, Retry::List).await;
                        return Ok(Next::List);
                    }
                }
                Arrival::Ended => return Ok(self.ended(watch.close()).await),
                Arrival::Overdue => {
                    self.status.count(|metrics| metrics.half_open_watches += 1);
                    return Ok(Next::Watch(None));
                }
                Arrival::Failed(fault) => return Ok(self.failed(watch.close(), fault).await),
            }
        }
    }

    /// Open a watch, or a streaming list.
    pub(super) async fn open(
        &mut self,
        options: WatchOptions,
    ) -> Result<OpenWatch<S::Object>, Fault> {
        let source = self.source.clone();
        let asked = options.clone();
        let stream = self.call(async move { source.watch(asked).await }).await?;
        self.proof_of_life();
        self.status.count(|metrics| metrics.watches += 1);
        let clock = self.config.clock.as_ref();
        Ok(OpenWatch::new(
            stream,
            options,
            clock,
            self.config.watch_grace,
        ))
    }

    fn watch_options(&mut self) -> WatchOptions {
        WatchOptions {
            resource_version: self.resume.seen().clone(),
            allow_bookmarks: true,
            send_initial_events: false,
            version_match: None,
            timeout: Some(self.config.watch_timeout(&mut self.rng)),
            selectors: self.config.selectors.clone(),
        }
    }

    async fn deliver(
        &mut self,
        event: WatchEvent<S::Object>,
        life: &mut WatchLife,
    ) -> Result<Delivered, RunEnd> {
        match event {
            WatchEvent::Added(object) => self.delta(Verb::Added, object, life).await?,
            WatchEvent::Modified(object) => self.delta(Verb::Modified, object, life).await?,
            WatchEvent::Deleted(object) => self.delta(Verb::Deleted, object, life).await?,
            WatchEvent::Bookmark {
                resource_version, ..
            } => return self.bookmark(resource_version, life),
            WatchEvent::Bad { object, deleted } => {
                if object.key.is_none() {
                    // Which key is wrong now is unknown: only a list tells.
                    if cfg!(informant_mutant = "unreadable_frame_is_skipped") {
                        return Ok(Delivered::GoOn);
                    }
                    self.proof_of_life();
                    self.status.count(|metrics| metrics.bad_objects += 1);
                    if cfg!(informant_mutant = "resume_at_received") {
                        self.resume.delivered(&object.resource_version, false);
                    }
                    return Ok(Delivered::Relist(Fault::BadObject(object)));
                }
                self.bad(object, deleted, life).await?;
            }
            WatchEvent::Foreign { description } => {
                self.proof_of_life();
                self.status.count(|metrics| metrics.foreign_frames += 1);
                let call = Call::Watch(life.options.clone());
                self.report(call, Fault::Foreign(description), NextStep::Skip);
            }
        }
        Ok(Delivered::GoOn)
    }

    async fn delta(
        &mut self,
        verb: Verb,
        object: Incoming<S::Object>,
        life: &mut WatchLife,
    ) -> Result<(), RunEnd> {
        let version = object.meta.resource_version.clone();
        if version.is_empty() {
            let bad = without_version(&object);
            // Not even a deletion counts: it may be of an earlier life of the key.
            return self.bad(bad, false, life).await;
        }
        let pushed = match verb {
            Verb::Added => self.sink.added(object).await,
            Verb::Modified => self.sink.updated(object).await,
            Verb::Deleted => self.sink.deleted(object).await,
        };
        if let Some(refused) = RunEnd::unless_accepted(pushed)? {
            let next = match verb {
                Verb::Added | Verb::Modified => NextStep::Quarantine,
                Verb::Deleted => NextStep::DeleteByKey,
            };
            self.report_bad(Call::Watch(life.options.clone()), refused, next);
        }
        let late = self.resume.is_behind(&version);
        self.accepted(&version, verb == Verb::Added, life, |metrics| {
            metrics.deltas += 1;
            metrics.late_deltas += u64::from(late);
        });
        Ok(())
    }

    /// An object of known key that cannot be used. The end of one needs no content, but a version.
    async fn bad(
        &mut self,
        object: BadObject,
        deleted: bool,
        life: &mut WatchLife,
    ) -> Result<(), RunEnd> {
        let version = object.resource_version.clone();
        let call = Call::Watch(life.options.clone());
        match &object.key {
            Some(key) if deleted && !version.is_empty() => {
                let meta = Meta {
                    key: key.clone(),
                    uid: object.uid.clone(),
                    resource_version: version.clone(),
                };
                self.report_bad(call, object, NextStep::DeleteByKey);
                RunEnd::unless_accepted(self.sink.deleted_meta(meta).await)?;
            }
            _ => {
                self.report_bad(call, object.clone(), NextStep::Quarantine);
                RunEnd::unless_accepted(self.sink.bad(object))?;
            }
        }
        self.accepted(&version, false, life, |metrics| metrics.deltas += 1);
        Ok(())
    }

    fn bookmark(
        &mut self,
        version: ResourceVersion,
        life: &mut WatchLife,
    ) -> Result<Delivered, RunEnd> {
        life.alive = true;
        if version.is_empty() {
            self.proof_of_life();
            let call = Call::Watch(life.options.clone());
            self.report(call, Fault::BookmarkWithoutVersion, NextStep::Skip);
            return Ok(Delivered::GoOn);
        }
        if self.resume.is_behind(&version) {
            // A server restored from a backup shows here first; the list will tell.
            self.proof_of_life();
            return Ok(Delivered::Relist(Fault::WentBack {
                seen: self.resume.seen().clone(),
                got: version,
            }));
        }
        RunEnd::unless_accepted(self.sink.bookmark(version.clone()))?;
        self.accepted(&version, false, life, |metrics| metrics.bookmarks += 1);
        Ok(Delivered::GoOn)
    }

    /// The queue accepted a frame of this version.
    fn accepted(
        &mut self,
        version: &ResourceVersion,
        added: bool,
        life: &mut WatchLife,
        count: impl FnOnce(&mut ReflectorMetrics),
    ) {
        let now = self.now();
        self.backoff.succeeded(now);
        life.alive = true;
        let moved = self.resume.delivered(version, added);
        life.moved |= moved;
        self.status
            .delivered(now, moved.then(|| self.resume.seen()), count);
    }
}
