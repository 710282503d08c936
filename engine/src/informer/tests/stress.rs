//! The whole informer under random loads: in virtual time (repeatable), and on real threads.
use super::cluster::{Cluster, Pod};
use super::recorder::Fold;
use super::{SOON, content, informer};
use crate::informer::{
    AddHandlerError, Event, HandlerOptions, PastLimit, Policy, Registration, SharedInformer,
    async_handler_fn,
};
use crate::sync::{AtomicUsize, Mutex, Ordering};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const POLICIES: [Policy; 5] = [
    Policy::Coalesce,
    Policy::Unbounded,
    Policy::lossless(3, PastLimit::Coalesce),
    Policy::lossless(3, PastLimit::Replay),
    Policy::lossless(3, PastLimit::Block),
];

#[derive(Clone, Debug)]
enum Op {
    Put(u8),
    Delete(u8),
    /// Watches are cut, these happen, and only a relist shows them.
    Disrupt(Vec<(bool, u8)>),
    Join(u8),
    Leave(u8),
    Wait(u8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let name = 0..4_u8;
    let op = prop_oneof![
        8 => name.clone().prop_map(Op::Put),
        3 => name.clone().prop_map(Op::Delete),
        1 => proptest::collection::vec((any::<bool>(), name), 0..4).prop_map(Op::Disrupt),
        1 => (0..5_u8).prop_map(Op::Join),
        1 => (0..5_u8).prop_map(Op::Leave),
        4 => (0..20_u8).prop_map(Op::Wait),
    ];
    proptest::collection::vec(op, 0..60)
}

fn put_or_delete(cluster: &Cluster, put: bool, name: u8) {
    put_or_delete_named(cluster, put, &format!("p{name}"));
}

fn put_or_delete_named(cluster: &Cluster, put: bool, name: &str) {
    if put {
        cluster.put(name, "z1");
    } else if cluster.has(name) {
        cluster.delete(name);
    }
}

type Member = (Arc<Mutex<Fold>>, Registration<Pod>);
/// With how many panics were planned.
type Faulty = (Arc<Mutex<Fold>>, Arc<AtomicUsize>, Registration<Pod>);

/// Handlers of every policy that take random times, and sometimes panic once they have listened.
fn join(informer: &SharedInformer<Pod>, policy: Policy, seed: u64) -> Faulty {
    let fold = Arc::new(Mutex::new(Fold::default()));
    let rng = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
    let planned = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (fold, planned) = (fold.clone(), planned.clone());
        async_handler_fn(move |event: Event<Pod>| {
            let (fold, rng, planned) = (fold.clone(), rng.clone(), planned.clone());
            async move {
                fold.lock().hear(&event);
                let (pause, panics) = {
                    let mut rng = rng.lock();
                    (rng.u64(0..30), rng.u8(0..20) == 0)
                };
                tokio::time::sleep(Duration::from_millis(pause / 10)).await;
                if panics {
                    planned.fetch_add(1, Ordering::SeqCst);
                    // Without the noise of a panic that nobody planned.
                    std::panic::resume_unwind(Box::new("now and then"));
                }
            }
        })
    };
    let options = HandlerOptions::default().policy(policy).resync_every(SOON);
    let registration = informer.add_async_handler(&options, handler).unwrap();
    (fold, planned, registration)
}

fn run(ops: &[Op], seed: u64) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = Cluster::with(&["p0", "p1"]);
        let informer = informer(&cluster).build();
        let mut seeds = fastrand::Rng::with_seed(seed);
        let mut members: Vec<Faulty> = POLICIES
            .iter()
            .map(|policy| join(&informer, *policy, seeds.u64(..)))
            .collect();
        informer.start().unwrap();
        for op in ops {
            match op {
                Op::Put(name) => put_or_delete(&cluster, true, *name),
                Op::Delete(name) => put_or_delete(&cluster, false, *name),
                Op::Disrupt(meanwhile) => cluster.disrupt(|cluster| {
                    for (put, name) in meanwhile {
                        put_or_delete(cluster, *put, *name);
                    }
                }),
                Op::Join(policy) => {
                    let policy = POLICIES[usize::from(*policy)];
                    members.push(join(&informer, policy, seeds.u64(..)));
                }
                Op::Leave(at) if members.len() > usize::from(*at) => {
                    drop(members.remove(usize::from(*at)));
                }
                Op::Leave(_) => {}
                Op::Wait(millis) => {
                    tokio::time::sleep(Duration::from_millis(u64::from(*millis))).await;
                }
            }
        }
        tokio::time::sleep(4 * SOON).await;
        prop_assert!(informer.has_synced());
        prop_assert_eq!(content(&informer), cluster.names());
        for (fold, planned, registration) in &members {
            let status = registration.status();
            prop_assert_eq!(fold.lock().content(), cluster.names(), "{:?}", status);
            let planned = planned.load(Ordering::SeqCst) as u64;
            prop_assert_eq!(
                status.panics,
                planned,
                "any other is a broken order: {:?}",
                status
            );
            prop_assert_eq!(status.waiting, 0);
            prop_assert!(status.synced);
        }
        informer.stop().await;
        prop_assert_eq!(informer.crew_size(), 0);
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// I-S1, I-S2, I-S12: whatever happens, and however slow or faulty handlers are, what each was
    /// told adds up to the cache, and the cache is what the cluster is.
    #[test]
    fn every_handler_ends_with_the_view_of_the_cache(ops in ops(), seed in any::<u64>()) {
        run(&ops, seed)?;
    }
}

/// Handlers come and go at random from several threads while events flow, and the informer is
/// stopped midway. No task is left, and no handler got a first add missed or doubled.
#[test]
fn a_thousand_handlers_come_and_go_while_events_flow() {
    const THREADS: usize = 4;
    const HANDLERS: usize = 1_000;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let cluster = Cluster::with(&["a", "b", "c", "d"]);
    let informer = informer(&cluster).build();
    runtime.block_on(async {
        informer.start().unwrap();
        informer.wait_for_sync(SOON).await.unwrap();
    });
    let joined = Arc::new(AtomicUsize::new(0));
    let events = Arc::new(AtomicUsize::new(0));
    let joiners: Vec<_> = (0..THREADS as u64)
        .map(|seed| {
            let (informer, joined, events) = (informer.clone(), joined.clone(), events.clone());
            std::thread::spawn(move || {
                come_and_go(&informer, seed, HANDLERS / THREADS, &joined, &events)
            })
        })
        .collect();
    let mut rng = fastrand::Rng::with_seed(5);
    let mut flow_while = |goes_on: &dyn Fn() -> bool| {
        while goes_on() {
            let name = ["a", "b", "c", "d"][rng.usize(..4)];
            put_or_delete_named(&cluster, rng.u8(..4) > 0, name);
            if events.fetch_add(1, Ordering::SeqCst).is_multiple_of(64) {
                std::thread::yield_now();
            }
        }
    };
    let all_ended = || joiners.iter().all(std::thread::JoinHandle::is_finished);
    flow_while(&|| joined.load(Ordering::SeqCst) < HANDLERS / 2 && !all_ended());
    runtime.block_on(informer.stop());
    // However the threads are scheduled, more events flow than handlers come.
    flow_while(&|| !all_ended() || events.load(Ordering::SeqCst) <= HANDLERS);
    assert!(events.load(Ordering::SeqCst) > HANDLERS);
    let mut refused = 0;
    for joiner in joiners {
        let (kept, were_refused) = joiner.join().expect("no handler broke its order");
        refused += were_refused;
        for (fold, registration) in kept {
            let status = registration.status();
            assert_eq!(status.panics, 0, "a panic is a broken order: {status:?}");
            assert!(status.removed);
            assert!(fold.lock().objects.len() <= 4);
        }
    }
    assert!(refused > 0, "some came too late");
    assert_eq!(informer.crew_size(), 0);
    assert_eq!(cluster.watchers(), 0);
    assert!(informer.status().handlers.is_empty());
}

/// Register handlers of every policy, and remove most of them again at random.
fn come_and_go(
    informer: &SharedInformer<Pod>,
    seed: u64,
    handlers: usize,
    joined: &AtomicUsize,
    events: &AtomicUsize,
) -> (Vec<Member>, usize) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut kept, mut refused) = (Vec::new(), 0);
    for _ in 0..handlers {
        let (fold, handler) = Fold::shared();
        let options = HandlerOptions::default().policy(*rng.choice(&POLICIES).unwrap());
        match informer.add_handler_with(&options, handler) {
            Ok(registration) => kept.push((fold, registration)),
            Err(AddHandlerError::Stopped { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        joined.fetch_add(1, Ordering::SeqCst);
        if kept.len() > 10 {
            let (fold, registration) = kept.swap_remove(rng.usize(..kept.len()));
            assert_eq!(registration.status().panics, 0, "{:?}", fold.lock().objects);
        }
        // However the threads are scheduled, something happens between two handlers.
        let events_before = events.load(Ordering::SeqCst);
        while events.load(Ordering::SeqCst) == events_before {
            std::thread::yield_now();
        }
    }
    (kept, refused)
}
