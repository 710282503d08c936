//! Who is registered: joins, leaves, and the hand-over of one batch to every mailbox.
//!
//! # Joining without a gap, a repeat, or a pause
//! A late handler starts from a snapshot and must then get exactly the batches after it. Only the
//! dispatcher publishes, and it announces under the registry's lock that it is about to
//! ([`Registry::begin`]). So:
//! - A handler that joins while nothing is being applied takes the current snapshot and its place in
//!   the list in one critical section: the next batch is both after the snapshot and handed to it.
//! - One that joins while a batch is being applied cannot know whether that batch is in the snapshot.
//!   It waits in `joining`; the dispatcher, once the batch is published, starts it from that version
//!   and leaves it out of the hand-over of that batch.
//!
//! Neither waits for the other: the lock is held for moments, never during an apply or a hand-over.
use super::mailbox::{Contents, Current, Mailbox, Merges, PastLimit, Round};
use crate::delta::{HandlerId, ResyncTargets};
use crate::sync::Mutex;
use std::sync::Arc;

pub(crate) struct Registry<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    /// In the order of their ids.
    members: Arc<Vec<Member<T>>>,
    joining: Vec<Member<T>>,
    applying: bool,
    upstream_synced: bool,
    closed: bool,
    next_id: u64,
    /// Members, joining ones included, that want every step of a batch.
    lossless: usize,
}

pub(crate) struct Member<T> {
    pub(crate) id: HandlerId,
    pub(crate) name: Arc<str>,
    pub(crate) mailbox: Arc<Mailbox<T>>,
}

impl<T> Clone for Member<T> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            name: self.name.clone(),
            mailbox: self.mailbox.clone(),
        }
    }
}

/// The informer has stopped: nothing can be registered.
#[derive(Debug)]
pub(crate) struct Closed;

impl<T> Registry<T> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                members: Arc::new(Vec::new()),
                joining: Vec::new(),
                applying: false,
                upstream_synced: false,
                closed: false,
                next_id: 1,
                lossless: 0,
            }),
        }
    }

    /// Register a mailbox whose task does not run yet, under its name or, without one, its number.
    /// `current` gives the state to start from.
    pub(crate) fn join(
        &self,
        name: Option<Arc<str>>,
        mailbox: Arc<Mailbox<T>>,
        current: impl FnOnce() -> Box<dyn Contents<T>>,
    ) -> Result<(HandlerId, Arc<str>), Closed> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Closed);
        }
        let id = HandlerId(state.next_id);
        state.next_id += 1;
        state.lossless += usize::from(mailbox.policy().is_lossless());
        let name = name.unwrap_or_else(|| format!("handler-{}", id.0).into());
        let member = Member {
            id,
            name: name.clone(),
            mailbox,
        };
        let unsettled = state.applying;
        #[cfg(informant_mutant = "join_during_apply")]
        let unsettled = false;
        if unsettled {
            state.joining.push(member);
        } else {
            // No task waits on this mailbox yet, so no waker runs under this lock.
            member.mailbox.start(Some(current()), state.upstream_synced);
            Arc::make_mut(&mut state.members).push(member);
        }
        Ok((id, name))
    }

    /// Take the handler off the list and end its deliveries. Idempotent.
    pub(crate) fn leave(&self, id: HandlerId, mailbox: &Mailbox<T>) {
        {
            let mut state = self.state.lock();
            let before = state.joining.len() + state.members.len();
            state.joining.retain(|member| member.id != id);
            if let Ok(at) = state.members.binary_search_by_key(&id, |member| member.id) {
                Arc::make_mut(&mut state.members).remove(at);
            }
            let was_member = before > state.joining.len() + state.members.len();
            state.lossless -= usize::from(was_member && mailbox.policy().is_lossless());
        }
        mailbox.close();
    }

    /// A batch is about to be applied. Returns whether any handler wants every step of it.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        state.applying = true;
        state.lossless > 0
    }

    /// Whether any handler wants every step of a batch.
    pub(crate) fn wants_steps(&self) -> bool {
        self.state.lock().lossless > 0
    }

    /// The batch was applied and published; `current` gives that state. Hand it to everyone whom it
    /// concerns, and return those that now delay the next batch.
    pub(crate) fn dispatch(
        &self,
        round: &Round<T>,
        resyncs: &[ResyncTargets],
        upstream_synced: bool,
        current: Current<'_, T>,
    ) -> Vec<Arc<Mailbox<T>>> {
        let (members, joined, newly_synced) = {
            let mut state = self.state.lock();
            state.applying = false;
            let newly_synced = upstream_synced && !state.upstream_synced;
            state.upstream_synced |= upstream_synced;
            let members = state.members.clone();
            let joined = std::mem::take(&mut state.joining);
            if !joined.is_empty() {
                Arc::make_mut(&mut state.members).extend(joined.iter().cloned());
            }
            (members, joined, newly_synced)
        };
        // Nobody else hands anything over, so a start here still precedes the next batch.
        for member in &joined {
            member.mailbox.start(Some(current()), upstream_synced);
        }
        let (mut delaying, mut merges) = (Vec::new(), Merges::new());
        let mut hand_over = |member: &Member<T>, resync: bool| {
            member
                .mailbox
                .push(round, resync, upstream_synced, current, &mut merges);
            if member.mailbox.policy().past_limit() == Some(PastLimit::Block) {
                delaying.push(member.mailbox.clone());
            }
        };
        let due = Due::of(resyncs);
        if round.is_empty() && !newly_synced {
            match &due {
                Due::All => members.iter().for_each(|member| hand_over(member, true)),
                Due::Some(ids) => ids
                    .iter()
                    .filter_map(|id| find(&members, *id))
                    .for_each(|member| hand_over(member, true)),
            }
        } else {
            members
                .iter()
                .for_each(|member| hand_over(member, due.includes(member.id)));
        }
        delaying
    }

    /// End all deliveries and refuse further handlers. Returns who was registered.
    pub(crate) fn close(&self) -> Vec<Member<T>> {
        let members: Vec<_> = {
            let mut state = self.state.lock();
            state.closed = true;
            state.lossless = 0;
            let joining = std::mem::take(&mut state.joining);
            let members = std::mem::take(&mut state.members);
            members.iter().cloned().chain(joining).collect()
        };
        for member in &members {
            member.mailbox.close();
        }
        members
    }

    /// Everyone who is registered now.
    pub(crate) fn members(&self) -> Vec<Member<T>> {
        let state = self.state.lock();
        state
            .members
            .iter()
            .chain(&state.joining)
            .cloned()
            .collect()
    }
}

fn find<T>(members: &[Member<T>], id: HandlerId) -> Option<&Member<T>> {
    let at = members.binary_search_by_key(&id, |member| member.id).ok()?;
    members.get(at)
}

/// For whom a resync is due. The list came with the resync, so it is the one of its own moment.
enum Due {
    All,
    /// Ascending, without repeats.
    Some(Vec<HandlerId>),
}

impl Due {
    fn of(resyncs: &[ResyncTargets]) -> Self {
        let mut ids = Vec::new();
        for targets in resyncs {
            match targets {
                ResyncTargets::All => return Self::All,
                ResyncTargets::Handlers(handlers) => ids.extend_from_slice(handlers),
            }
        }
        ids.sort_unstable();
        ids.dedup();
        Self::Some(ids)
    }

    fn includes(&self, id: HandlerId) -> bool {
        #[cfg(informant_mutant = "resync_for_everyone")]
        if matches!(self, Self::Some(ids) if !ids.is_empty()) {
            return true;
        }
        match self {
            Self::All => true,
            Self::Some(ids) => ids.binary_search(&id).is_ok(),
        }
    }
}

#[cfg(all(test, not(informant_loom)))]
mod tests {
    use super::*;
    use crate::indexer::Change;
    use crate::informer::event::Notice;
    use crate::informer::mailbox::{Chunk, Policy};
    use crate::object::{Cached, Incoming, Meta};
    use std::task::{Context, Poll, Waker};

    struct Frozen(Vec<Cached<u64>>);

    impl Contents<u64> for Frozen {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn objects(&self) -> Vec<Cached<u64>> {
            self.0.clone()
        }
    }

    fn object(name: &str, version: u64) -> Cached<u64> {
        let meta = Meta::new("ns", name, "u", &version.to_string()).unwrap();
        Cached::from(Incoming::new(meta, version))
    }

    fn is_resync(notice: &Notice<'_, u64>) -> bool {
        matches!(notice, Notice::Updated { old, new } if old.ptr_eq(new))
    }

    /// (changes, resyncs) that wait for the handler.
    fn take(mailbox: &Mailbox<u64>) -> (usize, usize) {
        let (mut changes, mut resyncs) = (0, 0);
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(chunk)) = mailbox.poll_take(&mut context) {
            let chunk: Chunk<u64> = chunk;
            for at in 0..chunk.len() {
                if is_resync(&chunk.telling(at).first) {
                    resyncs += 1;
                } else {
                    changes += 1;
                }
            }
        }
        (changes, resyncs)
    }

    /// W-S6: whom a resync is for came with it, also where a change stands in the same batch.
    #[test]
    fn a_resync_beside_a_change_is_for_its_targets_only() {
        let registry = Registry::new();
        let quiet = object("quiet", 1);
        let mailboxes: Vec<_> = (0..3)
            .map(|_| {
                let mailbox = Arc::new(Mailbox::new(Policy::Coalesce));
                let start = || Box::new(Frozen(vec![quiet.clone()])) as Box<dyn Contents<u64>>;
                let (id, _) = registry.join(None, mailbox.clone(), start).unwrap();
                assert_eq!(take(&mailbox), (1, 0));
                (id, mailbox)
            })
            .collect();
        let changed = object("changed", 2);
        let round = Round::new(
            vec![Change {
                old: None,
                new: Some(changed.clone()),
                deleted: None,
                initial: false,
            }],
            None,
            Vec::new(),
        );
        let due = [
            ResyncTargets::Handlers([mailboxes[1].0].into()),
            ResyncTargets::Handlers([HandlerId(99), mailboxes[1].0].into()),
        ];
        registry.begin();
        registry.dispatch(&round, &due, true, &|| {
            Box::new(Frozen(vec![quiet.clone(), changed.clone()]))
        });
        let told: Vec<_> = mailboxes.iter().map(|(_, mailbox)| take(mailbox)).collect();
        assert_eq!(told, [(1, 0), (1, 1), (1, 0)]);
    }
}
