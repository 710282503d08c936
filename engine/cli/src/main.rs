//! The `informant` command.
mod output;
mod replay;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A lock-free, high-throughput cache engine for Kubernetes-style informers.
#[derive(Parser, Debug)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Replay(replay::Options),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Replay(options) => replay::run(options),
    }
}
