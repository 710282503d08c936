//! A global allocator that can count what is live.
//!
//! Counting is off while time is measured: then an allocation pays one relaxed load of a flag that
//! nobody writes. Live bytes are only meaningful as the difference of two readings with counting on
//! in between.
#![allow(unsafe_code)]
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

#[cfg(feature = "mimalloc")]
type Inner = mimalloc::MiMalloc;
#[cfg(feature = "mimalloc")]
const INNER: Inner = mimalloc::MiMalloc;
#[cfg(not(feature = "mimalloc"))]
type Inner = std::alloc::System;
#[cfg(not(feature = "mimalloc"))]
const INNER: Inner = std::alloc::System;

/// The allocator's name, for every row.
pub(crate) const NAME: &str = if cfg!(feature = "mimalloc") {
    "mimalloc"
} else {
    "glibc"
};

#[global_allocator]
static GLOBAL: Counting = Counting(INNER);

static ON: AtomicBool = AtomicBool::new(false);
static REQUESTED: AtomicI64 = AtomicI64::new(0);
static CHUNKED: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting(Inner);

/// What glibc sets aside for a request: an 8-byte header, 16-byte steps, 32 bytes at least. Go's
/// `HeapAlloc` has its size classes in it, so this is what is fair to compare it with.
fn chunk(bytes: usize) -> i64 {
    ((bytes + 8).next_multiple_of(16).max(32)) as i64
}

fn allocated(bytes: usize) {
    if ON.load(Ordering::Relaxed) {
        let live = REQUESTED.fetch_add(bytes as i64, Ordering::Relaxed) + bytes as i64;
        CHUNKED.fetch_add(chunk(bytes), Ordering::Relaxed);
        PEAK.fetch_max(live, Ordering::Relaxed);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

fn freed(bytes: usize) {
    if ON.load(Ordering::Relaxed) {
        REQUESTED.fetch_sub(bytes as i64, Ordering::Relaxed);
        CHUNKED.fetch_sub(chunk(bytes), Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to an allocator that upholds the contract; counting
// touches only atomics and never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promises about `layout` are the inner allocator's preconditions.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as for `alloc`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: `pointer` came from the inner allocator with this layout, by the caller's promise.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        freed(layout.size());
        allocated(size);
        // SAFETY: as for `dealloc`, and `size` is the caller's promise.
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}

/// Counting is on for as long as this lives.
pub(crate) struct Count(());

impl Count {
    pub(crate) fn start() -> Self {
        ON.store(true, Ordering::SeqCst);
        Self(())
    }

    #[allow(
        clippy::unused_self,
        reason = "readings mean something only while counting"
    )]
    pub(crate) fn read(&self) -> Live {
        Live {
            requested: REQUESTED.load(Ordering::SeqCst),
            chunked: CHUNKED.load(Ordering::SeqCst),
            allocations: ALLOCATIONS.load(Ordering::SeqCst),
        }
    }

    /// Begin a new peak at what is live now.
    pub(crate) fn reset_peak(&self) {
        PEAK.store(self.read().requested, Ordering::SeqCst);
    }

    /// The highest number of requested live bytes since [`Count::reset_peak`].
    #[allow(
        clippy::unused_self,
        reason = "readings mean something only while counting"
    )]
    pub(crate) fn peak(&self) -> i64 {
        PEAK.load(Ordering::SeqCst)
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        ON.store(false, Ordering::SeqCst);
    }
}

/// One reading of the counters.
#[derive(Clone, Copy)]
pub(crate) struct Live {
    /// Bytes that the program asked for.
    pub(crate) requested: i64,
    /// Bytes as glibc rounds them.
    pub(crate) chunked: i64,
    /// Allocations so far.
    pub(crate) allocations: u64,
}

impl Live {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            requested: self.requested - earlier.requested,
            chunked: self.chunked - earlier.chunked,
            allocations: self.allocations - earlier.allocations,
        }
    }
}
