//! One informer for each thing that is asked for, shared by everyone in the process who asks.
mod key;
mod member;
mod request;

pub use request::InformerRequest;

use super::builder::InformerBuilder;
use super::report::{InformerError, NotSynced, ReportHook};
use super::shared::SharedInformer;
use super::transform::Transform;
use crate::clock::{SharedClock, SystemClock};
use crate::source::ListWatch;
use crate::sync::{Mutex, WaitSet};
use key::Key;
use member::Members;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Hands out informers, one for each (type, selectors, set of namespaces, transform): whoever asks
/// for the same gets the same (client-go's `SharedInformerFactory`).
///
/// A source is [provided](InformerFactory::provide) for each type once; requests say which part of
/// it they want. Informers can be started, stopped and removed one by one or all together. Clones
/// are handles of one factory; when the last is dropped, its informers live on as long as someone
/// holds them.
///
/// ```
/// # use informant::{informer::InformerFactory, source::ListWatch};
/// # async fn f<S: ListWatch<Object = String>>(source: S) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// let factory = InformerFactory::builder().build();
/// factory.provide(source)?;
/// let all = factory.informer::<String>()?;
/// let red = factory.request::<String>().labels("color=red").get()?;
/// factory.start()?;
/// factory.wait_for_sync(Duration::from_secs(30)).await?;
/// println!("{} of {}", red.snapshot().len(), all.snapshot().len());
/// factory.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct InformerFactory {
    shared: Arc<Shared>,
}

struct Shared {
    clock: SharedClock,
    resync: Option<Duration>,
    hook: Option<ReportHook>,
    state: Mutex<State>,
    changed: WaitSet,
}

struct State {
    /// For each type: its source and the default transform, as an `Arc<Provided<T>>`.
    provided: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    members: Members,
    started: bool,
    shut_down: bool,
}

/// What the factory knows of one type.
struct Provided<T: Send + Sync + 'static> {
    builder: Box<dyn Fn() -> InformerBuilder<T> + Send + Sync>,
    transform: Option<Transform<T>>,
}

/// A factory was asked for what it cannot give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// No source was provided for the type, so there is nothing to list.
    #[error("no source was provided for {type_name}")]
    NoSource {
        /// The type.
        type_name: &'static str,
    },
    /// The type has a source already; informers may be running on it.
    #[error("a source for {type_name} was provided already")]
    AlreadyProvided {
        /// The type.
        type_name: &'static str,
    },
    /// The factory was shut down.
    #[error("the informer factory was shut down already")]
    ShutDown,
    /// There is no tokio runtime here to run informers; the factory can still be started inside one.
    #[error("the informer factory needs a tokio runtime to start on")]
    NoRuntime,
}

/// Not everything that was waited for is synced.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryNotSynced {
    /// The factory was not started, or was shut down before it was.
    #[error("the informer factory was not started within {waited:?}")]
    NotStarted {
        /// How long the wait was.
        waited: Duration,
    },
    /// Some informers are not synced; the others are, and can be used.
    #[error("{} of {} informers are not synced: {}", .unsynced.len(), .unsynced.len() + .synced.len(), list(.unsynced))]
    Informers {
        /// The names of those that are synced.
        synced: Vec<Arc<str>>,
        /// What each of the others hangs on.
        unsynced: Vec<NotSynced>,
    },
}

fn list(unsynced: &[NotSynced]) -> String {
    let texts: Vec<_> = unsynced.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// Declares a factory: see [`InformerFactory::builder`].
#[must_use]
#[derive(Default)]
pub struct FactoryBuilder {
    clock: Option<SharedClock>,
    resync: Option<Duration>,
    hook: Option<ReportHook>,
}

impl FactoryBuilder {
    /// The clock of all informers; by default the system's.
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The default resync period of all informers; by default there is none.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Who is told of everything that goes wrong in any of the informers.
    pub fn on_error(mut self, hook: impl Fn(&InformerError) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Build the factory.
    #[must_use]
    pub fn build(self) -> InformerFactory {
        InformerFactory {
            shared: Arc::new(Shared {
                clock: self.clock.unwrap_or_else(SystemClock::shared),
                resync: self.resync,
                hook: self.hook,
                state: Mutex::new(State {
                    provided: HashMap::new(),
                    members: Members::default(),
                    started: false,
                    shut_down: false,
                }),
                changed: WaitSet::new(),
            }),
        }
    }
}

impl InformerFactory {
    /// Declare a factory.
    pub fn builder() -> FactoryBuilder {
        FactoryBuilder::default()
    }

    /// Say where objects of a type come from.
    ///
    /// # Errors
    /// [`FactoryError::AlreadyProvided`]
    pub fn provide<S: ListWatch>(&self, source: S) -> Result<(), FactoryError> {
        self.provide_source(source, None)
    }

    /// [`InformerFactory::provide`] with a transform that informers of the type have unless their
    /// request says otherwise: the more specific one wins.
    ///
    /// # Errors
    /// [`FactoryError::AlreadyProvided`]
    pub fn provide_with<S: ListWatch>(
        &self,
        source: S,
        transform: Transform<S::Object>,
    ) -> Result<(), FactoryError> {
        self.provide_source(source, Some(transform))
    }

    fn provide_source<S: ListWatch>(
        &self,
        source: S,
        transform: Option<Transform<S::Object>>,
    ) -> Result<(), FactoryError> {
        let source = Arc::new(source);
        let provided: Provided<S::Object> = Provided {
            builder: Box::new(move || SharedInformer::builder(source.clone())),
            transform,
        };
        let mut state = self.shared.state.lock();
        let id = TypeId::of::<S::Object>();
        if state.provided.contains_key(&id) {
            return Err(FactoryError::AlreadyProvided {
                type_name: std::any::type_name::<S::Object>(),
            });
        }
        state.provided.insert(id, Arc::new(provided));
        Ok(())
    }

    /// The informer of all objects of a type.
    ///
    /// # Errors
    /// As [`InformerRequest::get`].
    pub fn informer<T: Send + Sync + 'static>(&self) -> Result<SharedInformer<T>, FactoryError> {
        self.request().get()
    }

    /// Ask for the informer of a part of the objects of a type.
    pub fn request<T: Send + Sync + 'static>(&self) -> InformerRequest<T> {
        InformerRequest::new(self.clone())
    }

    fn provided<T: Send + Sync + 'static>(&self) -> Result<Arc<Provided<T>>, FactoryError> {
        let state = self.shared.state.lock();
        if state.shut_down {
            return Err(FactoryError::ShutDown);
        }
        let provided = state.provided.get(&TypeId::of::<T>()).cloned();
        provided
            .and_then(|provided| provided.downcast().ok())
            .ok_or(FactoryError::NoSource {
                type_name: std::any::type_name::<T>(),
            })
    }

    /// The informer behind `key`, or the one that `build` gives: it runs outside any lock, so where
    /// two ask at once the first to be done wins.
    fn get_or_insert<T: Send + Sync + 'static>(
        &self,
        key: Key,
        build: impl FnOnce() -> SharedInformer<T>,
    ) -> Result<SharedInformer<T>, FactoryError> {
        if let Some(known) = self.shared.state.lock().members.get(&key) {
            return Ok(known);
        }
        let new = build();
        let mut state = self.shared.state.lock();
        if state.shut_down {
            return Err(FactoryError::ShutDown);
        }
        if let Some(known) = state.members.get(&key) {
            return Ok(known);
        }
        state.members.insert(key, &new);
        Ok(new)
    }

    /// Start every informer that has not been started, on the current tokio runtime. Call it again
    /// for informers that were asked for later: they do not start by themselves.
    ///
    /// # Errors
    /// [`FactoryError::ShutDown`] or [`FactoryError::NoRuntime`].
    pub fn start(&self) -> Result<(), FactoryError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(FactoryError::NoRuntime);
        }
        let members = {
            let mut state = self.shared.state.lock();
            if state.shut_down {
                return Err(FactoryError::ShutDown);
            }
            state.started = true;
            state.members.all()
        };
        for member in members {
            // Those that run, or have stopped, stay as they are.
            let _as_it_is = member.start();
        }
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Wait until every informer that there is now is synced; before the factory is started, wait
    /// for that, too. An informer that was asked for after the start and not started counts as not
    /// synced.
    ///
    /// # Errors
    /// [`FactoryNotSynced`] after `deadline` says who is not synced and what each hangs on.
    pub async fn wait_for_sync(&self, deadline: Duration) -> Result<(), FactoryNotSynced> {
        let clock = &self.shared.clock;
        let since = clock.now();
        let until = since + deadline;
        let started = || {
            let state = self.shared.state.lock();
            (state.started || state.shut_down).then_some(state.started)
        };
        let started = tokio::select! {
            biased;
            started = self.shared.changed.until(started) => started,
            () = clock.sleep_until(until) => false,
        };
        if !started {
            let waited = clock.now().since(since);
            return Err(FactoryNotSynced::NotStarted { waited });
        }
        let members = self.shared.state.lock().members.all();
        let waits = members.iter().map(|member| async {
            let synced = member.wait_for_sync(until.since(clock.now())).await;
            (member.name(), synced)
        });
        let (mut synced, mut unsynced) = (Vec::new(), Vec::new());
        for (name, outcome) in futures_util::future::join_all(waits).await {
            match outcome {
                Ok(()) => synced.push(name),
                Err(error) => unsynced.push(error),
            }
        }
        if unsynced.is_empty() {
            return Ok(());
        }
        Err(FactoryNotSynced::Informers { synced, unsynced })
    }

    /// Stop an informer and forget it: the next request for the same makes a new one, with a fresh
    /// list. Old handles stay stopped; their listers show what was there last, and their handlers
    /// are told nothing more. False when the informer is none of this factory's (any more).
    pub async fn remove<T: Send + Sync + 'static>(&self, informer: &SharedInformer<T>) -> bool {
        let removed = self.shared.state.lock().members.remove(informer);
        if removed {
            informer.stop().await;
        }
        removed
    }

    /// The names of all informers, with the part that each shows.
    #[must_use]
    pub fn informers(&self) -> Vec<Arc<str>> {
        let members = self.shared.state.lock().members.all();
        members.iter().map(|member| member.name()).collect()
    }

    /// Stop all informers, refuse further requests, and wait until nothing of them runs. Safe to
    /// call from several places, and again.
    pub async fn shutdown(&self) {
        let members = {
            let mut state = self.shared.state.lock();
            state.shut_down = true;
            state.members.all()
        };
        self.shared.changed.notify_all();
        let stops = members.iter().map(|member| member.stop());
        futures_util::future::join_all(stops).await;
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("InformerFactory")
            .field("informers", &state.members.len())
            .field("started", &state.started)
            .field("shut_down", &state.shut_down)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("resync", &self.resync)
            .finish_non_exhaustive()
    }
}
