//! The mailbox against a plain model: a map, and the list of everything that ever happened.
use super::super::event::Notice;
use super::*;
use crate::delta::{Deleted, SourceId};
use crate::indexer::{Change, Effective};
use crate::object::{Cached, Incoming, Meta, ObjectKey};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::task::Waker;

type Store = BTreeMap<ObjectKey, Cached<u64>>;

struct Frozen(Vec<Cached<u64>>);

impl Contents<u64> for Frozen {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn objects(&self) -> Vec<Cached<u64>> {
        self.0.clone()
    }
}

fn frozen(store: &Store) -> Box<dyn Contents<u64>> {
    Box::new(Frozen(store.values().cloned().collect()))
}

/// A store that says what each batch did to it, step by step and in net.
#[derive(Default)]
struct Model {
    store: Store,
    version: u64,
    steps_made: usize,
}

#[derive(Clone, Copy, Debug)]
enum Raw {
    Upsert(u8),
    Delete(u8),
    Recreate(u8),
}

impl Model {
    fn object(&mut self, key: u8, uid: Option<&str>) -> Cached<u64> {
        self.version += 1;
        let uid = uid.map_or_else(|| format!("u{}", self.version), str::to_owned);
        let meta = Meta::new("ns", &format!("k{key}"), &uid, &self.version.to_string()).unwrap();
        Cached::from(Incoming::new(meta, self.version))
    }

    fn apply(&mut self, batch: &[Raw], initial: bool, reset: bool) -> Round<u64> {
        let before = self.store.clone();
        let (mut steps, mut order, mut ends) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut changed = |key: &ObjectKey| {
            if !order.contains(key) {
                order.push(key.clone());
            }
        };
        for raw in batch {
            let number = match *raw {
                Raw::Upsert(k) | Raw::Delete(k) | Raw::Recreate(k) => k,
            };
            let key = ObjectKey::new("ns", &format!("k{number}")).unwrap();
            let stored = self.store.get(&key).cloned();
            if matches!(raw, Raw::Delete(_) | Raw::Recreate(_))
                && let Some(old) = self.store.remove(&key)
            {
                changed(&key);
                let deleted = Deleted::known(old);
                if before.get(&key).is_some_and(|o| o.uid() == &deleted.uid) {
                    ends.insert(key.clone(), deleted.clone());
                }
                steps.push(Effective::Deleted {
                    deleted: Box::new(deleted),
                });
            }
            match (raw, stored) {
                (Raw::Upsert(_), Some(old)) => {
                    let new = self.object(number, Some(&old.uid().to_string()));
                    changed(&key);
                    self.store.insert(key, new.clone());
                    steps.push(Effective::Updated { old, new });
                }
                (Raw::Upsert(_) | Raw::Recreate(_), _) => {
                    let new = self.object(number, None);
                    changed(&key);
                    self.store.insert(key, new.clone());
                    steps.push(Effective::Added { new, initial });
                }
                (Raw::Delete(_), _) => {}
            }
        }
        let net = order
            .iter()
            .filter_map(|key| {
                let (old, new) = (before.get(key).cloned(), self.store.get(key).cloned());
                (old.is_some() || new.is_some()).then(|| Change {
                    deleted: ends.get(key).cloned().map(Box::new),
                    initial: initial && new.is_some(),
                    old,
                    new,
                })
            })
            .collect();
        self.steps_made += steps.len();
        let resets = if reset { vec![SourceId(0)] } else { Vec::new() };
        Round::new(net, Some(steps), resets)
    }
}

/// What one handler makes of what it is told; it refuses whatever breaks the order of a key.
#[derive(Default)]
struct View {
    seen: Store,
    told: usize,
    resynced: usize,
    resets: usize,
    replays: usize,
    initial: usize,
}

impl View {
    /// I-S1: per key Add (Update)* Delete, and `old` is the very object that was given last.
    fn hear(&mut self, notice: Notice<'_, u64>) {
        self.told += 1;
        match notice {
            Notice::Added { object, initial } => {
                self.initial += usize::from(initial);
                let known = self.seen.insert(object.key().clone(), object.clone());
                assert!(known.is_none(), "added twice: {notice:?}");
            }
            Notice::Updated { old, new } => {
                let known = self.seen.insert(new.key().clone(), new.clone());
                assert!(
                    known.as_ref().is_some_and(|known| known.ptr_eq(old)),
                    "the old of {notice:?} is not what was given last: {known:?}"
                );
                assert_eq!(old.uid(), new.uid(), "a re-created object is no update");
                self.resynced += usize::from(old.ptr_eq(new));
                self.told -= usize::from(old.ptr_eq(new));
            }
            Notice::Deleted(deleted) => {
                let known = self.seen.remove(&deleted.key);
                assert!(
                    known.is_some_and(|known| known.uid() == &deleted.uid),
                    "deleted but never added: {notice:?}"
                );
            }
            Notice::Reset(_) => self.resets += 1,
            Notice::Replay => {
                self.replays += 1;
                self.seen.clear();
            }
        }
    }

    fn hear_chunk(&mut self, mailbox: &Mailbox<u64>, chunk: &Chunk<u64>) {
        let mut initial = 0;
        for at in 0..chunk.len() {
            let telling = chunk.telling(at);
            self.hear(telling.first);
            if let Some(second) = telling.second {
                self.hear(second);
            }
            initial += usize::from(telling.initial);
        }
        assert_eq!(initial, chunk.initial_len());
        mailbox.initial_returned(initial);
    }

    /// Take one chunk; false when nothing waits.
    fn take_one(&mut self, mailbox: &Mailbox<u64>) -> bool {
        match mailbox.poll_take(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(chunk)) => {
                self.hear_chunk(mailbox, &chunk);
                true
            }
            Poll::Ready(None) | Poll::Pending => false,
        }
    }

    fn take_all(&mut self, mailbox: &Mailbox<u64>) {
        while self.take_one(mailbox) {}
    }
}

fn assert_same(view: &Store, store: &Store) {
    assert_eq!(
        view.keys().collect::<Vec<_>>(),
        store.keys().collect::<Vec<_>>()
    );
    assert!(
        view.iter().all(|(key, seen)| seen.ptr_eq(&store[key])),
        "{view:?} {store:?}"
    );
}

#[derive(Clone, Debug)]
enum Op {
    Batch {
        raws: Vec<Raw>,
        resync: bool,
        reset: bool,
    },
    /// More changes than the dispatcher leaves as they are, with this many chunks taken between.
    Flood(u8),
    Take(u8),
}

fn raws() -> impl Strategy<Value = Vec<Raw>> {
    let raw = (0..3u8, 0..6u8).prop_map(|(kind, key)| match kind {
        0 => Raw::Upsert(key),
        1 => Raw::Delete(key),
        _ => Raw::Recreate(key),
    });
    proptest::collection::vec(raw, 0..8)
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let batch = (
        raws(),
        proptest::bool::weighted(0.15),
        proptest::bool::weighted(0.1),
    )
        .prop_map(|(raws, resync, reset)| Op::Batch {
            raws,
            resync,
            reset,
        });
    let op = prop_oneof![
        6 => batch,
        1 => (0..6u8).prop_map(Op::Flood),
        4 => (0..4u8).prop_map(Op::Take),
    ];
    proptest::collection::vec(op, 0..40)
}

fn policies() -> impl Strategy<Value = Policy> {
    let past_limit = prop_oneof![
        Just(PastLimit::Coalesce),
        Just(PastLimit::Replay),
        Just(PastLimit::Block)
    ];
    prop_oneof![
        3 => Just(Policy::Coalesce),
        1 => Just(Policy::Unbounded),
        4 => (1..20usize, past_limit).prop_map(|(limit, past)| Policy::lossless(limit, past)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// I-S1, I-S2, I-S3, I-S4: for every policy, at random speeds, from a late or an early start,
    /// what the handler was told adds up to the store, in the order of each key.
    #[test]
    fn what_a_handler_is_told_adds_up_to_the_store(
        policy in policies(),
        late in any::<bool>(),
        before in proptest::collection::vec((0..6u8).prop_map(Raw::Upsert), 0..6),
        ops in ops(),
    ) {
        let (mut model, mut view) = (Model::default(), View::default());
        let mailbox = Mailbox::new(policy);
        let first = model.apply(&before, true, false);
        let steps_before = if late { model.steps_made } else { 0 };
        let initial = model.store.len();
        if late {
            mailbox.start((initial > 0).then(|| frozen(&model.store)), true);
        } else {
            mailbox.start(None, false);
            let store = model.store.clone();
            mailbox.push(&first, false, true, &|| frozen(&store), &mut Merges::new());
        }
        prop_assert_eq!(mailbox.has_synced(), initial == 0);
        let (mut resets, mut merges) = (0, Merges::new());
        for op in &ops {
            match op {
                Op::Batch { raws, resync, reset } => {
                    resets += usize::from(*reset);
                    let round = model.apply(raws, false, *reset);
                    let store = model.store.clone();
                    mailbox.push(&round, *resync, true, &|| frozen(&store), &mut merges);
                }
                Op::Flood(chunks) => {
                    let raws: Vec<_> = (0..6).map(Raw::Upsert).collect();
                    for push in 0..12 {
                        let round = model.apply(&raws, false, false);
                        let store = model.store.clone();
                        mailbox.push(&round, false, true, &|| frozen(&store), &mut merges);
                        if push % 6 < *chunks {
                            view.take_one(&mailbox);
                        }
                    }
                }
                Op::Take(chunks) => {
                    for _ in 0..*chunks {
                        view.take_one(&mailbox);
                    }
                }
            }
            let stats = mailbox.stats();
            if let (Some(limit), Some(PastLimit::Replay)) = (policy.limit(), policy.past_limit()) {
// Beside them, a start and a resync of six keys at the most.
                prop_assert!(stats.waiting <= limit + 12);
            }
        }
        view.take_all(&mailbox);
        assert_same(&view.seen, &model.store);
        prop_assert!(mailbox.has_synced());
        prop_assert_eq!(mailbox.stats().waiting, 0);
        prop_assert!(view.resets <= resets);
        if policy == Policy::Unbounded {
            // Every step, exactly once, beside the start and the resets.
            let start = if late { initial } else { 0 };
            prop_assert_eq!(view.told - view.resets, model.steps_made - steps_before + start);
            prop_assert_eq!(view.resets, resets);
        }
        if policy == Policy::Coalesce {
            prop_assert_eq!(resets > 0, view.resets > 0);
        }
        prop_assert!(view.replays as u64 <= mailbox.stats().replays);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Handlers that lag at different places get merges of what *they* have waiting.
    #[test]
    fn handlers_that_lag_share_merges_and_keep_their_own_place(
        rounds in proptest::collection::vec((raws(), proptest::option::of(0..3usize)), 0..60),
    ) {
        let mailboxes = [(); 3].map(|()| Mailbox::new(Policy::Coalesce));
        let mut views = [(); 3].map(|()| View::default());
        let mut model = Model::default();
        for mailbox in &mailboxes {
            mailbox.start(None, true);
        }
        for (raws, taker) in &rounds {
            let round = model.apply(raws, false, false);
            let (store, mut merges) = (model.store.clone(), Merges::new());
            for mailbox in &mailboxes {
                mailbox.push(&round, false, true, &|| frozen(&store), &mut merges);
            }
            if let Some(taker) = *taker {
                views[taker].take_one(&mailboxes[taker]);
            }
        }
        for (mailbox, view) in mailboxes.iter().zip(&mut views) {
            view.take_all(mailbox);
            assert_same(&view.seen, &model.store);
            prop_assert!(mailbox.has_synced());
        }
    }
}

fn pushed(mailbox: &Mailbox<u64>, model: &mut Model, raws: &[Raw]) {
    let round = model.apply(raws, false, false);
    let store = model.store.clone();
    mailbox.push(&round, false, true, &|| frozen(&store), &mut Merges::new());
}

fn started(policy: Policy) -> (Mailbox<u64>, Model, View) {
    let mailbox = Mailbox::new(policy);
    mailbox.start(None, true);
    (mailbox, Model::default(), View::default())
}

#[test]
fn a_hot_key_costs_a_coalescing_handler_one_call() {
    let (mailbox, mut model, mut view) = started(Policy::Coalesce);
    for _ in 0..100_000 {
        pushed(&mailbox, &mut model, &[Raw::Upsert(1)]);
    }
    assert!(
        mailbox.stats().waiting <= FOLD_AT,
        "what waits is bounded: {:?}",
        mailbox.stats()
    );
    view.take_all(&mailbox);
    assert_eq!(view.told, 1);
    assert_same(&view.seen, &model.store);
}

#[test]
fn what_a_handler_never_saw_cancels_out() {
    let (mailbox, mut model, mut view) = started(Policy::Coalesce);
    for _ in 0..3 * FOLD_AT {
        pushed(&mailbox, &mut model, &[Raw::Upsert(1)]);
        pushed(&mailbox, &mut model, &[Raw::Delete(1)]);
    }
    view.take_all(&mailbox);
    assert_eq!(view.told, 0);
}

#[test]
fn a_coalesced_recreation_is_told_as_delete_then_add() {
    let (mailbox, mut model, mut view) = started(Policy::Coalesce);
    pushed(&mailbox, &mut model, &[Raw::Upsert(1)]);
    view.take_all(&mailbox);
    for _ in 0..5 {
        pushed(&mailbox, &mut model, &[Raw::Recreate(1)]);
    }
    view.take_all(&mailbox);
    assert_eq!(view.told, 3, "added; deleted, added");
    assert_same(&view.seen, &model.store);
}

#[test]
fn lossless_is_exact_at_its_limit_and_coalesces_one_past_it() {
    let (mailbox, mut model, mut view) = started(Policy::lossless(3, PastLimit::Coalesce));
    pushed(&mailbox, &mut model, &[Raw::Upsert(1); 3]);
    assert!(!mailbox.stats().overflowing);
    view.take_all(&mailbox);
    assert_eq!(view.told, 3);
    pushed(&mailbox, &mut model, &[Raw::Upsert(1); 4]);
    assert!(mailbox.stats().overflowing);
    pushed(&mailbox, &mut model, &[Raw::Upsert(1); 50]);
    view.take_all(&mailbox);
    assert_eq!(view.told, 3 + 4, "three exact, the other 51 as one");
    assert_same(&view.seen, &model.store);
    pushed(&mailbox, &mut model, &[Raw::Upsert(1); 2]);
    assert!(!mailbox.stats().overflowing, "it has caught up");
    view.take_all(&mailbox);
    assert_eq!(view.told, 3 + 4 + 2);
}

#[test]
fn a_lossless_handler_that_replays_starts_over_from_the_present() {
    let (mailbox, mut model, mut view) = started(Policy::lossless(2, PastLimit::Replay));
    pushed(&mailbox, &mut model, &[Raw::Upsert(1), Raw::Upsert(2)]);
    view.take_all(&mailbox);
    pushed(&mailbox, &mut model, &[Raw::Upsert(1), Raw::Delete(2)]);
    pushed(&mailbox, &mut model, &[Raw::Upsert(3)]);
    view.take_all(&mailbox);
    assert_eq!((view.replays, view.told), (1, 2 + 1 + 2));
    assert_same(&view.seen, &model.store);
}

#[test]
fn a_blocking_handler_has_no_room_past_its_limit() {
    let (mailbox, mut model, mut view) = started(Policy::lossless(2, PastLimit::Block));
    let mut context = Context::from_waker(Waker::noop());
    pushed(&mailbox, &mut model, &[Raw::Upsert(1); 2]);
    assert!(mailbox.poll_room(&mut context).is_ready());
    pushed(&mailbox, &mut model, &[Raw::Upsert(1)]);
    assert!(mailbox.poll_room(&mut context).is_pending());
    view.take_one(&mailbox);
    assert!(mailbox.poll_room(&mut context).is_ready());
    pushed(&mailbox, &mut model, &[Raw::Upsert(1); 9]);
    assert!(mailbox.poll_room(&mut context).is_pending());
    mailbox.close();
    assert!(mailbox.poll_room(&mut context).is_ready(), "removal frees");
}

#[test]
fn a_handler_that_never_reads_pins_neither_its_snapshot_nor_the_batches() {
    let mut model = Model::default();
    model.apply(&[Raw::Upsert(1), Raw::Upsert(2)], true, false);
    let mailbox = Mailbox::new(Policy::Coalesce);
    mailbox.start(Some(frozen(&model.store)), true);
    for _ in 0..FOLD_AT {
        pushed(&mailbox, &mut model, &[Raw::Upsert(1)]);
    }
    assert_eq!(mailbox.stats().waiting, 2, "one entry per key");
    let mut view = View::default();
    view.take_all(&mailbox);
    assert_eq!(view.initial, 2, "still part of its initial list");
    assert_same(&view.seen, &model.store);
    assert!(mailbox.has_synced());
}

#[test]
fn a_resync_announces_what_nothing_else_does() {
    for policy in [Policy::Coalesce, Policy::Unbounded] {
        let (mailbox, mut model, mut view) = started(policy);
        pushed(&mailbox, &mut model, &[Raw::Upsert(1), Raw::Upsert(2)]);
        view.take_all(&mailbox);
        let round = model.apply(&[Raw::Upsert(1)], false, false);
        let store = model.store.clone();
        // The second resync comes due while the first waits.
        mailbox.push(&round, true, true, &|| frozen(&store), &mut Merges::new());
        let round = model.apply(&[], false, false);
        mailbox.push(&round, true, true, &|| frozen(&store), &mut Merges::new());
        view.take_all(&mailbox);
        assert_eq!((view.told, view.resynced), (3, 1), "{policy:?}");
    }
}

/// I-S4: synced means that the initial tellings have *returned*, and the cache is synced.
#[test]
fn synced_means_that_the_initial_tellings_have_returned() {
    for policy in [Policy::Coalesce, Policy::Unbounded] {
        let mut model = Model::default();
        let mailbox = Mailbox::new(policy);
        mailbox.start(None, false);
        let mut push = |raws: &[Raw], initial, synced| {
            let round = model.apply(raws, initial, false);
            let store = model.store.clone();
            mailbox.push(
                &round,
                false,
                synced,
                &|| frozen(&store),
                &mut Merges::new(),
            );
        };
        push(&[], false, false);
        assert!(!mailbox.has_synced(), "the cache is not");
        push(&[Raw::Upsert(1), Raw::Upsert(2)], true, true);
        let chunk = mailbox.poll_take(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(chunk, Poll::Ready(Some(ref chunk)) if chunk.len() == 2));
        mailbox.initial_returned(chunk_initial(&chunk) - 1);
        assert!(!mailbox.has_synced(), "one call still runs");
        push(&[Raw::Upsert(3)], false, true);
        mailbox.initial_returned(1);
        assert!(mailbox.has_synced(), "later changes do not count");
    }
}

fn chunk_initial(chunk: &Poll<Option<Chunk<u64>>>) -> usize {
    match chunk {
        Poll::Ready(Some(chunk)) => chunk.initial_len(),
        _ => 0,
    }
}

#[test]
fn nothing_is_told_after_closing() {
    let (mailbox, mut model, mut view) = started(Policy::Coalesce);
    pushed(&mailbox, &mut model, &[Raw::Upsert(1)]);
    mailbox.close();
    pushed(&mailbox, &mut model, &[Raw::Upsert(2)]);
    assert!(!view.take_one(&mailbox));
    assert_eq!(mailbox.stats().waiting, 0, "buffers are freed at once");
    let take = mailbox.poll_take(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(take, Poll::Ready(None)));
}
