//! What can be handed out now, in order.
use super::links::{Linked, Links, List};
use super::priority::{Priority, PriorityConfig};
use super::slots::{SlotId, Slots};
use crate::clock::Timestamp;
use ahash::RandomState;
use hashbrown::HashMap;
use slab::Slab;

/// The ready entries: first by level, within it by turns of the tenants (if there are any), within
/// those in the order of the first adds.
pub(super) struct Ready {
    levels: [Level; Priority::COUNT],
    /// For each level, how many hand-outs have passed it over since its last.
    passed: [u32; Priority::COUNT],
    config: PriorityConfig,
    len: usize,
}

impl Ready {
    pub(super) fn new(config: PriorityConfig, by_tenant: bool) -> Self {
        Self {
            levels: std::array::from_fn(|_| Level::new(by_tenant)),
            passed: [0; Priority::COUNT],
            config: PriorityConfig {
                share: config.share.max(2),
                aged_share: config.aged_share.max(2),
                ..config
            },
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn push<K>(&mut self, slots: &mut Slots<K>, id: SlotId) {
        let slot = slots.get(id);
        let (level, tenant) = (slot.priority.index(), slot.tenant);
        self.levels[level].push(slots, id, tenant);
        self.len += 1;
    }

    pub(super) fn remove<K>(&mut self, slots: &mut Slots<K>, id: SlotId) {
        let slot = slots.get(id);
        let (level, tenant) = (slot.priority.index(), slot.tenant);
        self.levels[level].remove(slots, id, tenant);
        self.len -= 1;
    }

    /// Take the next entry. `now` is asked only when levels compete.
    #[inline]
    pub(super) fn pop<K>(
        &mut self,
        slots: &mut Slots<K>,
        now: impl FnOnce() -> Timestamp,
    ) -> Option<SlotId> {
        if self.len == 0 {
            return None;
        }
        let only = Priority::Normal.index();
        let level = if self.levels[only].len == self.len {
            only
        } else {
            self.choose(slots, now)
        };
        self.len -= 1;
        self.levels[level].pop(slots)
    }

    /// The most urgent level, unless a lower one has been passed over as often as its share allows.
    fn choose<K>(&mut self, slots: &Slots<K>, now: impl FnOnce() -> Timestamp) -> usize {
        let mut waiting = (0..Priority::COUNT).filter(|&level| self.levels[level].len > 0);
        let lowest = waiting.next().unwrap_or_default();
        let Some(highest) = waiting.next_back() else {
            return lowest;
        };
        let now = now();
        let turn = (lowest..highest).find(|&level| {
            let next = self.levels[level].next().map(|id| slots.get(id));
            let aged = next.is_some_and(|next| {
                next.added_at
                    .get()
                    .is_none_or(|at| now.since(at) >= self.config.age_after)
            });
            let share = if aged {
                self.config.aged_share
            } else {
                self.config.share
            };
            #[cfg(informant_mutant = "priority_without_a_share")]
            let share = u32::MAX;
            self.levels[level].len > 0 && self.passed[level] + 1 >= share
        });
        let chosen = turn.unwrap_or(highest);
        for level in lowest..highest {
            if self.levels[level].len > 0 {
                self.passed[level] += 1;
            }
        }
        self.passed[chosen] = 0;
        chosen
    }
}

/// The entries of one priority.
struct Level {
    len: usize,
    order: Order,
}

enum Order {
    Plain(List),
    Fair(Turns),
}

impl Level {
    fn new(by_tenant: bool) -> Self {
        Self {
            len: 0,
            order: if by_tenant {
                Order::Fair(Turns::new())
            } else {
                Order::Plain(List::new())
            },
        }
    }

    #[inline]
    fn push<K>(&mut self, slots: &mut Slots<K>, id: SlotId, tenant: u32) {
        self.len += 1;
        match &mut self.order {
            Order::Plain(list) => list.push_back(slots, id),
            Order::Fair(turns) => turns.push(slots, id, tenant),
        }
    }

    #[inline]
    fn pop<K>(&mut self, slots: &mut Slots<K>) -> Option<SlotId> {
        self.len -= 1;
        match &mut self.order {
            Order::Plain(list) => list.pop_front(slots),
            Order::Fair(turns) => turns.pop(slots),
        }
    }

    fn remove<K>(&mut self, slots: &mut Slots<K>, id: SlotId, tenant: u32) {
        self.len -= 1;
        match &mut self.order {
            Order::Plain(list) => list.remove(slots, id),
            Order::Fair(turns) => turns.remove(slots, id, tenant),
        }
    }

    /// The entry that is next when this level has its turn.
    fn next(&self) -> Option<SlotId> {
        match &self.order {
            Order::Plain(list) => list.front(),
            Order::Fair(turns) => turns.next(),
        }
    }
}

/// One entry of each tenant in turn, whatever the number of its entries. Costs memory only for
/// tenants with something ready.
struct Turns {
    tenants: Tenants,
    by_hash: HashMap<u32, u32, RandomState>,
    turn: List,
}

struct Tenants(Slab<Tenant>);

struct Tenant {
    hash: u32,
    entries: List,
    links: Links,
}

impl Linked for Tenants {
    fn links(&mut self, id: u32) -> &mut Links {
        &mut self.0[id as usize].links
    }
}

impl Turns {
    fn new() -> Self {
        Self {
            tenants: Tenants(Slab::new()),
            by_hash: HashMap::with_hasher(RandomState::new()),
            turn: List::new(),
        }
    }

    fn push<K>(&mut self, slots: &mut Slots<K>, id: SlotId, hash: u32) {
        let tenants = &mut self.tenants;
        let tenant = *self.by_hash.entry(hash).or_insert_with(|| {
            let tenant = tenants.0.insert(Tenant {
                hash,
                entries: List::new(),
                links: Links::UNLINKED,
            });
            // There are no more tenants than slots, whose numbers fit.
            let tenant = u32::try_from(tenant).unwrap_or(u32::MAX);
            self.turn.push_back(tenants, tenant);
            tenant
        });
        self.tenants.0[tenant as usize].entries.push_back(slots, id);
    }

    fn pop<K>(&mut self, slots: &mut Slots<K>) -> Option<SlotId> {
        let tenant = self.turn.pop_front(&mut self.tenants)?;
        let entries = &mut self.tenants.0[tenant as usize].entries;
        let id = entries.pop_front(slots);
        if entries.is_empty() {
            self.forget(tenant);
        } else {
            self.turn.push_back(&mut self.tenants, tenant);
        }
        id
    }

    fn remove<K>(&mut self, slots: &mut Slots<K>, id: SlotId, hash: u32) {
        let Some(&tenant) = self.by_hash.get(&hash) else {
            return;
        };
        let entries = &mut self.tenants.0[tenant as usize].entries;
        entries.remove(slots, id);
        if entries.is_empty() {
            self.turn.remove(&mut self.tenants, tenant);
            self.forget(tenant);
        }
    }

    fn forget(&mut self, tenant: u32) {
        let Tenant { hash, .. } = self.tenants.0.remove(tenant as usize);
        self.by_hash.remove(&hash);
    }

    fn next(&self) -> Option<SlotId> {
        let tenant = self.turn.front()?;
        self.tenants.0[tenant as usize].entries.front()
    }
}
