//! Readers beside a writer, on threads of their own.
use crate::histogram::Histogram;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a paced writer wakes: it then does all that is due, one by one. A writer that spun
/// until each single write would take a core from the readers.
const TICK: Duration = Duration::from_millis(1);

/// What the writer does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As many writes as it can.
    Flat,
    /// Writes per second; what is late is made up for, what cannot be made up for shows.
    Offered(u32),
    /// One write, a pause of a millisecond, the next: each write finds the readers under way, and
    /// none is one of a burst.
    Spaced,
    /// There is no writer.
    Idle,
}

/// The threads of one run.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) readers: usize,
    pub(crate) pace: Pace,
    pub(crate) span: Duration,
    /// Time every read and write by itself; costs a reader some 40 ns each.
    pub(crate) clocked: bool,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) reads_per_second: f64,
    pub(crate) writes_per_second: f64,
    /// Empty unless clocked.
    pub(crate) read_nanos: Histogram,
    /// Empty unless clocked.
    pub(crate) write_nanos: Histogram,
}

/// Run `readers` threads that call what `reader` makes for them, beside one thread that calls
/// `write`, for the span of the layout.
pub(crate) fn beside<R, W>(
    layout: Layout,
    reader: impl Fn(usize) -> R + Sync,
    mut write: W,
) -> Outcome
where
    R: FnMut(),
    W: FnMut() + Send,
{
    let stop = AtomicBool::new(false);
    let has_writer = layout.pace != Pace::Idle;
    let start = Barrier::new(layout.readers + usize::from(has_writer) + 1);
    thread::scope(|scope| {
        let (stop, start, reader, write) = (&stop, &start, &reader, &mut write);
        let readers: Vec<_> = (0..layout.readers)
            .map(|at| {
                scope.spawn(move || {
                    let mut read = reader(at);
                    start.wait();
                    repeat(stop, layout.clocked, &mut read)
                })
            })
            .collect();
        let writer = has_writer.then(|| {
            scope.spawn(move || {
                start.wait();
                match layout.pace {
                    Pace::Offered(rate) => paced(stop, rate, layout.clocked, write),
                    Pace::Spaced => spaced(stop, write),
                    _ => repeat(stop, layout.clocked, write),
                }
            })
        });
        start.wait();
        thread::sleep(layout.span);
        stop.store(true, Ordering::Relaxed);
        let mut outcome = Outcome {
            reads_per_second: 0.0,
            writes_per_second: 0.0,
            read_nanos: Histogram::new(),
            write_nanos: Histogram::new(),
        };
        for reader in readers {
            let (per_second, nanos) = reader.join().expect("a reader does not panic");
            outcome.reads_per_second += per_second;
            outcome.read_nanos.merge(&nanos);
        }
        if let Some(writer) = writer {
            let (per_second, nanos) = writer.join().expect("the writer does not panic");
            outcome.writes_per_second = per_second;
            outcome.write_nanos = nanos;
        }
        outcome
    })
}

fn repeat(stop: &AtomicBool, clocked: bool, call: &mut impl FnMut()) -> (f64, Histogram) {
    let mut nanos = Histogram::new();
    let mut calls = 0_u64;
    let began = Instant::now();
    if clocked {
        while !stop.load(Ordering::Relaxed) {
            timed(&mut nanos, call);
            calls += 1;
        }
    } else {
        while !stop.load(Ordering::Relaxed) {
            call();
            calls += 1;
        }
    }
    (calls as f64 / began.elapsed().as_secs_f64(), nanos)
}

fn paced(stop: &AtomicBool, rate: u32, clocked: bool, call: &mut impl FnMut()) -> (f64, Histogram) {
    let mut nanos = Histogram::new();
    let mut calls = 0_u64;
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let due = (began.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        while calls < due && !stop.load(Ordering::Relaxed) {
            if clocked {
                timed(&mut nanos, call);
            } else {
                call();
            }
            calls += 1;
        }
        thread::sleep(TICK);
    }
    (calls as f64 / began.elapsed().as_secs_f64(), nanos)
}

/// Always clocked: a clock's cost is nothing beside the pause.
fn spaced(stop: &AtomicBool, call: &mut impl FnMut()) -> (f64, Histogram) {
    let mut nanos = Histogram::new();
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        timed(&mut nanos, call);
        thread::sleep(TICK);
    }
    let calls = nanos.count() as f64;
    (calls / began.elapsed().as_secs_f64(), nanos)
}

#[inline]
fn timed(nanos: &mut Histogram, call: &mut impl FnMut()) {
    let began = Instant::now();
    call();
    nanos.record(began.elapsed().as_nanos() as u64);
}
