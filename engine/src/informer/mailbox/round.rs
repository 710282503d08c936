//! What one applied batch means to the handlers: built once, shared by every mailbox.
use crate::delta::{Deleted, SourceId};
use crate::indexer::{Change, Effective};
use crate::object::Cached;
use std::sync::Arc;

/// One applied batch as the mailboxes get it. Each keeps a reference to the list it wants.
pub(crate) struct Round<T> {
    pub(crate) net: Shared<Change<T>>,
    pub(crate) steps: Option<Shared<Effective<T>>>,
    pub(crate) resets: Vec<SourceId>,
}

/// A list that many mailboxes hold, with how much of it is flagged initial.
pub(crate) struct Shared<I> {
    pub(crate) items: Arc<Vec<I>>,
    pub(crate) initial: usize,
}

impl<I> Clone for Shared<I> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            initial: self.initial,
        }
    }
}

impl<T> Round<T> {
    pub(crate) fn new(
        mut net: Vec<Change<T>>,
        steps: Option<Vec<Effective<T>>>,
        resets: Vec<SourceId>,
    ) -> Self {
        for change in &mut net {
            // The end of an object is always told as a deletion.
            if change.new.is_none() && change.deleted.is_none() {
                change.deleted = change.old.clone().map(Deleted::unknown).map(Box::new);
            }
        }
        let initial_net = net.iter().filter(|change| change.initial).count();
        Self {
            net: Shared {
                items: Arc::new(net),
                initial: initial_net,
            },
            steps: steps.map(|steps| Shared {
                initial: steps.iter().filter(|delta| delta.is_initial()).count(),
                items: Arc::new(steps),
            }),
            resets,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.net.items.is_empty()
            && self
                .steps
                .as_ref()
                .is_none_or(|steps| steps.items.is_empty())
            && self.resets.is_empty()
    }
}

impl<T> Effective<T> {
    pub(crate) fn is_initial(&self) -> bool {
        matches!(self, Self::Added { initial: true, .. })
    }
}

/// A consistent state that a mailbox can start a handler from, or resync it with: a snapshot.
pub(crate) trait Contents<T>: Send {
    fn len(&self) -> usize;
    fn objects(&self) -> Vec<Cached<T>>;
}

/// Hands out the state after the last dispatched batch.
pub(crate) type Current<'a, T> = &'a dyn Fn() -> Box<dyn Contents<T>>;
