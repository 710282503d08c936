//! Time is injected: one clock for every stage, and a manual one for tests.
use crate::sync::{Mutex, MutexGuard, poll_again_at};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::future::Future;
use std::ops::{Add, Sub};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A point in time of one [`Clock`]: the time since the clock's own origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(Duration);

impl Timestamp {
    /// The point `since_origin` after the clock's origin.
    #[must_use]
    pub const fn new(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// Time since the clock's origin.
    #[must_use]
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub for Timestamp {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// A wait for a point in time; dropping it cancels the wait.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The clock that every stage is given.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;

    /// A future that ends at `deadline`, at once if that is past.
    fn sleep_until(&self, deadline: Timestamp) -> Sleep;
}

/// A clock, shared by all stages of one pipeline.
pub type SharedClock = Arc<dyn Clock>;

/// A clock that moves only when told: for tests and simulations.
///
/// ```
/// use informant::{Clock, ManualClock};
/// use std::time::Duration;
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(clock.now().since_origin(), Duration::from_secs(5));
/// ```
#[derive(Clone, Default)]
pub struct ManualClock {
    state: Arc<ManualState>,
}

struct ManualState(Mutex<Manual>);

impl Default for ManualState {
    fn default() -> Self {
        Self(Mutex::new(Manual::default()))
    }
}

#[derive(Default)]
struct Manual {
    now: Timestamp,
    next_id: u64,
    sleepers: BinaryHeap<Reverse<Sleeper>>,
}

struct Sleeper {
    deadline: Timestamp,
    // Equal deadlines wake in the order in which the sleeps began.
    id: u64,
    wake: Arc<SleepState>,
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        (self.deadline, self.id) == (other.deadline, other.id)
    }
}
impl Eq for Sleeper {}
impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.deadline, self.id).cmp(&(other.deadline, other.id))
    }
}

struct SleepState(Mutex<SleepFlags>);

#[derive(Default)]
struct SleepFlags {
    due: bool,
    cancelled: bool,
    waker: Option<Waker>,
}

impl ManualClock {
    /// A clock that stands at its origin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Move time forward and wake every sleep that is due, in the order of the deadlines.
    pub fn advance(&self, duration: Duration) {
        let target = self.now() + duration;
        self.advance_to(target);
    }

    /// Move time forward to `target` (never back) and wake every sleep that is due.
    pub fn advance_to(&self, target: Timestamp) {
        {
            let mut state = self.lock();
            state.now = state.now.max(target);
        }
        loop {
            let due = {
                let mut state = self.lock();
                match state.sleepers.peek() {
                    Some(Reverse(next)) if next.deadline <= state.now => state.sleepers.pop(),
                    _ => None,
                }
            };
            let Some(Reverse(sleeper)) = due else { return };
            let waker = {
                let mut flags = sleeper.wake.0.lock();
                flags.due = true;
                flags.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// The earliest point for which anything sleeps.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let mut state = self.lock();
        while let Some(Reverse(next)) = state.sleepers.peek() {
            if !next.wake.0.lock().cancelled {
                return Some(next.deadline);
            }
            state.sleepers.pop();
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Manual> {
        self.state.0.lock()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        let wake = Arc::new(SleepState(Mutex::new(SleepFlags::default())));
        let mut state = self.lock();
        if deadline <= state.now {
            wake.0.lock().due = true;
        } else {
            let id = state.next_id;
            state.next_id += 1;
            state.sleepers.push(Reverse(Sleeper {
                deadline,
                id,
                wake: wake.clone(),
            }));
        }
        Box::pin(ManualSleep(wake))
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManualClock({:?})", self.now().since_origin())
    }
}

struct ManualSleep(Arc<SleepState>);

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut flags = self.0.0.lock();
        if flags.due {
            return Poll::Ready(());
        }
        flags.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        let mut flags = self.0.0.lock();
        flags.cancelled = true;
        flags.waker = None;
    }
}

/// The clock of the machine without a runtime: for the blocking forms of waits.
///
/// Its sleeps work by themselves wherever a thread of the engine's own blocking calls waits
/// (`get_blocking` and the like), which then parks for as long. Inside an executor nothing would wake
/// such a sleep, so there it polls without pause: give asynchronous programs `SystemClock`.
///
/// ```
/// use informant::StdClock;
/// use informant::work_queue::{WorkQueue, WorkQueueConfig};
/// use std::{sync::Arc, time::Duration};
/// let queue = WorkQueue::new(WorkQueueConfig::new(Arc::new(StdClock::new())));
/// queue.add_after("a", Duration::from_millis(1));
/// assert_eq!(*queue.get_blocking()?, "a");
/// # Ok::<_, informant::work_queue::ShutDown>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StdClock {
    origin: Instant,
}

impl StdClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Default for StdClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for StdClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.origin.elapsed())
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        StdSleep::boxed(self.origin.checked_add(deadline.0))
    }
}

/// A sleep that the thread parks for; `None` never ends.
struct StdSleep(Option<Instant>);

impl StdSleep {
    fn boxed(until: Option<Instant>) -> Sleep {
        Box::pin(Self(until))
    }
}

impl Future for StdSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(until) = self.0 else {
            return Poll::Pending;
        };
        if Instant::now() >= until {
            return Poll::Ready(());
        }
        if !poll_again_at(until) {
            std::thread::yield_now();
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// The clock of the machine, through tokio: a paused tokio runtime pauses it too. Outside a runtime
/// its sleeps are those of [`StdClock`].
#[cfg(feature = "tokio")]
#[derive(Debug)]
pub struct SystemClock {
    origin: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl SystemClock {
    /// A clock whose origin is now, ready to be shared.
    #[must_use]
    pub fn shared() -> SharedClock {
        Arc::new(Self {
            origin: tokio::time::Instant::now(),
        })
    }
}

#[cfg(feature = "tokio")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.origin.elapsed())
    }

    fn sleep_until(&self, deadline: Timestamp) -> Sleep {
        let at = self.origin.checked_add(deadline.0);
        if tokio::runtime::Handle::try_current().is_err() {
            return StdSleep::boxed(at.map(tokio::time::Instant::into_std));
        }
        // Far deadlines are clamped by tokio itself; an overflowing one means "never".
        match at {
            Some(at) => Box::pin(tokio::time::sleep_until(at)),
            None => Box::pin(std::future::pending()),
        }
    }
}

#[cfg(all(test, not(informant_loom)))]
mod tests {
    use super::*;
    use crate::sync::block_on;

    #[test]
    fn sleeps_end_when_the_clock_reaches_them_and_not_before() {
        let clock = ManualClock::new();
        let at = |millis| Timestamp::new(Duration::from_millis(millis));
        let mut early = clock.sleep_until(at(10));
        let late = clock.sleep_until(at(20));
        let mut context = Context::from_waker(Waker::noop());
        assert!(early.as_mut().poll(&mut context).is_pending());
        assert_eq!(clock.next_deadline(), Some(at(10)));
        clock.advance(Duration::from_millis(10));
        assert!(early.as_mut().poll(&mut context).is_ready());
        assert_eq!(clock.next_deadline(), Some(at(20)));
        drop(late);
        assert_eq!(
            clock.next_deadline(),
            None,
            "a dropped sleep is no deadline"
        );
        block_on(clock.sleep_until(at(5)));
    }

    #[test]
    fn a_thread_sleeps_without_a_runtime() {
        let clock = StdClock::new();
        let deadline = clock.now() + Duration::from_millis(5);
        block_on(clock.sleep_until(deadline));
        assert!(clock.now() >= deadline);
    }

    #[cfg(all(feature = "tokio", not(informant_loom)))]
    #[test]
    fn the_system_clock_sleeps_outside_a_runtime_too() {
        let clock = SystemClock::shared();
        let deadline = clock.now() + Duration::from_millis(5);
        block_on(clock.sleep_until(deadline));
        assert!(clock.now() >= deadline);
    }
}
