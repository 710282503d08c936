//! Readers that never stop while the demo runs, and look whether what they see is of one moment.
use super::model::{Phase, Pod};
use informant::ObjectKey;
use informant::indexer::Indexer;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const BURST: usize = 2_000;
/// Bursts between two looks at a whole snapshot.
const BURSTS_PER_LOOK: usize = 50;

/// What the readers count.
#[derive(Default)]
pub(super) struct Reads {
    /// Reads by key.
    pub(super) gets: AtomicU64,
    pub(super) snapshots: AtomicU64,
    /// Snapshots in which objects and indexes disagreed.
    pub(super) torn: AtomicU64,
    pub(super) stop: AtomicBool,
}

/// Read until told to stop. A pause after each burst leaves the processor to the pipeline, which
/// the demo is about.
pub(super) fn read(cache: &Indexer<Pod>, keys: &[ObjectKey], seed: u64, reads: &Reads) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut bursts = 0;
    let mut found = 0_usize;
    while !reads.stop.load(Ordering::Relaxed) {
        if !keys.is_empty() {
            for _ in 0..BURST {
                let key = &keys[rng.usize(..keys.len())];
                found += usize::from(cache.load().get(key).is_some());
            }
            reads.gets.fetch_add(BURST as u64, Ordering::Relaxed);
        }
        bursts += 1;
        if bursts % BURSTS_PER_LOOK == 0 {
            reads.snapshots.fetch_add(1, Ordering::Relaxed);
            if is_torn(cache) {
                reads.torn.fetch_add(1, Ordering::Relaxed);
            }
        }
        thread::sleep(Duration::from_micros(500));
    }
    // The reads are for something, so that none is optimised away.
    std::hint::black_box(found);
}

/// Every pod has one phase and one namespace, so each index must count all of them.
fn is_torn(cache: &Indexer<Pod>) -> bool {
    let snapshot = cache.snapshot();
    let sum = |index: &str| -> Option<usize> {
        let values = snapshot.index_values_by_name(index).ok()?;
        Some(values.map(|(_, objects)| objects.len()).sum())
    };
    let mut phases = Phase::ALL.iter().map(|phase| {
        snapshot
            .by_index_name("phase", phase.name())
            .is_ok_and(|pods| pods.take(64).all(|pod| pod.phase == *phase))
    });
    sum("phase") != Some(snapshot.len())
        || sum("namespace") != Some(snapshot.len())
        || !phases.all(|agrees| agrees)
}
