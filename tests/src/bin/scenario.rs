//! Plays scenario files: `scenario [--self-check] [--cases] [FILE...]`.
//!
//! Without files, the project's own. Ends with `N passed, N failed`, and without success when
//! something failed. How to write a scenario: `tests/README.md`.
use informant_tests::scenario::cases;
use informant_tests::scenario::files::{Tally, files, own_scenarios, run, self_check};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: scenario [--self-check] [--cases] [FILE or DIRECTORY...]
  plays scenario files; without any, those in tests/scenarios
  --self-check  make each expectation wrong, one at a time; each must be seen to fail
  --cases       list every case with its scenario file or Rust test; fail on one that has neither";

fn main() -> ExitCode {
    let (mut checks_itself, mut lists_cases, mut paths) = (false, false, Vec::new());
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--self-check" => checks_itself = true,
            "--cases" => lists_cases = true,
            "--help" | "-h" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            option if option.starts_with("--") => {
                eprintln!("unknown option {option}\n{USAGE}");
                return ExitCode::from(2);
            }
            path => paths.push(PathBuf::from(path)),
        }
    }
    if lists_cases {
        return list_cases();
    }
    if paths.is_empty() {
        paths.push(own_scenarios());
    }
    let mut tally = Tally::default();
    for path in &paths {
        match files(path) {
            Ok(files) => {
                for file in files {
                    tally.add(if checks_itself {
                        self_check(&file)
                    } else {
                        run(&file)
                    });
                }
            }
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::from(2);
            }
        }
    }
    for report in &tally.failed {
        println!("FAILED {report}");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed.len());
    if tally.failed.is_empty() && tally.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn list_cases() -> ExitCode {
    match cases::overview() {
        Ok((told, wrong)) => {
            for line in &told {
                println!("{line}");
            }
            for line in &wrong {
                println!("FAILED {line}");
            }
            println!(
                "{} passed, {} failed",
                told.len().saturating_sub(wrong.len()),
                wrong.len()
            );
            if wrong.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
