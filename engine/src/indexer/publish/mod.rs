//! Publishing by recycling: the writer prepares a retired version while readers use the current.
//!
//! # Protocol
//! There is one writer. The current version is in the root cell; readers load it and may hold it
//! for ever. To publish, the writer
//! 1. takes a retired version that nobody holds any more, and brings it up to date by replaying
//!    what it missed; when there is none, it makes a shallow copy of the current version;
//! 2. changes it in place (whatever a held version still shares is copied on the way);
//! 3. swaps it into the root. The version that was there becomes the newest retired one.
//!
//! # Why a reader never sees a change in progress
//! A version is changed only between `Arc::get_mut` succeeding on it and the swap that publishes
//! it. `get_mut` succeeds only when the writer's pointer is the only one. No reader can gain a new
//! pointer to a version that is not in the root: it could only clone one that somebody holds, and
//! nobody does. A guard that was loaded before the version left the root counts, since `swap`
//! settles the guards' debts before it returns (see [`Root::swap`]).
//!
//! # Why replay is exact
//! The history holds physical operations in order, stamped with the version that did them; a
//! version knows the last stamp it has done. All structures are deterministic, so a version that
//! replays what it missed equals the current one to the slot. A version that is older than the
//! beginning of the history is never used: it is taken apart.
//!
//! # How many spare versions there are
//! As many as readers make necessary. While a reader holds what was just retired, an older spare
//! serves; when all are held, a copy is made, and what it shares with the others is copied once as
//! it changes. From then on there is one spare more, and nothing has to be copied any more. A spare
//! that a reader gives back late catches up in steps, one after each publication; one that has not
//! been needed for long is taken apart.
//!
//! # Who frees what
//! Retired versions stay in the writer's hands, so the last drop by a reader frees nothing. Those
//! that are of no more use are taken apart in slices, after a publish and from `maintain`.
mod history;

use super::index::IndexDriver;
use super::table::Op;
use super::view::View;
use crate::object::Cached;
use crate::sync::Root;
use history::History;
use std::collections::VecDeque;
use std::sync::Arc;

/// Chunks of stale versions that are freed after each publish: microseconds.
const CHUNKS_PER_PUBLISH: usize = 2;

/// Retired versions that may be used again at all. Whatever is retired before them is only kept
/// until nobody holds it, so that a reader's last drop frees nothing.
const SPARES: usize = 8;

/// A spare version that was current so many publications ago is one too many.
const IDLE: u64 = if cfg!(informant_loom) { 6 } else { 16_384 };

/// Held versions that are looked at after each publish, to see whether they have been let go.
const HELD_PER_PUBLISH: usize = 4;

/// Operations of the history that a lagging spare replays after each publish.
const STEP: usize = if cfg!(informant_loom) { 1 } else { 64 };

/// Operations that the history may hold, whatever the size of the cache. Models are small, and
/// must reach this limit too.
const HISTORY_MIN: usize = if cfg!(informant_loom) { 4 } else { 1_024 };

/// The history may hold this part of the cache's size before the spares that need its beginning
/// are given up: what they keep alive is not worth what they save.
const HISTORY_PART_OF_CACHE: usize = 8;

/// One batch may change this part of the cache before it is not logged at all: then copying what
/// the next batches touch is cheaper than replaying it.
const BATCH_PART_OF_CACHE: usize = 4;

/// A change of the primary table.
pub(super) type Operation<T> = Op<Cached<T>>;

pub(super) type Drivers<T> = Vec<Option<Box<dyn IndexDriver<T>>>>;

/// A retired version that may be used again.
struct Spare<T> {
    version: Arc<View<T>>,
    /// The publication that retired it.
    retired_at: u64,
}

/// The writer's side of publication.
pub(super) struct Publisher<T> {
    current: Arc<View<T>>,
    /// What may be used again, in the order of retirement.
    spares: VecDeque<Spare<T>>,
    /// What readers hold and will not be used again.
    held: VecDeque<Arc<View<T>>>,
    history: History<T>,
    /// Versions that are being taken apart.
    stale: Vec<View<T>>,
}

impl<T: Send + Sync + 'static> Publisher<T> {
    pub(super) fn new(current: Arc<View<T>>) -> Self {
        Self {
            current,
            spares: VecDeque::new(),
            held: VecDeque::new(),
            history: History::new(),
            stale: Vec::new(),
        }
    }

    pub(super) fn current(&self) -> &View<T> {
        &self.current
    }

    /// A version equal to the current one that nobody else can see, to be changed and published.
    ///
    /// `next` is the hash of the key that is going to be looked at first, or nothing.
    pub(super) fn prepare(&mut self, drivers: &Drivers<T>, next: Option<u64>) -> Arc<View<T>> {
        for at in (0..self.spares.len()).rev() {
            let spare = &mut self.spares[at];
            if !self
                .history
                .reaches_back_to(spare.version.sequence, self.current.sequence)
            {
                continue;
            }
            if Arc::get_mut(&mut spare.version).is_none() {
                continue;
            }
            let mut version = self
                .spares
                .remove(at)
                .expect("the position is in range")
                .version;
            let view = Arc::get_mut(&mut version).expect("nobody held it a line ago");
            // Both at once: what the replay reads, and what comes after it.
            if let Some(hash) = next {
                view.table.read_ahead(&[hash]);
            }
            self.catch_up(view, drivers, self.current.sequence);
            return version;
        }
        Arc::new(View::clone(&self.current))
    }

    /// Bring `view`, which is not among the spares, up to the version `upto`.
    fn catch_up(&mut self, view: &mut View<T>, drivers: &Drivers<T>, upto: u64) {
        let others = self.spares.iter().map(|spare| spare.version.sequence).min();
        let others = others.unwrap_or(upto);
        self.history
            .replay(&mut view.table, view.sequence, upto, others);
        for (part, driver) in view.indexes.iter_mut().zip(drivers) {
            #[cfg(informant_mutant = "index_not_replayed")]
            continue;
            if let (Some(part), Some(driver)) = (part, driver) {
                driver.catch_up(&mut **part, view.sequence, upto);
            }
        }
        view.sequence = upto;
        if upto != self.current.sequence {
            return;
        }
        // What is small is not logged but copied.
        if let ([reached], [current]) = (&mut *view.versions, &*self.current.versions) {
            reached.clone_from(current);
        } else {
            view.versions.clone_from(&self.current.versions);
        }
        view.epoch = self.current.epoch;
        if !Arc::ptr_eq(&view.quarantine, &self.current.quarantine) {
            view.quarantine = self.current.quarantine.clone();
        }
    }

    /// An empty list for the operations of the next version.
    pub(super) fn empty_ops(&mut self) -> Vec<Operation<T>> {
        self.history.empty_list()
    }

    /// Operations that one batch may log.
    pub(super) fn batch_limit(&self) -> usize {
        HISTORY_MIN.max(self.current.len() / BATCH_PART_OF_CACHE)
    }

    /// Make a prepared version the current one. `ops` is what was done to it since `prepare`, or
    /// `None` when that was too much to be replayed.
    pub(super) fn publish(
        &mut self,
        root: &Root<View<T>>,
        version: Arc<View<T>>,
        ops: Option<Vec<Operation<T>>>,
        drivers: &mut Drivers<T>,
    ) {
        debug_assert_eq!(version.sequence, self.current.sequence + 1);
        let mut replayable = true;
        for driver in drivers.iter_mut().flatten() {
            replayable &= driver.seal(version.sequence);
        }
        self.current = version.clone();
        let retired = root.swap(version);
        self.spares.push_back(Spare {
            version: retired,
            retired_at: self.current.sequence,
        });
        match ops {
            Some(ops) if replayable => {
                self.history.push(self.current.sequence, ops);
                if self.spares.len() > 1 {
                    self.let_go_of_idle();
                    self.tend(drivers);
                }
                self.trim(drivers);
            }
            _ => self.forget_spares(drivers),
        }
        self.look_at_held(HELD_PER_PUBLISH);
        self.free(CHUNKS_PER_PUBLISH);
    }

    /// Never use the spare versions again: what they would have to replay is not there.
    pub(super) fn forget_spares(&mut self, drivers: &mut Drivers<T>) {
        self.history.clear();
        for driver in drivers.iter_mut().flatten() {
            driver.trim(u64::MAX);
        }
        self.let_go_of_laggards();
    }

    /// Let the spare that lags most, of those that nobody holds, come a step nearer: it must not have
    /// a long way to go at the moment when it is needed. The newest lags by one publication only.
    fn tend(&mut self, drivers: &Drivers<T>) {
        let newest = self.spares.len() - 1;
        let Some(at) = (0..newest).find(|&at| {
            let version = &mut self.spares[at].version;
            version.sequence + 1 < self.current.sequence && Arc::get_mut(version).is_some()
        }) else {
            return;
        };
        let reached = self.spares[at].version.sequence;
        if !self.history.reaches_back_to(reached, self.current.sequence) {
            return;
        }
        let upto = self.history.step(reached, STEP);
        let mut spare = self.spares.remove(at).expect("the position is in range");
        let view = Arc::get_mut(&mut spare.version).expect("nobody held it a line ago");
        self.catch_up(view, drivers, upto);
        self.spares.insert(at, spare);
    }

    /// Take apart a spare that was not needed for long.
    fn let_go_of_idle(&mut self) {
        let current = self.current.sequence;
        let is_idle = |spare: &Spare<T>| spare.retired_at + IDLE < current;
        if self.spares.front().is_some_and(is_idle) {
            let idle = self.spares.pop_front();
            self.held.extend(idle.map(|spare| spare.version));
        }
    }

    /// Bound the history and the number of spares, and let go of what is beyond them.
    fn trim(&mut self, drivers: &mut Drivers<T>) {
        let needed_from = self.spares.iter().map(|spare| spare.version.sequence).min();
        let of_cache = self.current.len() / HISTORY_PART_OF_CACHE;
        let forgotten = self
            .history
            .trim(needed_from.unwrap_or(u64::MAX), of_cache.max(HISTORY_MIN));
        if let Some(stamp) = forgotten {
            for driver in drivers.iter_mut().flatten() {
                driver.trim(stamp);
            }
        }
        if self.spares.len() > SPARES || forgotten > needed_from {
            self.let_go_of_laggards();
        }
    }

    /// Spares that can't catch up any more are of no use but to their readers.
    fn let_go_of_laggards(&mut self) {
        let newest = self.current.sequence;
        let (spares, history) = (&mut self.spares, &self.history);
        let excess = spares.len().saturating_sub(SPARES);
        let mut gone: Vec<_> = spares.drain(..excess).collect();
        let lags = |spare: &Spare<T>| !history.reaches_back_to(spare.version.sequence, newest);
        if spares.iter().any(lags) {
            let (laggards, others): (VecDeque<_>, _) = spares.drain(..).partition(lags);
            *spares = others;
            gone.extend(laggards);
        }
        #[cfg(not(informant_mutant = "reader_frees"))]
        self.held
            .extend(gone.into_iter().map(|spare| spare.version));
    }

    /// See whether the readers of up to `count` held versions have let go, and if so begin to take
    /// them apart.
    fn look_at_held(&mut self, count: usize) {
        if self.held.is_empty() {
            return;
        }
        for _ in 0..count.min(self.held.len()) {
            let Some(version) = self.held.pop_front() else {
                return;
            };
            match Arc::try_unwrap(version) {
                Ok(view) => self.stale.push(view),
                Err(held) => self.held.push_back(held),
            }
        }
    }

    /// Free up to `chunks` chunks of stale versions; true when there are none left.
    pub(super) fn free(&mut self, chunks: usize) -> bool {
        let Some(view) = self.stale.last_mut() else {
            return true;
        };
        let mut empty = view.table.dismantle(chunks);
        for part in view.indexes.iter_mut().flatten() {
            empty &= part.dismantle(chunks);
        }
        if empty {
            self.stale.pop();
        }
        self.stale.is_empty()
    }

    /// Bring the spare versions up to date, so that they keep no object alive that the current
    /// version has let go, and free a slice of what is stale. True when nothing is left to do.
    pub(super) fn maintain(&mut self, drivers: &mut Drivers<T>, chunks: usize) -> bool {
        for _ in 0..self.spares.len() {
            let Some(mut spare) = self.spares.pop_front() else {
                break;
            };
            let newest = self.current.sequence;
            if self.history.reaches_back_to(spare.version.sequence, newest)
                && let Some(view) = Arc::get_mut(&mut spare.version)
            {
                self.catch_up(view, drivers, newest);
            }
            self.spares.push_back(spare);
        }
        let all_current = self
            .spares
            .iter()
            .all(|spare| spare.version.sequence == self.current.sequence);
        if all_current {
            // Nobody lags behind, so nothing needs the history.
            self.history.clear();
            for driver in drivers.iter_mut().flatten() {
                driver.trim(u64::MAX);
            }
        }
        self.let_go_of_laggards();
        self.look_at_held(usize::MAX);
        self.free(chunks)
    }
}
