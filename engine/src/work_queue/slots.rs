//! Everything the queue knows of a key, in one place: each key is stored once and hashed once.
use super::links::{Linked, Links, NONE};
use super::operation::Keyed;
use super::priority::Priority;
use crate::clock::Timestamp;
use hashbrown::HashTable;
use std::sync::Arc;
use std::time::Duration;

/// The number of a slot. Numbers are used again; hand-outs are told apart by their own numbers.
pub(super) type SlotId = u32;

/// The key of a slot, shared with the item that is handed out: handing out copies no key, and the
/// allocation is used again for the slot's next key. Empty while the slot is free.
pub(super) struct KeyCell<K>(Option<K>);

impl<K> KeyCell<K> {
    pub(super) fn key(&self) -> &K {
        self.0
            .as_ref()
            .expect("a key is taken out only when nobody else holds its cell")
    }
}

/// What is left of a key that the queue forgets: to be dropped when no lock is held.
pub(super) enum Retired<K> {
    Key(#[allow(dead_code)] Option<K>),
    /// Somebody still looks at it.
    Shared(#[allow(dead_code)] Option<Arc<KeyCell<K>>>),
}

/// Where a key stands, apart from a delay that may be pending beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing to do now: only a delay keeps the slot.
    Idle,
    /// In the queue.
    Ready,
    /// To be handed out once its condition is fulfilled.
    Held,
    /// Handed out.
    Running,
    /// Handed out, and added again since.
    RunningDirty,
}

/// A point in time, or none, in eight bytes: good for 584 years.
#[derive(Clone, Copy)]
pub(super) struct Stamp(u64);

impl Stamp {
    pub(super) const NONE: Self = Self(u64::MAX);

    pub(super) fn at(time: Timestamp) -> Self {
        Self(u64::try_from(time.since_origin().as_nanos()).unwrap_or(u64::MAX - 1))
    }

    pub(super) fn get(self) -> Option<Timestamp> {
        (self.0 != u64::MAX).then(|| Timestamp::new(Duration::from_nanos(self.0)))
    }
}

/// Fills one cache line.
#[repr(align(64))]
pub(super) struct Slot<K> {
    /// `None` only while the slot is free and its last cell was still held elsewhere.
    cell: Option<Arc<KeyCell<K>>>,
    pub(super) hash: u64,
    links: Links,
    pub(super) stage: Stage,
    /// Of the entry that is ready, held or running.
    pub(super) priority: Priority,
    /// Of the entry that waits for the running one to end.
    pub(super) next_priority: Priority,
    /// Of the delay: the priority with which it is due, and whether it is a backoff.
    pub(super) delayed_priority: Priority,
    pub(super) backing_off: bool,
    /// The gate was asked about this entry, and its hold has ended.
    pub(super) passed: bool,
    /// Index in the heap of delays.
    pub(super) delay_at: u32,
    /// Whose turn it counts as.
    pub(super) tenant: u32,
    /// The number of the hand-out that runs.
    pub(super) hand_out: u64,
    /// First add of the entry that is ready or held; of the waiting one while another runs.
    pub(super) added_at: Stamp,
    pub(super) started_at: Stamp,
}

impl<K> Slot<K> {
    /// The next slot in the list that holds this one.
    pub(super) const fn after(&self) -> SlotId {
        self.links.after()
    }
}

pub(super) struct Slots<K> {
    all: Vec<Slot<K>>,
    by_key: HashTable<SlotId>,
    first_free: SlotId,
}

impl<K> Linked for Slots<K> {
    #[inline]
    fn links(&mut self, id: SlotId) -> &mut Links {
        &mut self.all[id as usize].links
    }
}

impl<K> Slots<K> {
    pub(super) const fn new() -> Self {
        Self {
            all: Vec::new(),
            by_key: HashTable::new(),
            first_free: NONE,
        }
    }

    #[cfg(all(test, feature = "tokio", not(informant_loom)))]
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    #[cfg(all(test, feature = "tokio", not(informant_loom)))]
    pub(super) fn capacity(&self) -> usize {
        self.all.len()
    }

    #[inline]
    pub(super) fn get(&self, id: SlotId) -> &Slot<K> {
        &self.all[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: SlotId) -> &mut Slot<K> {
        &mut self.all[id as usize]
    }

    /// The slot that runs as this hand-out, unless that has ended.
    #[inline]
    pub(super) fn running(&self, id: SlotId, hand_out: u64) -> Option<&Slot<K>> {
        self.all.get(id as usize).filter(|slot| {
            slot.hand_out == hand_out && matches!(slot.stage, Stage::Running | Stage::RunningDirty)
        })
    }

    pub(super) fn cell(&self, id: SlotId) -> Arc<KeyCell<K>> {
        let cell = self.get(id).cell.as_ref();
        cell.expect("a used slot has its key").clone()
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: &K) -> Option<SlotId>
    where
        K: Eq,
    {
        let same = |&id: &SlotId| {
            let slot = self.get(id);
            slot.hash == hash && slot.cell.as_ref().is_some_and(|cell| cell.key() == key)
        };
        self.by_key.find(hash, same).copied()
    }

    #[inline]
    pub(super) fn insert(&mut self, keyed: &mut Keyed<K>) -> SlotId {
        let hash = keyed.hash;
        let id = match self.first_free {
            NONE => self.grow(),
            id => id,
        };
        let slot = &mut self.all[id as usize];
        self.first_free = slot.links.after();
        match slot.cell.as_mut().and_then(Arc::get_mut) {
            Some(cell) => cell.0 = keyed.key.take(),
            None => slot.cell = Some(Arc::new(KeyCell(keyed.key.take()))),
        }
        slot.hash = hash;
        slot.tenant = keyed.tenant;
        let all = &self.all;
        self.by_key
            .insert_unique(hash, id, |&id| all[id as usize].hash);
        id
    }

    #[cold]
    fn grow(&mut self) -> SlotId {
        let id = SlotId::try_from(self.all.len()).unwrap_or(NONE);
        assert_ne!(id, NONE, "a work queue holds fewer than 2^32 - 1 keys");
        self.all.push(Slot {
            cell: None,
            hash: 0,
            links: Links::UNLINKED,
            stage: Stage::Idle,
            priority: Priority::Normal,
            next_priority: Priority::Normal,
            delayed_priority: Priority::Normal,
            backing_off: false,
            passed: false,
            delay_at: NONE,
            tenant: 0,
            hand_out: 0,
            added_at: Stamp::NONE,
            started_at: Stamp::NONE,
        });
        id
    }

    /// Forget the key of a slot with neither work nor delay.
    #[inline]
    fn remove(&mut self, id: SlotId) -> Retired<K> {
        let first_free = self.first_free;
        let slot = &mut self.all[id as usize];
        debug_assert!(slot.stage == Stage::Idle && slot.delay_at == NONE);
        if let Ok(entry) = self.by_key.find_entry(slot.hash, |&other| other == id) {
            entry.remove();
        }
        slot.links = Links::to(first_free);
        self.first_free = id;
        match slot.cell.as_mut().and_then(Arc::get_mut) {
            Some(cell) => Retired::Key(cell.0.take()),
            None => Retired::Shared(slot.cell.take()),
        }
    }

    /// [`Slots::remove`] a slot that may have work or a delay: then it stays.
    #[inline]
    pub(super) fn remove_unused(&mut self, id: SlotId) -> Option<Retired<K>> {
        let slot = self.get(id);
        let unused = slot.stage == Stage::Idle && slot.delay_at == NONE;
        unused.then(|| self.remove(id))
    }

    /// No key is left of many.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        const KEPT: usize = 1024;
        self.by_key.is_empty() && self.all.len() > KEPT
    }

    /// Give back the memory of a burst that is over.
    pub(super) fn shrink(&mut self) -> Burst<K> {
        let by_key = std::mem::take(&mut self.by_key);
        self.first_free = NONE;
        Burst(std::mem::take(&mut self.all), by_key)
    }
}

/// The memory of a burst that is over: to be dropped when no lock is held.
pub(super) struct Burst<K>(
    #[allow(dead_code)] Vec<Slot<K>>,
    #[allow(dead_code)] HashTable<SlotId>,
);
