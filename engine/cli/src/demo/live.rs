//! What is seen while the demo runs: a live view on a terminal, a line a second elsewhere.
use super::Options;
use super::cluster::Sample;
use super::latency::Quantiles;
use crate::output::{complain, grouped, micros};
use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::VecDeque;
use std::time::Duration;

/// Rates are those of the last second or so: this many samples.
const WINDOW: usize = 6;
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Shows samples.
pub(super) struct Live {
    /// Hidden where the standard error is no terminal.
    view: ProgressBar,
    title: String,
    window: VecDeque<Sample>,
    last_line: Duration,
}

/// What a person wants to know of two samples.
struct Rates {
    events: u64,
    reads: u64,
    calls: u64,
    reconciled: u64,
    late: Quantiles,
}

impl Live {
    pub(super) fn new(options: &Options) -> Self {
        let view = ProgressBar::with_draw_target(
            Some(u64::from(options.seconds) * 1000),
            ProgressDrawTarget::stderr(),
        );
        // The terminal's echo of ^C pushes the view up by a line, which then stays when the view is
        // cleared: let it be an empty one.
        let template = "\n{msg}\n  {bar:32.cyan/dim} {prefix}";
        view.set_style(
            ProgressStyle::with_template(template)
                .expect("the template is well formed")
                .progress_chars("━╸─"),
        );
        let blocked = if options.blocked_handler {
            ", one of them blocked"
        } else {
            ""
        };
        Self {
            view,
            title: format!(
                "informant demo: {} pods, {} nodes, {} controllers{blocked}, seed {}",
                grouped(u64::from(options.objects)),
                grouped(u64::from(options.nodes)),
                options.controllers,
                options.seed
            ),
            window: VecDeque::with_capacity(WINDOW),
            last_line: Duration::ZERO,
        }
    }

    /// Show what is going on.
    pub(super) fn show(&mut self, sample: &Sample) {
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(sample.clone());
        let Some(rates) = self.rates() else { return };
        if self.view.is_hidden() {
            if sample.at >= self.last_line + LINE_EVERY {
                self.last_line = sample.at;
                complain(&line(sample, &rates));
            }
            return;
        }
        self.view
            .set_position(u64::try_from(sample.at.as_millis()).unwrap_or(u64::MAX));
        self.view
            .set_prefix(format!("{:.1} s", sample.at.as_secs_f64()));
        let text = format!("{}\n{}", self.title, lines(sample, &rates));
        self.view.set_message(fitting(&text));
        self.view.tick();
    }

    /// Say what goes on after the last sample.
    pub(super) fn note(&self, note: &str) {
        if self.view.is_hidden() {
            complain(note);
        } else {
            // Short, so that the line stays one.
            self.view.set_prefix(note.to_owned());
            self.view.tick();
        }
    }

    /// Leave the terminal as it was.
    pub(super) fn clear(&self) {
        self.view.finish_and_clear();
    }

    fn rates(&self) -> Option<Rates> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        let millis =
            u64::try_from(last.at.saturating_sub(first.at).as_millis()).unwrap_or(u64::MAX);
        if millis == 0 {
            return None;
        }
        let rate = |count: fn(&Sample) -> u64| (count(last) - count(first)) * 1000 / millis;
        let late = last.lateness.since(&first.lateness);
        Some(Rates {
            events: rate(|sample| sample.events),
            reads: rate(|sample| sample.reads),
            calls: rate(|sample| sample.calls),
            reconciled: rate(|sample| sample.reconciled),
            late: late.quantiles().unwrap_or_default(),
        })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The text with each line cut to less than the terminal's width: a line that fills it would leave remains.
fn fitting(text: &str) -> String {
    let (_, columns) = Term::stderr().size();
    let lines = text.lines().map(|line| {
        let line: String = line
            .chars()
            .take(usize::from(columns.saturating_sub(1)))
            .collect();
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// For a terminal.
fn lines(sample: &Sample, rates: &Rates) -> String {
    let Rates {
        events,
        reads,
        calls,
        reconciled,
        late,
    } = rates;
    format!(
        "  source    {:>11} events/s   relists {}\n  \
           queue     {:>11} keys       lag {} versions\n  \
           cache     {:>11} objects    {} reads/s\n  \
           handlers  {:>11} calls/s    {} waiting\n  \
           latency   {:>11} p50        {} p99, {} max\n  \
           workers   {:>11} keys/s     {} waiting",
        grouped(*events),
        sample.relists,
        grouped(sample.queue_depth as u64),
        grouped(sample.lag),
        grouped(sample.objects as u64),
        grouped(*reads),
        grouped(*calls),
        grouped(sample.waiting as u64),
        micros(late.p50),
        micros(late.p99),
        micros(late.max),
        grouped(*reconciled),
        grouped(sample.work as u64),
    )
}

/// For a log.
fn line(sample: &Sample, rates: &Rates) -> String {
    format!(
        "{:5.1} s  {} events/s, queue {}, lag {}, {} reads/s, {} calls/s, {} reconciled/s, {} waiting, latency p50 {} p99 {}",
        sample.at.as_secs_f64(),
        grouped(rates.events),
        sample.queue_depth,
        sample.lag,
        grouped(rates.reads),
        grouped(rates.calls),
        grouped(rates.reconciled),
        sample.waiting + sample.work,
        micros(rates.late.p50),
        micros(rates.late.p99),
    )
}
