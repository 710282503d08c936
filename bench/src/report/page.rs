//! The page that people read.
use super::Measured;
use crate::row::{Figure, Peer, Row, number, separated};
use std::fmt::Write;

const HEAD: &str = "# Measurements

Written by `informant-bench`; every figure on this page comes from the command beside it. The machine
is shared and virtual, so compare figures within one table only.

How to read the tables: each cell is the median over interleaved rounds, with the tenth and the
ninetieth percentile in brackets. **A ratio above 1 means that informant is better by that factor**,
whatever the unit. `floor` is what the hardware allows: for reads an unsynchronised hash map, for
latencies the same threads with a call that does nothing. `client-go-model` is a Rust model of
client-go's single lock; no claim against client-go rests on it.

";

pub(super) fn write(all: &[Measured]) -> String {
    let mut page = HEAD.to_owned();
    summary(&mut page, all);
    for measured in all {
        section(&mut page, measured);
    }
    page
}

fn summary(page: &mut String, all: &[Measured]) {
    page.push_str("| scenario | what | targets met | missed | open |\n|---|---|---|---|---|\n");
    for measured in all {
        let count = |met| {
            let with_target = measured.rows.iter().filter(|row| row.target.is_some());
            with_target.filter(|row| row.met == met).count()
        };
        let id = &measured.id;
        line(
            page,
            format_args!(
                "| [{id}](#{}) | {} | {} | {} | {} |",
                anchor(id, &measured.about),
                measured.about,
                count(Some(true)),
                count(Some(false)),
                count(None)
            ),
        );
    }
    page.push('\n');
}

fn anchor(id: &str, about: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-');
    format!("{id} {about}")
        .to_lowercase()
        .chars()
        .filter(kept)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn section(page: &mut String, measured: &Measured) {
    let id = &measured.id;
    line(page, format_args!("## {id}: {}\n", measured.about));
    line(
        page,
        format_args!("`{}`, {}.  ", measured.command, measured.date),
    );
    if let Some(row) = measured.rows.first() {
        line(page, format_args!("{}.  ", row.machine));
    }
    line(page, format_args!("{}.\n", measured.versions.join(", ")));
    line(page, format_args!("![{id}]({id}.svg)\n"));
    if super::plot::sizes(&measured.rows).is_some() {
        line(page, format_args!("![{id} by size]({id}-sizes.svg)\n"));
    }
    page.push_str("| row | objects | informant | peer | | ratio | target |\n");
    page.push_str("|---|--:|--:|---|--:|--:|---|\n");
    for row in &measured.rows {
        table_row(page, row);
    }
    let notes: Vec<_> = measured
        .rows
        .iter()
        .filter_map(|row| Some((&row.row, row.note.as_ref()?)))
        .collect();
    if !notes.is_empty() {
        page.push('\n');
        for (row, note) in notes {
            line(page, format_args!("- {row}: {note}."));
        }
    }
    page.push('\n');
}

fn table_row(page: &mut String, row: &Row) {
    let target = match (&row.target, row.met) {
        (None, _) => String::new(),
        (Some(target), Some(true)) => format!("{target}: met"),
        (Some(target), Some(false)) => format!("{target}: **missed**"),
        (Some(target), None) => format!("{target}: open"),
    };
    let mut head = format!(
        "| {} | {} | {} ",
        row.row,
        separated(row.n as i64),
        cell(&row.ours)
    );
    let mut target = target.as_str();
    if row.peers.is_empty() {
        line(page, format_args!("{head}| | | | {target} |"));
    }
    for (name, peer) in &row.peers {
        match peer {
            Peer::Measured(figure) => {
                let ratio = row
                    .ratio
                    .get(name)
                    .map_or(String::new(), |ratio| number(*ratio));
                line(
                    page,
                    format_args!("{head}| {name} | {} | {ratio} | {target} |", cell(figure)),
                );
            }
            Peer::Skipped { skipped } => {
                line(
                    page,
                    format_args!("{head}| {name} | skipped ({skipped}) | | {target} |"),
                );
            }
        }
        "| | | ".clone_into(&mut head);
        target = "";
    }
}

fn cell(figure: &Figure) -> String {
    let spread = figure.spread;
    format!(
        "{} {} [{} - {}]",
        number(spread.median),
        figure.unit,
        number(spread.p10),
        number(spread.p90)
    )
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a string never fails");
}
