//! What handlers are told, when, and whom they can hold up.
use super::cluster::{Cluster, Pod, show};
use super::recorder::Recorder;
use super::{SOON, content, informer, lossless, settle, started};
use crate::delta::Deleted;
use crate::informer::{
    Event, Filtered, Handler, HandlerFuncs, HandlerOptions, InformerError, Policy, SharedInformer,
    async_handler_fn, handler_fn,
};
use crate::object::Cached;
use crate::sync::{AtomicUsize, Mutex, Ordering};
use futures_util::FutureExt;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Checks the cache in each call: it may be ahead of the call, never behind.
struct Reader {
    informer: SharedInformer<Pod>,
    calls: Arc<AtomicUsize>,
}

impl Reader {
    fn zones_agree(&self, name: &str) {
        let view = self.informer.snapshot();
        let stored = view.get(("ns", name));
        for zone in ["z1", "z2"] {
            let listed = view.by_index_name("zone", zone).unwrap();
            let listed = listed.into_iter().any(|pod| pod.name() == name);
            assert_eq!(listed, stored.is_some_and(|pod| pod.zone == zone));
        }
        self.calls.fetch_add(1, Ordering::SeqCst);
    }

    fn version_of(&self, name: &str) -> Option<u64> {
        let stored = self.informer.get(("ns", name))?;
        stored.resource_version().as_number()
    }
}

impl Handler<Pod> for Reader {
    fn on_add(&mut self, object: &Cached<Pod>, _initial: bool) {
        assert!(self.version_of(object.name()) >= object.resource_version().as_number());
        self.zones_agree(object.name());
    }
    fn on_update(&mut self, _old: &Cached<Pod>, new: &Cached<Pod>) {
        assert!(self.version_of(new.name()) >= new.resource_version().as_number());
        self.zones_agree(new.name());
    }
    fn on_delete(&mut self, deleted: &Deleted<Pod>) {
        assert_eq!(self.version_of(deleted.key.name()), None);
        self.zones_agree(deleted.key.name());
    }
}

#[tokio::test(start_paused = true)]
async fn c060_store_and_indexes_are_updated_before_any_handler_is_told() {
    let cluster = Cluster::with(&[]);
    let informer = started(&cluster).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let reader = Reader {
        informer: informer.clone(),
        calls: calls.clone(),
    };
    let registration = informer.add_handler_with(&lossless(), reader).unwrap();
    cluster.put("a", "z1");
    settle().await;
    cluster.put("a", "z2");
    settle().await;
    cluster.delete("a");
    settle().await;
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_eq!(registration.status().panics, 0);
}

/// I-S4.
#[tokio::test(start_paused = true)]
async fn c061_handler_synced_means_that_its_initial_calls_have_finished() {
    let cluster = Cluster::with(&["a", "b", "c"]);
    let informer = informer(&cluster).build();
    let gate = Arc::new(Semaphore::new(0));
    let blocked = {
        let gate = gate.clone();
        async_handler_fn(move |_event: Event<Pod>| {
            let gate = gate.clone();
            async move { gate.acquire().await.unwrap().forget() }
        })
    };
    let slow = informer
        .add_async_handler(&HandlerOptions::default(), blocked)
        .unwrap();
    let fast = informer.add_handler(Recorder::default().handler()).unwrap();
    assert!(!slow.has_synced() && !fast.has_synced());
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    settle().await;
    assert!(informer.has_synced());
    assert_eq!(informer.snapshot().len(), 3);
    assert!(
        fast.has_synced(),
        "a fast second handler is synced on its own"
    );
    for _ in 0..3 {
        assert!(!slow.has_synced());
        gate.add_permits(1);
        settle().await;
    }
    assert!(slow.has_synced());
    assert!(slow.synced().await);
}

#[tokio::test(start_paused = true)]
async fn c062_after_a_handler_panic_only_that_notification_is_lost() {
    let cluster = Cluster::with(&["a"]);
    let errors = Arc::new(Mutex::new(Vec::new()));
    let informer = {
        let errors = errors.clone();
        informer(&cluster)
            .on_error(move |error| errors.lock().push(error.to_string()))
            .build()
    };
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    let (first, second) = (Recorder::default(), Recorder::default());
    let panicking = {
        let first = first.clone();
        handler_fn(move |event: Event<Pod>| {
            first.push(&event);
            if let Event::Updated { new, .. } = &event {
                assert_ne!(new.resource_version(), &11.into(), "boom");
            }
        })
    };
    let registration = informer
        .add_handler_with(
            &HandlerOptions::named("h1").policy(Policy::Unbounded),
            panicking,
        )
        .unwrap();
    let _second = informer
        .add_handler_with(&lossless(), second.handler())
        .unwrap();
    settle().await;
    for (name, zone) in [("a", "z1"), ("b", "z1"), ("a", "z2")] {
        cluster.put(name, zone);
        settle().await;
    }
    let all = [
        "ADD*(a@1)",
        "UPD(a@1 -> a@11)",
        "ADD(b@12)",
        "UPD(a@11 -> a@13)",
    ];
    assert_eq!(first.take(), all);
    assert_eq!(second.take(), all);
    assert_eq!(content(&informer), ["a@13", "b@12"]);
    let status = registration.status();
    assert_eq!((status.panics, status.calls), (1, 4));
    let errors = errors.lock();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].starts_with("handler \"h1\" panicked"),
        "{errors:?}"
    );
    assert!(errors[0].contains("ns/a"), "{errors:?}");
}

/// W-S7: a handler that panics on its initial objects still becomes synced.
#[tokio::test(start_paused = true)]
async fn a_panic_on_the_initial_list_does_not_keep_a_handler_from_syncing() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let registration = informer
        .add_handler(HandlerFuncs::new().on_add(|_, _| panic!("always")))
        .unwrap();
    assert!(registration.synced().now_or_never().is_none());
    settle().await;
    assert!(registration.has_synced());
    assert_eq!(registration.status().panics, 2);
}

/// I-S2, I-S3.
#[tokio::test(start_paused = true)]
async fn c063_a_late_handler_gets_the_present_then_changes_without_gap_or_repeat() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let writer = {
        let cluster = cluster.clone();
        tokio::spawn(async move {
            for _ in 0..1000 {
                cluster.put("a", "z1");
                tokio::task::yield_now().await;
            }
        })
    };
    let mut late = Vec::new();
    for _ in 0..20 {
        tokio::task::yield_now().await;
        let recorder = Recorder::default();
        let options = lossless();
        let registration = informer
            .add_handler_with(&options, recorder.handler())
            .unwrap();
        late.push((recorder, registration));
    }
    writer.await.unwrap();
    settle().await;
    for (recorder, registration) in late {
        let calls = recorder.take();
        let start: Vec<_> = calls.iter().take_while(|c| c.starts_with("ADD*")).collect();
        assert_eq!(start.len(), 2, "{calls:?}");
        let at = |call: &str| -> u64 {
            let digits = call.rsplit_once('@').unwrap().1.trim_end_matches(')');
            digits.parse().unwrap()
        };
        let mut last = at(start.iter().find(|c| c.contains("(a@")).unwrap());
        for call in &calls[2..] {
            let expected = format!("UPD(a@{last} -> a@{})", at(call));
            assert_eq!(*call, expected, "no gap, no repeat");
            last = at(call);
        }
        assert_eq!(last, 1010);
        assert!(registration.has_synced());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_an_empty_cache_is_synced_at_once() {
    let informer = started(&Cluster::with(&[])).await;
    let registration = informer.add_handler(Recorder::default().handler()).unwrap();
    assert!(registration.has_synced());
}

#[tokio::test(start_paused = true)]
async fn c071_subscribers_see_deletions() {
    let cluster = Cluster::with(&[]);
    let informer = started(&cluster).await;
    let mut events = informer.subscribe(&lossless()).unwrap();
    cluster.put("a", "z1");
    cluster.delete("a");
    cluster.put("b", "z1");
    settle().await;
    cluster.disrupt(|cluster| cluster.delete("b"));
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(super::recorder::tell(&events.next().await.unwrap()));
    }
    assert_eq!(
        told,
        ["ADD(a@11)", "DEL(a@12)", "ADD(b@13)", "DEL?(b, last=b@13)"]
    );
    informer.stop().await;
    assert!(events.next().await.is_none(), "it ends with the informer");
}

/// I-S1: old is what this handler was given last.
#[tokio::test(start_paused = true)]
async fn c072_notifications_carry_their_objects() {
    let cluster = Cluster::with(&["a"]);
    let informer = started(&cluster).await;
    let gate = Arc::new(Semaphore::new(1));
    let mut told = Vec::new();
    for policy in [Policy::Unbounded, Policy::Coalesce] {
        let recorder = Recorder::default();
        let handler = {
            let (gate, recorder) = (gate.clone(), recorder.clone());
            async_handler_fn(move |event: Event<Pod>| {
                let (gate, recorder) = (gate.clone(), recorder.clone());
                async move {
                    let _open = gate.acquire().await.unwrap();
                    recorder.push(&event);
                }
            })
        };
        let options = HandlerOptions::default().policy(policy);
        let registration = informer.add_async_handler(&options, handler).unwrap();
        told.push((recorder, registration));
    }
    settle().await;
    let pause = gate.acquire().await.unwrap();
    cluster.put("a", "z1");
    settle().await;
    cluster.put("a", "z1");
    settle().await;
    cluster.delete("a");
    settle().await;
    drop(pause);
    settle().await;
    assert_eq!(
        told[0].0.take(),
        [
            "ADD*(a@1)",
            "UPD(a@1 -> a@11)",
            "UPD(a@11 -> a@12)",
            "DEL(a@13)"
        ]
    );
    assert_eq!(
        told[1].0.take(),
        ["ADD*(a@1)", "UPD(a@1 -> a@11)", "DEL(a@13)"],
        "states between are folded"
    );
}

#[tokio::test(start_paused = true)]
async fn c073_an_uncertain_delete_carries_the_last_known_object() {
    let cluster = Cluster::with(&["s"]);
    let informer = started(&cluster).await;
    let mut events = informer.subscribe(&lossless()).unwrap();
    settle().await;
    cluster.disrupt(|cluster| cluster.delete("s"));
    // A consumer that turns notifications back into a watch stream needs no downcast.
    let mut stream = Vec::new();
    for _ in 0..2 {
        let event = events.next().await.unwrap();
        let sign = if matches!(event, Event::Deleted(_)) {
            '-'
        } else {
            '+'
        };
        stream.push(format!("{sign}{}", show(event.object().expect("known"))));
        if let Event::Deleted(deleted) = &event {
            assert!(deleted.final_state_unknown);
            assert_eq!(deleted.key.as_str(), "ns/s");
        }
    }
    assert_eq!(stream, ["+s@1", "-s@1"]);
}

/// I-S5, I-S6 and C030, C031: a relist tells what differs, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_relist_tells_what_differs_and_a_recreation_as_such() {
    let cluster = Cluster::with(&["changed", "gone", "recreated", "same"]);
    let informer = started(&cluster).await;
    let recorder = Recorder::default();
    let _registration = informer.add_handler(recorder.handler()).unwrap();
    settle().await;
    recorder.take();
    cluster.disrupt(|cluster| {
        cluster.put("changed", "z2");
        cluster.delete("gone");
        cluster.delete("recreated");
        cluster.put("recreated", "z1");
        cluster.put("new", "z1");
    });
    tokio::time::sleep(SOON).await;
    let mut told = recorder.take();
    told.sort();
    assert_eq!(
        told,
        [
            "ADD(new@15)",
            "ADD(recreated@14)",
            "DEL?(gone, last=gone@2)",
            "DEL?(recreated, last=recreated@3)",
            "UPD(changed@1 -> changed@11)",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn c077_callbacks_may_use_the_informer() {
    let cluster = Cluster::with(&["a"]);
    let (slot, told) = (Arc::new(Mutex::new(None)), Recorder::default());
    let hooked = Arc::new(AtomicUsize::new(0));
    let use_it = {
        let (slot, told) = (slot.clone(), told.clone());
        move || {
            let informer: SharedInformer<Pod> = slot.lock().clone().expect("set before the start");
            let _ = (
                informer.get("ns/a"),
                informer.has_synced(),
                informer.status(),
            );
            let view = informer.snapshot();
            view.by_index_name("zone", "z1").unwrap();
            let registration = informer.add_handler(told.handler()).unwrap();
            registration.detach();
        }
    };
    let informer = {
        let (use_it, hooked) = (use_it.clone(), hooked.clone());
        informer(&cluster)
            .on_error(move |_error: &InformerError| {
                hooked.fetch_add(1, Ordering::SeqCst);
                use_it();
            })
            .build()
    };
    *slot.lock() = Some(informer.clone());
    let _registration = informer
        .add_handler(handler_fn(move |_event: Event<Pod>| {
            use_it();
            panic!("and the hook is called, too");
        }))
        .unwrap();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    settle().await;
    assert_eq!(hooked.load(Ordering::SeqCst), 1);
    assert_eq!(told.take(), ["ADD*(a@1)"; 2], "late handlers of both");
    slot.lock().take();
    informer.stop().await;
}

/// I-T3: (old, new) passes: update, add, delete, nothing; and deletions of what passed are seen.
#[tokio::test(start_paused = true)]
async fn a_filter_turns_updates_into_adds_and_deletes() {
    let cluster = Cluster::with(&["a", "b"]);
    let informer = started(&cluster).await;
    let recorder = Recorder::default();
    let filtered = Filtered::new(|pod: &Cached<Pod>| pod.zone == "z1", recorder.handler());
    let _registration = informer.add_handler_with(&lossless(), filtered).unwrap();
    cluster.put("a", "z1");
    cluster.put("a", "z2");
    cluster.put("a", "z2");
    cluster.put("a", "z1");
    cluster.delete("a");
    cluster.put("b", "z2");
    cluster.delete("b");
    settle().await;
    let mut told = recorder.take();
    told.sort_by_key(|call| call.contains("(b@"));
    assert_eq!(
        told,
        [
            "ADD*(a@1)",
            "UPD(a@1 -> a@11)",
            "DEL(a@11)",
            "ADD(a@14)",
            "DEL(a@15)",
            "ADD*(b@2)",
            "DEL(b@2)",
        ]
    );
}
