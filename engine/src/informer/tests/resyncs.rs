//! Resyncs, from the tick to the call.
use super::cluster::{Cluster, Pod};
use super::recorder::Recorder;
use super::{SOON, informer, settle};
use crate::informer::{Event, HandlerOptions, Resync, handler_fn};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// I-S7, and W-S6: only those who are due are told, and the list of them travels with the resync.
#[tokio::test(start_paused = true)]
async fn only_handlers_that_are_due_are_told() {
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster).resync(SECOND).build();
    let (two, three, never) = <(Recorder, Recorder, Recorder)>::default();
    let every = |secs| HandlerOptions::default().resync_every(Duration::from_secs(secs));
    let _two = informer.add_handler_with(&every(2), two.handler()).unwrap();
    let _three = informer
        .add_handler_with(&every(3), three.handler())
        .unwrap();
    let options = HandlerOptions::default().resync(Resync::Never);
    let silent = informer
        .add_handler_with(&options, never.handler())
        .unwrap();
    assert_eq!(silent.resync_period(), None);
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    settle().await;
    for recorder in [&two, &three, &never] {
        assert_eq!(recorder.take(), ["ADD*(a@1)"]);
    }
    let mut told = Vec::new();
    for second in 1..=6 {
        tokio::time::sleep(SECOND).await;
        for (who, recorder) in [(2, &two), (3, &three)] {
            let calls = recorder.take();
            assert!(calls.iter().all(|call| call == "UPD(a@1 -> a@1)"));
            told.extend(calls.iter().map(|_| (second, who)));
        }
    }
    assert_eq!(told, [(2, 2), (3, 3), (4, 2), (6, 2), (6, 3)]);
    assert_eq!(never.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn c078_a_request_for_resyncs_is_honoured_or_visibly_refused() {
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster).build();
    let (early, late) = <(Recorder, Recorder)>::default();
    let options = HandlerOptions::default().resync_every(5 * SECOND);
    let registration = informer
        .add_handler_with(&options, early.handler())
        .unwrap();
    assert_eq!(registration.resync_period(), Some(5 * SECOND));
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    tokio::time::sleep(11 * SECOND).await;
    assert_eq!(
        early.take(),
        ["ADD*(a@1)", "UPD(a@1 -> a@1)", "UPD(a@1 -> a@1)"]
    );

    let informer = super::started(&cluster).await;
    let registration = informer.add_handler_with(&options, late.handler()).unwrap();
    assert_eq!(registration.resync_period(), None, "and says so");
    tokio::time::sleep(11 * SECOND).await;
    assert_eq!(late.take(), ["ADD*(a@1)"]);
}

/// I-R16, W-S5: the timer is armed again after each tick, and a failure ends nothing.
#[tokio::test(start_paused = true)]
async fn c080_one_failed_resync_does_not_end_resyncs() {
    let cluster = Cluster::with(&["a"]);
    let informer = informer(&cluster).resync(SECOND).build();
    let recorder = Recorder::default();
    let handler = {
        let recorder = recorder.clone();
        let mut resyncs = 0;
        handler_fn(move |event: Event<Pod>| {
            if matches!(event, Event::Updated { .. }) {
                resyncs += 1;
                recorder.push(&event);
                assert_ne!(resyncs, 3, "the third resync fails");
            }
        })
    };
    let registration = informer.add_handler(handler).unwrap();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    settle().await;
    for second in 1..=8 {
        tokio::time::sleep(SECOND).await;
        assert_eq!(recorder.take(), ["UPD(a@1 -> a@1)"], "at {second} s");
    }
    assert_eq!(registration.status().panics, 1);
    assert_eq!(cluster.lists().len(), 1, "no relist is needed");
}

/// A reset of the source is told once, before the differences, and ends neither watching nor resyncs.
#[tokio::test(start_paused = true)]
async fn a_reset_of_the_source_is_told_and_does_not_end_resyncs() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = informer(&cluster).resync(4 * SOON).build();
    let recorder = Recorder::default();
    let _registration = informer.add_handler(recorder.handler()).unwrap();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    settle().await;
    recorder.take();
    cluster.restore(5, &["a"]);
    tokio::time::sleep(3 * SOON).await;
    let told = recorder.take();
    assert_eq!(told[0], "RESET(0)", "{told:?}");
    let mut differences = told[1..].to_vec();
    differences.sort();
    assert_eq!(differences, ["DEL?(b, last=b@2)", "UPD(a@1 -> a@5)"]);
    tokio::time::sleep(2 * SOON).await;
    assert_eq!(recorder.take(), ["UPD(a@5 -> a@5)"]);
}
