//! Which public fault reports are covered, and by what.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// One fault report of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// `C001` and so on.
    pub id: String,
    /// The stage that it is about.
    pub component: String,
    /// The public report.
    pub report: String,
    /// Scenario files, by name.
    pub scenarios: Vec<String>,
    /// Rust tests, by name.
    pub tests: Vec<String>,
}

impl Case {
    /// True when something runs for it.
    #[must_use]
    pub fn is_covered(&self) -> bool {
        !self.scenarios.is_empty() || !self.tests.is_empty()
    }
}

/// Every case of `tests/cases.tsv`, with what covers it in the workspace at `root`.
///
/// # Errors
/// When a file cannot be read.
pub fn list(root: &Path) -> std::io::Result<Vec<Case>> {
    let mut scenarios: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files(&root.join("tests/scenarios"), "yaml")? {
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if let Some(id) = id_of(&name) {
            scenarios.entry(id).or_default().push(name);
        }
    }
    let mut tests: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in ["engine", "tests", "bench"] {
        for file in files(&root.join(folder), "rs")? {
            let text = fs::read_to_string(&file)?;
            for part in text.split("fn ").skip(1) {
                let name: String = part
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                if let Some(id) = id_of(&name) {
                    tests.entry(id).or_default().insert(name);
                }
            }
        }
    }
    let text = fs::read_to_string(root.join("tests/cases.tsv"))?;
    let cases = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut columns = line.split('\t').map(str::to_owned);
            let mut column = || columns.next().unwrap_or_default();
            let (id, component, report) = (column(), column(), column());
            Case {
                scenarios: scenarios.remove(&id).unwrap_or_default(),
                tests: tests.remove(&id).unwrap_or_default().into_iter().collect(),
                id,
                component,
                report,
            }
        });
    Ok(cases.collect())
}

/// `C012` of `c012_…`.
fn id_of(name: &str) -> Option<String> {
    let digits = name.strip_prefix('c')?.get(..3)?;
    let follows = name.get(4..5)? == "_";
    (follows && digits.bytes().all(|b| b.is_ascii_digit())).then(|| format!("C{digits}"))
}

/// All files below a folder with this extension, but none of what was built.
pub fn files(folder: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                found.extend(files(&path, extension)?);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
