//! Controllers on the embedded source, in virtual time.
use super::{Action, Controller};
use crate::informer::SharedInformer;
use crate::object::{Cached, ObjectKey};
use crate::source::memory::MemorySource;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name).unwrap()
}

/// How often each key was reconciled.
#[derive(Clone, Default)]
struct Tally(Arc<Mutex<HashMap<String, u32>>>);

impl Tally {
    fn count(&self, key: &ObjectKey) -> u32 {
        let mut tally = self.0.lock().unwrap();
        let count = tally.entry(key.name().to_owned()).or_default();
        *count += 1;
        *count
    }

    fn of(&self, name: &str) -> u32 {
        self.0.lock().unwrap().get(name).copied().unwrap_or(0)
    }
}

/// Let everything that can run now, run.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_delays_and_forgotten_after_a_success() {
    let source = MemorySource::<u32>::new();
    source.create(key("a"), 0).unwrap();
    let informer = SharedInformer::builder(source.clone()).build();
    informer.start().unwrap();
    let tally = Tally::default();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let (counted, seen) = (tally.clone(), errors.clone());
    let controller = Controller::builder("flaky")
        .watch(&informer)
        .on_error(move |error| {
            seen.lock()
                .unwrap()
                .push((error.retries, error.reason.clone()));
        })
        .run(move |key| {
            let attempt = counted.count(&key);
            async move {
                match attempt {
                    1 => Err("not yet"),
                    2 => panic!("worse"),
                    _ => Ok(Action::AwaitChange),
                }
            }
        })
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(tally.of("a"), 3);
    assert_eq!(
        *errors.lock().unwrap(),
        [(1, "not yet".to_owned()), (2, "panicked: worse".to_owned())]
    );
    let metrics = controller.metrics();
    assert_eq!(
        (metrics.succeeded, metrics.failed, metrics.panicked),
        (1, 2, 1)
    );
    assert_eq!(controller.queue().retries(&key("a")), 0);
    controller.stop().await;
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn owners_of_both_states_are_reconciled_and_a_requeue_comes_at_its_time() {
    let source = MemorySource::<String>::new();
    source.create(key("child"), "one".to_owned()).unwrap();
    let informer = SharedInformer::builder(source.clone()).build();
    informer.start().unwrap();
    let tally = Tally::default();
    let counted = tally.clone();
    let controller = Controller::builder("owners")
        .owns(&informer, |child: &Cached<String>| Some(key(child)))
        .run(move |owner| {
            let first = counted.count(&owner) == 1;
            async move {
                Ok::<_, String>(if first {
                    Action::RequeueAfter(Duration::from_secs(10))
                } else {
                    Action::AwaitChange
                })
            }
        })
        .unwrap();
    settle().await;
    assert_eq!((tally.of("one"), tally.of("two")), (1, 0));
    source
        .update(&key("child"), None, "two".to_owned())
        .unwrap();
    settle().await;
    assert_eq!((tally.of("one"), tally.of("two")), (2, 1));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((tally.of("one"), tally.of("two")), (3, 2));
    source.delete(&key("child"), None).unwrap();
    settle().await;
    assert_eq!((tally.of("one"), tally.of("two")), (3, 3));
    controller.stop().await;
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_reconciles_what_is_queued_and_in_flight_to_its_end() {
    let source = MemorySource::<u32>::new();
    (0..20).for_each(|n| drop(source.create(key(&format!("o{n}")), n).unwrap()));
    let informer = SharedInformer::builder(source.clone()).build();
    informer.start().unwrap();
    let tally = Tally::default();
    let counted = tally.clone();
    let controller = Controller::builder("slow")
        .watch(&informer)
        .workers(3)
        .run(move |key| {
            let counted = counted.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                counted.count(&key);
                Ok::<_, String>(Action::RequeueAfter(Duration::from_secs(3600)))
            }
        })
        .unwrap();
    settle().await;
    controller.stop().await;
    assert!((0..20).all(|n| tally.of(&format!("o{n}")) == 1));
    informer.stop().await;
}
