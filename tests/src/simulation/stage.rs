//! One run: the steps of a plan, then the end of all faults, then the comparison of everything.
use super::desk::Desk;
use super::faults::{Backups, fault};
use super::handlers::{Member, lock};
use super::oracle::{Doubt, Oracle, PARITY, TEAM};
use super::plan::{HandlerPlan, Pace, Plan, Setup, Step};
use super::port::Way;
use super::workers::Works;
use super::world::{self, KEYS, Part, Split, State, Thing, number_of};
use informant::indexer::{IndexDeclaration, Snapshot};
use informant::informer::{Hold, SharedInformer, Transform};
use informant::reflector::ConsistencyConfig;
use informant::source::memory::MemoryConfig;
use informant::{SharedClock, SystemClock};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Handlers at one time.
const MOST_HANDLERS: usize = 12;

/// So many virtual minutes after the last fault everything must be well.
const PATIENCE_MINUTES: u64 = 45;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was wrong, first.
    pub failure: Option<String>,
    /// Equal runs have equal ones: it is of every request, frame, publication and call.
    pub digest: u64,
    /// Writes, requests, frames, publications and calls of handlers.
    pub events: u64,
    /// What happened, where it was asked for.
    pub log: Vec<String>,
    /// How much virtual time has passed.
    pub virtual_time: Duration,
}

pub(super) struct Stage {
    pub(super) desk: Desk,
    pub(super) setup: Setup,
    pub(super) backups: Backups,
    informer: SharedInformer<Thing>,
    started: bool,
    hold: Option<Hold>,
    members: Vec<Member>,
    works: Option<Works>,
    watchers: Vec<JoinHandle<()>>,
    look: Option<Look>,
    values: u32,
    /// A lossless handler was there, so the queue keeps more than the keys.
    keeps_all: bool,
    incarnations: u64,
    /// No write may happen until everyone has seen the restore: see [`Stage::may_write`].
    pub(super) settled: bool,
}

/// A snapshot, and what was in it.
struct Look {
    snapshot: Snapshot<Thing>,
    content: Vec<informant::Cached<Thing>>,
}

/// Play a plan. Everything in it runs on this thread.
pub(super) async fn play(plan: &Plan, logs: bool) -> Outcome {
    let clock = SystemClock::shared();
    let mut stage = Stage::set(plan.setup.clone(), clock.clone(), logs);
    let mut result = stage.steps(&plan.steps).await;
    if result.is_ok() {
        result = stage.finish().await;
    }
    let desk = stage.desk.clone();
    if let Err(what) = result {
        desk.fail(|| what);
    }
    let failure = desk.failure();
    let log = desk.take_log();
    let book = desk.book();
    Outcome {
        failure,
        digest: 0,
        events: book.writes + book.requests + book.frames + book.calls + book.oracle.publishes,
        log,
        virtual_time: clock.now().since_origin(),
    }
    .with_digest(&book)
}

impl Outcome {
    fn with_digest(mut self, book: &super::desk::Book) -> Self {
        self.digest = book.digest();
        self
    }
}

impl Stage {
    fn set(setup: Setup, clock: SharedClock, logs: bool) -> Self {
        let parts = Part::all(setup.split, setup.selection);
        let source = world::source(MemoryConfig {
            first_version: 10,
            version_step: setup.version_step,
            history: setup.history,
            bookmark_every: setup.bookmark_every,
            clock: Some(clock.clone()),
            ..MemoryConfig::default()
        });
        let oracle = Oracle::new(setup.split, setup.lossy, parts.len());
        let desk = Desk::new(clock, source, parts, oracle, logs);
        let informer = build(&desk, &setup, 0);
        let mut stage = Self {
            works: None,
            desk,
            setup,
            backups: Backups::default(),
            informer,
            started: false,
            hold: None,
            members: Vec::new(),
            watchers: Vec::new(),
            look: None,
            values: 0,
            keeps_all: false,
            incarnations: 0,
            settled: true,
        };
        stage.open();
        stage
    }

    /// Who is there from the start of each informer.
    fn open(&mut self) {
        if self.setup.workers > 0 {
            let (workers, seed) = (self.setup.workers, self.setup.seed);
            self.works = Some(Works::open(&self.desk, &self.informer, workers, seed));
        }
        let sources = self.desk.parts.len();
        self.watchers = (0..sources)
            .map(|source| tokio::spawn(watch(self.desk.clone(), self.informer.lister(), source)))
            .collect();
    }

    async fn steps(&mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            self.desk.log(|| format!("step {step:?}"));
            self.step(step).await?;
            self.check()?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Start => self.start(),
            Step::Put { key, team, refused } => self.put(*key, *team, *refused),
            Step::Delete(key) => self.delete(*key),
            Step::Recreate(key) => {
                self.delete(*key);
                self.put(*key, 0, false);
            }
            Step::SkipVersions(count) => {
                if self.may_write() {
                    self.desk.source.skip_versions(*count);
                }
            }
            Step::Compact(kept) => {
                let newest = number_of(&self.desk.source.resource_version());
                let version = newest.saturating_sub(*kept * self.setup.version_step);
                self.desk.source.compact(&version.into());
            }
            Step::Bookmark => self.desk.source.send_bookmark(),
            Step::Wait(millis) => pass(*millis).await,
            Step::Yield(times) => {
                for _ in 0..*times {
                    tokio::task::yield_now().await;
                }
            }
            Step::Hold => self.hold = Some(self.informer.hold()),
            Step::Unhold => self.hold = None,
            Step::Join(plan) => self.join(plan),
            Step::Leave(which, waits) => {
                if let Some(which) = which.checked_rem(self.members.len()) {
                    self.members.remove(which).leave(*waits).await;
                }
            }
            Step::AddIndex => {
                let informer = self.informer.clone();
                // It waits for the pump, which may be held; its answer does not matter here.
                tokio::spawn(async move {
                    let parity = |thing: &informant::Cached<Thing>| [thing.value % 2 == 1];
                    let _taken = informer
                        .add_index(IndexDeclaration::new(PARITY, parity))
                        .await;
                });
            }
            Step::Look => self.look()?,
            Step::Relist => {
                for (_, reflector) in self.informer.reflectors() {
                    reflector.relist();
                }
            }
            Step::Restart => self.restart().await?,
            Step::Fault(wanted) => fault(self, wanted),
        }
        Ok(())
    }

    fn start(&mut self) {
        if !self.started {
            self.started = true;
            self.informer.start().expect("it was built just now");
        }
    }

    fn join(&mut self, plan: &HandlerPlan) {
        if self.members.len() >= MOST_HANDLERS {
            return;
        }
        let guards_versions = !self.setup.lossy && !matches!(self.setup.split, Split::Shards(_));
        self.keeps_all |= plan.policy > 0;
        let member = Member::join(&self.desk, &self.informer, plan, guards_versions);
        self.members.push(member);
    }

    /// After a restore, versions that were used before are used again. As long as someone may go on
    /// from one of them, a further write could make the source reach it, and nobody could tell the
    /// two histories apart: not this informer, nor any other.
    fn may_write(&mut self) -> bool {
        if !self.settled {
            let newest = self.desk.source.resource_version();
            let behind = |(_, reflector): &(_, informant::reflector::ReflectorHandle)| {
                number_of(&reflector.status().last_seen_version) <= number_of(&newest)
            };
            self.settled =
                self.desk.book().is_past_cut_off() && self.informer.reflectors().iter().all(behind);
        }
        self.settled
    }

    pub(super) fn put(&mut self, key: usize, team: u8, refused: bool) {
        if !self.may_write() {
            return;
        }
        self.values += 1;
        let thing = Thing {
            team,
            value: self.values,
            refused,
        };
        let meta = self.desk.source.upsert(world::key(key), thing.clone());
        let version = number_of(&meta.resource_version);
        self.desk.log(|| format!("wrote k{key}@{version}"));
        let mut book = self.desk.book();
        if refused && book.oracle.doubts[key] == Doubt::None {
            book.oracle.doubts[key] = Doubt::Unusable;
        }
        book.writes += 1;
        let uid = meta.uid;
        let state = State {
            uid,
            version,
            thing,
        };
        book.history.change(key, version, Some(state));
    }

    fn delete(&mut self, key: usize) {
        if !self.may_write() {
            return;
        }
        if let Ok(meta) = self.desk.source.delete(&world::key(key), None) {
            let version = number_of(&meta.resource_version);
            self.desk.log(|| format!("deleted k{key}@{version}"));
            let mut book = self.desk.book();
            book.writes += 1;
            book.history.change(key, version, None);
        }
    }

    /// What holds at any time.
    fn check(&mut self) -> Result<(), String> {
        let cache = self.informer.lister();
        self.desk.observe(&cache);
        if let Some(failure) = self.desk.failure() {
            return Err(failure);
        }
        let view = cache.load();
        for member in &self.members {
            if member.is_up_to_date()
                && let Some(what) = lock(&member.fold).difference(&view)
            {
                return Err(what);
            }
        }
        self.check_bounds()
    }

    /// What waits is bounded by the keys, whatever happens.
    fn check_bounds(&self) -> Result<(), String> {
        let depth = self.informer.status().queue.depth;
        let unusable = self.desk.book().oracle.doubts != [Doubt::None; KEYS];
        let bound = self.setup.queue_bound.filter(|_| !unusable);
        let most = bound.unwrap_or(2 * KEYS);
        // Of a key that moves between sources, each stay is kept.
        let moves = matches!(self.setup.split, Split::Shards(_));
        if !self.keeps_all && !moves && depth > most {
            return Err(format!("{depth} keys wait in the queue, and not {most}"));
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), String> {
        let snapshot = self.informer.snapshot();
        let content: Vec<_> = snapshot.iter().cloned().collect();
        if let Some(before) = self.look.take() {
            let now: Vec<_> = before.snapshot.iter().cloned().collect();
            let same = now.len() == before.content.len()
                && now.iter().zip(&before.content).all(|(a, b)| a.ptr_eq(b));
            if !same {
                return Err("a snapshot has changed".to_owned());
            }
            if let Ok(diff) = snapshot.diff(&before.snapshot) {
                let expected = content
                    .iter()
                    .filter(|object| !now.iter().any(|known| known.ptr_eq(object)))
                    .count();
                if diff.added.len() + diff.modified.len() != expected {
                    return Err(format!("the difference of two snapshots: {diff:?}"));
                }
            }
        }
        self.look = Some(Look { snapshot, content });
        Ok(())
    }

    /// Stop the informer, see that nothing is left of it, and build another.
    async fn restart(&mut self) -> Result<(), String> {
        let plans: Vec<_> = self
            .members
            .iter()
            .map(|member| member.plan.clone())
            .collect();
        let was_started = self.started;
        self.stop().await?;
        self.incarnations += 1;
        self.keeps_all = false;
        self.informer = build(&self.desk, &self.setup, self.incarnations);
        self.open();
        for plan in plans {
            self.join(&plan);
        }
        if was_started {
            self.start();
        }
        Ok(())
    }

    async fn stop(&mut self) -> Result<(), String> {
        self.hold = None;
        self.look()?;
        self.look = None;
        self.informer.stop().await;
        self.started = false;
        self.desk.observe(&self.informer.lister());
        for member in self.members.drain(..) {
            member.stopped().await?;
        }
        if let Some(works) = self.works.take() {
            works.close().await?;
        }
        for watcher in self.watchers.drain(..) {
            watcher.await.map_err(|error| error.to_string())?;
        }
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        let open = self.desk.source.open_watches();
        if open > 0 {
            return Err(format!("{open} watches are open after the stop"));
        }
        let tasks = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        if tasks > 0 {
            return Err(format!("{tasks} tasks are left after the stop"));
        }
        Ok(())
    }

    /// All faults end; then everything must come right, and stay so until the stop.
    async fn finish(&mut self) -> Result<(), String> {
        self.desk.log(|| "all faults end".to_owned());
        self.start();
        self.hold = None;
        super::faults::end_all(self);
        let mut minutes = 0;
        while !self.may_write() {
            pass(60_000).await;
            minutes += 1;
            self.check()?;
            if minutes > PATIENCE_MINUTES {
                return Err("a restore was not noticed".to_owned());
            }
        }
        let all_usable = self.desk.book().oracle.doubts == [Doubt::None; KEYS];
        for key in 0..KEYS {
            if self.desk.book().oracle.doubts[key] == Doubt::None && key > 0 {
                continue;
            }
            self.put(key, 0, false);
        }
        let mut left = String::new();
        for at in 0..PATIENCE_MINUTES {
            pass([5, 300, 5_000, 60_000][usize::try_from(at.min(3)).unwrap_or(3)]).await;
            self.desk.source.send_bookmark();
            pass(5).await;
            self.check()?;
            match self.remaining() {
                None => {
                    self.check_completeness(all_usable)?;
                    return self.stop().await;
                }
                Some(what) => left = what,
            }
        }
        Err(format!("after {PATIENCE_MINUTES} minutes: {left}"))
    }

    /// What is not yet as it must be in the end.
    fn remaining(&self) -> Option<String> {
        let view = self.informer.lister().load();
        let newest = self.desk.source.resource_version();
        let book = self.desk.book();
        let truth = book.history.now();
        let mut expected = 0;
        for (key, state) in truth.iter().enumerate() {
            let mut parts = self.desk.parts.iter();
            let Some(state) = parts.find_map(|part| part.select(key, state.as_ref())) else {
                continue;
            };
            expected += 1;
            let shown = view.get(&world::key(key));
            if !shown.is_some_and(|object| state.is(object)) {
                return Some(format!("k{key} is not at {} yet: {shown:?}", state.version));
            }
        }
        if view.len() != expected {
            return Some(format!("{} objects, and not {expected}", view.len()));
        }
        if view.quarantine().any(|bad| bad.key.is_some()) {
            return Some("something is in quarantine still".to_owned());
        }
        if view.versions().len() != self.desk.parts.len() {
            return Some("a source has brought nothing".to_owned());
        }
        if let Some((_, version)) = view.versions().iter().find(|(_, shown)| *shown != newest) {
            return Some(format!(
                "the watermark is {version}, the source at {newest}"
            ));
        }
        drop(book);
        let mut folds = self.members.iter().map(|member| lock(&member.fold));
        let unlike = folds.find_map(|fold| fold.difference(&view));
        drop(folds);
        unlike.or_else(|| {
            let works = self.works.as_ref()?;
            works.difference(&self.informer.lister())
        })
    }

    /// Where nothing was lost to a relist, an unbounded handler has been told every single change.
    fn check_completeness(&self, all_usable: bool) -> Result<(), String> {
        let book = self.desk.book();
        let [(_, reflector)] = self.informer.reflectors() else {
            return Ok(());
        };
        let metrics = reflector.metrics();
        if self.setup.lossy || !all_usable || metrics.lists != 1 || book.history.generation() > 0 {
            return Ok(());
        }
        let first = book.oracle.first_version.unwrap_or(u64::MAX);
        let changes = book.history.changes_after(first, &self.desk.parts[0]);
        drop(book);
        for member in &self.members {
            let fold = lock(&member.fold);
            // An end that is told twice may count by its second time.
            let was_told = |key: usize, at: u64, ended: bool| {
                let mut told = fold.told.iter();
                told.any(|(of, told)| *of == key && (*told == at || (ended && *told > at)))
            };
            let untold = changes
                .iter()
                .find(|(key, at, ended)| *at > fold.joined_at && !was_told(*key, *at, *ended));
            // Others may agree with the cache by chance while they have more to hear.
            let is_judged = member.plan.policy == 1 && member.plan.pace == Pace::Instant;
            if is_judged && let Some((key, at, _)) = untold {
                return Err(format!("a lossless handler was not told of k{key}@{at}"));
            }
        }
        Ok(())
    }
}

fn build(desk: &Desk, setup: &Setup, incarnation: u64) -> SharedInformer<Thing> {
    let cache = Arc::new(OnceLock::new());
    let number = u32::try_from(incarnation).expect("few") + 1;
    let way = |source| Way::new(desk.clone(), source, number, setup.streaming, cache.clone());
    let mut builder = SharedInformer::builder(way(0)).selectors(desk.parts[0].selectors.clone());
    for (source, part) in desk.parts.iter().enumerate().skip(1) {
        builder = builder.add_source(way(source), part.selectors.clone());
    }
    builder = builder
        .clock(desk.clock.clone())
        .seed(setup.seed ^ incarnation)
        .index(TEAM, |thing: &informant::Cached<Thing>| [thing.team]);
    if let Some(bound) = setup.queue_bound {
        builder = builder.queue_bound(bound);
    }
    if let Some(period) = setup.resync {
        builder = builder.resync(Duration::from_secs(period));
    }
    if setup.transform {
        builder = builder.transform(Transform::new("refuse", |thing: Thing| {
            if thing.refused {
                Err("refused")
            } else {
                Ok(thing)
            }
        }));
    }
    if setup.lossy {
        let mut check = ConsistencyConfig::new(desk.clock.clone());
        check.seed = setup.seed;
        check.period = Duration::from_secs(120);
        check.page_size = 3;
        builder = builder.check_consistency(check);
    }
    let (page_size, tries) = (setup.page_size, setup.streaming_tries);
    let retry = Duration::from_secs(setup.internal_error_retry);
    let informer = builder
        .reflector(move |config| {
            config.page_size = page_size;
            config.streaming_list_tries = tries;
            config.internal_error_retry = retry;
        })
        .build();
    let lister = informer.lister();
    desk.next_incarnation(&lister);
    let _first = cache.set(lister);
    informer
}

/// Looks at each publication that moves the watermark of a source: it is woken by each, and runs
/// before the next.
async fn watch(desk: Desk, cache: informant::indexer::Indexer<Thing>, source: usize) {
    use informant::indexer::WaitError;
    let id = informant::delta::SourceId(u32::try_from(source).expect("few"));
    loop {
        let next = {
            let view = cache.load();
            let shown = view.versions().iter().find(|(shown, _)| *shown == id);
            shown.map_or(1, |(_, version)| number_of(version) + 1)
        };
        let waited = cache.wait_for_source(id, &next.into()).await;
        desk.observe(&cache);
        if waited == Err(WaitError::Stopped) {
            return;
        }
    }
}

pub(super) async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
