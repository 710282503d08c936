//! Status, liveness, and what the error hook may do.
use super::rig::{Rig, api, page};
use crate::reflector::ReflectorState;
use crate::sync::block_on;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn the_status_tells_the_state_the_reason_and_the_version() {
    let mut rig = Rig::new(|script| {
        script
            .lists_fail(1, &api(500, "InternalError"))
            .list("10 a@5")
            .watch("30s +b@12")
    });
    let status = rig.status();
    let ReflectorState::BackingOff { reason, until } = status.state else {
        panic!("{status:?}");
    };
    assert_eq!(Some(reason), status.last_error);
    assert_eq!(Some(until), rig.clock.next_deadline());
    assert!(!status.listed);
    rig.pass(31.7);
    let status = rig.status();
    assert_eq!(status.state, ReflectorState::Watching);
    assert_eq!(status.last_seen_version.to_string(), "12");
    assert!(status.last_error.is_some(), "kept, however long ago");
    let metrics = rig.metrics();
    assert_eq!((metrics.lists, metrics.list_failures), (1, 1));
    assert_eq!((metrics.watches, metrics.deltas), (1, 1));
}

#[test]
fn liveness_is_a_recent_proof_of_life() {
    let mut rig = Rig::new(|script| script.list("10").watch("50s BM@20 500s +a@21"));
    let lag = Duration::from_secs(60);
    assert!(rig.handle.is_live(lag));
    rig.pass(100.0);
    assert!(rig.handle.is_live(lag), "the bookmark proved it");
    rig.pass(11.0);
    assert!(!rig.handle.is_live(lag));
    let unlisted = Rig::new(|script| script);
    assert!(!unlisted.handle.is_live(lag), "nothing was ever there");
    rig.stop.stop();
    rig.settle();
    assert!(!rig.handle.is_live(Duration::MAX), "stopped is not live");
}

#[test]
fn c037_whoever_waits_for_a_status_is_told_of_the_end() {
    let mut rig = Rig::new(|script| script.list_forever(Err(api(404, "NotFound"))));
    rig.pass(60.0);
    let handle = rig.handle.clone();
    let waiter = std::thread::spawn(move || block_on(handle.wait_for(|status| status.listed)));
    rig.stop.stop();
    rig.settle();
    let last = waiter.join().unwrap().unwrap_err();
    assert!(last.last_error.is_some(), "with the reason");

    let rig = Rig::new(|script| script.list("10"));
    let status = block_on(rig.handle.wait_for(|status| status.listed)).unwrap();
    assert_eq!(status.last_seen_version.to_string(), "10");
}

#[test]
fn a_panic_of_the_error_hook_is_caught_and_counted() {
    let mut rig = Rig::with(
        |script| script.lists_fail(2, &api(500, "InternalError")).list("10"),
        |config| config.on_error = Some(Arc::new(|_| panic!("scripted"))),
    );
    rig.pass(10.0);
    assert!(rig.status().listed);
    assert_eq!((rig.metrics().hook_panics, rig.metrics().errors), (2, 2));
}

#[test]
fn equal_seeds_give_equal_runs() {
    let run = || {
        let mut rig = Rig::new(|script| {
            script
                .list_forever(Ok(page("10 a@5")))
                .watches_fail_forever(api(403, "Forbidden"))
        });
        rig.pass(300.0);
        rig.timed_calls()
    };
    assert_eq!(run(), run());
}
