//! The reflector on the embedded source, the real queue and the real indexer, in virtual time:
//! random writes and faults, and an oracle that remembers every state of the source.
use crate::clock::SystemClock;
use crate::delta::{DeltaQueue, QueueConfig, SourceId};
use crate::indexer::{IndexWriter, Indexer, View};
use crate::object::ObjectKey;
use crate::reflector::{
    Comparison, ConsistencyCheck, ConsistencyConfig, DigestFeed, Reflector, ReflectorConfig, RunEnd,
};
use crate::source::memory::{Disconnect, MemoryConfig, MemorySource};
use crate::source::{
    ApiStatus, ListOptions, ListPage, ListWatch, SourceError, WatchOptions, WatchStream,
};
use crate::stop::StopToken;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The embedded source, offering streaming lists or not.
struct Offering {
    source: MemorySource<u32>,
    streaming: bool,
}

impl ListWatch for Offering {
    type Object = u32;

    fn list(
        &self,
        options: ListOptions,
    ) -> impl Future<Output = Result<ListPage<u32>, SourceError>> + Send {
        self.source.list(options)
    }

    fn watch(
        &self,
        options: WatchOptions,
    ) -> impl Future<Output = Result<WatchStream<u32>, SourceError>> + Send {
        self.source.watch(options)
    }

    fn supports_streaming_list(&self) -> bool {
        self.streaming
    }
}

/// Key to version, of every object.
type World = BTreeMap<String, u64>;

struct Run {
    rng: fastrand::Rng,
    source: MemorySource<u32>,
    /// The state of the source from each version on.
    past: BTreeMap<u64, World>,
    queue: DeltaQueue<u32>,
    cache: Indexer<u32>,
    writer: IndexWriter<u32>,
    feed: DigestFeed,
}

fn world_of(view: &View<u32>) -> World {
    let number = |object: &crate::Cached<u32>| object.resource_version().as_number().unwrap();
    view.iter()
        .map(|object| (object.key().to_string(), number(object)))
        .collect()
}

impl Run {
    fn new(seed: u64, clock: crate::SharedClock) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (cache, writer) = Indexer::builder().build();
        Self {
            source: MemorySource::with(MemoryConfig {
                history: rng.usize(3..60),
                clock: Some(clock),
                bookmark_every: rng.u64(1..20),
                ..MemoryConfig::default()
            }),
            past: BTreeMap::from([(1, World::new())]),
            queue: DeltaQueue::new(QueueConfig {
                bound: rng.bool().then(|| rng.usize(1..4)),
                ..QueueConfig::default()
            }),
            cache,
            writer,
            feed: DigestFeed::new(),
            rng,
        }
    }

    fn remember(&mut self) {
        let (version, objects) = self.source.objects();
        let world = objects.iter().map(|object| {
            let version = object.meta.resource_version.as_number().unwrap();
            (object.meta.key.to_string(), version)
        });
        self.past
            .insert(version.as_number().unwrap(), world.collect());
    }

    fn write(&mut self) {
        let key = ObjectKey::new("ns", &format!("k{}", self.rng.u8(0..5))).unwrap();
        if self.rng.u8(0..3) == 0 {
            let _ = self.source.delete(&key, None);
        } else {
            self.source.upsert(key, self.rng.u32(..));
        }
        self.remember();
    }

    fn fault(&mut self) {
        let errors: [SourceError; 8] = [
            ApiStatus::expired("scripted").into(),
            ApiStatus::new(429, "TooManyRequests", "scripted").into(),
            ApiStatus::new(500, "InternalError", "scripted").into(),
            ApiStatus::new(403, "Forbidden", "scripted").into(),
            ApiStatus::new(504, "Timeout", "Too large resource version").into(),
            SourceError::Transport("cut".into()),
            SourceError::ConnectionRefused("nobody".into()),
            SourceError::TimedOut,
        ];
        let error = self.rng.choice(errors).unwrap();
        match self.rng.u8(0..6) {
            0 => self.source.fail_next_list(error),
            1 => self.source.fail_next_watch(error),
            2 => self.source.disconnect(Disconnect::Clean),
            3 => self.source.disconnect(Disconnect::Broken),
            4 => self.source.compact(&self.source.resource_version()),
            _ => self.source.send_bookmark(),
        }
    }

    /// Apply what is pending; every published state is the source's at its version.
    fn drain(&mut self) {
        while let Some(batch) = self.queue.try_drain() {
            let before = self.cache.resource_version().as_number();
            let applied = self.writer.apply(batch);
            self.queue.acknowledge();
            let view = self.cache.load();
            self.feed.follow(&applied, view.sequence());
            let version = view.resource_version().as_number().unwrap();
            assert!(before <= Some(version), "the watermark went back");
            let (_, then) = self.past.range(..=version).next_back().unwrap();
            assert_eq!(&world_of(&view), then, "the cache at {version}");
        }
    }
}

/// Run `scenario` in one thread, in virtual time.
fn in_virtual_time<F: Future>(scenario: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(scenario)
}

async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

async fn converges(seed: u64) {
    let clock = SystemClock::shared();
    let mut run = Run::new(seed, clock.clone());
    let mut config = ReflectorConfig::new(clock);
    config.seed = seed;
    config.page_size = run.rng.bool().then_some(2);
    config.streaming_list_tries = run.rng.u32(1..3);
    let source = Offering {
        source: run.source.clone(),
        streaming: run.rng.bool(),
    };
    let producer = run.queue.producer(SourceId(0));
    let reflector = Reflector::new(Arc::new(source), producer, config);
    let (handle, stop) = (reflector.handle(), StopToken::new());
    let task = tokio::spawn(reflector.run(stop.clone()));
    for _ in 0..300 {
        match run.rng.u8(0..20) {
            0..10 => run.write(),
            10..12 => run.fault(),
            12..15 => pass(run.rng.u64(0..3000)).await,
            15..17 => tokio::task::yield_now().await,
            _ => run.drain(),
        }
    }
    for _ in 0..300 {
        pass(10_000).await;
        run.drain();
    }
    let (version, _) = run.source.objects();
    let (_, last) = run
        .past
        .range(..=version.as_number().unwrap())
        .next_back()
        .unwrap();
    assert_eq!(&world_of(&run.cache.load()), last, "the cache at the end");
    assert!(handle.metrics().watches > 0);
    stop.stop();
    assert_eq!(task.await.unwrap(), RunEnd::Stopped);
}

/// I-R8, I-R9, I-R17, and the batch thesis: each published state is exact.
#[test]
fn whatever_fails_the_cache_is_the_source_at_its_version() {
    for seed in 0..300 {
        println!("seed {seed}");
        in_virtual_time(converges(seed));
    }
}

/// What no frame will ever tell is found by the consistency check and repaired by a relist.
#[test]
fn a_lost_frame_is_found_and_repaired() {
    in_virtual_time(async {
        let clock = SystemClock::shared();
        let mut run = Run::new(1, clock.clone());
        run.queue = DeltaQueue::new(QueueConfig::default());
        let source = Arc::new(run.source.clone());
        let producer = run.queue.producer(SourceId(0));
        let reflector = Reflector::new(
            source.clone(),
            producer,
            ReflectorConfig::new(clock.clone()),
        );
        let (handle, stop) = (reflector.handle(), StopToken::new());
        let task = tokio::spawn(reflector.run(stop.clone()));
        let (sender, mut found) = tokio::sync::mpsc::unbounded_channel();
        let mut config = ConsistencyConfig::new(clock.clone());
        config.period = Duration::from_secs(60);
        let check = tokio::spawn(ConsistencyCheck::new(source, config).run(
            run.cache.clone(),
            run.feed.clone(),
            handle,
            move |outcome| sender.send(outcome.unwrap()).unwrap(),
            stop.clone(),
        ));

        let key = |name: &str| ObjectKey::new("ns", name).unwrap();
        run.source.upsert(key("kept"), 1);
        run.remember();
        pass(10).await;
        run.drain();
        run.source.drop_frames(1);
        run.source.upsert(key("lost"), 2);
        run.source.upsert(key("kept"), 3);
        pass(10).await;
        while let Some(batch) = run.queue.try_drain() {
            let applied = run.writer.apply(batch);
            run.queue.acknowledge();
            run.feed.follow(&applied, run.cache.load().sequence());
        }
        assert!(!run.cache.load().contains("ns/lost"), "nothing told");

        let Some(Comparison::Different(differences)) = found.recv().await else {
            panic!("it differs");
        };
        assert_eq!(
            (differences.missing, differences.first),
            (1, vec![key("lost")])
        );
        assert!(clock.now().since_origin() >= Duration::from_secs(60));
        run.remember();
        pass(10).await;
        run.drain();
        assert!(run.cache.load().contains("ns/lost"), "repaired");
        assert!(matches!(
            found.recv().await,
            Some(Comparison::Equal { objects: 2, .. })
        ));
        stop.stop();
        check.await.unwrap();
        task.await.unwrap();
    });
}
