//! One run of one scenario: how much to do, and where the rows go.
use crate::machine;
use crate::row::{Figure, Peer, Row, number, separated};
use std::io::{self, Write};
use std::time::Duration;

/// How rows are shown while they are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    Table,
    Json,
}

/// What a scenario is given.
pub(crate) struct Run {
    id: &'static str,
    quick: bool,
    show: Show,
    machine: String,
    rows: Vec<Row>,
}

impl Run {
    pub(crate) fn new(id: &'static str, quick: bool, show: Show) -> Self {
        Self {
            id,
            quick,
            show,
            machine: machine::describe(),
            rows: Vec::new(),
        }
    }

    /// True when the whole scenario should end within 40 seconds.
    pub(crate) fn quick(&self) -> bool {
        self.quick
    }

    /// How many rounds are measured.
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 7 } else { 15 }
    }

    /// The longer or the shorter of two lists of sizes.
    pub(crate) fn sizes<'a>(&self, full: &'a [usize], quick: &'a [usize]) -> &'a [usize] {
        if self.quick { quick } else { full }
    }

    /// How long one arm of a timed layout runs in each round.
    pub(crate) fn span(&self) -> Duration {
        Duration::from_millis(if self.quick { 120 } else { 500 })
    }

    /// Take a measured row, and show it.
    pub(crate) fn add(&mut self, mut row: Row) {
        self.id.clone_into(&mut row.id);
        row.machine.clone_from(&self.machine);
        if row.rounds == 0 {
            row.rounds = self.rounds();
        }
        let text = match self.show {
            Show::Json => serde_json::to_string(&row).expect("a row has only plain fields") + "\n",
            Show::Table => table(&row, self.rows.is_empty()),
        };
        // Whoever read may have gone; the run goes on for those who want its rows.
        let _ = io::stdout().write_all(text.as_bytes());
        self.rows.push(row);
    }

    pub(crate) fn into_rows(self) -> Vec<Row> {
        self.rows
    }
}

fn table(row: &Row, first: bool) -> String {
    let mut lines = Vec::new();
    if first {
        lines.push(format!("{}, {}\n", row.id, row.machine));
        lines.push(format!(
            "{:<62} {:>34}  {:<24} {:>9}",
            "row", "median [p10 - p90]", "", "ratio"
        ));
    }
    let title = format!("{} (n = {})", row.row, separated(row.n as i64));
    lines.push(format!("{title:<62} {:>34}  ours", figure(&row.ours)));
    for (name, peer) in &row.peers {
        lines.push(match peer {
            Peer::Measured(peer) => {
                let ratio = row
                    .ratio
                    .get(name)
                    .map_or(String::new(), |ratio| format!("{}x", number(*ratio)));
                format!("{:<62} {:>34}  {name:<24} {ratio:>9}", "", figure(peer))
            }
            Peer::Skipped { skipped } => {
                format!("{:<62} {:>34}  {name:<24} skipped ({skipped})", "", "-")
            }
        });
    }
    if let Some(target) = &row.target {
        let met = match row.met {
            Some(true) => "met",
            Some(false) => "NOT met",
            None => "not decided",
        };
        lines.push(format!("    target: {target}: {met}"));
    }
    if let Some(note) = &row.note {
        lines.push(format!("    {note}"));
    }
    lines.join("\n") + "\n"
}

fn figure(figure: &Figure) -> String {
    let spread = figure.spread;
    format!(
        "{} {} [{} - {}]",
        number(spread.median),
        figure.unit,
        number(spread.p10),
        number(spread.p90)
    )
}
