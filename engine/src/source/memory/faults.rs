//! Faults on demand: what servers, networks and restores from backup do to clients.
use super::MemorySource;
use super::config::Dialect;
use super::log::{Forgotten, Item};
use crate::object::{ObjectKey, ResourceVersion};
use crate::source::{SourceError, WatchEvent};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How open watches end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disconnect {
    /// The stream ends after every change so far, as it does when the server's timeout is over.
    Clean,
    /// The transport breaks. Changes that the stream has not taken yet are lost with it.
    Broken,
}

/// How much of an object cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Corruption {
    /// Its metadata is read, the rest is not.
    Body,
    /// Not even its key is read.
    Everything,
}

/// What an open watch is told beside the changes.
pub(super) enum Control<T> {
    Bookmark(u64),
    End,
    Cut,
    Silence,
    Error(SourceError),
    Inject(Arc<WatchEvent<T>>),
    Drop(u64),
    Duplicate(u64),
    Reorder(usize),
    Delay(Duration),
}

impl<T> Control<T> {
    /// True for what does not wait for the changes before it.
    pub(super) fn is_abrupt(&self) -> bool {
        matches!(self, Self::Cut | Self::Silence)
    }
}

impl<T> Clone for Control<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Bookmark(version) => Self::Bookmark(*version),
            Self::End => Self::End,
            Self::Cut => Self::Cut,
            Self::Silence => Self::Silence,
            Self::Error(error) => Self::Error(error.clone()),
            Self::Inject(event) => Self::Inject(event.clone()),
            Self::Drop(count) => Self::Drop(*count),
            Self::Duplicate(count) => Self::Duplicate(*count),
            Self::Reorder(count) => Self::Reorder(*count),
            Self::Delay(by) => Self::Delay(*by),
        }
    }
}

/// The faults that calls and new watches meet.
pub(super) struct FaultState {
    pub(super) list: VecDeque<SourceError>,
    pub(super) watch: VecDeque<SourceError>,
    pub(super) dialect: Dialect,
    pub(super) corrupt: HashMap<ObjectKey, Corruption>,
    /// No watch takes changes.
    pub(super) held: bool,
    pub(super) refuse_streaming: bool,
    pub(super) omit_end_markers: u32,
    /// The next initial events end after so many.
    pub(super) break_initial: VecDeque<(usize, Disconnect)>,
    /// Lists of any version are answered as of this one.
    pub(super) lag_at: Option<u64>,
}

impl FaultState {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            list: VecDeque::new(),
            watch: VecDeque::new(),
            dialect,
            corrupt: HashMap::new(),
            held: false,
            refuse_streaming: false,
            omit_end_markers: 0,
            break_initial: VecDeque::new(),
            lag_at: None,
        }
    }
}

/// A copy of a collection at one version, for [`MemorySource::restore`]. It costs a pointer an
/// object.
pub struct Backup<T> {
    version: u64,
    objects: BTreeMap<ObjectKey, Item<T>>,
}

impl<T> fmt::Debug for Backup<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (objects, version) = (self.objects.len(), self.version);
        write!(f, "Backup({objects} objects at version {version})")
    }
}

/// # Faults
/// Each of these takes effect at an exact point: a fault of open watches comes after the changes
/// that were made before the call and before those made after it, on every watch that is open at
/// the call; watches that open later are not concerned. A frame that a stream has already taken
/// from the source (256 at most) is out of reach, as if it lay in the client's receive buffer.
/// "Frames" are those of changes; bookmarks are never dropped, doubled or moved.
impl<T: Clone + Send + Sync + 'static> MemorySource<T> {
    /// End every watch that is open.
    pub fn disconnect(&self, how: Disconnect) {
        self.tell(match how {
            Disconnect::Clean => &Control::End,
            Disconnect::Broken => &Control::Cut,
        });
    }

    /// Every open watch falls silent for ever: it gives nothing and does not end, not even at its
    /// timeout, as when a connection is half-open. Only the client's own timer gets it out.
    pub fn go_silent(&self) {
        self.tell(&Control::Silence);
    }

    /// End every open watch with this error, after the changes so far.
    pub fn fail_watches(&self, error: impl Into<SourceError>) {
        self.tell(&Control::Error(error.into()));
    }

    /// Answer the next list with this error. Errors queue up: each answers one call.
    pub fn fail_next_list(&self, error: impl Into<SourceError>) {
        self.shared.state.lock().faults.list.push_back(error.into());
    }

    /// Answer the next watch with this error. Errors queue up: each answers one call.
    pub fn fail_next_watch(&self, error: impl Into<SourceError>) {
        self.shared
            .state
            .lock()
            .faults
            .watch
            .push_back(error.into());
    }

    /// Put errors in another way from now on.
    pub fn speak(&self, dialect: Dialect) {
        self.shared.state.lock().faults.dialect = dialect;
    }

    /// Lose the next `count` frames of every watch that is open. Nothing tells the client, and
    /// later bookmarks pass them by; this is what a consistency check is for.
    pub fn drop_frames(&self, count: u64) {
        self.tell(&Control::Drop(count));
    }

    /// Give each of the next `count` frames twice, on every watch that is open.
    pub fn duplicate_frames(&self, count: u64) {
        self.tell(&Control::Duplicate(count));
    }

    /// Give the next `count` frames in another order, on every watch that is open: the keys in
    /// reverse order of appearance, the frames of one key in their own order. They are held back
    /// until there are so many of them, or until a bookmark, an end or another fault is due.
    pub fn reorder_frames(&self, count: usize) {
        self.tell(&Control::Reorder(count));
    }

    /// Hold back what follows on every watch that is open, for the time `by` after the stream gets
    /// there.
    ///
    /// # Panics
    /// When the source has no clock.
    pub fn delay_frames(&self, by: Duration) {
        let has_clock = self.shared.config.clock.is_some();
        assert!(has_clock, "delays need a clock: set MemoryConfig::clock");
        self.tell(&Control::Delay(by));
    }

    /// Hold back the changes (and all that comes with or after them) on all watches, also those to
    /// come, until [`MemorySource::release_frames`]. Only a cut or silence overtakes them.
    pub fn hold_frames(&self) {
        self.shared.state.lock().faults.held = true;
    }

    /// End [`MemorySource::hold_frames`].
    pub fn release_frames(&self) {
        self.shared.state.lock().faults.held = false;
        self.shared.changes.notify_all();
    }

    /// Give this frame to every open watch, after the changes so far, whatever it selects.
    pub fn inject(&self, event: WatchEvent<T>) {
        self.tell(&Control::Inject(Arc::new(event)));
    }

    /// Give the last deletion of this key that is remembered once more to every open watch: a late
    /// deletion of an old uid, if there is another object of the key by now. False when none is
    /// remembered.
    #[must_use = "when it is false, nothing was sent"]
    pub fn resend_delete(&self, key: &ObjectKey) -> bool {
        let deletion = {
            let state = self.shared.state.lock();
            let mut changes = state.log.newest_first();
            changes
                .find(|change| change.deleted && change.item.meta.key == *key)
                .map(|change| change.item.clone())
        };
        // The copy is made outside of the lock.
        deletion
            .map(|item| self.inject(WatchEvent::Deleted((*item).clone())))
            .is_some()
    }

    /// From now on, the object of this key cannot be decoded: not in lists (except of metadata,
    /// for the metadata can be read), nor in the frames of its changes.
    pub fn corrupt(&self, key: ObjectKey, corruption: Corruption) {
        let mut state = self.shared.state.lock();
        state.faults.corrupt.insert(key, corruption);
    }

    /// End [`MemorySource::corrupt`]: lists and later changes are well again.
    pub fn mend(&self, key: &ObjectKey) {
        self.shared.state.lock().faults.corrupt.remove(key);
    }

    /// Refuse streaming lists from now on, or no more, as a server does whose feature is off.
    /// Clients are still told that they are worth trying.
    pub fn refuse_streaming_lists(&self, refuse: bool) {
        self.shared.state.lock().faults.refuse_streaming = refuse;
    }

    /// The next `count` streaming lists lack their end marker.
    pub fn omit_end_markers(&self, count: u32) {
        self.shared.state.lock().faults.omit_end_markers = count;
    }

    /// The next watch that begins with the present objects ends after `after` of them. Calls queue
    /// up.
    pub fn break_next_initial_events(&self, after: usize, how: Disconnect) {
        let mut state = self.shared.state.lock();
        state.faults.break_initial.push_back((after, how));
    }

    /// Every continue token that is out is too old.
    pub fn expire_continue_tokens(&self) {
        self.shared.state.lock().tokens += 1;
    }

    /// Answer lists at version "0" (any state will do) with the state at `version`, as a server
    /// that lags behind, or at the newest one again, with `None`. A version that gets forgotten is
    /// as good as none.
    pub fn lag_at(&self, version: Option<&ResourceVersion>) {
        let version = version.and_then(ResourceVersion::as_number);
        self.shared.state.lock().faults.lag_at = version;
    }

    /// A copy of the collection as it is.
    #[must_use]
    pub fn backup(&self) -> Backup<T> {
        let state = self.shared.state.lock();
        Backup {
            version: state.version,
            objects: state.objects.clone(),
        }
    }

    /// Restore the collection from a backup: objects, uids, contents and the *version* are what
    /// they were then, so versions go back and those that were used since are used again. The
    /// history and all continue tokens are gone, and every open watch is cut.
    ///
    /// ```
    /// use informant::ObjectKey;
    /// use informant::source::memory::MemorySource;
    /// let pods = MemorySource::<&str>::new();
    /// let key = ObjectKey::new("default", "web-0")?;
    /// let old = pods.create(key.clone(), "before")?;
    /// let backup = pods.backup();
    /// let lost = pods.update(&key, None, "after")?;
    /// pods.restore(&backup);
    /// assert_eq!(pods.get(&key).unwrap().meta, old);
    /// // The version of the lost write is given to another one.
    /// assert_eq!(pods.update(&key, None, "other")?.resource_version, lost.resource_version);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn restore(&self, backup: &Backup<T>) {
        let objects = backup.objects.clone();
        let dropped: (BTreeMap<ObjectKey, Item<T>>, Forgotten<T>) = {
            let mut state = self.shared.state.lock();
            state.tell(&Control::Cut);
            state.version = backup.version;
            state.moves += 1;
            state.tokens += 1;
            let old = std::mem::replace(&mut state.objects, objects);
            (old, state.log.restart(backup.version))
        };
        self.shared.changes.notify_all();
        drop(dropped);
    }

    fn tell(&self, control: &Control<T>) {
        self.shared.state.lock().tell(control);
        self.shared.changes.notify_all();
    }

    /// Send a bookmark to every open watch that allows them, after the changes so far.
    pub fn send_bookmark(&self) {
        {
            let mut state = self.shared.state.lock();
            let version = state.version;
            state.tell(&Control::Bookmark(version));
        }
        self.shared.changes.notify_all();
    }
}
