//! Models of the hand-over between dispatcher, handler, joiner and remover.
//!
//! Modelled: the registry's lock and phase, the mailbox's lock, its waker and its flags, with real
//! code. Left out: the indexer (a number in a lock stands for the published version, see
//! [`Published`]) and the runtime (`block_on` parks on a modelled parking spot).
//!
//! Mutants: `mailbox_forgets_to_wake`, `join_during_apply`, `close_leaves_the_task_asleep`.
use super::drive::Driver;
use super::event::Notice;
use super::handler::{Direct, Handler};
use super::mailbox::{Contents, Mailbox, Policy, Round};
use super::registry::Registry;
use crate::clock::{Clock, Sleep, Timestamp};
use crate::indexer::Change;
use crate::object::{Cached, Incoming, Meta};
use crate::sync::{Mutex, block_on};
use loom::thread;
use std::sync::Arc;

fn object(version: u64) -> Cached<u64> {
    let meta = Meta::new("ns", "a", "u", &version.to_string()).unwrap();
    Cached::from(Incoming::new(meta, version))
}

/// A clock that stands and takes no lock.
#[derive(Debug)]
struct Standing;

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
    fn sleep_until(&self, _deadline: Timestamp) -> Sleep {
        Box::pin(std::future::pending())
    }
}

/// One object whose value is the version; 0 is "not there yet".
struct Published(Mutex<Vec<Cached<u64>>>);

struct Frozen(Option<Cached<u64>>);

impl Contents<u64> for Frozen {
    fn len(&self) -> usize {
        usize::from(self.0.is_some())
    }
    fn objects(&self) -> Vec<Cached<u64>> {
        self.0.iter().cloned().collect()
    }
}

impl Published {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Vec::new())))
    }

    fn current(&self) -> Box<dyn Contents<u64>> {
        Box::new(Frozen(self.0.lock().last().cloned()))
    }

    /// Apply, publish, hand over: as the pump does.
    fn step(&self, registry: &Registry<u64>, version: u64) {
        registry.begin();
        let new = object(version);
        let old = {
            let mut published = self.0.lock();
            published.push(new.clone());
            published.iter().rev().nth(1).cloned()
        };
        let round = Round::new(
            vec![Change {
                old,
                new: Some(new),
                deleted: None,
                initial: false,
            }],
            None,
            Vec::new(),
        );
        registry.dispatch(&round, &[], true, &|| self.current());
    }
}

/// Checks the chain and keeps what it was given last.
struct Chain {
    last: Arc<Mutex<u64>>,
    until: u64,
    mailbox: Arc<Mailbox<u64>>,
}

impl Handler<u64> for Chain {
    fn on_add(&mut self, object: &Cached<u64>, _initial: bool) {
        assert_eq!(*self.last.lock(), 0, "added twice");
        self.hear(**object);
    }
    fn on_update(&mut self, old: &Cached<u64>, new: &Cached<u64>) {
        assert_eq!(*self.last.lock(), **old, "a gap or a repeat");
        self.hear(**new);
    }
}

impl Chain {
    fn hear(&mut self, version: u64) {
        *self.last.lock() = version;
        if version == self.until {
            self.mailbox.close();
        }
    }
}

fn deliver(mailbox: &Arc<Mailbox<u64>>, until: u64) -> u64 {
    let last = Arc::new(Mutex::new(0));
    let handler = Chain {
        last: last.clone(),
        until,
        mailbox: mailbox.clone(),
    };
    let driver = Driver::new(
        mailbox.clone(),
        Direct(handler),
        Arc::new(|_, message| panic!("{message}")),
        Arc::new(Standing),
    );
    block_on(driver.run());
    let last = *last.lock();
    last
}

/// No push is lost on a handler that goes to sleep: it ends only when it was told of the last.
#[test]
fn a_sleeping_handler_is_woken_by_every_push() {
    loom::model(|| {
        let (registry, published) = (Arc::new(Registry::new()), Published::new());
        let mailbox = Arc::new(Mailbox::new(Policy::Coalesce));
        registry
            .join(None, mailbox.clone(), || published.current())
            .unwrap();
        let dispatcher = thread::spawn(move || {
            published.step(&registry, 1);
            published.step(&registry, 2);
        });
        assert_eq!(deliver(&mailbox, 2), 2);
        dispatcher.join().unwrap();
    });
}

/// I-S2: a handler that joins at any moment of an apply gets the state and then what follows it.
#[test]
fn a_late_joiner_sees_neither_gap_nor_repeat() {
    loom::model(|| {
        let (registry, published) = (Arc::new(Registry::new()), Published::new());
        let dispatcher = {
            let (registry, published) = (registry.clone(), published.clone());
            thread::spawn(move || {
                published.step(&registry, 1);
                published.step(&registry, 2);
            })
        };
        let mailbox = Arc::new(Mailbox::new(Policy::Coalesce));
        registry
            .join(None, mailbox.clone(), || published.current())
            .unwrap();
        dispatcher.join().unwrap();
        assert_eq!(deliver(&mailbox, 2), 2);
    });
}

/// I-S10: removal at any moment ends the task, and nothing runs once the end was seen.
#[test]
fn removal_ends_the_task_and_can_be_waited_for() {
    loom::model(|| {
        let (registry, published) = (Arc::new(Registry::new()), Published::new());
        let mailbox = Arc::new(Mailbox::new(Policy::Coalesce));
        let (id, _) = registry
            .join(None, mailbox.clone(), || published.current())
            .unwrap();
        published.step(&registry, 1);
        let handler = {
            let mailbox = mailbox.clone();
            thread::spawn(move || deliver(&mailbox, u64::MAX))
        };
        registry.leave(id, &mailbox);
        block_on(mailbox.ended());
        assert!(mailbox.has_ended());
        assert!(handler.join().unwrap() <= 1);
    });
}

/// I-S9: whatever a hand-over in flight does, nothing is kept for the removed.
#[test]
fn a_push_to_the_removed_is_void() {
    loom::model(|| {
        let (registry, published) = (Arc::new(Registry::new()), Published::new());
        let mailbox = Arc::new(Mailbox::new(Policy::Coalesce));
        let (id, _) = registry
            .join(None, mailbox.clone(), || published.current())
            .unwrap();
        let remover = {
            let (registry, mailbox) = (registry.clone(), mailbox.clone());
            thread::spawn(move || registry.leave(id, &mailbox))
        };
        published.step(&registry, 1);
        remover.join().unwrap();
        published.step(&registry, 2);
        assert_eq!(mailbox.stats().waiting, 0);
        assert!(block_on(mailbox.take()).is_none());
    });
}

/// Shutdown against a join: the joiner is refused, or its task is ended.
#[test]
fn shutdown_leaves_no_task_behind() {
    loom::model(|| {
        let (registry, published) = (Arc::new(Registry::<u64>::new()), Published::new());
        let closer = {
            let registry = registry.clone();
            thread::spawn(move || {
                registry.close();
            })
        };
        let mailbox = Arc::new(Mailbox::new(Policy::Coalesce));
        if registry
            .join(None, mailbox.clone(), || published.current())
            .is_ok()
        {
            assert_eq!(deliver(&mailbox, u64::MAX), 0, "ends by itself");
        }
        closer.join().unwrap();
    });
}

/// I-S4: a waiter for the initial list is woken when the last initial call has returned.
#[test]
fn a_waiter_for_the_initial_list_is_woken() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new(Policy::Coalesce));
        let start = Frozen(Some(object(1)));
        mailbox.start(Some(Box::new(start)), true);
        let handler = {
            let mailbox = mailbox.clone();
            thread::spawn(move || {
                let chunk = block_on(mailbox.take()).expect("not closed");
                assert!(matches!(chunk.telling(0).first, Notice::Added { .. }));
                assert!(!mailbox.has_synced(), "not while the call runs");
                mailbox.initial_returned(chunk.initial_len());
            })
        };
        assert!(block_on(mailbox.synced()));
        handler.join().unwrap();
    });
}
