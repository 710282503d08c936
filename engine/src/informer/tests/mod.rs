//! The informer on a scripted cluster, in virtual time.
mod cluster;
mod delivery;
mod factories;
mod handlers;
mod life;
mod readers;
mod recorder;
mod resyncs;
mod stress;

use super::{HandlerOptions, InformerBuilder, Policy, SharedInformer};
use cluster::{Cluster, Pod, show};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

fn informer(cluster: &Cluster) -> InformerBuilder<Pod> {
    SharedInformer::builder(cluster.clone())
        .name("pods")
        .seed(7)
        .index("zone", |pod| Some(pod.zone.clone()))
}

async fn started(cluster: &Cluster) -> SharedInformer<Pod> {
    let informer = informer(cluster).build();
    informer.start().unwrap();
    informer.wait_for_sync(SOON).await.unwrap();
    informer
}

/// Let everything run that can run: time moves only when all tasks wait.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn content(informer: &SharedInformer<Pod>) -> Vec<String> {
    let mut content: Vec<_> = informer.snapshot().iter().map(show).collect();
    content.sort();
    content
}

fn lossless() -> HandlerOptions {
    HandlerOptions::named("lossless").policy(Policy::Unbounded)
}
