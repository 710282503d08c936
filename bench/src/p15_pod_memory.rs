//! P15: what 20,000 realistic pods weigh, after the first list and after many updates.
//!
//! Each variant is weighed in a process of its own, so that its resident set is its own.
use crate::allocator::Count;
use crate::peers::CLIENT_GO;
use crate::peers::client_go::ClientGo;
use crate::pod_json;
use crate::row::{BYTES, Row};
use crate::run::Run;
use crate::spread::Spread;
use clap::ValueEnum;
use informant::delta::{Batch, Delta, Replace, SourceId, Step};
use informant::indexer::{IndexWriter, Indexer};
use informant::json::JsonObject;
use informant::{Cached, Incoming, Meta, ResourceVersion};
use serde_json::Value;
use smallvec::smallvec;
use std::process::Command;

/// What keeps the pods.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keeper {
    /// Ours, typed pods without managedFields, as informers keep them.
    OursTyped,
    /// Ours, schemaless objects without managedFields.
    OursJson,
    /// Ours, five fields of each pod.
    OursProjection,
    /// kube-runtime, typed pods as they come.
    KubeKeeping,
    /// kube-runtime, typed pods without managedFields.
    KubeStripping,
}

const SOURCE: SourceId = SourceId(0);

/// What was weighed, in bytes an object: live after the list, live after the updates, at the peak of
/// the list, and resident after the updates.
type Weights = [f64; 4];

const WEIGHED: [&str; 4] = [
    "live after the first list",
    "live after the updates",
    "live at the peak of the first list",
    "resident after the updates",
];

pub(crate) fn run(run: &mut Run) {
    let (pods, updates) = if run.quick() {
        (2_000, 10_000)
    } else {
        (20_000, 100_000)
    };
    let peers = [
        (
            "kube-runtime, keeping",
            in_process(Keeper::KubeKeeping, pods, updates),
        ),
        (
            "kube-runtime, stripping",
            in_process(Keeper::KubeStripping, pods, updates),
        ),
        ("client-go, keeping", in_go("keep", pods, updates)),
        ("client-go, stripping", in_go("strip", pods, updates)),
    ];
    for (name, keeper) in [
        ("typed, managedFields stripped", Keeper::OursTyped),
        ("schemaless, managedFields stripped", Keeper::OursJson),
        ("five fields", Keeper::OursProjection),
    ] {
        let Ok(ours) = in_process(keeper, pods, updates) else {
            continue;
        };
        for (at, weighed) in WEIGHED.into_iter().enumerate() {
            let spread = Spread::exact(ours[at]);
            let mut row = Row::alone(format!("a pod, {name}: {weighed}"), pods, spread, BYTES);
            row.rounds = 1;
            for (peer, weights) in &peers {
                match weights {
                    Ok(weights) => row.peer(peer, Spread::exact(weights[at]), BYTES),
                    Err(reason) => row.skip(peer, reason),
                }
            }
            run.add(aimed(row, keeper, at, ours[0]));
        }
    }
}

/// The targets are on live bytes after the updates, and on the peak.
fn aimed(row: Row, keeper: Keeper, weighed: usize, first: f64) -> Row {
    match (keeper, weighed) {
        (Keeper::OursTyped, 1) => row
            .within(0.7, "kube-runtime, keeping")
            .within(0.7, "client-go, keeping")
            .within(1.05, "kube-runtime, stripping")
            .within(1.05, "client-go, stripping"),
        (Keeper::OursProjection, 1) => row
            .within(0.1, "kube-runtime, stripping")
            .within(0.1, "client-go, stripping"),
        (Keeper::OursTyped, 2) => row.at_most(1.3 * first, "1.3x what stays"),
        (Keeper::OursJson | Keeper::OursProjection, 2) => {
            row.at_most(1.3 * first, "1.3x what stays")
        }
        _ => row,
    }
}

fn in_process(keeper: Keeper, pods: usize, updates: usize) -> Result<Weights, String> {
    let binary = std::env::current_exe().map_err(|error| error.to_string())?;
    let name = keeper
        .to_possible_value()
        .ok_or("a keeper without a name")?;
    let output = Command::new(binary)
        .args([
            "weigh",
            name.get_name(),
            &pods.to_string(),
            &updates.to_string(),
        ])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn in_go(what: &str, pods: usize, updates: usize) -> Result<Weights, String> {
    let mut go = ClientGo::start(0)?;
    let command = format!("weigh {what} {pods} {updates}");
    let texts = versions(pods, updates).map(|(at, version)| pod_json::pod(at, version).to_string());
    let figures = go.fed(&command, texts);
    Weights::try_from(figures).map_err(|figures| format!("{CLIENT_GO} answered {figures:?}"))
}

/// Every pod once, and then the updates.
fn versions(pods: usize, updates: usize) -> impl Iterator<Item = (usize, u64)> {
    let first = (0..pods).map(|at| (at, at as u64 + 1));
    let later = (pods..pods + updates).map(move |at| ((at * 7_919) % pods, at as u64 + 1));
    first.chain(later)
}

/// Weigh one keeper in this process, and print its weights.
///
/// # Errors
/// Why this keeper cannot be weighed by this build.
pub(crate) fn weigh(keeper: Keeper, pods: usize, updates: usize) -> Result<(), String> {
    let weights = match keeper {
        Keeper::OursJson => ours(pods, updates, |value| {
            let Value::Object(map) = value else {
                unreachable!("a pod is an object")
            };
            JsonObject::from_map(map).expect("a pod has good metadata")
        }),
        Keeper::OursProjection => ours(pods, updates, |value| {
            Incoming::new(meta_of(&value), Projection::of(&value))
        }),
        Keeper::OursTyped | Keeper::KubeKeeping | Keeper::KubeStripping => {
            crate::peers::kube_pods::weights(keeper, pods, updates)?
        }
    };
    println!(
        "{}",
        serde_json::to_string(&weights).expect("figures are plain")
    );
    Ok(())
}

/// Five fields, as small as they are.
#[allow(dead_code, reason = "kept to be weighed")]
struct Projection {
    node: Box<str>,
    phase: Box<str>,
    ip: Box<str>,
    app: Box<str>,
    restarts: u32,
}

impl Projection {
    fn of(pod: &Value) -> Self {
        let text = |pointer| pod.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        Self {
            node: text("/spec/nodeName").into(),
            phase: text("/status/phase").into(),
            ip: text("/status/podIP").into(),
            app: text("/metadata/labels/app.kubernetes.io~1name").into(),
            restarts: pod
                .pointer("/status/containerStatuses/0/restartCount")
                .and_then(Value::as_u64)
                .unwrap_or(0) as u32,
        }
    }
}

pub(crate) fn meta_of(pod: &Value) -> Meta {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or("");
    Meta::new(
        text("namespace"),
        text("name"),
        text("uid"),
        text("resourceVersion"),
    )
    .expect("a pod has a good key")
}

pub(crate) fn without_managed_fields(mut pod: Value) -> Value {
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    pod
}

/// Our cache, with what `decode` makes of each pod without its managedFields. The list is made as
/// the reflector makes it: each object is in its final form before the next one is decoded.
pub(crate) fn ours<T: Send + Sync + 'static>(
    pods: usize,
    updates: usize,
    decode: impl Fn(Value) -> Incoming<T>,
) -> Weights {
    let count = Count::start();
    count.reset_peak();
    let before = count.read().requested;
    let (indexer, mut writer) = Indexer::<T>::builder().build();
    let decoded = |(at, version)| decode(without_managed_fields(pod_json::pod(at, version)));
    let mut versions = versions(pods, updates);
    let items: Vec<_> = versions
        .by_ref()
        .take(pods)
        .map(|version| Cached::from(decoded(version)))
        .collect();
    writer.apply(relist(pods as u64, items));
    let peak = count.peak() - before;
    settle(&mut writer);
    let first = count.read().requested - before;
    for version in versions {
        let changed = Delta::Updated(Cached::from(decoded(version)));
        writer.apply(Batch::of(SOURCE, changed));
    }
    settle(&mut writer);
    let after = count.read().requested - before;
    assert_eq!(
        indexer.len(),
        pods,
        "the updates are of pods that were listed"
    );
    [first as f64, after as f64, peak as f64, resident()].map(|bytes| bytes / pods as f64)
}

fn relist<T>(version: u64, items: Vec<Cached<T>>) -> Batch<T> {
    let version = ResourceVersion::from(version);
    Batch {
        steps: vec![Step::Replace(Replace {
            source: SOURCE,
            resource_version: version.clone(),
            items,
            bad: Vec::new(),
            initial: true,
            reset: false,
            superseded_deletes: Vec::new(),
        })],
        versions: smallvec![(SOURCE, version)],
        inputs: 1,
    }
}

/// What the informer does on its timer.
fn settle<T: Send + Sync + 'static>(writer: &mut IndexWriter<T>) {
    while !writer.maintain() {}
}

/// The resident set, in bytes.
pub(crate) fn resident() -> f64 {
    std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<f64>().ok())
        .map_or(0.0, |pages| pages * 4_096.0)
}

/// Weigh a store of another kind: `list` is told of every pod of the first list, in order and ended
/// by `None`, `update` of every update.
#[cfg(feature = "peers-kube")]
pub(crate) fn theirs<S>(
    pods: usize,
    updates: usize,
    mut store: S,
    mut list: impl FnMut(&mut S, Option<Value>),
    mut update: impl FnMut(&mut S, Value),
) -> Weights {
    let count = Count::start();
    count.reset_peak();
    let before = count.read().requested;
    let mut versions = versions(pods, updates);
    for (at, version) in versions.by_ref().take(pods) {
        list(&mut store, Some(pod_json::pod(at, version)));
    }
    list(&mut store, None);
    let peak = count.peak() - before;
    let first = count.read().requested - before;
    for (at, version) in versions {
        update(&mut store, pod_json::pod(at, version));
    }
    let after = count.read().requested - before;
    let resident = resident();
    drop(store);
    [first as f64, after as f64, peak as f64, resident].map(|bytes| bytes / pods as f64)
}
