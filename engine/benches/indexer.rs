//! The indexer by itself, for comparing one change of it with the one before: `cargo bench -p
//! informant`. How it stands beside other caches is what `informant-bench` measures.
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use informant::delta::{Batch, Delta, KeyDeltas, Replace, SourceId, Step};
use informant::indexer::{Emit, IndexDeclaration, IndexWriter, Indexer};
use informant::{Cached, Incoming, Meta, ResourceVersion};
use smallvec::smallvec;
use std::hint::black_box;

const OBJECTS: usize = 50_000;
const SOURCE: SourceId = SourceId(0);

struct Pod {
    node: usize,
    app: usize,
    version: u64,
}

fn pod(at: usize, version: u64) -> Cached<Pod> {
    let name = format!("app-{:03}-{:011x}-{:05}", at % 300, at * 7_919, at % 99_991);
    let namespace = format!("namespace-{:03}", at % 100);
    let uid = format!("{at:08x}-0000-4000-8000-{at:012x}");
    let meta = Meta::new(&namespace, &name, &uid, &version.to_string()).expect("a good key");
    let (node, app) = (at % 1_000, at % 300);
    Cached::from(Incoming::new(meta, Pod { node, app, version }))
}

fn relist(version: u64) -> Batch<Pod> {
    Batch {
        steps: vec![Step::Replace(Replace {
            source: SOURCE,
            resource_version: ResourceVersion::from(version),
            items: (0..OBJECTS).map(|at| pod(at, 1)).collect(),
            bad: Vec::new(),
            initial: false,
            reset: false,
            superseded_deletes: Vec::new(),
        })],
        versions: smallvec![(SOURCE, ResourceVersion::from(version))],
        inputs: 1,
    }
}

fn modifications(keys: impl Iterator<Item = usize>, version: u64) -> Batch<Pod> {
    let groups: Vec<_> = keys
        .map(|at| KeyDeltas {
            source: SOURCE,
            deltas: smallvec![Delta::Updated(pod(at, version))],
        })
        .collect();
    Batch {
        inputs: groups.len(),
        steps: vec![Step::Changes(groups)],
        versions: smallvec![(SOURCE, ResourceVersion::from(version))],
    }
}

fn filled() -> (Indexer<Pod>, IndexWriter<Pod>) {
    let (indexer, mut writer) = Indexer::builder()
        .declare(IndexDeclaration::with(
            "namespace",
            |pod: &Cached<Pod>, emit: &mut Emit<'_, String>| {
                emit.borrowed(pod.namespace());
                Ok(())
            },
        ))
        .index("node", |pod: &Cached<Pod>| Some(pod.node))
        .index("app", |pod: &Cached<Pod>| Some(pod.app))
        .build();
    writer.apply(relist(1));
    while !writer.maintain() {}
    (indexer, writer)
}

fn reads(criterion: &mut Criterion) {
    let (indexer, _writer) = filled();
    let mut rng = fastrand::Rng::with_seed(1);
    let keys: Vec<String> = (0..1 << 14)
        .map(|_| pod(rng.usize(..OBJECTS), 1).key().to_string())
        .collect();
    let snapshot = indexer.snapshot();
    let mut next = keys.iter().cycle();
    criterion.bench_function("get from a held snapshot", |bencher| {
        bencher.iter(|| {
            let key = next.next().expect("a cycle has no end");
            black_box(snapshot.get(key).map(|pod| pod.version))
        });
    });
    criterion.bench_function("snapshot taken and dropped", |bencher| {
        bencher.iter(|| black_box(indexer.snapshot()));
    });
    let namespace = indexer
        .index::<String>("namespace")
        .expect("it was declared");
    let mut group = criterion.benchmark_group("a namespace of 500");
    group.throughput(Throughput::Elements(500));
    group.bench_function("visit", |bencher| {
        bencher.iter(|| {
            let pods = snapshot.by_index(&namespace, "namespace-042");
            let pods = pods.expect("the handle is of this indexer");
            black_box(pods.fold(0, |sum, pod| pod.version.wrapping_add(sum)))
        });
    });
    group.bench_function("collect", |bencher| {
        bencher.iter(|| {
            let pods = snapshot.by_index(&namespace, "namespace-042");
            let pods = pods.expect("the handle is of this indexer");
            black_box(pods.cloned().collect::<Vec<_>>())
        });
    });
}

fn writes(criterion: &mut Criterion) {
    let (_indexer, mut writer) = filled();
    let mut version = 1;
    let mut start = 0;
    let mut group = criterion.benchmark_group("modify");
    for size in [1, 64, 1_024] {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_batched(
                || {
                    version += 1;
                    start = (start + 7_919 * size) % OBJECTS;
                    modifications((0..size).map(|at| (start + at * 7_919) % OBJECTS), version)
                },
                |batch| black_box(writer.apply(batch)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
    criterion.bench_function("relist, nothing changed", |bencher| {
        bencher.iter_batched(
            || {
                version += 1;
                relist(version)
            },
            |batch| black_box(writer.apply(batch)),
            BatchSize::LargeInput,
        );
    });
}

criterion_group!(benches, reads, writes);
criterion_main!(benches);
