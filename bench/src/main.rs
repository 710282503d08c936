//! Measures the engine beside the programs it is compared with.
//!
//! `list` names the scenarios, `run ID` measures one, `report` measures them all and writes
//! `results/`.
#![cfg_attr(
    test,
    allow(dead_code, reason = "unit tests reach only the arithmetic")
)]

mod allocator;
mod beside;
mod changes;
mod contest;
mod histogram;
mod machine;
mod ours;
mod peers;
mod pipeline;
mod pod;
mod pod_json;
mod queries;
mod report;
mod row;
mod run;
mod scenarios;
mod spread;
mod store;

mod p01_point_read;
mod p02_read_beside_writer;
mod p03_list_by_index;
mod p04_list_beside_writer;
mod p05_informer_grid;
mod p06_replace;
mod p07_delta_queue;
mod p08_end_to_end;
mod p09_memory;
mod p10_snapshot_and_diff;
mod p11_selector;
mod p12_work_queue;
mod p13_growth;
mod p14_blocked_handler;
mod p15_pod_memory;
mod p16_outage;
mod writes;

use clap::{Parser, Subcommand};
use run::Show;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures the engine beside the programs it is compared with.
///
/// Build it with `--release`. kube-runtime takes part with `--features peers-kube`, client-go when
/// Go is installed; without them their columns say `skipped` and targets that need them stay open.
/// `--features mimalloc` changes the allocator of all that is Rust.
#[derive(Parser)]
#[command(name = "informant-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Name the scenarios.
    List,
    /// Measure one scenario, or several.
    Run {
        /// Which: `P3`, `writes`.
        #[arg(required = true)]
        scenarios: Vec<String>,
        /// Fewer rounds and sizes: under 40 seconds each.
        #[arg(long)]
        quick: bool,
        /// One JSON line for each row.
        #[arg(long)]
        json: bool,
    },
    /// Weigh one keeper of pods in this process: what P15 calls.
    #[command(hide = true)]
    Weigh {
        keeper: p15_pod_memory::Keeper,
        pods: usize,
        updates: usize,
    },
    /// Measure, and write `<id>.json`, plots and a page about all that is there.
    Report {
        /// Which scenarios to measure; all when none is named.
        scenarios: Vec<String>,
        /// Fewer rounds and sizes.
        #[arg(long)]
        quick: bool,
        /// Measure nothing: write plots and page of the files that are there.
        #[arg(long)]
        page_only: bool,
        /// Where to write.
        #[arg(long, default_value = "results")]
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: its figures mean nothing; use --release");
    }
    match act(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn act(command: Action) -> Result<(), String> {
    match command {
        Action::List => {
            for scenario in scenarios::ALL {
                println!("{:<8}{}", scenario.id, scenario.about);
            }
            Ok(())
        }
        Action::Run {
            scenarios,
            quick,
            json,
        } => {
            let show = if json { Show::Json } else { Show::Table };
            for scenario in scenarios::named(&scenarios)? {
                scenario.run(quick, show);
            }
            Ok(())
        }
        Action::Weigh {
            keeper,
            pods,
            updates,
        } => p15_pod_memory::weigh(keeper, pods, updates),
        Action::Report {
            scenarios,
            quick,
            page_only,
            out,
        } => {
            if !page_only {
                let chosen = if scenarios.is_empty() {
                    scenarios::ALL.iter().collect()
                } else {
                    scenarios::named(&scenarios)?
                };
                for scenario in chosen {
                    let rows = scenario.run(quick, Show::Table);
                    report::keep(&out, scenario.id, quick, &rows).map_err(|e| e.to_string())?;
                }
            }
            report::write_page(&out).map_err(|error| error.to_string())
        }
    }
}
