//! Reading one's own writes, and several caches together.
use super::cluster::Cluster;
use super::{content, settle, started};
use crate::indexer::WaitError;
use crate::informer::snapshot_together;
use crate::object::{Meta, ObjectKey, ResourceVersion};
use crate::reflector::ReflectorState;
use futures_util::FutureExt;
use std::time::Duration;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name).unwrap()
}

fn meta(name: &str, uid: &str, version: u64) -> Meta {
    Meta::new("ns", name, uid, &version.to_string()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_own_writes_of_its_key_and_for_no_others() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let writes = informer.write_tracker();
    assert!(writes.is_current("ns/a"), "nothing was written");
    let version = cluster.put("a", "z2");
    writes.wrote(meta("a", "a-u1", version));
    assert!(!writes.is_current("ns/a"));
    assert!(writes.is_current("ns/b"), "another key is no concern");
    assert!(writes.get("ns/b").now_or_never().is_some());
    let read = writes.get("ns/a").await.unwrap().unwrap();
    assert_eq!(read.resource_version(), &version.into());
    assert!(writes.is_empty(), "what was seen is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_newer_write_of_someone_else_shows_the_own_one_too() {
    let cluster = Cluster::with(&["a"]);
    let informer = started(&cluster).await;
    let writes = informer.write_tracker();
    let version = cluster.put("a", "z2");
    cluster.put("a", "z3");
    cluster.delete("a");
    writes.wrote(meta("a", "a-u1", version));
    assert_eq!(writes.get("ns/a").await.unwrap().as_deref(), None);
    assert!(writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn deletes_are_matched_by_uid() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let writes = informer.write_tracker();
    let uid = |name: &str| informer.get(("ns", name)).unwrap().uid().clone();
    // Registered before the call: the event may come before the answer.
    writes.deleting(key("a"), uid("a"));
    writes.deleting(key("b"), uid("b"));
    assert!(!writes.is_current("ns/a"));
    cluster.delete("a");
    cluster.put("a", "z1");
    assert_ne!(writes.get("ns/a").await.unwrap().unwrap().uid(), &uid("b"));
    assert!(writes.is_current("ns/a"), "the old life is over");
    assert!(writes.current("ns/b").now_or_never().is_none());
    writes.delete_failed("ns/b", &"other".into());
    assert_eq!(writes.len(), 1, "not this one");
    writes.delete_failed("ns/b", &uid("b"));
    assert!(writes.is_current("ns/b"));
}

#[tokio::test(start_paused = true)]
async fn a_write_made_during_a_wait_is_for_the_next() {
    let cluster = Cluster::with(&["a"]);
    let informer = started(&cluster).await;
    let writes = informer.write_tracker();
    let first = cluster.put("a", "z2");
    writes.wrote(meta("a", "a-u1", first));
    let mut wait = Box::pin(writes.current("ns/a"));
    assert!((&mut wait).now_or_never().is_none());
    writes.wrote(meta("a", "a-u1", 1_000));
    wait.await.unwrap();
    assert!(!writes.is_current("ns/a"), "the second is still waited for");
    let stopped = async {
        settle().await;
        informer.stop().await;
    };
    let (outcome, ()) = tokio::join!(writes.current("ns/a"), stopped);
    assert_eq!(outcome, Err(WaitError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn writes_that_nobody_asks_about_do_not_pile_up() {
    let cluster = Cluster::with(&["a"]);
    let informer = started(&cluster).await;
    let writes = informer.write_tracker();
    for number in 0..10_000 {
        // All of them older than what the cache has reached, and of keys that are gone.
        writes.wrote(meta(&format!("p{number}"), "u", 5));
    }
    assert!(writes.len() <= 1025, "{}", writes.len());
}

#[tokio::test(start_paused = true)]
async fn snapshots_of_several_caches_are_of_one_moment() {
    let (one, two) = (Cluster::with(&["a"]), Cluster::with(&["b", "c"]));
    let (first, second) = (started(&one).await, started(&two).await);
    let (pods, others) = (first.lister(), second.lister());
    let together = snapshot_together(&(&pods, &others));
    assert!(together.simultaneous);
    let (pods, others) = together.snapshots;
    assert_eq!((pods.len(), others.len()), (1, 2));
    assert_eq!(pods.resource_version(), ResourceVersion::from(10));
}

#[tokio::test(start_paused = true)]
async fn the_status_tells_where_everything_stands() {
    let cluster = Cluster::with(&["a"]);
    let informer = super::informer(&cluster)
        .resync(Duration::from_secs(60))
        .build();
    assert!(!informer.status().running);
    informer.start().unwrap();
    informer.wait_for_sync(super::SOON).await.unwrap();
    let _registration = informer
        .add_handler(crate::informer::HandlerFuncs::new())
        .unwrap();
    settle().await;
    informer.wait_for(&10.into()).await.unwrap();
    let status = informer.status();
    assert!(status.running && status.synced && !status.stopped);
    assert_eq!((status.objects, status.quarantined), (1, 0));
    assert_eq!(status.versions, [(crate::delta::SourceId(0), 10.into())]);
    assert_eq!(status.sources[0].1.state, ReflectorState::Watching);
    assert_eq!(status.handlers.len(), 1);
    assert_eq!(
        (status.handlers[0].calls, status.handlers[0].waiting),
        (1, 0)
    );
    assert_eq!(status.resync_tick, Some(Duration::from_secs(60)));
    assert_eq!(content(&informer), ["a@1"]);
}
