//! Many informers from one place.
use super::cluster::{Cluster, Pod, show};
use super::recorder::Recorder;
use super::{SOON, content, settle};
use crate::informer::{
    FactoryError, FactoryNotSynced, InformerFactory, NotSyncedReason, StartError, Transform,
};
use crate::source::{
    ApiStatus, ListOptions, ListPage, ListWatch, SourceError, WatchOptions, WatchStream,
};
use crate::sync::{AtomicBool, Ordering};
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;

const FIVE_SECONDS: Duration = Duration::from_secs(5);

/// Another kind of object, whose lists can be broken.
#[derive(Clone, Default)]
struct Nodes {
    healed: Arc<AtomicBool>,
}

impl ListWatch for Nodes {
    type Object = String;

    async fn list(&self, _options: ListOptions) -> Result<ListPage<String>, SourceError> {
        if !self.healed.load(Ordering::SeqCst) {
            return Err(SourceError::Api(ApiStatus::new(500, "Broken", "no etcd")));
        }
        Ok(ListPage {
            resource_version: "5".into(),
            continue_token: None,
            items: Vec::new(),
        })
    }

    async fn watch(&self, _options: WatchOptions) -> Result<WatchStream<String>, SourceError> {
        Ok(Box::pin(futures_util::stream::pending()))
    }
}

fn factory(cluster: &Cluster) -> InformerFactory {
    let factory = InformerFactory::builder().build();
    factory.provide(cluster.clone()).unwrap();
    factory
}

#[tokio::test(start_paused = true)]
async fn c081_one_broken_kind_does_not_block_the_others() {
    let (cluster, nodes) = (Cluster::with(&["y"]), Nodes::default());
    let factory = factory(&cluster);
    factory.provide(nodes.clone()).unwrap();
    let (pods, broken) = (
        factory.informer::<Pod>().unwrap(),
        factory.informer::<String>().unwrap(),
    );
    let recorder = Recorder::default();
    let _registration = pods.add_handler(recorder.handler()).unwrap();
    factory.start().unwrap();
    let error = factory.wait_for_sync(FIVE_SECONDS).await.unwrap_err();
    let FactoryNotSynced::Informers { synced, unsynced } = &error else {
        panic!("{error}");
    };
    assert_eq!(*synced, [pods.name().clone()]);
    assert_eq!(unsynced[0].informer, *broken.name());
    assert!(unsynced[0].waited >= FIVE_SECONDS);
    assert!(error.to_string().contains("no etcd"), "{error}");
    assert_eq!(content(&pods), ["y@1"]);
    assert_eq!(recorder.take(), ["ADD*(y@1)"]);
    nodes.healed.store(true, Ordering::SeqCst);
    factory.wait_for_sync(2 * SOON).await.unwrap();
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn c082_an_informer_removed_and_asked_for_again() {
    let cluster = Cluster::with(&["a"]);
    let factory = factory(&cluster);
    let old = factory.informer::<Pod>().unwrap();
    let recorder = Recorder::default();
    let _registration = old.add_handler(recorder.handler()).unwrap();
    factory.start().unwrap();
    factory.wait_for_sync(SOON).await.unwrap();
    settle().await;
    recorder.take();
    assert!(factory.remove(&old).await);
    assert!(!factory.remove(&old).await, "removed already");
    cluster.delete("a");
    cluster.put("b", "z1");
    let new = factory.informer::<Pod>().unwrap();
    factory.start().unwrap();
    factory.wait_for_sync(SOON).await.unwrap();
    assert_eq!(content(&new), ["b@12"]);
    assert_eq!(recorder.len(), 0, "old handlers get nothing");
    assert!(old.is_stopped());
    assert_eq!(content(&old), ["a@1"], "the last state");
    assert_eq!(cluster.lists().len(), 2, "a fresh list");
}

#[tokio::test(start_paused = true)]
async fn c083_the_more_specific_transform_wins() {
    let mark = |mark: &'static str| {
        Transform::new(mark, move |pod: Pod| {
            Ok::<_, String>(Pod {
                zone: format!("{}-{mark}", pod.zone),
            })
        })
    };
    let cluster = Cluster::with(&["a"]);
    let without = factory(&cluster);
    let with = InformerFactory::builder().build();
    with.provide_with(cluster.clone(), mark("factory")).unwrap();
    for (factory, own, expected) in [
        (&without, None, "z1"),
        (&without, Some("own"), "z1-own"),
        (&with, None, "z1-factory"),
        (&with, Some("own"), "z1-own"),
    ] {
        let mut request = factory.request::<Pod>();
        if let Some(own) = own {
            request = request.transform(mark(own));
        }
        let informer = request.get().unwrap();
        factory.start().unwrap();
        informer.wait_for_sync(SOON).await.unwrap();
        assert_eq!(informer.get("ns/a").unwrap().zone, expected);
    }
    assert_eq!(
        without.informers().len(),
        2,
        "transforms tell informers apart"
    );
}

#[tokio::test(start_paused = true)]
async fn c084_an_informer_requested_after_the_start_says_that_it_is_not_started() {
    let cluster = Cluster::with(&["a"]);
    let factory = factory(&cluster);
    factory.start().unwrap();
    factory
        .wait_for_sync(FIVE_SECONDS)
        .now_or_never()
        .expect("an empty factory that was started is synced at once")
        .unwrap();
    let informer = factory.informer::<Pod>().unwrap();
    let error = informer.wait_for_sync(FIVE_SECONDS).await.unwrap_err();
    assert!(matches!(error.reason, NotSyncedReason::NotStarted));
    assert_eq!(error.waited, FIVE_SECONDS);
    assert!(factory.wait_for_sync(FIVE_SECONDS).await.is_err());
    factory.start().unwrap();
    factory.wait_for_sync(SOON).await.unwrap();
    assert_eq!(content(&informer), ["a@1"]);
}

#[tokio::test(start_paused = true)]
async fn c085_same_kind_different_filters() {
    let cluster = Cluster::default();
    cluster.put("a", "red");
    cluster.put("b", "blue");
    let factory = factory(&cluster);
    let request = |labels: &str| factory.request::<Pod>().labels(labels).get().unwrap();
    let (red, blue, again) = (request("red"), request("blue"), request("red"));
    let namespaced = factory.request::<Pod>().namespace("ns1").get().unwrap();
    let order = |first: &str, second: &str| {
        let request = factory.request::<Pod>().namespace(first);
        request.namespace(second).get().unwrap()
    };
    assert!(red.is_same(&again));
    assert!(!red.is_same(&blue) && !red.is_same(&namespaced));
    assert!(
        order("x", "y").is_same(&order("y", "x")),
        "a set has no order"
    );
    assert_eq!(factory.informers().len(), 4);
    factory.start().unwrap();
    factory.wait_for_sync(SOON).await.unwrap();
    let names = |informer: &super::SharedInformer<Pod>| -> Vec<String> {
        informer.snapshot().iter().map(show).collect()
    };
    assert_eq!(names(&red), ["a@1"]);
    assert_eq!(names(&blue), ["b@2"]);
    assert!(names(&namespaced).is_empty());
    let mut asked: Vec<_> = cluster
        .lists()
        .into_iter()
        .map(|list| (list.selectors.labels, list.selectors.namespace))
        .collect();
    asked.sort();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        asked,
        [
            (None, text("ns1")),
            (None, text("x")),
            (None, text("y")),
            (text("blue"), None),
            (text("red"), None),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn c086_a_wait_for_sync_does_not_succeed_before_the_start() {
    let cluster = Cluster::with(&["a"]);
    let factory = factory(&cluster);
    let error = factory.wait_for_sync(FIVE_SECONDS).await.unwrap_err();
    assert!(matches!(error, FactoryNotSynced::NotStarted { .. }));
    let informer = factory.informer::<Pod>().unwrap();
    let wait = {
        let (factory, informer) = (factory.clone(), informer.clone());
        tokio::spawn(async move {
            factory.wait_for_sync(SOON).await.unwrap();
            content(&informer)
        })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!wait.is_finished());
    factory.start().unwrap();
    assert_eq!(wait.await.unwrap(), ["a@1"]);
}

#[tokio::test(start_paused = true)]
async fn a_shut_down_factory_has_ended_everything_and_gives_nothing() {
    let cluster = Cluster::with(&["a"]);
    let factory = factory(&cluster);
    assert_eq!(
        factory.provide(cluster.clone()),
        Err(FactoryError::AlreadyProvided {
            type_name: std::any::type_name::<Pod>()
        })
    );
    assert!(matches!(
        factory.informer::<u8>(),
        Err(FactoryError::NoSource { type_name: "u8" })
    ));
    let running = factory.informer::<Pod>().unwrap();
    factory.start().unwrap();
    factory.wait_for_sync(SOON).await.unwrap();
    let unstarted = factory.request::<Pod>().labels("z1").get().unwrap();
    tokio::join!(factory.shutdown(), factory.shutdown());
    assert_eq!(running.crew_size() + unstarted.crew_size(), 0);
    assert_eq!(cluster.watchers(), 0);
    assert!(matches!(factory.start(), Err(FactoryError::ShutDown)));
    assert!(matches!(unstarted.start(), Err(StartError::Stopped { .. })));
    assert!(matches!(
        factory.informer::<Pod>(),
        Err(FactoryError::ShutDown)
    ));
}
