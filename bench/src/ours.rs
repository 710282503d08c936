//! Our side of every scenario: the indexer with three indexes.
use crate::pod::{Pod, World};
use crate::store::Store;
use informant::delta::{Batch, Delta, KeyDeltas, Replace, SourceId, Step};
use informant::indexer::{Emit, Index, IndexDeclaration, IndexWriter, Indexer};
use informant::{Cached, Incoming, Meta, ResourceVersion};
use smallvec::smallvec;
use std::hint::black_box;

const SOURCE: SourceId = SourceId(0);

pub(crate) struct Ours {
    pub(crate) indexer: Indexer<Pod>,
    pub(crate) writer: IndexWriter<Pod>,
    pub(crate) namespace: Index<Pod, String>,
    pub(crate) node: Index<Pod, String>,
}

impl Ours {
    pub(crate) fn empty() -> Self {
        let (indexer, writer) = Indexer::builder()
            .declare(text_index("namespace", |pod| &pod.namespace))
            .declare(text_index("node", |pod| &pod.node))
            .declare(text_index("app", |pod| &pod.app))
            .build();
        let index = |name| indexer.index(name).expect("the index was declared above");
        Self {
            namespace: index("namespace"),
            node: index("node"),
            indexer,
            writer,
        }
    }

    /// All of the world, as its first list brings it.
    pub(crate) fn load(world: &World) -> Self {
        let mut ours = Self::empty();
        let items = world.pods.iter().cloned().map(cached).collect();
        ours.writer.apply(replace(world.version, items));
        while !ours.writer.maintain() {}
        ours
    }
}

impl Store for Ours {
    type Reader = Indexer<Pod>;
    type List = Batch<Pod>;

    fn load(world: &World) -> Result<Self, String> {
        Ok(Self::load(world))
    }

    fn reader(&self) -> Indexer<Pod> {
        self.indexer.clone()
    }

    fn apply(&mut self, pod: Pod) {
        black_box(self.writer.apply(update(pod)));
    }

    /// The reflector makes the cached form of each object as it arrives, so that a decoded list is
    /// one of these.
    fn decoded(pods: &[Pod]) -> Batch<Pod> {
        let newest = pods.iter().map(|pod| pod.version).max().unwrap_or(0);
        replace(newest, pods.iter().cloned().map(cached).collect())
    }

    fn relist(&mut self, list: Batch<Pod>) {
        black_box(self.writer.apply(list));
    }
}

pub(crate) fn text_index(name: &str, text: fn(&Pod) -> &str) -> IndexDeclaration<Pod> {
    IndexDeclaration::with(
        name,
        move |pod: &Cached<Pod>, emit: &mut Emit<'_, String>| {
            emit.borrowed(text(pod));
            Ok(())
        },
    )
}

/// The pod as the cache keeps it.
pub(crate) fn cached(pod: Pod) -> Cached<Pod> {
    Cached::from(incoming(pod))
}

/// The pod as a source hands it on.
pub(crate) fn incoming(pod: Pod) -> Incoming<Pod> {
    let mut meta = Meta::new(&pod.namespace, &pod.name, &pod.uid, "")
        .expect("the names of the pods make good keys");
    meta.resource_version = ResourceVersion::from(pod.version);
    Incoming::new(meta, pod)
}

/// A batch of updates, each of another key.
pub(crate) fn updates(objects: Vec<Cached<Pod>>) -> Batch<Pod> {
    let newest = objects.iter().map(|pod| pod.version).max().unwrap_or(0);
    Batch {
        inputs: objects.len(),
        steps: vec![Step::Changes(
            objects
                .into_iter()
                .map(|object| KeyDeltas {
                    source: SOURCE,
                    deltas: smallvec![Delta::Updated(object)],
                })
                .collect(),
        )],
        versions: smallvec![(SOURCE, ResourceVersion::from(newest))],
    }
}

/// A batch of one update.
pub(crate) fn update(pod: Pod) -> Batch<Pod> {
    Batch::of(SOURCE, Delta::Updated(cached(pod)))
}

/// A relist.
pub(crate) fn replace(version: u64, items: Vec<Cached<Pod>>) -> Batch<Pod> {
    Batch {
        steps: vec![Step::Replace(Replace {
            source: SOURCE,
            resource_version: ResourceVersion::from(version),
            items,
            bad: Vec::new(),
            initial: false,
            reset: false,
            superseded_deletes: Vec::new(),
        })],
        versions: smallvec![(SOURCE, ResourceVersion::from(version))],
        inputs: 1,
    }
}
