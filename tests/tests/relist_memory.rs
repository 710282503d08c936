//! What a relist holds beside the cache, counted by the allocator: a test alone in its process.
use informant::informer::SharedInformer;
use informant::source::memory::{MemorySource, Write};
use informant::source::{ListOptions, ListWatch};
use informant::{Cached, ObjectKey};
use peak_alloc::PeakAlloc;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const OBJECTS: usize = 160_000;
const CHANGED: usize = 1_000;
/// The list's own pointers while it grows, and the tables of the next version, of which a thousand
/// changes that are spread evenly leave nothing to share: seven words an object together.
const POINTERS: usize = 7 * size_of::<usize>() * OBJECTS;
const SLACK: usize = 1 << 20;

fn key(number: usize) -> ObjectKey {
    ObjectKey::new("default", &format!("object-{number:06}")).expect("a valid key")
}

async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// A relist of 160,000 objects, of which a thousand have changed, holds what was listed once, and
/// pointers; when it is applied, what has not changed is gone again.
#[test]
fn c038_a_relist_of_160k_objects_holds_one_list_and_a_set_of_pointers() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread needs nothing");
    runtime.block_on(async {
        let source = MemorySource::<u64>::new();
        source.write_all((0..OBJECTS).map(|number| Write::Create(key(number), 1)));
        let informer = SharedInformer::builder(source.clone()).build();
        informer.start().expect("a first start");
        let synced = informer.wait_for_sync(Duration::from_secs(60)).await;
        synced.expect("nothing keeps it");
        pass(60_000).await;

        let before = ALLOCATOR.current_usage();
        let list = source.list(ListOptions::default()).await.expect("no fault");
        let listed: Vec<Cached<u64>> = list.items.into_iter().flatten().map(Cached::from).collect();
        assert_eq!(listed.len(), OBJECTS);
        let one_list = ALLOCATOR.current_usage() - before;
        drop(listed);

        // Told to nobody, so that only the relist shows them.
        source.hold_frames();
        source.write_all((0..CHANGED).map(|number| Write::Upsert(key(number), 2)));
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        informer.reflectors()[0].1.relist();
        pass(60_000).await;
        let peak = ALLOCATOR.peak_usage() - before;
        let lasting = ALLOCATOR.current_usage().saturating_sub(before);
        println!("one list: {one_list} bytes; peak of the relist: {peak}; lasting: {lasting}");
        assert_eq!(informer.reflectors()[0].1.metrics().lists, 2);
        assert!(
            informer.get(&key(0)).is_some_and(|object| *object == 2),
            "it was applied"
        );
        assert!(peak <= one_list + POINTERS + SLACK, "{peak} bytes");
        let changed = one_list / OBJECTS * CHANGED;
        assert!(lasting <= 2 * changed + SLACK, "{lasting} bytes");
        informer.stop().await;
    });
}
