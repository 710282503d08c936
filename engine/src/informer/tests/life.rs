//! Starting, waiting, stopping.
use super::cluster::{Cluster, Pod, show};
use super::recorder::Recorder;
use super::{SOON, content, informer, settle, started};
use crate::indexer::{IndexDeclaration, WaitError};
use crate::informer::{
    AddHandlerError, AddIndexError, Event, HandlerOptions, NotSyncedReason, SharedInformer,
    StartError, Transform, Transformed, async_handler_fn, handler_fn,
};
use crate::source::{ApiStatus, Selectors, SourceError};
use crate::stop::StopToken;
use crate::sync::{AtomicBool, Ordering};
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn c066_handlers_added_from_many_threads_around_the_start() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    for round in 0..40 {
        let cluster = Cluster::with(&["a", "b"]);
        let informer = informer(&cluster).build();
        let go = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..32)
            .map(|number| {
                let (informer, go) = (informer.clone(), go.clone());
                std::thread::spawn(move || {
                    while !go.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                    let recorder = Recorder::default();
                    let registration = informer.add_handler(recorder.handler()).unwrap();
                    (number % 2 == 0).then_some((registration, recorder))
                })
            })
            .collect();
        runtime.block_on(async {
            go.store(true, Ordering::SeqCst);
            informer.start().unwrap();
            for thread in threads {
                let Some((registration, recorder)) = thread.join().unwrap() else {
                    continue;
                };
                assert!(registration.synced().await);
                let mut told = recorder.take();
                told.sort();
                assert_eq!(told, ["ADD*(a@1)", "ADD*(b@2)"], "round {round}");
            }
            informer.stop().await;
        });
    }
}

/// I-S11, I-S14.
#[tokio::test(start_paused = true)]
async fn c068_adding_to_a_stopped_informer() {
    let cluster = Cluster::with(&["a"]);
    let informer = started(&cluster).await;
    let registration = informer.add_handler(Recorder::default().handler()).unwrap();
    assert!(registration.synced().await);
    informer.stop().await;
    let error = informer
        .add_handler(Recorder::default().handler())
        .unwrap_err();
    assert!(matches!(error, AddHandlerError::Stopped { .. }));
    assert!(
        error.to_string().ends_with("has stopped already"),
        "{error}"
    );
    let index = IndexDeclaration::new("other", |pod: &crate::Cached<Pod>| [pod.zone.clone()]);
    let error = informer.add_index(index).await.unwrap_err();
    assert!(matches!(error, AddIndexError::Stopped { .. }));
    assert_eq!(content(&informer), ["a@1"], "what it holds stays readable");
    assert!(informer.has_synced() && registration.has_synced());
    assert_eq!(informer.crew_size(), 0);
    assert_eq!(cluster.watchers(), 0);
    registration.remove();
    registration.remove_and_wait().await.unwrap();
    let waited = informer.wait_for(&99.into()).await;
    assert_eq!(waited, Err(WaitError::Stopped));
}

/// I-S14, C028, C029 and W-S8.
#[tokio::test(start_paused = true)]
async fn an_informer_starts_once_and_stops_once() {
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster).build();
    let stop = StopToken::new();
    let run = {
        let (informer, stop) = (informer.clone(), stop.clone());
        tokio::spawn(async move { informer.run(stop).await })
    };
    informer.wait_for_sync(SOON).await.unwrap();
    assert!(matches!(
        informer.start(),
        Err(StartError::AlreadyStarted { .. })
    ));
    assert_eq!(
        cluster.lists().len(),
        1,
        "the first run goes on undisturbed"
    );
    stop.stop();
    run.await.unwrap().unwrap();
    assert!(matches!(informer.start(), Err(StartError::Stopped { .. })));
    tokio::join!(informer.stop(), informer.stop());
}

#[test]
fn a_start_without_a_runtime_is_an_error_and_can_be_repeated() {
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster).build();
    assert!(matches!(
        informer.start(),
        Err(StartError::NoRuntime { .. })
    ));
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(async {
            informer.start().unwrap();
            informer.wait_for_sync(SOON).await.unwrap();
            informer.stop().await;
        });
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_never_started_stops_at_once() {
    let informer = informer(&Cluster::with(&["a"])).build();
    let registration = informer.add_handler(Recorder::default().handler()).unwrap();
    let lister = informer.lister();
    let waiter = tokio::spawn(async move { lister.wait_for(&1.into()).await });
    tokio::task::yield_now().await;
    informer.stop().now_or_never().expect("nothing runs");
    assert_eq!(waiter.await.unwrap(), Err(WaitError::Stopped));
    assert!(!registration.synced().await);
    registration.remove_and_wait().await.unwrap();
    assert!(matches!(informer.start(), Err(StartError::Stopped { .. })));
    let error = informer.wait_for_sync(SOON).await.unwrap_err();
    assert!(matches!(error.reason, NotSyncedReason::Stopped));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_stops_everything() {
    let cluster = Cluster::with(&["a"]);
    let informer = started(&cluster).await;
    let lister = informer.lister();
    let registration = informer.add_handler(Recorder::default().handler()).unwrap();
    assert!(registration.synced().await);
    assert_eq!(cluster.watchers(), 1);
    drop(informer);
    registration.remove_and_wait().await.unwrap();
    settle().await;
    assert_eq!(cluster.watchers(), 0);
    assert!(lister.get("ns/a").is_some());
}

#[tokio::test(start_paused = true)]
async fn c074_settings_precede_the_start_by_type() {
    // The builder has the settings and the informer has none, so no setting can race with the run:
    // here the transform reaches each object, whatever its way into the cache (I-S13).
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster)
        .transform(Transform::new("shout", |pod: Pod| {
            Ok::<_, String>(Pod {
                zone: pod.zone.to_uppercase(),
            })
        }))
        .build();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    cluster.put("b", "z2");
    settle().await;
    cluster.disrupt(|cluster| {
        cluster.put("c", "z3");
    });
    tokio::time::sleep(SOON).await;
    let view = informer.snapshot();
    for (name, zone) in [("a", "Z1"), ("b", "Z2"), ("c", "Z3")] {
        assert_eq!(view.get(("ns", name)).unwrap().zone, zone);
        assert_eq!(view.by_index_name("zone", zone).unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_fails_quarantines_its_object_and_no_other() {
    let cluster = Cluster::with(&["a"]);
    cluster.put("bad", "z1");
    let length = Transform::new("length", |pod: Pod| match pod.zone.as_str() {
        "panic" => panic!("bad zone"),
        "z1" => Ok(pod.zone.len()),
        _ => Err("unknown zone"),
    });
    let source = Transformed::new(cluster.clone(), length);
    let informer: SharedInformer<usize> = SharedInformer::builder(source).build();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    assert_eq!(informer.get("ns/a").as_deref(), Some(&2));
    for zone in ["z9", "panic"] {
        let version = cluster.put("bad", zone);
        settle().await;
        let view = informer.snapshot();
        assert!(!view.is_complete());
        let quarantined: Vec<_> = view.quarantine().cloned().collect();
        assert_eq!(quarantined.len(), 1);
        assert_eq!(quarantined[0].failed_version, version.into());
        assert!(quarantined[0].reason.contains("length"), "{quarantined:?}");
        assert!(view.get("ns/bad").is_some(), "its last good state");
    }
    cluster.delete("bad");
    settle().await;
    assert!(informer.snapshot().is_complete());
    assert!(informer.get("ns/bad").is_none(), "deleted by its key");
}

#[tokio::test(start_paused = true)]
async fn c076_when_the_wait_returns_the_cache_is_full() {
    let cluster = Cluster::with(&["a", "b"]);
    cluster.delay_lists(Duration::from_secs(2));
    let informer = informer(&cluster).build();
    informer.start().unwrap();
    assert_eq!(content(&informer), [""; 0], "start returns early");
    assert!(!informer.has_synced());
    informer.wait_for_sync(SOON).await.unwrap();
    assert_eq!(content(&informer), ["a@1", "b@2"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_sync_says_what_it_hangs_on() {
    let cluster = Cluster::with(&["a"]);
    cluster.fail_lists(Some(SourceError::Api(ApiStatus::new(500, "Broken", "no"))));
    let informer = informer(&cluster).build();
    let error = informer.wait_for_sync(SOON).await.unwrap_err();
    assert!(matches!(error.reason, NotSyncedReason::NotStarted));
    informer.start().unwrap();
    let error = informer.wait_for_sync(SOON).await.unwrap_err();
    let NotSyncedReason::Sources(sources) = &error.reason else {
        panic!("{error}");
    };
    assert!(sources[0].last_error.is_some());
    assert!(error.to_string().contains("500"), "{error}");
    cluster.fail_lists(None);
    informer.wait_for_sync(2 * SOON).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn several_namespaces_feed_one_view_and_own_their_objects() {
    let cluster = Cluster::with(&["a", "b"]);
    let other = Cluster::with(&["c"]);
    let informer = informer(&cluster)
        .add_source(other.clone(), Selectors::default())
        .build();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    assert_eq!(content(&informer), ["a@1", "b@2", "c@1"]);
    other.disrupt(|other| {
        other.delete("c");
        other.put("d", "z1");
    });
    tokio::time::sleep(SOON).await;
    assert_eq!(content(&informer), ["a@1", "b@2", "d@12"]);
    assert_eq!(informer.status().versions.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_namespace_is_a_source_of_its_own() {
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster).namespaces(["ns", "empty"]).build();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    let mut namespaces: Vec<_> = cluster
        .lists()
        .into_iter()
        .map(|list| list.selectors.namespace.unwrap())
        .collect();
    namespaces.sort();
    assert_eq!(namespaces, ["empty", "ns"]);
    assert_eq!(
        informer.snapshot().iter().map(show).collect::<Vec<_>>(),
        ["a@1"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_index_is_added_to_a_running_informer() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let index =
        || IndexDeclaration::new("name", |pod: &crate::Cached<Pod>| [pod.name().to_owned()]);
    informer.add_index(index()).await.unwrap();
    assert_eq!(
        informer
            .snapshot()
            .by_index_name("name", "a")
            .unwrap()
            .len(),
        1
    );
    let error = informer.add_index(index()).await.unwrap_err();
    assert!(matches!(error, AddIndexError::Conflict(_)));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_the_call_in_flight_end_and_a_deadline_cancels_it() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let recorder = Recorder::default();
    let slow = {
        let recorder = recorder.clone();
        async_handler_fn(move |event: Event<Pod>| {
            let recorder = recorder.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                recorder.push(&event);
            }
        })
    };
    let _slow = informer
        .add_async_handler(&HandlerOptions::default(), slow)
        .unwrap();
    settle().await;
    informer.stop_within(SOON).await.unwrap();
    assert_eq!(recorder.len(), 1, "the call in flight, and no more");

    let informer = started(&cluster).await;
    let forever = async_handler_fn(|_event: Event<Pod>| std::future::pending());
    let _forever = informer
        .add_async_handler(&HandlerOptions::default(), forever)
        .unwrap();
    settle().await;
    informer.stop_within(SOON).await.unwrap();
    assert_eq!(informer.crew_size(), 0);

    let informer = started(&cluster).await;
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let _stuck = informer
        .add_handler_with(
            &HandlerOptions::named("stuck").dedicated_thread(),
            handler_fn(move |_event: Event<Pod>| {
                let _ = blocked.recv();
            }),
        )
        .unwrap();
    settle().await;
    let error = informer.stop_within(SOON).await.unwrap_err();
    assert_eq!(error.handlers, [Arc::from("stuck")]);
    drop(release);
}

/// What arrives while the cache is held waits in the queue; a hold before the start counts, and a
/// stop ends it.
#[tokio::test(start_paused = true)]
async fn a_held_cache_stands_still_and_then_catches_up() {
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster).build();
    let recorder = Recorder::default();
    let _registration = informer.add_handler(recorder.handler()).unwrap();
    let hold = informer.hold();
    informer.start().unwrap();
    settle().await;
    assert!(!informer.has_synced() && content(&informer).is_empty());
    assert_eq!(informer.pending().steps.len(), 1);
    drop(hold);
    settle().await;
    assert_eq!(recorder.take(), ["ADD*(a@1)"]);

    let hold = informer.hold();
    settle().await;
    cluster.put("a", "z2");
    settle().await;
    assert_eq!(
        (informer.pending().inputs, content(&informer)),
        (1, vec!["a@1".to_owned()])
    );
    assert_eq!(informer.status().queue.depth, 1, "a look takes nothing");
    let started = informer.stop();
    started.await;
    drop(hold);
    assert_eq!(recorder.take(), [""; 0]);
}
