//! What the embedded source holds, behind its one lock. No user code runs in here.
use super::config::{Dialect, MemoryConfig};
use super::faults::{Control, FaultState};
use super::log::{Change, Forgotten, Item, Log};
use crate::object::{ObjectKey, Uid};
use crate::source::{ListOptions, SourceError, WatchOptions};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// One call that the source got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A list.
    List(ListOptions),
    /// A watch.
    Watch(WatchOptions),
}

/// Calls that are remembered; of more, the newest.
pub(super) const REQUESTS: usize = 65_536;

/// What an open watch has been told beside the changes: each with the place of the change that it
/// comes before.
pub(super) type Inbox<T> = VecDeque<(u64, Control<T>)>;

pub(super) struct State<T> {
    pub(super) objects: BTreeMap<ObjectKey, Item<T>>,
    /// The newest version.
    pub(super) version: u64,
    step: u64,
    /// Counts whatever moves the version or the objects: a write that was prepared before such a
    /// move is prepared again.
    pub(super) moves: u64,
    uids: u64,
    pub(super) log: Log<T>,
    pub(super) watches: Slab<Inbox<T>>,
    /// Continue tokens of another generation are expired.
    pub(super) tokens: u64,
    pub(super) faults: FaultState,
    pub(super) requests: VecDeque<Request>,
}

impl<T> State<T> {
    pub(super) fn new(config: &MemoryConfig<T>) -> Self {
        let version = config.first_version.max(1);
        Self {
            objects: BTreeMap::new(),
            version,
            step: config.version_step.max(1),
            moves: 0,
            uids: 0,
            log: Log::new(version, config.history),
            watches: Slab::new(),
            tokens: 0,
            faults: FaultState::new(config.dialect),
            requests: VecDeque::new(),
        }
    }

    pub(super) fn next_version(&self) -> u64 {
        self.version + self.step
    }

    /// A made-up uid, the same in every run. It is used up only by [`State::commit`].
    pub(super) fn next_uid(&self) -> Uid {
        made_up_uid(self.uids)
    }

    /// Store a prepared object, or take the one of its key out and remember its final state.
    pub(super) fn commit(&mut self, item: Item<T>, deleted: bool) -> Option<Arc<Change<T>>> {
        let version = self.next_version();
        debug_assert_eq!(item.meta.resource_version, version.into());
        let key = &item.meta.key;
        let corrupt = self.faults.corrupt.get(key).copied();
        let before = if deleted {
            self.objects.remove(key)
        } else {
            self.objects.insert(key.clone(), item.clone())
        };
        if before.is_none() {
            self.uids += 1;
        }
        self.version = version;
        self.moves += 1;
        self.log.push(Change {
            version,
            before,
            item,
            deleted,
            corrupt,
        })
    }

    /// Tell every open watch, after the changes so far.
    pub(super) fn tell(&mut self, control: &Control<T>) {
        let place = self.log.next();
        for (_, inbox) in &mut self.watches {
            inbox.push_back((place, control.clone()));
        }
    }

    pub(super) fn receive(&mut self, request: Request) -> Result<(), SourceError> {
        let fault = match request {
            Request::List(_) => self.faults.list.pop_front(),
            Request::Watch(_) => self.faults.watch.pop_front(),
        };
        if self.requests.len() == REQUESTS {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
        fault.map_or(Ok(()), Err)
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.faults.dialect
    }

    pub(super) fn check_not_too_large(&self, version: u64) -> Result<(), SourceError> {
        if version > self.version {
            return Err(self.dialect().too_large(version, self.version).into());
        }
        Ok(())
    }

    /// The 410 of a version that is forgotten.
    pub(super) fn expired(&self, version: u64) -> SourceError {
        let oldest = self.log.compacted;
        let text = format!("too old resource version: {version} ({oldest})");
        self.dialect().expired(&text).into()
    }

    /// The objects at `version`, in key order: those after the key `after` and of `namespace`, at
    /// most `limit`.
    ///
    /// An old state is the present one with the changes since then taken back. The cost is that of
    /// the answer, and of those changes.
    pub(super) fn objects_at(
        &self,
        version: u64,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
        limit: usize,
    ) -> Vec<Item<T>> {
        let inside = |key: &ObjectKey| {
            namespace.is_none_or(|namespace| key.namespace() == namespace)
                && after.is_none_or(|after| key > after)
        };
        // From newest to oldest, so that the oldest change since `version` has the last word.
        let mut past: BTreeMap<&ObjectKey, Option<&Item<T>>> = BTreeMap::new();
        for change in self.log.back_to(version) {
            if inside(&change.item.meta.key) {
                past.insert(&change.item.meta.key, change.before.as_ref());
            }
        }
        let first = match (after, namespace) {
            (Some(after), _) if inside_or_before(after, namespace) => {
                Bound::Excluded(after.clone())
            }
            (_, Some(namespace)) => {
                // Sorts before every key of the namespace: names are not empty.
                Bound::Included(crate::object::KeyRef::new(namespace, "").to_owned())
            }
            _ => Bound::Unbounded,
        };
        let mut present = self
            .objects
            .range((first, Bound::Unbounded))
            .take_while(|(key, _)| namespace.is_none_or(|namespace| key.namespace() == namespace))
            .peekable();
        let mut past = past.into_iter().peekable();
        let mut found = Vec::new();
        while found.len() < limit {
            let present_first = match (present.peek(), past.peek()) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some((key, _)), Some((past_key, _))) => *key < *past_key,
            };
            if present_first {
                found.extend(present.next().map(|(_, item)| item.clone()));
            } else if let Some((key, item)) = past.next() {
                present.next_if(|(present_key, _)| *present_key == key);
                found.extend(item.cloned());
            }
        }
        found
    }

    pub(super) fn compact(&mut self, version: u64) -> Forgotten<T> {
        self.log.compact(version.min(self.version))
    }
}

/// A uid that looks random, as the servers' do: ranges of hashes split such uids evenly, while
/// hashes of running numbers lie close together.
fn made_up_uid(number: u64) -> Uid {
    let mut rng = fastrand::Rng::with_seed(number);
    let (high, low) = (rng.u64(..), rng.u64(..));
    Uid::new(&format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    ))
}

/// A token may come from a list of another namespace: then the namespace's own start counts.
fn inside_or_before(after: &ObjectKey, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| after.namespace() >= namespace)
}
