//! The `informant` command.
mod demo;
mod output;
mod replay;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A lock-free, high-throughput cache engine for Kubernetes-style informers.
///
/// Without a command, the demo runs.
#[derive(Parser, Debug)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    demo: demo::Options,
}

#[derive(Subcommand, Debug)]
enum Command {
    Demo(demo::Options),
    Replay(replay::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command {
        None => demo::run(&arguments.demo),
        Some(Command::Demo(options)) => demo::run(&options),
        Some(Command::Replay(options)) => replay::run(options),
    }
}
