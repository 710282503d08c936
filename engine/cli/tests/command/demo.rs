//! The demo, small.
use crate::informant::{command, informant};
use std::io::{BufRead, BufReader};

const SMALL: [&str; 8] = [
    "--objects",
    "500",
    "--nodes",
    "20",
    "--seconds",
    "1",
    "--controllers",
    "3",
];

fn demo(more: &[&str]) -> crate::informant::Run {
    let mut arguments = vec!["demo"];
    arguments.extend(SMALL);
    arguments.extend(more);
    informant(&arguments)
}

#[test]
fn it_verifies_everything_and_says_so() {
    let run = demo(&["--json", "--seed", "5"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let report = run.json();
    assert_eq!(report["verified"], true);
    assert_eq!(report["controllers"], 3);
    assert_eq!(report["seed"], 5);
    assert_eq!(report["relists"], 1);
    assert!(report["events"].as_u64().unwrap() > 100);
    let (pods, nodes) = (
        report["pods"].as_u64().unwrap(),
        report["nodes"].as_u64().unwrap(),
    );
    assert_eq!(report["objects"], pods + nodes);
    let run = demo(&[]);
    assert!(run.stdout.contains("\nverified "), "{}", run.stdout);
}

#[test]
fn a_blocked_handler_is_no_obstacle() {
    let run = demo(&["--json", "--blocked-handler"]);
    assert_eq!(
        (run.code, &run.json()["verified"]),
        (0, &true.into()),
        "{}",
        run.stdout
    );
}

#[test]
fn nothing_at_all_is_verified_too() {
    let run = informant(&[
        "--objects",
        "0",
        "--nodes",
        "0",
        "--seconds",
        "0",
        "--controllers",
        "0",
        "--json",
    ]);
    assert_eq!(
        (run.code, &run.json()["verified"]),
        (0, &true.into()),
        "{}",
        run.stderr
    );
}

#[test]
fn wrong_arguments_are_exit_code_2() {
    assert_eq!(demo(&["--seed", "x"]).code, 2);
    assert_eq!(informant(&["demo", "--objects", "-1"]).code, 2);
}

/// A reader that goes away is no error: `informant replay … | head -1`.
#[test]
fn a_broken_pipe_is_a_quiet_end() {
    let mut child = command(&["demo", "--objects", "10", "--nodes", "1", "--seconds", "0"])
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let errors = BufReader::new(child.stderr.take().unwrap());
    let said: Vec<String> = errors.lines().map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(
        said.iter()
            .all(|line| !line.contains("error") && !line.contains("panicked")),
        "{said:?}"
    );
}
