//! Runs scenarios: `scenario [--self-check] FILE...`, or lists the cases: `scenario --cases`.
//!
//! Exit codes: 0 all passed, 1 something failed, 2 something could not be read.
use informant_tests::scenario::{Scenario, cases, run, self_check};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: scenario [--self-check] FILE|FOLDER...
       scenario --cases

Runs scenario files (see tests/README.md) in virtual time.
  --self-check  flip each expectation once; each must fail then
  --cases       list every case with what covers it; fails on one without anything";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() || arguments.iter().any(|a| a == "--help" || a == "-h") {
        println!("{USAGE}");
        return ExitCode::from(if arguments.is_empty() { 2 } else { 0 });
    }
    if arguments.iter().any(|a| a == "--cases") {
        return list_cases();
    }
    let check = arguments.iter().any(|a| a == "--self-check");
    let mut files = Vec::new();
    for argument in arguments.iter().filter(|a| *a != "--self-check") {
        if argument.starts_with("--") {
            eprintln!("unknown option {argument}\n{USAGE}");
            return ExitCode::from(2);
        }
        let path = Path::new(argument);
        match cases::files(path, "yaml") {
            Ok(found) if path.is_dir() => files.extend(found),
            _ => files.push(path.to_owned()),
        }
    }
    quiet_expected_panics();
    run_all(&files, check)
}

/// Panics that a scenario asks for are caught by the engine; their messages only confuse.
fn quiet_expected_panics() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<&str>().copied();
        let text = text.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
        if !text.is_some_and(|text| text.contains("the scenario asks for")) {
            loud(info);
        }
    }));
}

fn run_all(files: &[PathBuf], check: bool) -> ExitCode {
    let (mut passed, mut failed, mut unreadable) = (0, 0, false);
    for file in files {
        let name = file.display().to_string();
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{name}: {error}");
                (failed, unreadable) = (failed + 1, true);
                continue;
            }
        };
        let outcome = Scenario::read(&name, &text).and_then(|scenario| {
            let mut failures = run(&scenario)?;
            if check && failures.is_empty() {
                failures = self_check(&scenario)?.1;
            }
            Ok(failures)
        });
        match outcome {
            Ok(failures) if failures.is_empty() => passed += 1,
            Ok(failures) => {
                failed += 1;
                println!("FAILED {name}");
                for failure in failures {
                    println!("  {failure}");
                }
            }
            Err(error) => {
                (failed, unreadable) = (failed + 1, true);
                eprintln!("{error}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    match (failed, unreadable) {
        (0, _) => ExitCode::SUCCESS,
        (_, false) => ExitCode::from(1),
        (_, true) => ExitCode::from(2),
    }
}

fn list_cases() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cases = match cases::list(&root) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("the cases cannot be listed: {error}");
            return ExitCode::from(2);
        }
    };
    for case in &cases {
        let covered: Vec<_> = case
            .scenarios
            .iter()
            .chain(&case.tests)
            .map(String::as_str)
            .collect();
        let covered = if covered.is_empty() {
            "NOTHING".to_owned()
        } else {
            covered.join(" ")
        };
        println!("{} {:<14} {covered}", case.id, case.component);
    }
    let bare = cases.iter().filter(|case| !case.is_covered()).count();
    println!("{} passed, {bare} failed", cases.len() - bare);
    ExitCode::from(u8::from(bare > 0))
}
