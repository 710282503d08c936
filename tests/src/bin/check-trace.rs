//! Compare what `informant replay` says of a recording with a plain evaluation of it, at many
//! versions: `check-trace INFORMANT FILE`, where the file is plain or gzip.
use flate2::read::MultiGzDecoder;
use informant_tests::trace::{Expectation, evaluate};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, ExitCode};

const INDEXES: [&str; 3] = ["label:qos", "label:num-gpu", "status.phase"];
/// Versions that are looked at, beside the first, the last and those around lists.
const SAMPLES: usize = 40;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, informant, file] = arguments.as_slice() else {
        eprintln!("usage: check-trace INFORMANT FILE");
        return ExitCode::from(2);
    };
    match check(informant, file) {
        Ok((passed, 0)) => {
            println!("{passed} passed, 0 failed");
            ExitCode::SUCCESS
        }
        Ok((passed, failed)) => {
            println!("{passed} passed, {failed} failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(informant: &str, file: &str) -> io::Result<(usize, usize)> {
    let text = read(file)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut passed = 0;
    let mut failed = 0;
    let mut untils: Vec<Option<u64>> = versions(&lines).into_iter().map(Some).collect();
    untils.push(None);
    for until in untils {
        let expected = evaluate(lines.iter().copied(), until, &INDEXES);
        let found = replay(informant, file, until)?;
        if expected == found {
            passed += 1;
        } else {
            failed += 1;
            println!("at {until:?}\n  expected {expected:?}\n  found    {found:?}");
        }
    }
    Ok((passed, failed))
}

fn read(file: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.read_to_end(&mut bytes)?;
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
    } else {
        text = String::from_utf8(bytes).map_err(io::Error::other)?;
    }
    Ok(text)
}

/// Versions worth a look: those of lists and of the frames around errors, a sample of the others,
/// each with its neighbours.
fn versions(lines: &[&str]) -> Vec<u64> {
    let step = (lines.len() / SAMPLES).max(1);
    let mut versions = Vec::new();
    let mut around_list = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with(r#"{"type":"LIST""#) || line.contains(r#""type":"LIST""#) {
            around_list = 2;
        }
        if around_list > 0 || at % step == 0 {
            around_list -= i32::from(around_list > 0);
            if let Some(version) = version(line) {
                versions.extend([version - 1, version, version + 1]);
            }
        }
    }
    versions.sort_unstable();
    versions.dedup();
    versions
}

fn version(line: &str) -> Option<u64> {
    let frame: Value = serde_json::from_str(line).ok()?;
    frame["object"]["metadata"]["resourceVersion"]
        .as_str()?
        .parse()
        .ok()
}

fn replay(informant: &str, file: &str, until: Option<u64>) -> io::Result<Expectation> {
    let mut command = Command::new(informant);
    command.args(["replay", file, "--json"]);
    for index in INDEXES {
        command.args(["--index", index]);
    }
    if let Some(until) = until {
        command.args(["--until", &until.to_string()]);
    }
    let output = command.output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(complaint));
    }
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let count = |count: &Value| usize::try_from(count.as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    let indexes = report["indexes"].as_object().into_iter().flatten();
    Ok(Expectation {
        resource_version: report["resourceVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        objects: count(&report["objects"]),
        indexes: indexes
            .map(|(index, values)| {
                let values = values.as_object().into_iter().flatten();
                let counts = values.map(|(value, number)| (value.clone(), count(number)));
                (index.clone(), counts.collect())
            })
            .collect(),
    })
}
