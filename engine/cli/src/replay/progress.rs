//! A progress bar for replays that take longer than a moment.
use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// Looking at the clock costs more than a short frame.
const TICKS_PER_LOOK: u32 = 256;

/// Shows itself on a terminal once the replay has taken a second; elsewhere it never does.
pub(super) struct Bar {
    drawn: ProgressBar,
    position: Rc<Cell<u64>>,
    started: Instant,
    shown: Cell<bool>,
    ticks: Cell<u32>,
}

impl Bar {
    pub(super) fn new(size: Option<u64>, position: Rc<Cell<u64>>) -> Self {
        let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
        let template = match size {
            Some(_) => "{wide_bar:.cyan/dim} {bytes}/{total_bytes} {eta} left",
            None => "{spinner} {bytes} read",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well formed"));
        Self {
            drawn: bar,
            position,
            started: Instant::now(),
            shown: Cell::new(false),
            ticks: Cell::new(0),
        }
    }

    /// A frame was taken.
    pub(super) fn tick(&self) {
        self.ticks.set(self.ticks.get().wrapping_add(1));
        if !self.ticks.get().is_multiple_of(TICKS_PER_LOOK) {
            return;
        }
        if !self.shown.get() && self.started.elapsed() >= SHOWN_AFTER {
            self.shown.set(true);
            // Draws only where the standard error is a terminal.
            self.drawn.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.drawn.set_position(self.position.get());
    }

    /// Print a line without tearing the bar.
    pub(super) fn say(&self, line: &str) {
        self.drawn.suspend(|| output::complain(line));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.drawn.finish_and_clear();
    }
}
