//! The demo's whole set-up: sources, informers, controllers, workload and readers.
use super::Options;
use super::controller::{Controller, Follow, Gate};
use super::latency::Counts;
use super::model::{NODE_INDEXES, Node, POD_INDEXES, Pod, declare};
use super::readers::{Reads, read};
use super::summary::Summary;
use super::verify::{Differences, Truth};
use super::workload::Workload;
use informant::ObjectKey;
use informant::controller::Controller as Runner;
use informant::informer::{HandlerOptions, InformerBuilder, Registration, SharedInformer};
use informant::source::memory::MemorySource;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Events that the workload makes in a second, if the machine can.
const EVENTS_PER_SECOND: u32 = 20_000;
const STEP: Duration = Duration::from_millis(5);
/// The embedded source needs no protection from an informer that comes back at once.
const BACKOFF: Duration = Duration::from_millis(20);
/// How long the first lists may take, and how long the last changes may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

type Mishap = fn(&mut Workload);

/// What goes wrong between the informer and its source, at these percentages of the run.
const MISHAPS: [(u32, Mishap); 2] = [
    (33, |workload| workload.disconnect()),
    (67, Workload::expire),
];

/// A running demo.
pub(super) struct Cluster {
    started: Instant,
    pods: MemorySource<Pod>,
    nodes: MemorySource<Node>,
    pod_informer: SharedInformer<Pod>,
    node_informer: SharedInformer<Node>,
    controllers: Vec<Arc<Controller>>,
    runners: Vec<Runner<ObjectKey>>,
    registrations: Vec<Registration<Pod>>,
    gate: Arc<Gate>,
    /// The first controller's handler hangs at the gate.
    blocked: bool,
    reads: Arc<Reads>,
    stop_workload: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Version of both sources when the workload began.
    first_version: u64,
    worked: Duration,
}

/// What the demo is doing at one moment.
#[derive(Clone)]
pub(super) struct Sample {
    pub(super) at: Duration,
    pub(super) events: u64,
    pub(super) objects: usize,
    pub(super) queue_depth: usize,
    /// Versions by which the caches are behind the sources.
    pub(super) lag: u64,
    pub(super) reads: u64,
    pub(super) calls: u64,
    /// Changes that wait for a handler, over all handlers.
    pub(super) waiting: usize,
    pub(super) reconciled: u64,
    /// Keys that wait for a worker, over all work queues.
    pub(super) work: usize,
    pub(super) relists: u64,
    pub(super) lateness: Counts,
}

impl Cluster {
    /// Fill the sources, start the informers, wait for their first lists, then let things happen.
    pub(super) async fn start(options: &Options) -> Result<Self, Box<dyn Error>> {
        let (pods, nodes) = (MemorySource::new(), MemorySource::new());
        let workload = Workload::new(
            (pods.clone(), nodes.clone()),
            options.objects as usize,
            options.nodes as usize,
            options.seed,
        );
        let pod_informer = POD_INDEXES
            .into_iter()
            .map(declare)
            .fold(
                SharedInformer::builder(pods.clone()).name("pods"),
                InformerBuilder::declare,
            )
            .seed(options.seed)
            .reflector(|reflector| reflector.backoff.initial = BACKOFF)
            .build();
        let node_informer = NODE_INDEXES
            .into_iter()
            .map(declare)
            .fold(
                SharedInformer::builder(nodes.clone()).name("nodes"),
                InformerBuilder::declare,
            )
            .seed(options.seed)
            .build();
        let gate = Arc::new(Gate::default());
        let blocked = options.blocked_handler && options.controllers > 0;
        let by_node = pod_informer.lister().index("node")?;
        let mut controllers = Vec::new();
        let mut runners = Vec::new();
        let mut registrations = Vec::new();
        for number in 0..options.controllers {
            let controller = Arc::new(Controller::new(format!("controller-{number}")));
            let blocked = blocked && number == 0;
            let runner = controller.run(pod_informer.lister(), by_node.clone())?;
            let mut handling = HandlerOptions::named(&controller.name);
            if blocked {
                handling = handling.dedicated_thread();
            }
            let handler = Follow {
                controller: controller.clone(),
                queue: runner.queue().clone(),
                gate: blocked.then(|| gate.clone()),
            };
            registrations.push(pod_informer.add_handler_with(&handling, handler)?);
            controllers.push(controller);
            runners.push(runner);
        }
        pod_informer.start()?;
        node_informer.start()?;
        pod_informer.wait_for_sync(PATIENCE).await?;
        node_informer.wait_for_sync(PATIENCE).await?;
        for registration in &registrations {
            registration.synced().await;
        }
        let first_version = version(&pods) + version(&nodes);
        let mut cluster = Self {
            started: Instant::now(),
            pods,
            nodes,
            pod_informer,
            node_informer,
            controllers,
            runners,
            registrations,
            gate,
            blocked,
            reads: Arc::default(),
            stop_workload: Arc::default(),
            threads: Vec::new(),
            first_version,
            worked: Duration::ZERO,
        };
        cluster.spawn_workload(workload, options.seconds)?;
        cluster.spawn_reader(options.seed)?;
        Ok(cluster)
    }

    fn spawn_workload(&mut self, mut workload: Workload, seconds: u32) -> std::io::Result<()> {
        let stop = self.stop_workload.clone();
        let total = Duration::from_secs(u64::from(seconds));
        let run = move || {
            let begun = Instant::now();
            let mut mishaps = MISHAPS.into_iter().peekable();
            let per_step = EVENTS_PER_SECOND as usize * STEP.as_millis() as usize / 1000;
            while !stop.load(Ordering::Relaxed) {
                let step_start = Instant::now();
                workload.churn(per_step);
                let due = |(percent, _): &(u32, Mishap)| begun.elapsed() >= total * *percent / 100;
                if let Some((_, mishap)) = mishaps.next_if(due) {
                    mishap(&mut workload);
                }
                thread::sleep(STEP.saturating_sub(step_start.elapsed()));
            }
        };
        self.threads
            .push(thread::Builder::new().name("workload".into()).spawn(run)?);
        Ok(())
    }

    fn spawn_reader(&mut self, seed: u64) -> std::io::Result<()> {
        let cache = self.pod_informer.lister();
        let keys: Vec<_> = cache.load().keys().cloned().collect();
        let reads = self.reads.clone();
        let run = move || read(&cache, &keys, seed, &reads);
        self.threads
            .push(thread::Builder::new().name("reader".into()).spawn(run)?);
        Ok(())
    }

    /// What is going on.
    pub(super) fn sample(&self) -> Sample {
        let status = self.pod_informer.status();
        let mut lateness = Counts::empty();
        // One that hangs on purpose says nothing about how late handlers are.
        for controller in &self.controllers[usize::from(self.blocked)..] {
            lateness.add(&controller.lateness.counts());
        }
        let lag = |newest: u64, seen: informant::ResourceVersion| {
            newest.saturating_sub(seen.as_number().unwrap_or(0))
        };
        let lister = (self.pod_informer.lister(), self.node_informer.lister());
        Sample {
            at: self.started.elapsed(),
            events: version(&self.pods) + version(&self.nodes) - self.first_version,
            objects: lister.0.len() + lister.1.len(),
            queue_depth: status.queue.depth + self.node_informer.status().queue.depth,
            lag: lag(version(&self.pods), lister.0.resource_version())
                + lag(version(&self.nodes), lister.1.resource_version()),
            reads: self.reads.gets.load(Ordering::Relaxed),
            calls: self.calls(),
            waiting: status.handlers.iter().map(|handler| handler.waiting).sum(),
            reconciled: self.runners.iter().map(|r| r.metrics().succeeded).sum(),
            work: self.runners.iter().map(|runner| runner.queue().len()).sum(),
            relists: self.relists(),
            lateness,
        }
    }

    /// No more changes. The blocked handler is let go.
    pub(super) fn end_workload(&mut self) {
        self.stop_workload.store(true, Ordering::Relaxed);
        self.reads.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        self.worked = self.started.elapsed();
        self.gate.open();
    }

    /// Wait until everything has arrived everywhere, then compare. What has not arrived in time is
    /// a difference.
    pub(super) async fn settle_and_verify(&self) -> Differences {
        let deadline = Instant::now() + PATIENCE;
        let (pods, nodes) = (Truth::of(&self.pods), Truth::of(&self.nodes));
        let arrive = async {
            let pods = self.pod_informer.wait_for(&pods.version).await;
            pods.and(self.node_informer.wait_for(&nodes.version).await)
        };
        let mut late = Differences::default();
        match tokio::time::timeout(PATIENCE, arrive).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => late.add(|| error.to_string()),
            Err(_) => late.add(|| format!("the last changes did not arrive within {PATIENCE:?}")),
        }
        loop {
            let mut found = Differences::default();
            for controller in &self.controllers {
                pods.check_controller(controller, &mut found);
            }
            if found.is_empty() || Instant::now() >= deadline {
                found.count += late.count;
                found.told.splice(0..0, late.told);
                self.verify_caches(&pods, &nodes, &mut found);
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn verify_caches(&self, pods: &Truth<Pod>, nodes: &Truth<Node>, found: &mut Differences) {
        let snapshot = self.pod_informer.snapshot();
        pods.check_cache("pods", &snapshot, found);
        for index in POD_INDEXES {
            pods.check_index(&snapshot, index, found);
        }
        let snapshot = self.node_informer.snapshot();
        nodes.check_cache("nodes", &snapshot, found);
        for index in NODE_INDEXES {
            nodes.check_index(&snapshot, index, found);
        }
        for handler in self.pod_informer.status().handlers {
            if handler.panics > 0 {
                found.add(|| format!("the handler of {} panicked", handler.name));
            }
        }
        let torn = self.reads.torn.load(Ordering::Relaxed);
        if torn > 0 {
            found.add(|| format!("in {torn} snapshots, objects and indexes disagreed"));
        }
    }

    /// What there is to tell at the end.
    pub(super) fn summary(
        &self,
        options: &Options,
        differences: Differences,
        interrupted: bool,
    ) -> Summary {
        let sample = self.sample();
        let status = self.pod_informer.status();
        let reflectors = self.pod_informer.reflectors().iter();
        Summary {
            verified: differences.is_empty(),
            objects: sample.objects,
            pods: Truth::of(&self.pods).len(),
            nodes: Truth::of(&self.nodes).len(),
            controllers: options.controllers,
            indexes: POD_INDEXES.len() + NODE_INDEXES.len(),
            events: sample.events,
            seconds: self.worked.as_secs_f64(),
            seed: options.seed,
            interrupted,
            resource_version: status
                .versions
                .first()
                .map_or_else(String::new, |(_, version)| version.to_string()),
            batches: status.queue.drains,
            coalesced: status.queue.coalesced
                + status.handlers.iter().map(|h| h.coalesced).sum::<u64>(),
            relists: sample.relists,
            watches: reflectors.map(|(_, handle)| handle.metrics().watches).sum(),
            reads: sample.reads,
            snapshots_checked: self.reads.snapshots.load(Ordering::Relaxed),
            handler_calls: sample.calls,
            reconciled: sample.reconciled,
            latency_micros: sample.lateness.quantiles().unwrap_or_default(),
            difference_count: differences.count,
            differences: differences.told,
        }
    }

    pub(super) async fn stop(self) {
        self.pod_informer.stop().await;
        self.node_informer.stop().await;
        drop(self.registrations);
        for runner in self.runners {
            runner.stop().await;
        }
    }

    fn calls(&self) -> u64 {
        let calls = self.controllers.iter().map(|controller| &controller.calls);
        calls.map(|calls| calls.load(Ordering::Relaxed)).sum()
    }

    /// Lists of the pods after the first.
    fn relists(&self) -> u64 {
        let reflectors = self.pod_informer.reflectors().iter();
        let lists: u64 = reflectors.map(|(_, handle)| handle.metrics().lists).sum();
        lists.saturating_sub(1)
    }
}

fn version<T: Clone + Send + Sync + 'static>(source: &MemorySource<T>) -> u64 {
    source.resource_version().as_number().unwrap_or(0)
}
