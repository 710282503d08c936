//! Loom models of publication.
//!
//! Modelled: the writer's publish, recycle and reclaim, against readers that load a guard, own a
//! snapshot, keep it and drop it; waits for a version; an index added while readers query.
//! Left out: `arc-swap` itself (the root cell is a locked pointer under loom) and the memory
//! orderings inside `Arc`; a thread switch happens where a modelled lock or atomic is touched.
//!
//! Mutants that these models kill (`--cfg informant_mutant="NAME"`): `skip_replay`,
//! `replay_gap`, `index_not_replayed`, `reader_frees`, `wake_before_swap`, `look_once`.
use super::{IndexDeclaration, IndexWriter, Indexer, View};
use crate::delta::{Batch, Delta, KeyDeltas, SourceId, Step};
use crate::object::{Cached, Incoming, Meta, ResourceVersion};
use crate::sync::block_on;
use loom::thread;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Number = u64;

fn indexer() -> (Indexer<Number>, IndexWriter<Number>) {
    Indexer::builder()
        .hash_seed(1)
        .index("number", |object: &Cached<Number>| Some(**object))
        .build()
}

/// Both objects go to the same number in one batch, so that half a batch would show; a third one
/// stays behind at every third number, so that a batch which was not replayed shows.
fn batch(number: Number) -> Batch<Number> {
    let object = |name| {
        let meta = Meta::new("ns", name, "u", &number.to_string()).unwrap();
        KeyDeltas {
            source: SourceId(0),
            deltas: smallvec::smallvec![Delta::Updated(Incoming::new(meta, number).into())],
        }
    };
    Batch {
        steps: vec![Step::Changes(if number % 3 == 0 {
            vec![object("a"), object("b"), object("c")]
        } else {
            vec![object("a"), object("b")]
        })],
        versions: smallvec::smallvec![(SourceId(0), ResourceVersion::from(number))],
        inputs: 2,
    }
}

/// Objects, index and version of one view agree.
fn check(view: &View<Number>) {
    let number = view.resource_version().as_number().expect("published");
    let index = view.index::<Number>("number").unwrap();
    assert_eq!(**view.get("ns/a").unwrap(), number);
    assert_eq!(**view.get("ns/b").unwrap(), number);
    let third = number / 3 * 3;
    assert_eq!(view.get("ns/c").map(|c| **c), (third > 0).then_some(third));
    let together = if third == number { 3 } else { 2 };
    assert_eq!(view.by_index(&index, &number).unwrap().len(), together);
    assert_eq!(
        view.index_values(&index).unwrap().len(),
        1 + usize::from(third != number && third > 0)
    );
}

#[test]
fn a_reader_sees_whole_versions_that_never_change_and_never_go_back() {
    loom::model(|| {
        let (indexer, mut writer) = indexer();
        writer.apply(batch(1));
        let reader = thread::spawn({
            let indexer = indexer.clone();
            move || {
                let held = indexer.snapshot();
                let before = held.resource_version();
                check(&held);
                let guard = indexer.load();
                check(&guard);
                assert!(guard.sequence() >= held.sequence());
                drop(guard);
                check(&indexer.load());
                check(&held);
                assert_eq!(held.resource_version(), before);
            }
        });
        for number in 2..6 {
            writer.apply(batch(number));
        }
        reader.join().unwrap();
        // Alone again: the recycled versions must have caught up exactly.
        for number in 6..9 {
            writer.apply(batch(number));
            check(&indexer.load());
        }
    });
}

/// Where a `Tracked` is dropped while a reader lets go of its snapshot.
static READER_DROPS: AtomicBool = AtomicBool::new(false);
static FREED_BY_READER: AtomicUsize = AtomicUsize::new(0);

struct Tracked;

impl Drop for Tracked {
    fn drop(&mut self) {
        if READER_DROPS.load(Ordering::Relaxed) {
            FREED_BY_READER.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_readers_last_drop_frees_no_object() {
    let update = |number: u64| {
        let meta = Meta::new("ns", "a", "u", &number.to_string()).unwrap();
        Batch::of(
            SourceId(0),
            Delta::Updated(Incoming::new(meta, Tracked).into()),
        )
    };
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        FREED_BY_READER.store(0, Ordering::Relaxed);
        let (indexer, mut writer) = Indexer::<Tracked>::builder().hash_seed(1).build();
        writer.apply(update(1));
        let reader = thread::spawn({
            let indexer = indexer.clone();
            move || {
                let held = indexer.snapshot();
                // A switch is possible here: the writer may publish any number of versions.
                drop(indexer.load());
                READER_DROPS.store(true, Ordering::Relaxed);
                drop(held);
                READER_DROPS.store(false, Ordering::Relaxed);
            }
        });
        for number in 2..14 {
            writer.apply(update(number));
        }
        reader.join().unwrap();
        assert_eq!(FREED_BY_READER.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn a_wait_for_a_version_never_misses_it() {
    loom::model(|| {
        let (indexer, mut writer) = indexer();
        let waiter = thread::spawn({
            let indexer = indexer.clone();
            move || {
                block_on(indexer.wait_for(&ResourceVersion::from(2))).unwrap();
                assert!(indexer.load().resource_version().as_number() >= Some(2));
            }
        });
        writer.apply(batch(1));
        writer.apply(batch(3));
        waiter.join().unwrap();
    });
}

#[test]
fn a_stop_ends_every_wait() {
    loom::model(|| {
        let (indexer, writer) = indexer();
        let waiter = thread::spawn(move || {
            block_on(indexer.wait_for(&ResourceVersion::from(9))).unwrap_err();
        });
        drop(writer);
        waiter.join().unwrap();
    });
}

#[test]
fn an_index_added_while_readers_query_is_never_seen_half_built() {
    loom::model(|| {
        let (indexer, mut writer) = indexer();
        writer.apply(batch(1));
        let reader = thread::spawn({
            let indexer = indexer.clone();
            move || {
                for _ in 0..2 {
                    let view = indexer.snapshot();
                    if let Ok(late) = view.index::<bool>("late") {
                        assert_eq!(view.by_index(&late, &true).unwrap().len(), view.len());
                    }
                    check(&view);
                }
            }
        });
        writer.apply(batch(2));
        writer
            .add_index(IndexDeclaration::new("late", |_: &Cached<Number>| {
                Some(true)
            }))
            .unwrap();
        writer.apply(batch(3));
        writer.apply(batch(4));
        reader.join().unwrap();
        let late = indexer.index::<bool>("late").unwrap();
        assert_eq!(indexer.load().by_index(&late, &true).unwrap().len(), 3);
    });
}

#[test]
fn a_version_that_lags_behind_the_log_is_never_used_again() {
    // One thread, many patterns of holding and letting go, with the log as short as in all models.
    for seed in 0..50 {
        loom::model(move || {
            let mut random = fastrand::Rng::with_seed(seed);
            let (indexer, mut writer) = indexer();
            let mut held = Vec::new();
            for number in 1..40 {
                writer.apply(batch(number));
                check(&indexer.load());
                if random.u8(0..2) == 0 {
                    held.push(indexer.snapshot());
                }
                if !held.is_empty() && random.u8(0..3) != 0 {
                    let at = random.usize(0..held.len());
                    check(&held.swap_remove(at));
                }
            }
        });
    }
}
