//! The write side: one writer, which applies batches.
use super::applied::{Applied, IndexFailure};
use super::apply::{Log, Positions, Preparation};
use super::builder::IndexDeclaration;
use super::index::{IndexConflict, UnknownIndex};
use super::owners::Owners;
use super::publish::{Drivers, Operation, Publisher};
use super::read::{Indexer, Shared};
use super::view::View;
use crate::delta::Batch;
use std::fmt;
use std::sync::Arc;

/// Chunks of stale versions that one call of [`IndexWriter::maintain`] frees at the most: about a
/// hundred microseconds.
const CHUNKS_PER_MAINTENANCE: usize = 256;

/// The only writer of a cache. It cannot be cloned; dropping it stops the cache: readers keep
/// what was published last, and waiters are told.
///
/// ```compile_fail
/// # use informant::indexer::{IndexWriter, Indexer};
/// let (_, writer) = Indexer::<String>::builder().build();
/// let second: IndexWriter<String> = writer.clone(); // there is one writer
/// ```
pub struct IndexWriter<T: Send + Sync + 'static> {
    shared: Arc<Shared<T>>,
    publisher: Publisher<T>,
    drivers: Drivers<T>,
    owners: Owners,
    positions: Positions,
    effective: bool,
}

impl<T: Send + Sync + 'static> IndexWriter<T> {
    pub(super) fn new(
        shared: Arc<Shared<T>>,
        publisher: Publisher<T>,
        drivers: Drivers<T>,
    ) -> Self {
        Self {
            shared,
            publisher,
            drivers,
            owners: Owners::default(),
            positions: Positions::default(),
            effective: false,
        }
    }

    /// A read handle of this cache.
    #[must_use]
    pub fn indexer(&self) -> Indexer<T> {
        Indexer {
            shared: self.shared.clone(),
        }
    }

    /// Ask for every effective delta in [`Applied::effective`], not only the net changes.
    pub fn set_effective(&mut self, effective: bool) {
        self.effective = effective;
    }

    /// Apply a batch and publish what comes of it, as one new version. Index functions run in here,
    /// once for each new object version, outside any lock; one that fails or panics poisons the
    /// object for its index and nothing else.
    ///
    /// Time is proportional to what the batch changes (for a relist: to the list), never to the
    /// number of readers or of held snapshots.
    pub fn apply(&mut self, batch: Batch<T>) -> Applied<T> {
        let hasher = self.publisher.current().table.hasher();
        let next = batch.first_key().map(|key| hasher.hash_one(key));
        let mut version = self.publisher.prepare(&self.drivers, next);
        let limit = self.publisher.batch_limit();
        for driver in self.drivers.iter_mut().flatten() {
            driver.begin(limit);
        }
        let view = unpublished(&mut version);
        let preparation = Preparation::new(
            view,
            &mut self.drivers,
            &mut self.owners,
            self.shared.freshness.versioning,
            self.effective,
            Log::new(limit, self.publisher.empty_ops()),
            std::mem::take(&mut self.positions),
        );
        let (log, applied, positions) = preparation.run(batch);
        self.positions = positions;
        self.publish(version, log.finish());
        applied
    }

    fn publish(&mut self, version: Arc<View<T>>, ops: Option<Vec<Operation<T>>>) {
        let shared = &self.shared;
        #[cfg(informant_mutant = "wake_before_swap")]
        return (
            shared.freshness.published(&version.versions),
            self.publisher
                .publish(&shared.root, version, ops, &mut self.drivers),
        )
            .1;
        self.publisher
            .publish(&shared.root, version, ops, &mut self.drivers);
        shared
            .freshness
            .published(self.publisher.current().versions());
    }

    /// Add an index to the running cache. It is built aside and published whole: no reader sees it
    /// half built. O(objects), while readers go on.
    ///
    /// Returns the objects on which its function failed.
    ///
    /// # Errors
    /// [`IndexConflict`] when the name is taken; nothing is changed then.
    pub fn add_index(
        &mut self,
        index: IndexDeclaration<T>,
    ) -> Result<Vec<IndexFailure>, IndexConflict> {
        if self.position(&index.name).is_some() {
            return Err(IndexConflict {
                name: index.name.to_string(),
            });
        }
        let mut version = self.publisher.prepare(&self.drivers, None);
        let view = unpublished(&mut version);
        view.sequence += 1;
        let mut driver = (index.make)(view.table.hasher().clone());
        let mut part = driver.new_part();
        let mut failures = Vec::new();
        for (slot, object) in view.table.slots() {
            if let Err(reason) = driver.set(&mut *part, slot, object, view.sequence) {
                failures.push(IndexFailure {
                    index: index.name.clone(),
                    key: object.key().clone(),
                    resource_version: object.resource_version().clone(),
                    reason,
                });
            }
        }
        view.indexes.push(Some(part));
        self.drivers.push(Some(driver));
        self.publish(version, None);
        Ok(failures)
    }

    /// Remove an index from the running cache. Snapshots that have it keep it.
    ///
    /// # Errors
    /// [`UnknownIndex`] when there is none of this name; nothing is changed then.
    pub fn remove_index(&mut self, name: &str) -> Result<(), UnknownIndex> {
        let Some(position) = self.position(name) else {
            return Err(UnknownIndex::NotFound {
                name: name.to_owned(),
                present: self
                    .publisher
                    .current()
                    .index_names()
                    .map(str::to_owned)
                    .collect(),
            });
        };
        let mut version = self.publisher.prepare(&self.drivers, None);
        let view = unpublished(&mut version);
        view.sequence += 1;
        // The position stays empty, so that handles of other indexes keep theirs.
        view.indexes[position] = None;
        self.drivers[position] = None;
        self.publish(version, None);
        Ok(())
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.drivers.iter().position(|driver| {
            driver
                .as_ref()
                .is_some_and(|driver| &**driver.name() == name)
        })
    }

    /// Do a slice of housekeeping: bring the spare versions up to date, so that they let go of
    /// replaced objects, and free what is stale. Call it now and then when nothing is published
    /// (the informer does, on its timer). True when nothing is left to do.
    pub fn maintain(&mut self) -> bool {
        self.publisher
            .maintain(&mut self.drivers, CHUNKS_PER_MAINTENANCE)
    }
}

/// The version that is being prepared, to be changed: nobody else can have it.
fn unpublished<T>(version: &mut Arc<View<T>>) -> &mut View<T> {
    Arc::get_mut(version).expect("a prepared version is the writer's alone")
}

impl<T: Send + Sync + 'static> Drop for IndexWriter<T> {
    fn drop(&mut self) {
        self.shared.freshness.stop();
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for IndexWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexWriter({:?})", self.publisher.current())
    }
}
