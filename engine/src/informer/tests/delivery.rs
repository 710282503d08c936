//! Delivery: each handler at its own pace, removal, and whom a slow one can hold up.
use super::cluster::{Cluster, Pod};
use super::recorder::{Fold, Recorder};
use super::{SOON, content, informer, lossless, settle, started};
use crate::informer::{
    Event, HandlerOptions, OwnHandler, PastLimit, Policy, Registration, async_handler_fn,
    handler_fn,
};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

#[tokio::test(start_paused = true)]
async fn c064_removing_a_handler_frees_its_task_and_buffers() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let tasks = informer.crew_size();
    for round in 0..1000 {
        let recorder = Recorder::default();
        let registration = informer.add_handler(recorder.handler()).unwrap();
        assert!(registration.synced().await);
        assert_eq!(recorder.len(), 2);
        if round % 2 == 0 {
            registration.remove_and_wait().await.unwrap();
            registration.remove();
            registration.remove_and_wait().await.unwrap();
            assert!(registration.status().removed);
            cluster.put("a", "z1");
            settle().await;
            assert_eq!(recorder.len(), 2, "nothing more");
        } else {
            drop(registration);
        }
    }
    settle().await;
    assert_eq!(informer.crew_size(), tasks);
    assert!(informer.status().handlers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn c065_a_handler_removed_before_the_informer_starts() {
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster).build();
    let (first, second) = (Recorder::default(), Recorder::default());
    let removed = informer.add_handler(first.handler()).unwrap();
    let _stays = informer.add_handler(second.handler()).unwrap();
    removed.remove_and_wait().now_or_never().unwrap().unwrap();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    settle().await;
    assert_eq!(first.len(), 0);
    assert_eq!(second.take(), ["ADD*(a@1)"]);
}

/// I-S1: also C062's "never two at once".
#[test]
fn c067_delivery_to_one_handler_is_sequential_and_single() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        for round in 0..200 {
            let cluster = Cluster::with(&["a", "b", "c"]);
            let informer = informer(&cluster).build();
            let (entered, calls) = (Arc::new(AtomicBool::new(false)), Recorder::default());
            let handler = {
                let (entered, calls) = (entered.clone(), calls.clone());
                handler_fn(move |event: Event<Pod>| {
                    assert!(!entered.swap(true, Ordering::SeqCst), "entered twice");
                    calls.push(&event);
                    assert!(entered.swap(false, Ordering::SeqCst));
                })
            };
            let starter = {
                let informer = informer.clone();
                tokio::spawn(async move { informer.start() })
            };
            let registration = informer.add_handler(handler).unwrap();
            starter.await.unwrap().unwrap();
            assert!(registration.synced().await);
            informer.stop().await;
            assert_eq!(registration.status().panics, 0, "round {round}");
            assert_eq!(calls.len(), 3, "round {round}: each once");
        }
    });
}

/// A blocked handler has more than a thousand changes waiting, in order and without loss.
#[tokio::test(start_paused = true)]
async fn c069_more_than_a_thousand_waiting_notifications() {
    const OBJECTS: usize = 5_000;
    let cluster = Cluster::default();
    for number in 0..OBJECTS {
        cluster.put(&format!("p{number:05}"), "z1");
    }
    let informer = informer(&cluster).build();
    let gate = Arc::new(Semaphore::new(0));
    let mut handlers = Vec::new();
    for policy in [Policy::Unbounded, Policy::Coalesce] {
        let fold = Arc::new(Mutex::new(Fold::default()));
        let handler = {
            let (gate, fold) = (gate.clone(), fold.clone());
            async_handler_fn(move |event: Event<Pod>| {
                let (gate, fold) = (gate.clone(), fold.clone());
                async move {
                    let _open = gate.acquire().await.unwrap();
                    fold.lock().hear(&event);
                }
            })
        };
        let options = HandlerOptions::default().policy(policy);
        let registration = informer.add_async_handler(&options, handler).unwrap();
        handlers.push((fold, registration));
    }
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    for number in 0..5_000 {
        cluster.put(&format!("p{:05}", number % 500), "z2");
    }
    settle().await;
    assert_eq!(
        content(&informer),
        cluster.names(),
        "complete while blocked"
    );
    gate.add_permits(1);
    settle().await;
    for (fold, registration) in handlers {
        let fold = fold.lock();
        assert_eq!(fold.content(), cluster.names());
        assert_eq!((fold.adds, fold.deletes), (OBJECTS, 0));
        match registration.status().policy {
            Policy::Unbounded => assert_eq!(fold.updates, 5_000),
            _ => assert!(fold.updates <= 1_000, "coalesced: {}", fold.updates),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c070_a_subscriber_that_is_never_read_holds_up_nobody() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let unread = informer.subscribe(&HandlerOptions::default()).unwrap();
    let mut read = informer.subscribe(&lossless()).unwrap();
    let reader = tokio::spawn(async move {
        let mut fold = Fold::default();
        while fold.updates < 10_000 {
            let Some(event) = read.next().await else {
                break;
            };
            fold.hear(&event);
        }
        fold
    });
    for _ in 0..10_000 {
        cluster.put("a", "z1");
    }
    let fold = reader.await.unwrap();
    assert_eq!((fold.adds, fold.updates), (2, 10_000));
    assert_eq!(content(&informer), cluster.names());
    let waiting = unread.registration().status().waiting;
    assert!(waiting <= 100, "bounded, visibly: {waiting}");
    drop(unread);
    assert!(informer.status().handlers.is_empty());
}

/// I-S9, I-S10: no call begins after removal; the waiting form outlasts the call in flight.
#[tokio::test(start_paused = true)]
async fn removal_waits_for_the_call_in_flight_and_for_no_more() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let gate = Arc::new(Semaphore::new(0));
    let recorder = Recorder::default();
    let handler = {
        let (gate, recorder) = (gate.clone(), recorder.clone());
        async_handler_fn(move |event: Event<Pod>| {
            let (gate, recorder) = (gate.clone(), recorder.clone());
            async move {
                gate.acquire().await.unwrap().forget();
                recorder.push(&event);
            }
        })
    };
    let registration = informer
        .add_async_handler(&HandlerOptions::default(), handler)
        .unwrap();
    settle().await;
    registration.remove();
    settle().await;
    assert_eq!(recorder.len(), 0, "the first call is still inside");
    let mut waiting = Box::pin(registration.remove_and_wait());
    assert!((&mut waiting).now_or_never().is_none());
    gate.add_permits(10);
    waiting.await.unwrap();
    assert_eq!(recorder.len(), 1, "the one in flight, and none after it");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_its_own_end_is_told_so() {
    let cluster = Cluster::with(&["a"]);
    let informer = started(&cluster).await;
    let own = Arc::new(Mutex::new(None::<Registration<Pod>>));
    let outcome = Arc::new(Mutex::new(None));
    let handler = {
        let (own, outcome) = (own.clone(), outcome.clone());
        async_handler_fn(move |_event: Event<Pod>| {
            let (own, outcome) = (own.clone(), outcome.clone());
            async move {
                let registration = own.lock().take().expect("put there before");
                *outcome.lock() = Some(registration.remove_and_wait().await);
            }
        })
    };
    let registration = informer
        .add_async_handler(&HandlerOptions::default(), handler)
        .unwrap();
    *own.lock() = Some(registration);
    settle().await;
    assert_eq!(*outcome.lock(), Some(Err(OwnHandler)));
    assert!(informer.status().handlers.is_empty());
}

/// C075, smaller in the number of objects.
#[tokio::test(start_paused = true)]
async fn c075_thousands_of_handlers() {
    const HANDLERS: usize = 2_000;
    const OBJECTS: usize = 50;
    let cluster = Cluster::default();
    for number in 0..OBJECTS {
        cluster.put(&format!("p{number}"), "z1");
    }
    let informer = started(&cluster).await;
    let tasks = informer.crew_size();
    let calls = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let handler = {
        let calls = calls.clone();
        handler_fn(move |event: Event<Pod>| {
            match event {
                Event::Added { .. } => &calls.0,
                _ => &calls.1,
            }
            .fetch_add(1, Ordering::SeqCst);
        })
    };
    // The same handler value many times: as many registrations.
    let registrations: Vec<_> = (0..HANDLERS)
        .map(|_| informer.add_handler(handler.clone()).unwrap())
        .collect();
    settle().await;
    for number in 0..OBJECTS {
        cluster.put(&format!("p{number}"), "z2");
    }
    settle().await;
    let expected = HANDLERS * OBJECTS;
    assert_eq!(calls.0.load(Ordering::SeqCst), expected);
    assert_eq!(calls.1.load(Ordering::SeqCst), expected);
    drop(registrations);
    settle().await;
    assert_eq!(informer.crew_size(), tasks);
}

/// I-S12: a handler that blocks its thread for ever, on a thread of its own.
#[tokio::test(start_paused = true)]
async fn a_blocked_handler_delays_neither_the_cache_nor_others() {
    let cluster = Cluster::with(&["a"]);
    let informer = started(&cluster).await;
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let stuck = informer
        .add_handler_with(
            &HandlerOptions::named("stuck").dedicated_thread(),
            handler_fn(move |_event: Event<Pod>| {
                let _ = blocked.recv();
            }),
        )
        .unwrap();
    let (fold, handler) = Fold::shared();
    let _other = informer.add_handler(handler).unwrap();
    for _ in 0..1_000 {
        cluster.put("a", "z1");
        tokio::task::yield_now().await;
    }
    settle().await;
    assert_eq!(content(&informer), cluster.names());
    assert_eq!(fold.lock().content(), cluster.names());
    assert!(!stuck.has_synced());
    assert!(stuck.status().waiting <= 100, "bounded by its keys");
    drop(release);
    assert!(stuck.remove_and_wait().await.is_ok());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_asked_to_block_delays_the_cache_and_is_let_go_by_removal() {
    let cluster = Cluster::with(&[]);
    let informer = started(&cluster).await;
    let blocking = HandlerOptions::default().policy(Policy::lossless(2, PastLimit::Block));
    let unread = informer.subscribe(&blocking).unwrap();
    for _ in 0..10 {
        cluster.put("a", "z1");
        settle().await;
    }
    assert_eq!(content(&informer), ["a@13"], "two, and one batch more");
    assert_eq!(unread.registration().status().waiting, 3);
    drop(unread);
    settle().await;
    assert_eq!(content(&informer), cluster.names());
    tokio::time::sleep(Duration::from_secs(1)).await;
}
