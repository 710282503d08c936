//! `informant demo`: the whole flow on an embedded source, checked against it at the end.
mod cluster;
mod controller;
mod latency;
mod live;
mod model;
mod readers;
mod summary;
mod verify;
mod workload;

use crate::output;
use cluster::Cluster;
use live::Live;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Exit code when the engine is at fault: something differs, or the pipeline did not get going.
const UNVERIFIED: u8 = 1;

const EXAMPLES: &str = "\
Examples:
  informant
  informant demo --seconds 20 --blocked-handler
  informant demo --objects 200000 --controllers 30
  informant demo --seconds 2 --seed 7 --json

Progress goes to the standard error: a live view on a terminal, a line a second elsewhere. Ctrl-C
ends the workload early; what was done until then is still verified. A second Ctrl-C ends at once.

Exit codes:
  0  verified: every cache, index and handler equals the source
  1  something differs, or the pipeline did not start
  2  wrong arguments";

/// Run the engine on an embedded source with a realistic churn, and verify the outcome.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// How many pods the cluster has
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(..=5_000_000))]
    objects: u32,

    /// How many nodes the cluster has
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(..=100_000))]
    nodes: u32,

    /// How long the workload runs
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=86_400))]
    seconds: u32,

    /// How many controllers follow the pods
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=1_000))]
    controllers: u32,

    /// The seed of the workload
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Let the first controller's handler hang until the workload ends: nobody else notices
    #[arg(long)]
    blocked_handler: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Between two looks at the live view.
const VIEW_EVERY: Duration = Duration::from_millis(200);

/// Run the command.
pub(crate) fn run(options: &Options) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("no threads to run on: {error}")),
    };
    match runtime.block_on(demo(options)) {
        Ok(summary) => {
            let code = if summary.verified { 0 } else { UNVERIFIED };
            let text = if options.json {
                summary.json()
            } else {
                summary.text()
            };
            output::print(&text, code)
        }
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(error: &str) -> ExitCode {
    output::complain(&format!("error: {error}"));
    ExitCode::from(UNVERIFIED)
}

async fn demo(options: &Options) -> Result<summary::Summary, Box<dyn std::error::Error>> {
    let mut cluster = Cluster::start(options).await?;
    let mut live = Live::new(options);
    let mut ticks = interval(VIEW_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = sleep(Duration::from_secs(u64::from(options.seconds)));
    tokio::pin!(end);
    let interrupted = loop {
        tokio::select! {
            () = &mut end => break false,
            interrupt = tokio::signal::ctrl_c() => match interrupt {
                Ok(()) => break true,
                // Without a signal handler, Ctrl-C simply kills the process.
                Err(_) => std::future::pending().await,
            },
            _ = ticks.tick() => live.show(&cluster.sample()),
        }
    };
    if interrupted {
        live.note("interrupted");
        tokio::spawn(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                // The shell's convention for a process that an interrupt has ended.
                std::process::exit(130);
            }
        });
    }
    cluster.end_workload();
    live.note("verifying");
    let differences = cluster.settle_and_verify().await;
    live.clear();
    let summary = cluster.summary(options, differences, interrupted);
    cluster.stop().await;
    Ok(summary)
}
