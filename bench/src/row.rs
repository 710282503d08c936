//! One measured row, as it is printed and kept.
use crate::contest::Standing;
use crate::spread::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a figure counts, and which direction is better.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    higher_is_better: bool,
}

pub(crate) const NANOS: Unit = lower("ns");
pub(crate) const MICROS: Unit = lower("us");
pub(crate) const MILLIS: Unit = lower("ms");
pub(crate) const BYTES: Unit = lower("bytes");
pub(crate) const ALLOCATIONS: Unit = lower("allocations");
pub(crate) const READS: Unit = higher("reads/s");
pub(crate) const WRITES: Unit = higher("writes/s");
pub(crate) const LISTS: Unit = higher("lists/s");
pub(crate) const EVENTS: Unit = higher("events/s");
pub(crate) const ITEMS: Unit = higher("items/s");

const fn lower(name: &'static str) -> Unit {
    Unit {
        name,
        higher_is_better: false,
    }
}

const fn higher(name: &'static str) -> Unit {
    Unit {
        name,
        higher_is_better: true,
    }
}

/// A figure with its spread and unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    #[serde(flatten)]
    pub(crate) spread: Spread,
    pub(crate) unit: String,
}

/// A peer's figure, or why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Peer {
    Measured(Figure),
    Skipped { skipped: String },
}

/// One JSON line.
#[allow(clippy::struct_field_names, reason = "the names are those of the JSON")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) row: String,
    pub(crate) n: usize,
    pub(crate) ours: Figure,
    pub(crate) peers: BTreeMap<String, Peer>,
    /// Above 1 means that ours is better by that factor, whatever the unit.
    pub(crate) ratio: BTreeMap<String, f64>,
    /// In words; `None` when the row is reported without a target.
    pub(crate) target: Option<String>,
    /// `None` when there is no target, or a peer that it needs did not run.
    pub(crate) met: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    pub(crate) rounds: usize,
    pub(crate) machine: String,
}

/// The name under which a scenario enters our own arm.
pub(crate) const OURS: &str = "ours";

impl Row {
    /// Figure `k` of a contest. Add the targets, then hand it to the run.
    pub(crate) fn of<const K: usize>(
        name: impl Into<String>,
        n: usize,
        standing: &Standing<K>,
        k: usize,
        unit: Unit,
    ) -> Self {
        let figure = |spread| Figure {
            spread,
            unit: unit.name.to_owned(),
        };
        let ours = standing
            .figure(OURS, k)
            .expect("every contest has an arm of ours");
        let mut row = Self::new(name, n, figure(ours));
        for (peer, figures) in &standing.arms {
            if *peer != OURS {
                row.peer(peer, figures[k], unit);
            }
        }
        for (peer, reason) in &standing.skipped {
            let skipped = reason.clone();
            row.peers
                .insert((*peer).to_owned(), Peer::Skipped { skipped });
        }
        row
    }

    /// A figure of ours alone; peers may be added.
    pub(crate) fn alone(name: impl Into<String>, n: usize, ours: Spread, unit: Unit) -> Self {
        let unit = unit.name.to_owned();
        Self::new(name, n, Figure { spread: ours, unit })
    }

    fn new(name: impl Into<String>, n: usize, ours: Figure) -> Self {
        Self {
            id: String::new(),
            row: name.into(),
            n,
            ours,
            peers: BTreeMap::new(),
            ratio: BTreeMap::new(),
            target: None,
            met: None,
            note: None,
            rounds: 0,
            machine: String::new(),
        }
    }

    pub(crate) fn peer(&mut self, name: &str, spread: Spread, unit: Unit) {
        let ours = self.ours.spread.median;
        let ratio = if unit.higher_is_better {
            // A peer that got nothing done counts as one a second: a ratio needs a number.
            ours / spread.median.max(1.0)
        } else {
            spread.median / ours
        };
        if ratio.is_finite() {
            self.ratio.insert(name.to_owned(), round(ratio));
        }
        let unit = unit.name.to_owned();
        self.peers
            .insert(name.to_owned(), Peer::Measured(Figure { spread, unit }));
    }

    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        let skipped = reason.to_owned();
        self.peers
            .insert(name.to_owned(), Peer::Skipped { skipped });
    }

    /// Leave out an arm that this figure says nothing about.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.peers.remove(name);
        self.ratio.remove(name);
        self
    }

    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Ours is to be better than `peer` by `factor` at least.
    pub(crate) fn at_least(self, factor: f64, peer: &str) -> Self {
        let met = self.ratio.get(peer).map(|ratio| *ratio >= factor);
        self.target(format!("at least {factor}x {peer}"), met)
    }

    /// Our time (or bytes) is to be `factor` times the peer's at the most.
    pub(crate) fn within(self, factor: f64, peer: &str) -> Self {
        let met = self.ratio.get(peer).map(|ratio| *ratio >= 1.0 / factor);
        self.target(format!("at most {factor}x {peer}"), met)
    }

    /// Our median is to be `limit` at the most; `why` says where the limit comes from.
    pub(crate) fn at_most(self, limit: f64, why: &str) -> Self {
        let met = self.ours.spread.median <= limit;
        let unit = self.ours.unit.clone();
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(" ({why})")
        };
        self.target(format!("at most {} {unit}{why}", number(limit)), Some(met))
    }

    /// A further target: the row meets all or does not meet them.
    fn target(mut self, text: String, met: Option<bool>) -> Self {
        let first = self.target.is_none();
        self.target = Some(match self.target.take() {
            Some(others) => format!("{others}; {text}"),
            None => text,
        });
        self.met = match (self.met, met) {
            _ if first => met,
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        self
    }
}

fn round(ratio: f64) -> f64 {
    (ratio * 1_000.0).round() / 1_000.0
}

/// A figure with three significant digits, and separators where it is long.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = value.abs().log10().floor() as i32;
    if digits >= 2 {
        return separated(value.round() as i64);
    }
    let decimals = (2 - digits).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(crate) fn separated(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 {
        text.insert(0, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let mut row = Row::alone("a row", 10, Spread::exact(100.0), NANOS);
        row.peer("slow", Spread::exact(450.0), NANOS);
        row.skip("absent", "not on this machine");
        row
    }

    #[test]
    fn a_ratio_above_one_is_better_in_both_directions() {
        assert_eq!(row().ratio["slow"].to_string(), "4.5");
        let mut reads = Row::alone("reads", 10, Spread::exact(300.0), READS);
        reads.peer("slow", Spread::exact(100.0), READS);
        assert_eq!(reads.ratio["slow"].to_string(), "3");
        reads.peer("starved", Spread::exact(0.0), READS);
        assert_eq!(reads.ratio["starved"].to_string(), "300");
    }

    #[test]
    fn a_target_that_needs_an_absent_peer_is_neither_met_nor_missed() {
        assert_eq!(row().at_least(4.0, "slow").met, Some(true));
        assert_eq!(row().at_least(5.0, "slow").met, Some(false));
        assert_eq!(row().at_least(4.0, "absent").met, None);
        assert_eq!(
            row().at_least(4.0, "slow").at_least(1.0, "absent").met,
            None
        );
        let missed = row().at_least(4.0, "absent").at_least(5.0, "slow");
        assert_eq!(missed.met, Some(false));
        assert_eq!(row().at_most(99.0, "").met, Some(false));
    }

    #[test]
    fn numbers_read_well() {
        let read = [0.0, 1.15, 12.34, 123.4, 1_234_567.0].map(number);
        assert_eq!(read, ["0", "1.15", "12.3", "123", "1,234,567"]);
    }
}
