//! `results/`: what was measured, as data, as plots, and as one page.
mod date;
mod page;
mod plot;
mod versions;

use crate::row::Row;
use crate::scenarios;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// All that is kept of one scenario.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measured {
    id: String,
    about: String,
    date: String,
    command: String,
    versions: Vec<String>,
    rows: Vec<Row>,
}

/// Write `<id>.json`.
pub(crate) fn keep(out: &Path, id: &str, quick: bool, rows: &[Row]) -> io::Result<()> {
    fs::create_dir_all(out)?;
    let about = scenarios::ALL
        .iter()
        .find(|scenario| scenario.id == id)
        .map_or("", |scenario| scenario.about);
    let measured = Measured {
        id: id.to_owned(),
        about: about.to_owned(),
        date: date::today(),
        command: command(id, quick),
        versions: versions::all(),
        rows: rows.to_vec(),
    };
    let mut text = serde_json::to_string_pretty(&measured)?;
    text.push('\n');
    fs::write(out.join(format!("{id}.json")), text)
}

fn command(id: &str, quick: bool) -> String {
    let mut features = Vec::new();
    if cfg!(feature = "peers-kube") {
        features.push("peers-kube");
    }
    if cfg!(feature = "mimalloc") {
        features.push("mimalloc");
    }
    let features = if features.is_empty() {
        String::new()
    } else {
        format!(" --features {}", features.join(","))
    };
    let quick = if quick { " --quick" } else { "" };
    format!("cargo run --release -q -p informant-bench{features} -- report {id}{quick}")
}

/// Write the plots and the page of everything that was kept.
pub(crate) fn write_page(out: &Path) -> io::Result<()> {
    let mut all = Vec::new();
    for scenario in scenarios::ALL {
        let path = out.join(format!("{}.json", scenario.id));
        match fs::read_to_string(&path) {
            Ok(text) => all.push(serde_json::from_str::<Measured>(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    fs::create_dir_all(out)?;
    for measured in &all {
        let id = &measured.id;
        fs::write(
            out.join(format!("{id}.svg")),
            plot::ratios(id, &measured.rows),
        )?;
        if let Some(plot) = plot::sizes(&measured.rows) {
            fs::write(out.join(format!("{id}-sizes.svg")), plot)?;
        }
    }
    fs::write(out.join("README.md"), page::write(&all))
}
