//! What a queue exports through the `metrics` facade; see the table in the module.
use super::metrics::Counts;
use super::state::State;
use std::sync::Arc;
use std::time::Duration;

/// Handles of the facade, looked up once. An application installs its recorder before it makes its
/// queues.
pub(super) struct Exporter {
    adds: metrics::Counter,
    gets: metrics::Counter,
    retries: metrics::Counter,
    panics: metrics::Counter,
    depth: metrics::Gauge,
    delayed: metrics::Gauge,
    held: metrics::Gauge,
    in_flight: metrics::Gauge,
    queue_seconds: metrics::Histogram,
    work_seconds: metrics::Histogram,
}

/// What is exported of one moment.
pub(super) struct Moment {
    counts: Counts,
    depth: usize,
    delayed: usize,
    held: usize,
    in_flight: usize,
}

impl Moment {
    pub(super) fn of<K>(state: &State<K>) -> Self {
        Self {
            counts: state.counts,
            depth: state.depth(),
            delayed: state.delays.len(),
            held: state.holds.len(),
            in_flight: state.in_flight,
        }
    }
}

impl Exporter {
    pub(super) fn new(queue: &Arc<str>) -> Self {
        macro_rules! of_queue {
            ($kind:ident, $metric:literal) => {
                metrics::$kind!($metric, "queue" => queue.clone())
            };
        }
        Self {
            adds: of_queue!(counter, "informant_work_queue_adds_total"),
            gets: of_queue!(counter, "informant_work_queue_gets_total"),
            retries: of_queue!(counter, "informant_work_queue_retries_total"),
            panics: of_queue!(counter, "informant_work_queue_panics_total"),
            depth: of_queue!(gauge, "informant_work_queue_depth"),
            delayed: of_queue!(gauge, "informant_work_queue_delayed"),
            held: of_queue!(gauge, "informant_work_queue_held"),
            in_flight: of_queue!(gauge, "informant_work_queue_in_flight"),
            queue_seconds: of_queue!(histogram, "informant_work_queue_queue_seconds"),
            work_seconds: of_queue!(histogram, "informant_work_queue_work_seconds"),
        }
    }

    pub(super) fn export(&self, moment: &Moment) {
        let Moment { counts, .. } = moment;
        self.adds.absolute(counts.adds);
        self.gets.absolute(counts.gets);
        self.retries.absolute(counts.retries);
        self.panics.absolute(counts.panics);
        self.depth.set(moment.depth as f64);
        self.delayed.set(moment.delayed as f64);
        self.held.set(moment.held as f64);
        self.in_flight.set(moment.in_flight as f64);
    }

    pub(super) fn waited(&self, duration: Duration) {
        self.queue_seconds.record(duration.as_secs_f64());
    }

    pub(super) fn worked(&self, duration: Duration) {
        self.work_seconds.record(duration.as_secs_f64());
    }
}

#[cfg(all(test, not(informant_loom)))]
mod tests {
    use super::super::{WorkQueue, WorkQueueConfig};
    use crate::clock::ManualClock;
    use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// Keeps the value of each metric; of a histogram the sum.
    #[derive(Default)]
    struct Recorder(Mutex<BTreeMap<String, Arc<Value>>>);

    #[derive(Default)]
    struct Value(AtomicU64, Mutex<f64>);

    impl metrics::CounterFn for Value {
        fn increment(&self, value: u64) {
            self.0.fetch_add(value, Ordering::SeqCst);
        }
        fn absolute(&self, value: u64) {
            self.0.fetch_max(value, Ordering::SeqCst);
        }
    }

    impl metrics::GaugeFn for Value {
        fn increment(&self, value: f64) {
            *self.1.lock().unwrap() += value;
        }
        fn decrement(&self, value: f64) {
            *self.1.lock().unwrap() -= value;
        }
        fn set(&self, value: f64) {
            *self.1.lock().unwrap() = value;
        }
    }

    impl metrics::HistogramFn for Value {
        fn record(&self, value: f64) {
            *self.1.lock().unwrap() += value;
        }
    }

    impl Recorder {
        fn value(&self, key: &Key) -> Arc<Value> {
            let label = key.labels().next().map_or("", |label| label.value());
            let name = format!("{}/{label}", key.name());
            self.0.lock().unwrap().entry(name).or_default().clone()
        }

        fn of(&self, name: &str) -> f64 {
            let values = self.0.lock().unwrap();
            let value = &values[&format!("informant_work_queue_{name}/pods")];
            value.0.load(Ordering::SeqCst) as f64 + *value.1.lock().unwrap()
        }
    }

    impl metrics::Recorder for Recorder {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.value(key))
        }
        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.value(key))
        }
        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(self.value(key))
        }
    }

    /// I-W14
    #[test]
    #[allow(clippy::float_cmp)] // Small whole numbers.
    fn a_named_queue_exports_what_it_counts() {
        let recorder = Recorder::default();
        let clock = ManualClock::new();
        let queue = metrics::with_local_recorder(&recorder, || {
            let config = WorkQueueConfig::new(Arc::new(clock.clone()));
            WorkQueue::new(config.name("pods").timings(true))
        });
        queue.add("a");
        queue.add("a");
        queue.add("b");
        clock.advance(Duration::from_secs(1));
        let a = queue.try_get().unwrap().unwrap();
        queue.add("a");
        assert_eq!(recorder.of("depth"), 2.0);
        assert_eq!(recorder.of("in_flight"), 1.0);
        assert_eq!(recorder.of("adds_total"), 3.0);
        assert_eq!(recorder.of("queue_seconds"), 1.0);
        clock.advance(Duration::from_secs(3));
        a.retry();
        assert_eq!(recorder.of("work_seconds"), 3.0);
        assert_eq!(recorder.of("retries_total"), 1.0);
        assert_eq!(recorder.of("delayed"), 1.0);
        queue.shut_down();
        assert_eq!(recorder.of("delayed"), 0.0);
    }

    #[test]
    fn a_queue_without_a_name_exports_nothing() {
        let recorder = Recorder::default();
        let clock = Arc::new(ManualClock::new());
        let queue =
            metrics::with_local_recorder(&recorder, || WorkQueue::new(WorkQueueConfig::new(clock)));
        queue.add("a");
        assert!(recorder.0.lock().unwrap().is_empty());
    }
}
