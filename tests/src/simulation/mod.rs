//! The deterministic simulation: source, faults, reflector, queue, cache, handlers and work queue on
//! virtual time in one thread, under random loads and random faults.
//!
//! A run follows from its seed alone: [`plan()`] decides everything in advance, as a list of steps.
//! While it runs, and at each publication, these must hold:
//! - the cache is the source, at the version that it says it is, in objects and in indexes, except
//!   what stands in quarantine;
//! - the watermark never goes back, except by a reset of which there was a reason;
//! - no request is older than what was applied, or newer than what was given; there is no storm;
//! - what handlers were told adds up to the cache, in an order that makes sense;
//! - what waits is bounded by the keys.
//!
//! In the end all faults cease. Then everything must come right in bounded time: the cache, each
//! handler, and what the workers of a work queue have last seen of each key. After the stop no task
//! and no watch is left.
//!
//! A seed that fails is [minimised](minimise()): steps are left out for as long as it still fails.
mod desk;
mod faults;
mod handlers;
mod minimise;
mod oracle;
mod plan;
mod port;
mod stage;
mod workers;
mod world;

pub use minimise::{Minimised, minimise};
pub use plan::{Plan, crowd, plan};
pub use stage::Outcome;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static WATCHES_PANICS: Cell<bool> = const { Cell::new(false) };
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Play a plan. A panic of the engine is a failure of the run.
///
/// # Panics
/// When no runtime can be had.
#[must_use]
pub fn run(plan: &Plan, logs: bool) -> Outcome {
    watch_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread needs nothing");
    WATCHES_PANICS.set(true);
    PANICS.take();
    let played = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(stage::play(plan, logs))
    }));
    drop(runtime);
    WATCHES_PANICS.set(false);
    let panic = PANICS.take().into_iter().next();
    let mut outcome = played.unwrap_or_default();
    if let Some(panic) = panic {
        outcome.failure = Some(format!("panic: {panic}"));
    }
    outcome
}

/// Panics that were planned are raised without the hook, so whatever it sees is a mistake.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if WATCHES_PANICS.get() {
                PANICS.with_borrow_mut(|panics| panics.push(info.to_string()));
            } else {
                others(info);
            }
        }));
    });
}
