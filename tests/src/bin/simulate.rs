//! Plays random runs of the whole pipeline: `simulate --seeds N [--from S] [--minutes M] [--json]`.
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use informant_tests::simulation;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: simulate [--seeds N] [--from S] [--minutes M] [--json] [--log]
  plays the runs of the seeds S, S+1, …; each is repeated exactly by its seed
  --seeds N    how many (default 2000; with --minutes, no bound)
  --from S     the first seed (default 0)
  --minutes M  stop after this long, and after N seeds
  --json       one line of JSON about it, on the standard output
  --log        with a failure: everything that happens in the minimised run
A failing seed is minimised, and printed with the steps that are left; the exit code is then 1.";

struct Options {
    seeds: u64,
    from: u64,
    patience: Option<Duration>,
    json: bool,
    log: bool,
}

fn options() -> Result<Option<Options>, String> {
    let mut options = Options {
        seeds: 2_000,
        from: 0,
        patience: None,
        json: false,
        log: false,
    };
    let mut seeds = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments
                .next()
                .ok_or(format!("{argument} needs a number"))?;
            let parsed = text.parse::<u64>();
            parsed.map_err(|_| format!("{argument} needs a number, and not {text:?}"))
        };
        match argument.as_str() {
            "--seeds" => seeds = Some(number()?),
            "--from" => options.from = number()?,
            "--minutes" => options.patience = Some(Duration::from_secs(60 * number()?)),
            "--json" => options.json = true,
            "--log" => options.log = true,
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown option {other}")),
        }
    }
    let unbounded = if options.patience.is_some() {
        u64::MAX
    } else {
        options.seeds
    };
    options.seeds = seeds.unwrap_or(unbounded);
    Ok(Some(options))
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprintln!("{what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let bar = bar(&options);
    let started = Instant::now();
    let (mut played, mut events, mut virtual_time) = (0_u64, 0_u64, Duration::ZERO);
    let mut failing = None;
    while played < options.seeds && options.patience.is_none_or(|most| started.elapsed() < most) {
        let seed = options.from.wrapping_add(played);
        let outcome = simulation::run(&simulation::plan(seed), false);
        played += 1;
        events += outcome.events;
        virtual_time += outcome.virtual_time;
        if played.is_multiple_of(64) {
            bar.set_position(match options.patience {
                Some(_) => started.elapsed().as_secs(),
                None => played,
            });
            bar.set_message(format!("{played} seeds, {events} events"));
        }
        if let Some(failure) = outcome.failure {
            failing = Some((seed, failure));
            break;
        }
    }
    bar.finish_and_clear();
    let took = started.elapsed();
    let rate = played as f64 / took.as_secs_f64();
    let report = failing.map(|(seed, failure)| explain(seed, &failure, options.log));
    if options.json {
        println!(
            "{}",
            json!({
                "seeds": played,
                "from": options.from,
                "events": events,
                "virtual_hours": virtual_time.as_secs_f64() / 3600.0,
                "seconds": took.as_secs_f64(),
                "seeds_per_second": rate,
                "failed": report.as_ref().map(|(json, _)| json),
            })
        );
    } else {
        println!(
            "{played} seeds, {events} events, {:.0} virtual hours in {:.1} s: {rate:.0} seeds/s",
            virtual_time.as_secs_f64() / 3600.0,
            took.as_secs_f64(),
        );
    }
    match report {
        Some((_, text)) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

/// Replay the seed, minimise it, and tell about it.
fn explain(seed: u64, failure: &str, logs: bool) -> (serde_json::Value, String) {
    let plan = simulation::plan(seed);
    let again = simulation::run(&plan, false).failure;
    let mut lines = vec![format!("seed {seed} failed: {failure}")];
    if again.as_deref() != Some(failure) {
        lines.push(format!("and not when it was repeated: {again:?}"));
    }
    let Some(small) = simulation::minimise(&plan) else {
        let json = json!({"seed": seed, "failure": failure});
        return (json, lines.join("\n"));
    };
    lines.push(format!(
        "minimised from {} steps to {} ({} of them events) in {} runs: {}\n{}",
        plan.len(),
        small.plan.len(),
        small.plan.events(),
        small.runs,
        small.failure,
        small.plan.describe(),
    ));
    if logs {
        lines.extend(simulation::run(&small.plan, true).log);
    }
    lines.push(format!(
        "replay: cargo run --release -q -p informant-tests --bin simulate -- --from {seed} --seeds 1 --log"
    ));
    let json = json!({
        "seed": seed,
        "failure": failure,
        "minimised_steps": small.plan.len(),
        "minimised_events": small.plan.events(),
    });
    (json, lines.join("\n"))
}

/// Drawn on the standard error, where that is a terminal.
fn bar(options: &Options) -> ProgressBar {
    let (length, template) = match options.patience {
        Some(most) => (most.as_secs(), "{wide_bar:.cyan/dim} {msg} {eta} left"),
        None => (options.seeds, "{wide_bar:.cyan/dim} {msg} {eta} left"),
    };
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let template = if console::colors_enabled_stderr() {
        template.to_owned()
    } else {
        template.replace(":.cyan/dim", "")
    };
    bar.set_style(ProgressStyle::with_template(&template).expect("the template is well formed"));
    bar
}
