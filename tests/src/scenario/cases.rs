//! The faults that were seen in other systems, and where each is tested here.
use super::files::{files, load, own_scenarios};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// `C028`.
    pub id: String,
    /// The stage that it is about.
    pub component: String,
    /// Where it was reported.
    pub source: String,
    /// What it is, in one line.
    pub title: String,
}

/// Where a case is tested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Scenario files, by their names.
    pub scenarios: BTreeSet<String>,
    /// Rust tests.
    pub tests: BTreeSet<String>,
}

/// The list of cases: id, component, source and title a line, with tabs between them.
///
/// # Errors
/// When the list cannot be read, or a line is wrong.
pub fn cases() -> io::Result<Vec<Case>> {
    let text = std::fs::read_to_string(folder().join("cases.tsv"))?;
    lines(&text)
        .map(|line| {
            let parts: Vec<&str> = line.splitn(4, '\t').map(str::trim).collect();
            let [id, component, source, title] = parts.as_slice() else {
                return Err(io::Error::other(format!(
                    "cases.tsv: {line:?} is not id, component, source, title with tabs between them"
                )));
            };
            Ok(Case {
                id: (*id).to_owned(),
                component: (*component).to_owned(),
                source: (*source).to_owned(),
                title: (*title).to_owned(),
            })
        })
        .collect()
}

/// The cases that are not tested yet, by the component that owes them. This list only shrinks.
///
/// # Errors
/// When it cannot be read.
pub fn owed() -> io::Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(folder().join("owed.tsv"))?;
    Ok(lines(&text)
        .map(|line| {
            let (id, component) = line.split_once('\t').unwrap_or((line, ""));
            (id.trim().to_owned(), component.trim().to_owned())
        })
        .collect())
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Where each case is tested: scenario files that name it, Rust tests that are named after it.
///
/// # Errors
/// When files cannot be read.
pub fn coverage() -> io::Result<BTreeMap<String, Coverage>> {
    let mut coverage: BTreeMap<String, Coverage> = BTreeMap::new();
    for file in files(&own_scenarios())? {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let scenarios = load(&file).map_err(|report| io::Error::other(report.to_string()))?;
        for id in scenarios.into_iter().filter_map(|scenario| scenario.case) {
            coverage
                .entry(id)
                .or_default()
                .scenarios
                .insert(name.clone());
        }
    }
    for file in sources(&workspace())? {
        let text = std::fs::read_to_string(&file)?;
        for name in tests(&text) {
            for id in ids(&name) {
                coverage.entry(id).or_default().tests.insert(name.clone());
            }
        }
    }
    Ok(coverage)
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn workspace() -> PathBuf {
    folder().parent().unwrap_or(folder()).to_owned()
}

/// The Rust files of the workspace.
fn sources(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                sources.extend(self::sources(&path)?);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
    Ok(sources)
}

/// The functions that are named after cases.
fn tests(text: &str) -> Vec<String> {
    text.split("fn c")
        .skip(1)
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            let name = format!("c{}", &rest[..end]);
            (!ids(&name).is_empty()).then_some(name)
        })
        .collect()
}

/// `c032_c033_frames_are_…` is a test of two cases.
fn ids(name: &str) -> Vec<String> {
    name.split('_')
        .map_while(|word| {
            let digits = word.strip_prefix('c')?;
            (digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()))
                .then(|| format!("C{digits}"))
        })
        .collect()
}

/// The list of cases with their tests, as it is printed, and what is wrong with it.
///
/// # Errors
/// When files cannot be read.
pub fn overview() -> io::Result<(Vec<String>, Vec<String>)> {
    let (cases, owed, coverage) = (cases()?, owed()?, coverage()?);
    let (mut told, mut wrong) = (Vec::new(), Vec::new());
    let known: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    for case in &cases {
        let covered = coverage.get(&case.id);
        let by = match covered {
            Some(Coverage { scenarios, tests }) => {
                let names: Vec<_> = scenarios.iter().chain(tests).map(String::as_str).collect();
                names.join(", ")
            }
            None => {
                if let Some(component) = owed.get(&case.id) {
                    format!("owed by {component}")
                } else {
                    wrong.push(format!(
                        "{} has neither a scenario nor a test, and nobody owes one: {}",
                        case.id, case.title
                    ));
                    "MISSING".to_owned()
                }
            }
        };
        told.push(format!(
            "{} {:<14} {} [{by}]",
            case.id, case.component, case.title
        ));
        if covered.is_some() && owed.contains_key(&case.id) {
            wrong.push(format!("{} is tested: take it off owed.tsv", case.id));
        }
    }
    for id in coverage
        .keys()
        .chain(owed.keys())
        .filter(|id| !known.contains(id.as_str()))
    {
        wrong.push(format!("{id} is no case of cases.tsv"));
    }
    Ok((told, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_by_their_names() {
        let text = "fn c032_c033_frames(x: u8) {}\nasync fn c100_requeue() {}\nfn c1_no() {} fn cut() {} fn c0285_no() {}";
        assert_eq!(tests(text), ["c032_c033_frames", "c100_requeue"]);
        assert_eq!(ids("c032_c033_frames_c034"), ["C032", "C033"]);
    }

    #[test]
    fn each_case_is_tested_or_owed() {
        let (told, wrong) = overview().unwrap();
        assert_eq!(told.len(), 104);
        let covered = coverage().unwrap();
        let mut by_component: BTreeMap<String, usize> = BTreeMap::new();
        for case in cases().unwrap() {
            let has = covered
                .get(&case.id)
                .is_some_and(|covered| !covered.scenarios.is_empty());
            *by_component.entry(case.component).or_default() += usize::from(has);
        }
        let resync = by_component.remove("resync");
        assert_eq!(resync, Some(3), "there are no more cases of it");
        assert!(
            by_component.values().all(|count| *count >= 5),
            "{by_component:?}"
        );
        assert!(by_component.values().sum::<usize>() >= 60);
        assert_eq!(wrong, Vec::<String>::new());
    }
}
