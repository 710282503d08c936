//! Handlers that fold what they are told, and refuse what breaks the promises of the order.
use super::desk::Desk;
use super::oracle::Doubt;
use super::plan::{HandlerPlan, Pace};
use super::world::{KEYS, Thing, number, number_of};
use informant::Cached;
use informant::indexer::{Indexer, View};
use informant::informer::{
    Event, HandlerOptions, PastLimit, Policy, Registration, SharedInformer, async_handler_fn,
    handler_fn,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

pub(super) const POLICIES: [Policy; 5] = [
    Policy::Coalesce,
    Policy::Unbounded,
    Policy::lossless(3, PastLimit::Coalesce),
    Policy::lossless(3, PastLimit::Replay),
    Policy::lossless(3, PastLimit::Block),
];

/// What a handler was told adds up to this.
pub(super) struct Fold {
    desk: Desk,
    cache: Indexer<Thing>,
    name: String,
    objects: [Option<Cached<Thing>>; KEYS],
    /// The newest version told of each key, since the last reset.
    newest: [u64; KEYS],
    /// It has been removed, and its end was waited for.
    pub(super) gone: bool,
    /// Key and version of every change told, where every one shall be.
    pub(super) told: Vec<(usize, u64)>,
    /// The version after which it is told everything.
    pub(super) joined_at: u64,
    guards_versions: bool,
}

impl Fold {
    fn hear(&mut self, event: &Event<Thing>) {
        self.desk.observe(&self.cache);
        if self.gone {
            self.wrong(event, "after the end of the handler");
        }
        let note = |key: u64, version: u64| self.desk.note(4, key, version);
        self.desk.book().calls += 1;
        match event {
            Event::Added { object, .. } => {
                let key = number(object.key());
                note(key as u64, number_of(object.resource_version()));
                if self.objects[key].replace(object.clone()).is_some() {
                    self.wrong(event, "it was added already");
                }
                self.check_version(event, key, object);
            }
            Event::Updated { old, new } => {
                let key = number(new.key());
                note(key as u64, number_of(new.resource_version()));
                let known = self.objects[key].replace(new.clone());
                if !known.is_some_and(|known| known.ptr_eq(old)) {
                    self.wrong(event, "the old state is not what it was told last");
                }
                if !old.ptr_eq(new) {
                    self.check_version(event, key, new);
                }
            }
            Event::Deleted(deleted) => {
                let key = number(&deleted.key);
                note(key as u64, 0);
                if self.objects[key].take().is_none() {
                    self.wrong(event, "it was never added");
                }
                if !deleted.final_state_unknown {
                    self.told.push((key, number_of(&deleted.resource_version)));
                }
            }
            Event::Reset(_) => self.newest = [0; KEYS],
            // All that it knew is void, and with it what was newer.
            Event::Replay => {
                self.objects = Default::default();
                self.newest = [0; KEYS];
            }
        }
    }

    fn check_version(&mut self, event: &Event<Thing>, key: usize, object: &Cached<Thing>) {
        let version = number_of(object.resource_version());
        self.told.push((key, version));
        if self.guards_versions && version < self.newest[key] && !self.may_be_rewritten(key) {
            self.wrong(event, "it was told of a newer state before");
        }
        self.newest[key] = self.newest[key].max(version);
    }

    /// What a reset cannot use keeps its last good state, of a history that is no more. Whoever is
    /// told of that only afterwards (it joined late, or heard a replay) sees the version go back.
    fn may_be_rewritten(&self, key: usize) -> bool {
        let book = self.desk.book();
        book.oracle.restores > 0 && book.oracle.doubts[key] != Doubt::None
    }

    fn wrong(&self, event: &Event<Thing>, what: &str) {
        self.desk
            .fail(|| format!("handler {} was told {event:?}: {what}", self.name));
    }

    /// What it was told against what the cache shows.
    pub(super) fn difference(&self, view: &View<Thing>) -> Option<String> {
        let known = self.objects.iter().flatten().count();
        for object in view.iter() {
            let told = &self.objects[number(object.key())];
            if !told.as_ref().is_some_and(|told| told.ptr_eq(object)) {
                return Some(format!(
                    "handler {} holds {told:?} where the cache has {object:?}",
                    self.name
                ));
            }
        }
        (known != view.len()).then(|| {
            format!(
                "handler {} holds {known} objects, the cache {}",
                self.name,
                view.len()
            )
        })
    }
}

pub(super) type SharedFold = Arc<Mutex<Fold>>;

pub(super) fn lock(fold: &SharedFold) -> MutexGuard<'_, Fold> {
    fold.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Post {
    Called(Registration<Thing>),
    Reads(JoinHandle<()>),
}

/// A handler at work.
pub(super) struct Member {
    pub(super) plan: HandlerPlan,
    pub(super) fold: SharedFold,
    post: Post,
}

impl Member {
    /// Register a handler.
    pub(super) fn join(
        desk: &Desk,
        informer: &SharedInformer<Thing>,
        plan: &HandlerPlan,
        guards_versions: bool,
    ) -> Self {
        let fold = Arc::new(Mutex::new(Fold {
            desk: desk.clone(),
            cache: informer.lister(),
            name: format!("{:?}/{:?}", POLICIES[plan.policy], plan.pace),
            objects: Default::default(),
            newest: [0; KEYS],
            gone: false,
            told: Vec::new(),
            // What waits in the queue by then may have been coalesced already.
            joined_at: if informer.pending().inputs > 0 {
                u64::MAX
            } else {
                number_of(&informer.lister().resource_version())
            },
            guards_versions,
        }));
        let mut options = HandlerOptions::default().policy(POLICIES[plan.policy]);
        if let Some(period) = plan.resync {
            options = options.resync_every(Duration::from_secs(period));
        }
        let mut whim = Whim::new(plan);
        let told = fold.clone();
        let post = match plan.pace {
            Pace::Instant => Post::Called(
                informer
                    .add_handler_with(
                        &options,
                        handler_fn(move |event: Event<Thing>| {
                            lock(&told).hear(&event);
                            whim.perhaps_panic();
                        }),
                    )
                    .expect("it has not stopped"),
            ),
            Pace::Slow(_) => {
                let clock = desk.clock.clone();
                let handler = async_handler_fn(move |event: Event<Thing>| {
                    lock(&told).hear(&event);
                    let (pause, panics) = (whim.pause(), whim.panics());
                    let clock = clock.clone();
                    async move {
                        clock.sleep_until(clock.now() + pause).await;
                        if panics {
                            panic_as_planned();
                        }
                    }
                });
                let added = informer.add_async_handler(&options, handler);
                Post::Called(added.expect("it has not stopped"))
            }
            Pace::Stream(_) => {
                let mut events = informer.subscribe(&options).expect("it has not stopped");
                let clock = desk.clock.clone();
                Post::Reads(tokio::spawn(async move {
                    while let Some(event) = events.next().await {
                        lock(&told).hear(&event);
                        let pause = whim.pause();
                        if !pause.is_zero() {
                            clock.sleep_until(clock.now() + pause).await;
                        }
                    }
                }))
            }
        };
        Self {
            plan: plan.clone(),
            fold,
            post,
        }
    }

    /// Remove it, and see that it is told nothing more.
    pub(super) async fn leave(self, waits: bool) {
        match self.post {
            Post::Called(registration) if waits => {
                registration
                    .remove_and_wait()
                    .await
                    .expect("it is not its own call");
                lock(&self.fold).gone = true;
            }
            Post::Called(registration) => drop(registration),
            Post::Reads(reading) => {
                reading.abort();
                let _cancelled = reading.await;
                lock(&self.fold).gone = true;
            }
        }
    }

    /// The informer has stopped: whoever reads comes to the end.
    pub(super) async fn stopped(self) -> Result<(), String> {
        if let Post::Reads(reading) = self.post {
            reading.await.map_err(|error| error.to_string())?;
        }
        lock(&self.fold).gone = true;
        Ok(())
    }

    /// Whether it is called at once, and has been called for everything.
    pub(super) fn is_up_to_date(&self) -> bool {
        match &self.post {
            Post::Called(registration) => {
                self.plan.pace == Pace::Instant && registration.status().waiting == 0
            }
            Post::Reads(_) => false,
        }
    }
}

/// What a handler does beside listening.
struct Whim {
    rng: fastrand::Rng,
    longest_pause: u64,
    panics: Option<u8>,
}

impl Whim {
    fn new(plan: &HandlerPlan) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(plan.seed),
            longest_pause: match plan.pace {
                Pace::Instant => 0,
                Pace::Slow(millis) | Pace::Stream(millis) => millis,
            },
            panics: plan.panics,
        }
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(self.rng.u64(0..=self.longest_pause))
    }

    fn panics(&mut self) -> bool {
        self.panics.is_some_and(|one_in| self.rng.u8(..one_in) == 0)
    }

    fn perhaps_panic(&mut self) {
        if self.panics() {
            panic_as_planned();
        }
    }
}

/// Without the noise of a panic that nobody planned.
pub(super) fn panic_as_planned() {
    std::panic::resume_unwind(Box::new("now and then"));
}
