//! What an informer exports through the `metrics` facade; see the table in the module `informer`.
use super::hub::Hub;
use std::time::Duration;

#[cfg(feature = "metrics")]
use crate::delta::HandlerId;
#[cfg(feature = "metrics")]
use std::collections::HashMap;

/// Handles of the facade, looked up once. An application installs its recorder before it builds
/// its informers.
#[cfg(feature = "metrics")]
pub(super) struct Exporter {
    batches: metrics::Counter,
    changes: metrics::Counter,
    apply_seconds: metrics::Histogram,
    objects: metrics::Gauge,
    quarantined: metrics::Gauge,
    queue_depth: metrics::Gauge,
    queue_age: metrics::Gauge,
    handlers: HashMap<HandlerId, PerHandler>,
}

#[cfg(feature = "metrics")]
struct PerHandler {
    calls: metrics::Counter,
    panics: metrics::Counter,
    coalesced: metrics::Counter,
    replays: metrics::Counter,
    waiting: metrics::Gauge,
}

#[cfg(feature = "metrics")]
impl Exporter {
    pub(super) fn new(informer: &std::sync::Arc<str>) -> Self {
        macro_rules! of_informer {
            ($kind:ident, $metric:literal) => {
                metrics::$kind!($metric, "informer" => informer.clone())
            };
        }
        Self {
            batches: of_informer!(counter, "informant_informer_batches_total"),
            changes: of_informer!(counter, "informant_informer_changes_total"),
            apply_seconds: of_informer!(histogram, "informant_informer_apply_seconds"),
            objects: of_informer!(gauge, "informant_informer_objects"),
            quarantined: of_informer!(gauge, "informant_informer_quarantined_objects"),
            queue_depth: of_informer!(gauge, "informant_informer_queue_keys"),
            queue_age: of_informer!(gauge, "informant_informer_queue_age_seconds"),
            handlers: HashMap::new(),
        }
    }

    /// A batch was applied.
    pub(super) fn applied(&self, changes: usize, took: Duration) {
        self.batches.increment(1);
        self.changes.increment(changes as u64);
        self.apply_seconds.record(took.as_secs_f64());
    }

    /// What is read off now and then: sizes, and the counts of handlers.
    pub(super) fn observe<T: Send + Sync + 'static>(&mut self, hub: &Hub<T>) {
        let (objects, quarantined) = {
            let view = hub.indexer.load();
            (view.len(), view.quarantine().count())
        };
        self.objects.set(objects as f64);
        self.quarantined.set(quarantined as f64);
        let queue = hub.queue.metrics();
        self.queue_depth.set(queue.depth as f64);
        self.queue_age.set(queue.oldest_age.as_secs_f64());
        let statuses = hub.handlers();
        // A handler that is gone has nothing waiting; its counters stand still.
        self.handlers.retain(|id, handler| {
            let stays = statuses.iter().any(|status| status.id == *id);
            if !stays {
                handler.waiting.set(0.0);
            }
            stays
        });
        for status in statuses {
            let handler = self
                .handlers
                .entry(status.id)
                .or_insert_with(|| PerHandler::new(&hub.reporter.name, &status.name));
            handler.calls.absolute(status.calls);
            handler.panics.absolute(status.panics);
            handler.coalesced.absolute(status.coalesced);
            handler.replays.absolute(status.replays);
            handler.waiting.set(status.waiting as f64);
        }
    }
}

#[cfg(feature = "metrics")]
impl PerHandler {
    fn new(informer: &std::sync::Arc<str>, handler: &std::sync::Arc<str>) -> Self {
        macro_rules! of_handler {
            ($kind:ident, $metric:literal) => {
                metrics::$kind!($metric, "informer" => informer.clone(), "handler" => handler.clone())
            };
        }
        Self {
            calls: of_handler!(counter, "informant_handler_calls_total"),
            panics: of_handler!(counter, "informant_handler_panics_total"),
            coalesced: of_handler!(counter, "informant_handler_coalesced_total"),
            replays: of_handler!(counter, "informant_handler_replays_total"),
            waiting: of_handler!(gauge, "informant_handler_waiting"),
        }
    }
}

/// Without the feature there is nothing to do.
#[cfg(not(feature = "metrics"))]
pub(super) struct Exporter;

#[cfg(not(feature = "metrics"))]
#[allow(clippy::unused_self)] // The shape of the one above.
impl Exporter {
    pub(super) fn new(_informer: &std::sync::Arc<str>) -> Self {
        Self
    }
    pub(super) fn applied(&self, _changes: usize, _took: Duration) {}
    pub(super) fn observe<T: Send + Sync + 'static>(&mut self, _hub: &Hub<T>) {}
}
