//! Many threads: nothing is lost, nothing is handed out twice at once.
use super::super::{Delayed, Drained, WorkQueue, WorkQueueConfig};
use crate::clock::StdClock;
use crate::sync::block_on;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const KEYS: usize = 64;
const PRODUCERS: usize = 4;
const WORKERS: usize = 4;
const ADDS: usize = 5_000;

/// I-W2, I-W5: after the drain, every key was worked on after its last add.
#[test]
fn no_key_is_lost_or_doubled_under_contention() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let queue = WorkQueue::<usize>::new(WorkQueueConfig::new(Arc::new(StdClock::new())));
    let running: Vec<AtomicBool> = (0..KEYS).map(|_| AtomicBool::new(false)).collect();
    // Bumped before an add, read by the worker after the hand-out.
    let added: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let worked: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let drain = std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (queue, running, added, worked) = (&queue, &running, &added, &worked);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + 1000 + worker as u64);
                while let Ok(item) = queue.get_blocking() {
                    let key = *item;
                    assert!(
                        !running[key].swap(true, Ordering::SeqCst),
                        "two workers on {key}"
                    );
                    worked[key].fetch_max(added[key].load(Ordering::SeqCst), Ordering::SeqCst);
                    if random.u8(..) < 8 {
                        std::thread::yield_now();
                    }
                    running[key].store(false, Ordering::SeqCst);
                    match random.u8(..) {
                        0..4 => item.requeue(),
                        4..8 => item.requeue_after(Duration::from_micros(random.u64(..200))),
                        _ => item.done(),
                    }
                }
            });
        }
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let (queue, added) = (&queue, &added);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed + producer as u64);
                    for _ in 0..ADDS {
                        let key = random.usize(..KEYS);
                        added[key].fetch_add(1, Ordering::SeqCst);
                        match random.u8(..) {
                            0..32 => queue.add_after(key, Duration::from_micros(random.u64(..500))),
                            32..40 => drop(futures_util::FutureExt::now_or_never(queue.get())),
                            _ => queue.add(key),
                        }
                        if random.u8(..) == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        for (key, added) in added.iter().enumerate() {
            added.fetch_add(1, Ordering::SeqCst);
            queue.add(key);
        }
        queue.shut_down_with_drain(Delayed::Deliver)
    });
    assert_eq!(block_on(drain), Drained::Complete);
    for key in 0..KEYS {
        assert_eq!(
            worked[key].load(Ordering::SeqCst),
            added[key].load(Ordering::SeqCst),
            "key {key} was added after it was last worked on"
        );
    }
    let metrics = queue.metrics();
    assert_eq!(metrics.gets, metrics.done);
    assert_eq!(
        (metrics.ready, metrics.in_flight, metrics.delayed),
        (0, 0, 0)
    );
    assert_eq!(metrics.waiting_workers, 0);
}
