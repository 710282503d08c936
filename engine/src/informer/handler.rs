//! Handlers: who is told of changes.
use super::event::{Event, Notice};
use crate::delta::{Deleted, SourceId};
use crate::object::{Cached, ObjectKey};
use std::collections::HashSet;
use std::fmt;
use std::future::Future;

/// Someone who is told of changes (client-go's `ResourceEventHandler`).
///
/// The calls to one handler are strictly sequential. Per key the order is add, any number of
/// updates, delete, and so on; the `old` of an update is what this handler was given last. The
/// cache is never behind a call: what a handler reads in it is the told state or a later one.
///
/// A handler runs on its own task, so a slow one delays nobody; but a call that *blocks its thread*
/// occupies a thread of the runtime: such a handler belongs on a thread of its own
/// ([`HandlerOptions::dedicated_thread`](super::HandlerOptions::dedicated_thread)), or should be an
/// [`AsyncHandler`]. A call that panics is counted and reported; the handler goes on with the next
/// change.
///
/// Every method does nothing unless implemented.
///
/// ```
/// use informant::{Cached, informer::Handler};
/// #[derive(Default)]
/// struct Count(usize);
/// impl Handler<String> for Count {
///     fn on_add(&mut self, _object: &Cached<String>, _initial: bool) {
///         self.0 += 1;
///     }
/// }
/// ```
pub trait Handler<T>: Send + 'static {
    /// The object appeared. `initial` when it was in the first list, or in the snapshot that a late
    /// handler starts from.
    fn on_add(&mut self, object: &Cached<T>, initial: bool) {
        let _ = (object, initial);
    }

    /// The object changed; or, when both are the same object ([`Cached::ptr_eq`]), a resync
    /// announces it again.
    fn on_update(&mut self, old: &Cached<T>, new: &Cached<T>) {
        let _ = (old, new);
    }

    /// The object is gone.
    fn on_delete(&mut self, deleted: &Deleted<T>) {
        let _ = deleted;
    }

    /// The source was reset (restored from a backup, say): versions may have gone back. The
    /// differences follow; nothing that the handler knows is void.
    fn on_reset(&mut self, source: SourceId) {
        let _ = source;
    }

    /// The handler fell behind its limit and starts over ([`PastLimit::Replay`](super::PastLimit)):
    /// what it knows is void, and adds follow for everything that exists.
    fn on_replay(&mut self) {}
}

/// A [`Handler`] whose calls are futures. The next call begins when the one before has ended.
///
/// Removing the handler, or stopping the informer, lets the call in flight run to its end;
/// stopping with a deadline drops its future at the deadline.
pub trait AsyncHandler<T>: Send + 'static {
    /// See [`Handler::on_add`].
    fn on_add(&mut self, object: &Cached<T>, initial: bool) -> impl Future<Output = ()> + Send {
        let _ = (object, initial);
        async {}
    }

    /// See [`Handler::on_update`].
    fn on_update(&mut self, old: &Cached<T>, new: &Cached<T>) -> impl Future<Output = ()> + Send {
        let _ = (old, new);
        async {}
    }

    /// See [`Handler::on_delete`].
    fn on_delete(&mut self, deleted: &Deleted<T>) -> impl Future<Output = ()> + Send {
        let _ = deleted;
        async {}
    }

    /// See [`Handler::on_reset`].
    fn on_reset(&mut self, source: SourceId) -> impl Future<Output = ()> + Send {
        let _ = source;
        async {}
    }

    /// See [`Handler::on_replay`].
    fn on_replay(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// A closure as a handler: it is given every event.
///
/// ```
/// use informant::informer::{Event, handler_fn};
/// let handler = handler_fn(|event: Event<String>| println!("{event:?}"));
/// ```
pub fn handler_fn<T, F>(function: F) -> HandlerFn<F>
where
    F: FnMut(Event<T>) + Send + 'static,
{
    HandlerFn(function)
}

/// A closure that returns a future, as a handler.
///
/// ```
/// use informant::informer::{Event, async_handler_fn};
/// let handler = async_handler_fn(|event: Event<String>| async move { println!("{event:?}") });
/// ```
pub fn async_handler_fn<T, F, R>(function: F) -> AsyncHandlerFn<F>
where
    F: FnMut(Event<T>) -> R + Send + 'static,
    R: Future<Output = ()> + Send,
{
    AsyncHandlerFn(function)
}

/// See [`handler_fn`].
#[derive(Clone)]
pub struct HandlerFn<F>(F);

/// See [`async_handler_fn`].
#[derive(Clone)]
pub struct AsyncHandlerFn<F>(F);

impl<F> fmt::Debug for HandlerFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandlerFn")
    }
}

impl<F> fmt::Debug for AsyncHandlerFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AsyncHandlerFn")
    }
}

impl<T: Send + Sync + 'static, F: FnMut(Event<T>) + Send + 'static> Handler<T> for HandlerFn<F> {
    fn on_add(&mut self, object: &Cached<T>, initial: bool) {
        (self.0)(Event::Added {
            object: object.clone(),
            initial,
        });
    }
    fn on_update(&mut self, old: &Cached<T>, new: &Cached<T>) {
        (self.0)(Event::Updated {
            old: old.clone(),
            new: new.clone(),
        });
    }
    fn on_delete(&mut self, deleted: &Deleted<T>) {
        (self.0)(Event::Deleted(deleted.clone()));
    }
    fn on_reset(&mut self, source: SourceId) {
        (self.0)(Event::Reset(source));
    }
    fn on_replay(&mut self) {
        (self.0)(Event::Replay);
    }
}

impl<T, F, R> AsyncHandler<T> for AsyncHandlerFn<F>
where
    T: Send + Sync + 'static,
    F: FnMut(Event<T>) -> R + Send + 'static,
    R: Future<Output = ()> + Send,
{
    async fn on_add(&mut self, object: &Cached<T>, initial: bool) {
        let object = object.clone();
        (self.0)(Event::Added { object, initial }).await;
    }
    async fn on_update(&mut self, old: &Cached<T>, new: &Cached<T>) {
        let (old, new) = (old.clone(), new.clone());
        (self.0)(Event::Updated { old, new }).await;
    }
    async fn on_delete(&mut self, deleted: &Deleted<T>) {
        (self.0)(Event::Deleted(deleted.clone())).await;
    }
    async fn on_reset(&mut self, source: SourceId) {
        (self.0)(Event::Reset(source)).await;
    }
    async fn on_replay(&mut self) {
        (self.0)(Event::Replay).await;
    }
}

type OnAdd<T> = Box<dyn FnMut(&Cached<T>, bool) + Send>;
type OnUpdate<T> = Box<dyn FnMut(&Cached<T>, &Cached<T>) + Send>;
type OnDelete<T> = Box<dyn FnMut(&Deleted<T>) + Send>;

/// Closures for some of the calls (client-go's `ResourceEventHandlerFuncs`); the others do nothing.
///
/// ```
/// use informant::informer::HandlerFuncs;
/// let handler = HandlerFuncs::<String>::new()
///     .on_add(|object, initial| println!("+ {} {initial}", object.key()))
///     .on_delete(|deleted| println!("- {}", deleted.key));
/// ```
#[must_use]
pub struct HandlerFuncs<T> {
    add: Option<OnAdd<T>>,
    update: Option<OnUpdate<T>>,
    delete: Option<OnDelete<T>>,
}

impl<T> HandlerFuncs<T> {
    /// A handler that does nothing.
    pub fn new() -> Self {
        Self {
            add: None,
            update: None,
            delete: None,
        }
    }

    /// What to do on [`Handler::on_add`].
    pub fn on_add(mut self, function: impl FnMut(&Cached<T>, bool) + Send + 'static) -> Self {
        self.add = Some(Box::new(function));
        self
    }

    /// What to do on [`Handler::on_update`].
    pub fn on_update(
        mut self,
        function: impl FnMut(&Cached<T>, &Cached<T>) + Send + 'static,
    ) -> Self {
        self.update = Some(Box::new(function));
        self
    }

    /// What to do on [`Handler::on_delete`].
    pub fn on_delete(mut self, function: impl FnMut(&Deleted<T>) + Send + 'static) -> Self {
        self.delete = Some(Box::new(function));
        self
    }
}

impl<T> Default for HandlerFuncs<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for HandlerFuncs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerFuncs").finish_non_exhaustive()
    }
}

impl<T: 'static> Handler<T> for HandlerFuncs<T> {
    fn on_add(&mut self, object: &Cached<T>, initial: bool) {
        if let Some(add) = &mut self.add {
            add(object, initial);
        }
    }
    fn on_update(&mut self, old: &Cached<T>, new: &Cached<T>) {
        if let Some(update) = &mut self.update {
            update(old, new);
        }
    }
    fn on_delete(&mut self, deleted: &Deleted<T>) {
        if let Some(delete) = &mut self.delete {
            delete(deleted);
        }
    }
}

/// A handler that is told only of objects that pass a filter (client-go's
/// `FilteringResourceEventHandler`).
///
/// An object that begins to pass is an add (not an initial one), one that ceases to is a delete, and
/// a deletion is always told of an object that passed. Which objects passed is remembered by key, so
/// that adds and deletes pair up whatever the final state of a deleted object looks like and even
/// when the filter changes its mind; that costs one key for each object that passes.
pub struct Filtered<F, H> {
    filter: F,
    handler: H,
    passed: HashSet<ObjectKey>,
}

impl<F, H> Filtered<F, H> {
    /// `handler`, told only of what passes `filter`.
    pub fn new(filter: F, handler: H) -> Self {
        Self {
            filter,
            handler,
            passed: HashSet::new(),
        }
    }
}

impl<F, H: fmt::Debug> fmt::Debug for Filtered<F, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtered")
            .field("handler", &self.handler)
            .field("passed", &self.passed.len())
            .finish_non_exhaustive()
    }
}

impl<T, F, H> Handler<T> for Filtered<F, H>
where
    F: FnMut(&Cached<T>) -> bool + Send + 'static,
    H: Handler<T>,
{
    fn on_add(&mut self, object: &Cached<T>, initial: bool) {
        if (self.filter)(object) {
            self.passed.insert(object.key().clone());
            self.handler.on_add(object, initial);
        }
    }

    fn on_update(&mut self, old: &Cached<T>, new: &Cached<T>) {
        let passed = self.passed.contains(new.key());
        match (passed, (self.filter)(new)) {
            (true, true) => self.handler.on_update(old, new),
            (false, true) => {
                self.passed.insert(new.key().clone());
                self.handler.on_add(new, false);
            }
            (true, false) => {
                self.passed.remove(new.key());
                self.handler.on_delete(&Deleted::known(old.clone()));
            }
            (false, false) => {}
        }
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        if self.passed.remove(&deleted.key) {
            self.handler.on_delete(deleted);
        }
    }

    fn on_reset(&mut self, source: SourceId) {
        self.handler.on_reset(source);
    }

    fn on_replay(&mut self) {
        self.passed.clear();
        self.handler.on_replay();
    }
}

/// What the handler's task drives: either kind of handler.
pub(crate) trait Deliver<T>: Send + 'static {
    fn deliver(&mut self, notice: Notice<'_, T>) -> impl Future<Output = ()> + Send;
}

/// Calls the handler and returns when it has.
pub(crate) struct Direct<H>(pub(crate) H);

/// Awaits each call of the handler.
pub(crate) struct Awaited<H>(pub(crate) H);

impl<T: Send + Sync + 'static, H: Handler<T>> Deliver<T> for Direct<H> {
    async fn deliver(&mut self, notice: Notice<'_, T>) {
        match notice {
            Notice::Added { object, initial } => self.0.on_add(object, initial),
            Notice::Updated { old, new } => self.0.on_update(old, new),
            Notice::Deleted(deleted) => self.0.on_delete(deleted),
            Notice::Reset(source) => self.0.on_reset(source),
            Notice::Replay => self.0.on_replay(),
        }
    }
}

impl<T: Send + Sync + 'static, H: AsyncHandler<T>> Deliver<T> for Awaited<H> {
    async fn deliver(&mut self, notice: Notice<'_, T>) {
        match notice {
            Notice::Added { object, initial } => self.0.on_add(object, initial).await,
            Notice::Updated { old, new } => self.0.on_update(old, new).await,
            Notice::Deleted(deleted) => self.0.on_delete(deleted).await,
            Notice::Reset(source) => self.0.on_reset(source).await,
            Notice::Replay => self.0.on_replay().await,
        }
    }
}
