//! Many scenario files: read, played, and (in the self-check) played with wrong expectations.
use super::document::{Scenario, read};
use super::play::{Failure, play};
use super::trouble::Place;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where the project's own scenarios are.
#[must_use]
pub fn own_scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Something that did not go as it should.
#[derive(Clone, Debug)]
pub struct Report {
    /// The file.
    pub file: PathBuf,
    /// Where in it.
    pub place: Place,
    /// Which scenario, as far as it was read.
    pub title: String,
    /// What.
    pub message: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(f, "{}:{line}:{column}: {}", self.file.display(), self.title)?;
        if !self.title.is_empty() {
            f.write_str("\n    ")?;
        }
        f.write_str(&self.message)
    }
}

/// How many went well, and what did not.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Scenarios (or flipped expectations) that went as they should.
    pub passed: usize,
    /// Those that did not.
    pub failed: Vec<Report>,
}

impl Tally {
    /// Add what became of others.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
    }
}

/// The scenario files that a path means: itself, or those in a directory.
///
/// # Errors
/// When it cannot be read.
pub fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The scenarios of a file, or why there are none.
pub fn load(file: &Path) -> Result<Vec<Scenario>, Report> {
    let report = |place, message| Report {
        file: file.to_owned(),
        place,
        title: String::new(),
        message,
    };
    let text = std::fs::read_to_string(file)
        .map_err(|error| report(Place { line: 1, column: 1 }, error.to_string()))?;
    read(&text).map_err(|trouble| {
        let message = match &trouble.suggestion {
            Some(suggestion) => format!("{} ({suggestion})", trouble.message),
            None => trouble.message.clone(),
        };
        report(trouble.place, message)
    })
}

/// Play the scenarios of a file.
#[must_use]
pub fn run(file: &Path) -> Tally {
    let mut tally = Tally::default();
    match load(file) {
        Err(report) => tally.failed.push(report),
        Ok(scenarios) => {
            for scenario in scenarios {
                match play(&scenario) {
                    Ok(()) => tally.passed += 1,
                    Err(failure) => tally.failed.push(report(file, &scenario, failure)),
                }
            }
        }
    }
    tally
}

/// Make each expectation of a file wrong, one after the other: each must be seen to fail.
#[must_use]
pub fn self_check(file: &Path) -> Tally {
    let mut tally = Tally::default();
    let scenarios = match load(file) {
        Ok(scenarios) => scenarios,
        Err(report) => {
            tally.failed.push(report);
            return tally;
        }
    };
    for scenario in scenarios {
        if let Err(failure) = play(&scenario) {
            tally.failed.push(report(file, &scenario, failure));
            continue;
        }
        for number in 0..scenario.expectations() {
            let mut flipped = scenario.clone();
            let place = flipped.flip(number);
            if play(&flipped).is_err() {
                tally.passed += 1;
            } else {
                let message = "this expectation was made wrong, and nobody noticed".to_owned();
                tally
                    .failed
                    .push(report(file, &scenario, Failure { place, message }));
            }
        }
    }
    tally
}

fn report(file: &Path, scenario: &Scenario, failure: Failure) -> Report {
    let case = scenario.case.clone().unwrap_or_default();
    Report {
        file: file.to_owned(),
        place: failure.place,
        title: format!("{case} {}", scenario.title).trim().to_owned(),
        message: failure.message,
    }
}
