//! Who waits in a `get`, who of them watches the clock, and whom to wake.
use super::links::{Linked, Links, List};
use crate::clock::Timestamp;
use slab::Slab;
use smallvec::SmallVec;
use std::task::Waker;

/// Wakers to call once no lock is held.
pub(super) type Wakes = SmallVec<[Waker; 1]>;

/// The number of a waiting `get`.
pub(super) type WaiterId = u32;

/// The waiting `get`s. Each new entry wakes one of them, the one that waits longest. A woken one that
/// goes away without looking passes its wake-up on ([`Left::unused`]).
///
/// One of them, the *timekeeper*, sleeps until the next delay is due; the others only wait. When it
/// leaves it appoints another. The invariant: while anything is delayed and a waiter is in `idle`,
/// there is a timekeeper, and it sleeps no longer than until the next due time, or has been woken to
/// look. Without a waiter nobody needs to be woken: the next `get` looks at the clock itself.
pub(super) struct Waiters {
    arena: Arena,
    /// Those who were not woken, apart from the timekeeper.
    idle: List,
    keeper: Option<Keeper>,
}

struct Arena(Slab<Waiter>);

struct Waiter {
    /// `None` once it was called and until the waiter has looked.
    waker: Option<Waker>,
    state: WaiterState,
    links: Links,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaiterState {
    /// In the list of those to be woken.
    Idle,
    /// The timekeeper, not woken for an entry.
    Keeper,
    /// Woken for an entry that it has not looked for yet. May be the timekeeper as well.
    Woken,
}

struct Keeper {
    id: WaiterId,
    until: Timestamp,
}

impl Linked for Arena {
    fn links(&mut self, id: WaiterId) -> &mut Links {
        &mut self.0[id as usize].links
    }
}

/// What a waiter that leaves leaves behind.
pub(super) struct Left {
    /// It was woken for an entry and has not looked.
    pub(super) unused: bool,
}

impl Waiters {
    pub(super) const fn new() -> Self {
        Self {
            arena: Arena(Slab::new()),
            idle: List::new(),
            keeper: None,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.arena.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.arena.0.len()
    }

    /// Wait (again) with this waker, which is called when there is something to look at. Returns the
    /// time until which the caller must sleep, when it is the timekeeper; and the waker of before.
    pub(super) fn wait(
        &mut self,
        id: &mut Option<WaiterId>,
        waker: Waker,
        next_due: Option<Timestamp>,
    ) -> (Option<Timestamp>, Option<Waker>) {
        let mut replaced = None;
        let waiter = if let Some(waiter) = *id {
            let known = &mut self.arena.0[waiter as usize];
            replaced = known.waker.replace(waker);
            waiter
        } else {
            let new = self.arena.0.insert(Waiter {
                waker: Some(waker),
                state: WaiterState::Woken,
                links: Links::UNLINKED,
            });
            let new = u32::try_from(new).unwrap_or(u32::MAX);
            assert_ne!(new, u32::MAX, "fewer than 2^32 - 1 gets wait at once");
            *id = Some(new);
            new
        };
        let keeps = match &self.keeper {
            Some(keeper) => keeper.id == waiter,
            None => true,
        };
        match next_due {
            Some(until) if keeps => {
                self.unlink(waiter);
                self.arena.0[waiter as usize].state = WaiterState::Keeper;
                self.keeper = Some(Keeper { id: waiter, until });
                (Some(until), replaced)
            }
            _ => {
                if keeps {
                    self.keeper = None;
                }
                if self.arena.0[waiter as usize].state != WaiterState::Idle {
                    self.arena.0[waiter as usize].state = WaiterState::Idle;
                    self.idle.push_back(&mut self.arena, waiter);
                }
                (None, replaced)
            }
        }
    }

    /// The waiter goes: it has got something, or its future was dropped.
    pub(super) fn leave(
        &mut self,
        id: WaiterId,
        next_due: Option<Timestamp>,
        wakes: &mut Wakes,
    ) -> (Left, Option<Waker>) {
        self.unlink(id);
        let waiter = self.arena.0.remove(id as usize);
        if self.keeper.as_ref().is_some_and(|keeper| keeper.id == id) {
            self.keeper = None;
            #[cfg(not(informant_mutant = "timekeeper_leaves_nobody"))]
            self.keep_time(next_due, wakes);
        }
        let left = Left {
            unused: waiter.state == WaiterState::Woken,
        };
        (left, waiter.waker)
    }

    /// There is one entry more: wake one waiter for it.
    #[inline]
    pub(super) fn wake_one(&mut self, wakes: &mut Wakes) {
        if self.is_empty() {
            return;
        }
        let woken = match self.idle.pop_front(&mut self.arena) {
            Some(idle) => idle,
            // The timekeeper only when there is nobody else: its leaving costs a wake-up more.
            None => match &self.keeper {
                Some(keeper) if self.arena.0[keeper.id as usize].state == WaiterState::Keeper => {
                    keeper.id
                }
                _ => return,
            },
        };
        let waiter = &mut self.arena.0[woken as usize];
        waiter.state = WaiterState::Woken;
        wakes.extend(waiter.waker.take());
    }

    /// Something has changed for all of them.
    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        while self.idle.pop_front(&mut self.arena).is_some() {}
        for (_, waiter) in &mut self.arena.0 {
            waiter.state = WaiterState::Woken;
            wakes.extend(waiter.waker.take());
        }
    }

    /// The first due time is now `next_due`: see to it that somebody sleeps no longer than that.
    pub(super) fn keep_time(&mut self, next_due: Option<Timestamp>, wakes: &mut Wakes) {
        let Some(next_due) = next_due else { return };
        let keeper = match &mut self.keeper {
            Some(keeper) if keeper.until <= next_due => return,
            Some(keeper) => {
                keeper.until = next_due;
                keeper.id
            }
            None => {
                let Some(id) = self.idle.pop_front(&mut self.arena) else {
                    return;
                };
                self.arena.0[id as usize].state = WaiterState::Keeper;
                self.keeper = Some(Keeper {
                    id,
                    until: next_due,
                });
                id
            }
        };
        wakes.extend(self.arena.0[keeper as usize].waker.take());
    }

    fn unlink(&mut self, id: WaiterId) {
        if self.arena.0[id as usize].state == WaiterState::Idle {
            self.idle.remove(&mut self.arena, id);
        }
    }
}
