//! What the demo prints at its end.
use super::latency::Quantiles;
use crate::output::{grouped, micros};
use serde::Serialize;
use std::fmt::Write;

/// The outcome, in the form of the JSON document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Every cache, index and handler equals the source.
    pub(super) verified: bool,
    /// Objects in the caches.
    pub(super) objects: usize,
    pub(super) pods: usize,
    pub(super) nodes: usize,
    pub(super) controllers: u32,
    pub(super) indexes: usize,
    /// Changes that the workload made.
    pub(super) events: u64,
    /// How long it did.
    pub(super) seconds: f64,
    pub(super) seed: u64,
    pub(super) interrupted: bool,
    /// The version that the cache of the pods shows.
    pub(super) resource_version: String,
    pub(super) batches: u64,
    /// Changes that were folded into others, in the queue and in the handlers' mailboxes.
    pub(super) coalesced: u64,
    /// Lists after the first, because a watch had expired.
    pub(super) relists: u64,
    pub(super) watches: u64,
    pub(super) reads: u64,
    /// Snapshots in which objects and indexes were compared while the workload ran.
    pub(super) snapshots_checked: u64,
    pub(super) handler_calls: u64,
    /// Keys that workers have reconciled.
    pub(super) reconciled: u64,
    /// From the write at the source to the handler's call.
    pub(super) latency_micros: Quantiles,
    pub(super) difference_count: usize,
    /// The first of the differences.
    pub(super) differences: Vec<String>,
}

impl Summary {
    /// One JSON document.
    pub(super) fn json(&self) -> String {
        let mut json = serde_json::to_string(self).expect("keys are strings, values are plain");
        json.push('\n');
        json
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text)
            .expect("writing to a string never fails");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let each_second = |count: u64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let rate = (count as f64 / self.seconds.max(0.001)) as u64;
            grouped(rate)
        };
        if self.interrupted {
            writeln!(out, "interrupted after {:.1} s", self.seconds)?;
        }
        writeln!(
            out,
            "source     {} events in {:.1} s ({}/s); watches {}, relists {}",
            grouped(self.events),
            self.seconds,
            each_second(self.events),
            self.watches,
            self.relists
        )?;
        writeln!(
            out,
            "cache      {} pods and {} nodes at version {}, {} indexes",
            grouped(self.pods as u64),
            grouped(self.nodes as u64),
            self.resource_version,
            self.indexes
        )?;
        writeln!(
            out,
            "batches    {} published, {} changes coalesced",
            grouped(self.batches),
            grouped(self.coalesced)
        )?;
        writeln!(
            out,
            "readers    {} reads ({}/s), {} snapshots checked whole",
            grouped(self.reads),
            each_second(self.reads),
            grouped(self.snapshots_checked)
        )?;
        let Quantiles { p50, p99, max } = self.latency_micros;
        writeln!(
            out,
            "handlers   {} calls, {} after the write (median), {} (99 %), {} (max)",
            grouped(self.handler_calls),
            micros(p50),
            micros(p99),
            micros(max)
        )?;
        writeln!(
            out,
            "workers    {} keys reconciled",
            grouped(self.reconciled)
        )?;
        if self.verified {
            return writeln!(
                out,
                "verified   both caches, {} indexes and {} controllers equal the source",
                self.indexes, self.controllers
            );
        }
        writeln!(out, "NOT VERIFIED: {} differences", self.difference_count)?;
        for difference in &self.differences {
            writeln!(out, "  {difference}")?;
        }
        let more = self.difference_count - self.differences.len();
        if more > 0 {
            writeln!(out, "  and {more} more")?;
        }
        writeln!(out, "  reproduce with --seed {}", self.seed)
    }
}
