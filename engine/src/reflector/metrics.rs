//! What a reflector has counted.
use std::time::Duration;

/// Counters of one reflector since it was made; a plain copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReflectorMetrics {
    /// Lists that were accepted, streaming ones included.
    pub lists: u64,
    /// Of these, streaming lists.
    pub streaming_lists: u64,
    /// Pages that were asked for.
    pub list_pages: u64,
    /// Lists that failed.
    pub list_failures: u64,
    /// Lists that were refused because they were older than what was already seen.
    pub lists_refused: u64,
    /// Declared resets of the source.
    pub resets: u64,
    /// How long the last accepted list took.
    pub last_list_duration: Duration,
    /// Watches that were opened.
    pub watches: u64,
    /// Watches that could not be opened or ended with an error.
    pub watch_failures: u64,
    /// Watches that ended at once without a sign of life.
    pub very_short_watches: u64,
    /// Watches that outlived their timeout and were dropped.
    pub half_open_watches: u64,
    /// Deltas that the queue accepted from watches.
    pub deltas: u64,
    /// Of these, those that were older than the resume point when they came.
    pub late_deltas: u64,
    /// Bookmarks.
    pub bookmarks: u64,
    /// Objects that could not be used, in lists and watches.
    pub bad_objects: u64,
    /// Frames that were no events of the collection.
    pub foreign_frames: u64,
    /// Streaming lists that were given up for a plain list.
    pub streaming_fallbacks: u64,
    /// Faults that were reported.
    pub errors: u64,
    /// Panics of the error hook.
    pub hook_panics: u64,
}

/// Handles of the `metrics` facade, looked up once: a frame costs an addition, not a look-up. An
/// application installs its recorder before it makes a reflector.
#[cfg(feature = "metrics")]
pub(super) struct Exporter {
    counters: [(ReadCount, metrics::Counter); 11],
    list_seconds: metrics::Histogram,
}

#[cfg(feature = "metrics")]
type ReadCount = fn(&ReflectorMetrics) -> u64;

#[cfg(feature = "metrics")]
impl Exporter {
    pub(super) fn new(name: &std::sync::Arc<str>) -> Self {
        macro_rules! counter {
            ($field:ident, $metric:literal) => {
                (
                    |metrics| metrics.$field,
                    metrics::counter!($metric, "reflector" => name.clone()),
                )
            };
        }
        Self {
            counters: [
                counter!(lists, "informant_reflector_lists_total"),
                counter!(list_pages, "informant_reflector_list_pages_total"),
                counter!(list_failures, "informant_reflector_list_failures_total"),
                counter!(resets, "informant_reflector_resets_total"),
                counter!(watches, "informant_reflector_watches_total"),
                counter!(watch_failures, "informant_reflector_watch_failures_total"),
                counter!(
                    very_short_watches,
                    "informant_reflector_very_short_watches_total"
                ),
                counter!(deltas, "informant_reflector_deltas_total"),
                counter!(bookmarks, "informant_reflector_bookmarks_total"),
                counter!(bad_objects, "informant_reflector_bad_objects_total"),
                counter!(errors, "informant_reflector_errors_total"),
            ],
            list_seconds: metrics::histogram!(
                "informant_reflector_list_seconds",
                "reflector" => name.clone()
            ),
        }
    }

    /// Pass on what has changed.
    pub(super) fn export(&self, before: &ReflectorMetrics, after: &ReflectorMetrics) {
        for (read, counter) in &self.counters {
            let increment = read(after) - read(before);
            if increment > 0 {
                counter.increment(increment);
            }
        }
        if after.lists > before.lists {
            self.list_seconds
                .record(after.last_list_duration.as_secs_f64());
        }
    }
}
