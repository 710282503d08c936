//! Declaring an informer.
use super::crew::{Crew, Job};
use super::hub::{Hub, Life};
use super::metrics::Exporter;
use super::pump::{Pump, resync};
use super::registry::Registry;
use super::report::{InformerError, ReportHook, Reporter};
use super::resync::ResyncSchedule;
use super::shared::{Inner, SharedInformer, Unstarted};
use super::transform::{Transform, Transformed};
use crate::clock::{SharedClock, SystemClock};
use crate::delta::{DeltaQueue, Producer, QueueConfig, SourceId};
use crate::indexer::{IndexDeclaration, Indexer};
use crate::object::{Cached, Versioning};
use crate::reflector::{
    Comparison, ConsistencyCheck, ConsistencyConfig, DigestFeed, Reflector, ReflectorConfig,
    ReflectorHandle,
};
use crate::source::{ListWatch, Selectors};
use crate::stop::StopToken;
use crate::sync::Mutex;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// One collection that feeds the informer: a source and the part of it that is asked for.
struct Feed<T: Send + Sync + 'static> {
    selectors: Selectors,
    versioning: Versioning,
    connect: Arc<Connect<T>>,
}

type Connect<T> = dyn Fn(Option<Transform<T>>, Connection<T>) -> Connected + Send + Sync;

/// What a source is connected with.
struct Connection<T: Send + Sync + 'static> {
    producer: Producer<T>,
    config: ReflectorConfig,
    stop: StopToken,
    consistency: Option<(ConsistencyConfig, Indexer<T>, DigestFeed, Reporter)>,
}

/// A reflector that is ready to run.
struct Connected {
    handle: ReflectorHandle,
    jobs: Vec<Job>,
}

/// Declares an informer: see [`SharedInformer::builder`].
#[must_use]
pub struct InformerBuilder<T: Send + Sync + 'static> {
    name: Option<Arc<str>>,
    feeds: Vec<Feed<T>>,
    transform: Option<Transform<T>>,
    indexes: Vec<IndexDeclaration<T>>,
    clock: Option<SharedClock>,
    resync: Option<Duration>,
    hook: Option<ReportHook>,
    seed: Option<u64>,
    queue_bound: Option<usize>,
    configure: Arc<dyn Fn(&mut ReflectorConfig) + Send + Sync>,
    consistency: Option<ConsistencyConfig>,
}

impl<T: Send + Sync + 'static> InformerBuilder<T> {
    pub(super) fn new() -> Self {
        Self {
            name: None,
            feeds: Vec::new(),
            transform: None,
            indexes: Vec::new(),
            clock: None,
            resync: None,
            hook: None,
            seed: None,
            queue_bound: None,
            configure: Arc::new(|_| {}),
            consistency: None,
        }
    }

    /// A name for reports, traces and metrics; by default the object's type.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Feed the cache from one more collection: another namespace, or another shard. Sources must be
    /// disjoint; each owns the objects it brought, and a relist of one deletes none of another. They
    /// are numbered from 0 in the order in which they are added.
    pub fn add_source<S: ListWatch<Object = T>>(mut self, source: S, selectors: Selectors) -> Self {
        let versioning = source.versioning();
        let source = Arc::new(source);
        let connect = move |transform, connection| connect(source.clone(), transform, connection);
        self.feeds.push(Feed {
            selectors,
            versioning,
            connect: Arc::new(connect),
        });
        self
    }

    /// Ask only for this part of the (first) source.
    pub fn selectors(mut self, selectors: Selectors) -> Self {
        if let Some(feed) = self.feeds.first_mut() {
            feed.selectors = selectors;
        }
        self
    }

    /// Show several namespaces of the (first) source in one cache: each becomes a source of its own,
    /// with the selectors given so far. None at all means every namespace.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        if self.feeds.is_empty() {
            return self;
        }
        let first = self.feeds.remove(0);
        let mut feeds: Vec<_> = namespaces
            .into_iter()
            .map(|namespace| Feed {
                selectors: Selectors {
                    namespace: Some(namespace.into()),
                    ..first.selectors.clone()
                },
                versioning: first.versioning,
                connect: first.connect.clone(),
            })
            .collect();
        if feeds.is_empty() {
            feeds.push(first);
        }
        feeds.append(&mut self.feeds);
        self.feeds = feeds;
        self
    }

    /// What is made of each object before it is stored, shown or handed to anyone. To store another
    /// type, see [`Transformed`].
    pub fn transform(mut self, transform: Transform<T>) -> Self {
        self.transform = Some(transform);
        self
    }

    /// Declare an index whose function gives the values of an object.
    pub fn index<V, I, F>(self, name: &str, function: F) -> Self
    where
        V: Hash + Eq + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
        F: Fn(&Cached<T>) -> I + Send + 'static,
    {
        self.declare(IndexDeclaration::new(name, function))
    }

    /// Declare an index: see [`IndexDeclaration`] for its forms.
    pub fn declare(mut self, index: IndexDeclaration<T>) -> Self {
        self.indexes.push(index);
        self
    }

    /// The clock of all waits; by default the system's.
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How often handlers that do not say otherwise are told of every object again; by default never.
    /// At least [`MIN_RESYNC_PERIOD`](super::MIN_RESYNC_PERIOD).
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Who is told of everything that goes wrong.
    pub fn on_error(mut self, hook: impl Fn(&InformerError) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// The seed of all randomness (jitter, iteration order), so that runs can be repeated.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How many changed keys may wait to be applied before the reflectors wait; a relist is always
    /// admitted. By default there is no bound but the number of keys.
    pub fn queue_bound(mut self, keys: usize) -> Self {
        self.queue_bound = Some(keys.max(1));
        self
    }

    /// Change the settings of each source's reflector.
    pub fn reflector(
        mut self,
        configure: impl Fn(&mut ReflectorConfig) + Send + Sync + 'static,
    ) -> Self {
        self.configure = Arc::new(configure);
        self
    }

    /// Compare the cache with its source now and then, and repair what differs. For informers with
    /// one source; with several it has no effect.
    pub fn check_consistency(mut self, config: ConsistencyConfig) -> Self {
        self.consistency = Some(config);
        self
    }

    /// Build the informer. It makes no call and runs nothing before it is
    /// [started](SharedInformer::start).
    ///
    /// # Panics
    /// When two indexes have the same name: that is a mistake in the program, not in its input.
    #[must_use]
    pub fn build(self) -> SharedInformer<T> {
        let clock = self.clock.unwrap_or_else(SystemClock::shared);
        let name = self.name.unwrap_or_else(|| short_type_name::<T>().into());
        let opaque = |feed: &Feed<T>| feed.versioning == Versioning::Opaque;
        let versioning = if self.feeds.iter().any(opaque) {
            Versioning::Opaque
        } else {
            Versioning::Decimal
        };
        let mut indexer = Indexer::builder().versioning(versioning);
        if let Some(seed) = self.seed {
            indexer = indexer.hash_seed(seed);
        }
        let (indexer, writer) = self
            .indexes
            .into_iter()
            .fold(indexer, crate::indexer::IndexerBuilder::declare)
            .build();
        let queue = DeltaQueue::new(QueueConfig {
            versioning,
            bound: self.queue_bound,
            clock: Some(clock.clone()),
            ..QueueConfig::default()
        });
        let reporter = Reporter {
            name: name.clone(),
            hook: self.hook,
        };
        let life = Life::new();
        let digest = (self.consistency.is_some() && self.feeds.len() == 1).then(DigestFeed::new);
        let mut reflectors = Vec::new();
        let mut jobs = Vec::new();
        let mut rng = self.seed.map(fastrand::Rng::with_seed);
        for (number, feed) in self.feeds.into_iter().enumerate() {
            let id = SourceId(u32::try_from(number).unwrap_or(u32::MAX));
            let mut config = ReflectorConfig::new(clock.clone());
            config.name = match number {
                0 => name.clone(),
                number => format!("{name}-{number}").into(),
            };
            if let Some(rng) = &mut rng {
                config.seed = rng.u64(..);
            }
            config.selectors = feed.selectors;
            (self.configure)(&mut config);
            let (own_hook, reporter_) = (config.on_error.take(), reporter.clone());
            config.on_error = Some(Arc::new(move |error| {
                if let Some(hook) = &own_hook {
                    hook(error);
                }
                reporter_.report(&InformerError::Reflector {
                    source_id: id,
                    error: Box::new(error.clone()),
                });
            }));
            let consistency = self.consistency.clone().zip(digest.clone());
            let connection = Connection {
                producer: queue.producer(id),
                stop: life.stop.clone(),
                consistency: consistency.map(|(mut check, digest)| {
                    check.selectors = config.selectors.clone();
                    (check, indexer.clone(), digest, reporter.clone())
                }),
                config,
            };
            let connected = (feed.connect)(self.transform.clone(), connection);
            reflectors.push((id, connected.handle));
            jobs.extend(connected.jobs);
        }
        let hub = Arc::new(Hub {
            reporter,
            clock,
            indexer,
            registry: Registry::new(),
            schedule: Mutex::new(ResyncSchedule::new(self.resync)),
            crew: Crew::new(),
            life,
            queue: queue.clone(),
        });
        let (requests, inbox) = mpsc::unbounded_channel();
        let pump = Pump {
            hub: hub.clone(),
            writer,
            requests: inbox,
            unsynced: reflectors.iter().map(|(id, _)| *id).collect(),
            digest,
            exporter: Exporter::new(&name),
        };
        jobs.push(Box::pin(resync(hub.clone())));
        SharedInformer::new(Inner {
            hub,
            requests,
            reflectors,
            unstarted: Mutex::new(Some(Unstarted { pump, jobs })),
            versioning,
        })
    }
}

/// Make a reflector of `source`, seen through the transform if there is one.
fn connect<S: ListWatch>(
    source: Arc<S>,
    transform: Option<Transform<S::Object>>,
    connection: Connection<S::Object>,
) -> Connected {
    match transform {
        Some(transform) => reflect(Arc::new(Transformed::new(source, transform)), connection),
        None => reflect(source, connection),
    }
}

fn reflect<S: ListWatch>(source: Arc<S>, connection: Connection<S::Object>) -> Connected {
    let Connection {
        producer,
        config,
        stop,
        consistency,
    } = connection;
    let reflector = Reflector::new(source.clone(), producer, config);
    let handle = reflector.handle();
    let mut jobs: Vec<Job> = Vec::new();
    if let Some((config, indexer, digest, reporter)) = consistency {
        let report = move |outcome| {
            if let Ok(Comparison::Different(differences)) = outcome {
                reporter.report(&InformerError::Inconsistent(differences));
            }
        };
        let check = ConsistencyCheck::new(source, config);
        jobs.push(Box::pin(check.run(
            indexer,
            digest,
            handle.clone(),
            report,
            stop.clone(),
        )));
    }
    jobs.push(Box::pin(async move {
        let _end = reflector.run(stop).await;
    }));
    Connected { handle, jobs }
}

/// The type's name without its path: `Vec<alloc::string::String>` is shown as it is.
pub(super) fn short_type_name<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    match name.rsplit_once("::") {
        Some((_, last)) if !name.contains('<') => last,
        _ => name,
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for InformerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("name", &self.name)
            .field("sources", &self.feeds.len())
            .field("transform", &self.transform)
            .field("indexes", &self.indexes)
            .field("resync", &self.resync)
            .finish_non_exhaustive()
    }
}
