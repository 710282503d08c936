//! Typed pods, in kube-runtime's store and in ours.
use crate::p15_pod_memory::{Keeper, meta_of, ours, theirs, without_managed_fields};
use informant::Incoming;
use k8s_openapi::api::core::v1::Pod;
use kube_runtime::reflector::store::Writer;
use kube_runtime::watcher::Event;
use serde_json::Value;

/// Live bytes an object after the list and after the updates, at the peak of the list, and resident.
///
/// # Errors
/// Never; a build without the peers has one.
#[allow(clippy::unnecessary_wraps, reason = "a build without the peers fails")]
pub(crate) fn weights(keeper: Keeper, pods: usize, updates: usize) -> Result<[f64; 4], String> {
    let kept = move |value| match keeper {
        Keeper::KubeKeeping => typed(value),
        _ => typed(without_managed_fields(value)),
    };
    if keeper == Keeper::OursTyped {
        return Ok(ours(pods, updates, |value| {
            Incoming::new(meta_of(&value), typed(value))
        }));
    }
    let mut writer = Writer::<Pod>::new(());
    writer.apply_watcher_event(&Event::Init);
    Ok(theirs(
        pods,
        updates,
        writer,
        |writer, pod| {
            writer.apply_watcher_event(&match pod {
                Some(pod) => Event::InitApply(kept(pod)),
                None => Event::InitDone,
            });
        },
        |writer, pod| writer.apply_watcher_event(&Event::Apply(kept(pod))),
    ))
}

fn typed(value: Value) -> Pod {
    serde_json::from_value(value).expect("the pods are good pods")
}
