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
//! The log holds physical operations in order, stamped with the version that did them; a version
//! knows the last stamp it has seen. All structures are deterministic, so a version that replays
//! what it missed equals the current one to the slot. A version that is older than the log's
//! beginning is never used: it is taken apart.
//!
//! # Who frees what
//! Retired versions stay in the writer's hands, so the last drop by a reader frees nothing. Those
//! that are of no more use are taken apart in slices, after a publish and from `maintain`.
use super::index::IndexDriver;
use super::table::{Op, READ_AHEAD, Table};
use super::view::View;
use crate::object::Cached;
use crate::sync::Root;
use std::collections::VecDeque;
use std::sync::Arc;

/// Free retired versions that are kept ready. One is taken at each publish; a second one helps
/// when a reader's guard happens to be on the first.
const SPARES: usize = 2;

/// Chunks of stale versions that are freed after each publish: microseconds.
const CHUNKS_PER_PUBLISH: usize = 2;

/// Retired versions that may be used again at all. Whatever is retired before them is only kept
/// until nobody holds it, so that a reader's last drop frees nothing.
const CANDIDATES: usize = 8;

/// Held versions that are looked at after each publish, to see whether they have been let go.
const HELD_PER_PUBLISH: usize = 4;

/// Operations that the log may hold, whatever the size of the cache. Models are small, and must
/// reach this limit too.
const LOG_LIMIT_MIN: usize = if cfg!(informant_loom) { 4 } else { 1_024 };

/// The log may hold this part of the cache's size before versions that need its beginning are
/// given up: what they keep alive is not worth what they save.
const LOG_PART_OF_CACHE: usize = 16;

/// One batch may change this part of the cache before it is not logged at all: then copying what
/// the next batches touch is cheaper than replaying it.
const BATCH_PART_OF_CACHE: usize = 4;

/// A change of the primary table.
pub(super) type Operation<T> = Op<Cached<T>>;

pub(super) type Drivers<T> = Vec<Option<Box<dyn IndexDriver<T>>>>;

/// The writer's side of publication.
pub(super) struct Publisher<T> {
    current: Arc<View<T>>,
    /// What may be used again, oldest first.
    retired: VecDeque<Arc<View<T>>>,
    /// What readers hold and will not be used again.
    held: VecDeque<Arc<View<T>>>,
    log: VecDeque<(u64, Vec<Operation<T>>)>,
    log_operations: usize,
    /// Empty lists of operations, to be filled again.
    empty_ops: Vec<Vec<Operation<T>>>,
    /// Versions that are being taken apart.
    stale: Vec<View<T>>,
}

impl<T: Send + Sync + 'static> Publisher<T> {
    pub(super) fn new(current: Arc<View<T>>) -> Self {
        Self {
            current,
            retired: VecDeque::new(),
            held: VecDeque::new(),
            log: VecDeque::new(),
            log_operations: 0,
            empty_ops: Vec::new(),
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
        for at in (0..self.retired.len()).rev() {
            if self.can_catch_up(self.retired[at].sequence)
                && Arc::get_mut(&mut self.retired[at]).is_some()
            {
                let mut version = self.retired.remove(at).expect("the position is in range");
                let view = Arc::get_mut(&mut version).expect("nobody held it a line ago");
                // Both at once: what the replay reads, and what comes after it.
                if let Some(hash) = next {
                    view.table.read_ahead(&[hash]);
                }
                self.catch_up(view, drivers);
                return version;
            }
        }
        Arc::new(View::clone(&self.current))
    }

    fn can_catch_up(&self, sequence: u64) -> bool {
        // The log is contiguous: every published version has an entry, if perhaps an empty one.
        let Some((first, _)) = self.log.front() else {
            return sequence == self.current.sequence;
        };
        #[cfg(informant_mutant = "replay_gap")]
        let sequence = sequence + 1;
        *first <= sequence + 1
    }

    /// Bring `view`, which is not among the retired versions, up to the current version. What none
    /// of them needs is not copied out of the log but taken.
    fn catch_up(&mut self, view: &mut View<T>, drivers: &Drivers<T>) {
        let others = self.retired.iter().map(|version| version.sequence).min();
        let others = others.unwrap_or(self.current.sequence);
        #[cfg(informant_mutant = "skip_replay")]
        let skipped = view.sequence + 1;
        #[cfg(not(informant_mutant = "skip_replay"))]
        let skipped = view.sequence;
        while let Some((stamp, _)) = self.log.front()
            && *stamp <= others
        {
            let Some((stamp, mut ops)) = self.log.pop_front() else {
                break;
            };
            self.log_operations -= ops.len();
            if stamp > skipped {
                replay(&mut view.table, &mut ops, stamp);
            }
            self.recycle(ops);
        }
        let first = self.log.partition_point(|(stamp, _)| *stamp <= skipped);
        for (stamp, ops) in self.log.range(first..) {
            replay(&mut view.table, &mut ops.clone(), *stamp);
        }
        for (part, driver) in view.indexes.iter_mut().zip(drivers) {
            #[cfg(informant_mutant = "index_not_replayed")]
            continue;
            if let (Some(part), Some(driver)) = (part, driver) {
                driver.catch_up(&mut **part, view.sequence);
            }
        }
        // What is small is not logged but copied.
        view.versions.clone_from(&self.current.versions);
        view.epoch = self.current.epoch;
        if !Arc::ptr_eq(&view.quarantine, &self.current.quarantine) {
            view.quarantine = self.current.quarantine.clone();
        }
        view.sequence = self.current.sequence;
    }

    /// An empty list for the operations of the next version.
    pub(super) fn empty_ops(&mut self) -> Vec<Operation<T>> {
        self.empty_ops.pop().unwrap_or_default()
    }

    fn recycle(&mut self, mut ops: Vec<Operation<T>>) {
        if self.empty_ops.len() < SPARES && ops.capacity() <= LOG_LIMIT_MIN {
            ops.clear();
            self.empty_ops.push(ops);
        }
    }

    /// Operations that one batch may log.
    pub(super) fn batch_limit(&self) -> usize {
        LOG_LIMIT_MIN.max(self.current.len() / BATCH_PART_OF_CACHE)
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
        let replaced = root.swap(version);
        self.retired.push_back(replaced);
        match ops {
            Some(ops) if replayable => {
                self.log_operations += ops.len();
                self.log.push_back((self.current.sequence, ops));
                self.give_up_laggards(drivers);
            }
            _ => self.forget_retired(drivers),
        }
        self.look_at_held(HELD_PER_PUBLISH);
        self.free(CHUNKS_PER_PUBLISH);
    }

    /// Never use the retired versions again: what they would have to replay is not there.
    pub(super) fn forget_retired(&mut self, drivers: &mut Drivers<T>) {
        self.log.clear();
        self.log_operations = 0;
        for driver in drivers.iter_mut().flatten() {
            driver.trim(u64::MAX);
        }
        self.let_go_of_laggards();
    }

    /// Bound the log and the pool, and let go of what is beyond them.
    fn give_up_laggards(&mut self, drivers: &mut Drivers<T>) {
        let (needed_from, limit) = self.needed();
        let mut trimmed = None;
        while let Some((stamp, ops)) = self.log.front()
            && (*stamp <= needed_from || self.log_operations > limit)
        {
            // The newest entry stays, however large: it is what the next publish replays.
            if *stamp == self.current.sequence {
                break;
            }
            self.log_operations -= ops.len();
            trimmed = Some(*stamp);
            if let Some((_, ops)) = self.log.pop_front() {
                self.recycle(ops);
            }
        }
        if let Some(stamp) = trimmed {
            for driver in drivers.iter_mut().flatten() {
                driver.trim(stamp);
            }
        }
        self.let_go_of_laggards();
    }

    /// The version from which on the log is needed, and how many operations that may be.
    fn needed(&mut self) -> (u64, usize) {
        // Usually there is one, and it was the current version until now.
        if let [only] = self.retired.make_contiguous() {
            return (only.sequence, usize::MAX);
        }
        // Enough versions that nobody holds are ready: what only older ones need can go.
        let mut ready = 0;
        let mut needed_from = self.current.sequence;
        for version in self.retired.iter_mut().rev() {
            if ready == SPARES {
                break;
            }
            needed_from = version.sequence;
            if Arc::get_mut(version).is_some() {
                ready += 1;
            }
        }
        // A spare version that is never needed must not keep what it would have to replay.
        let of_cache = self.current.len() / LOG_PART_OF_CACHE;
        let limit = if ready > 1 { 0 } else { of_cache };
        (needed_from, limit.max(LOG_LIMIT_MIN))
    }

    /// Retired versions that can't catch up any more are of no use but to their readers.
    fn let_go_of_laggards(&mut self) {
        while let Some(oldest) = self.retired.front()
            && (self.retired.len() > CANDIDATES || !self.can_catch_up(oldest.sequence))
        {
            let oldest = self.retired.pop_front();
            #[cfg(not(informant_mutant = "reader_frees"))]
            self.held.extend(oldest);
        }
    }

    /// See whether the readers of up to `count` held versions have let go, and if so begin to take
    /// them apart.
    fn look_at_held(&mut self, count: usize) {
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
        for _ in 0..self.retired.len() {
            let Some(mut version) = self.retired.pop_front() else {
                break;
            };
            if self.can_catch_up(version.sequence)
                && let Some(view) = Arc::get_mut(&mut version)
            {
                self.catch_up(view, drivers);
            }
            self.retired.push_back(version);
        }
        let all_current = self
            .retired
            .iter()
            .all(|version| version.sequence == self.current.sequence);
        if all_current {
            // Nobody lags behind, so nothing needs the log; an empty entry keeps it contiguous.
            self.log.clear();
            self.log_operations = 0;
            for driver in drivers.iter_mut().flatten() {
                driver.trim(u64::MAX);
            }
        }
        self.let_go_of_laggards();
        self.look_at_held(usize::MAX);
        self.free(chunks)
    }
}

/// Do `ops` to another version of the table, and leave them empty.
fn replay<T>(table: &mut Table<Cached<T>>, ops: &mut Vec<Operation<T>>, stamp: u64) {
    let mut rest = ops.drain(..);
    loop {
        let window = rest.as_slice();
        let window = window.len().min(READ_AHEAD);
        if window == 0 {
            return;
        }
        table.read_ops_ahead(&rest.as_slice()[..window]);
        for op in rest.by_ref().take(window) {
            table.replay(op, stamp);
        }
    }
}
