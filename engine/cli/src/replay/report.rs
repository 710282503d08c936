//! What a replay prints at its end.
use super::session::Counts;
use informant::indexer::Snapshot;
use informant::json::{FieldPath, JsonObject};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Values of an index that are printed as text; a document with `--json` has all of them.
const VALUES_SHOWN: usize = 20;

/// Everything that is known at the end, in the form of the JSON document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) file: String,
    pub(crate) compression: &'static str,
    /// The watermark: the version of the last applied run. Empty when none was applied.
    pub(crate) resource_version: String,
    pub(crate) objects: usize,
    /// How many objects have each value, by index.
    pub(crate) indexes: BTreeMap<String, BTreeMap<String, usize>>,
    /// Object faults; more than zero makes the exit code 2.
    pub(crate) errors: u64,
    /// A list was applied. Without one, the cache holds only what the watch told.
    pub(crate) synced: bool,
    /// Stopped by `--until` before the end of the file.
    pub(crate) until_reached: bool,
    pub(crate) lines: u64,
    pub(crate) frames: Frames,
    /// Lists at a lower version than was reached before them.
    pub(crate) resets: u64,
    pub(crate) batches: u64,
    /// Frames that took no place of their own in a batch: another one of their key was there.
    pub(crate) coalesced: u64,
    /// The objects that the cache could not be given.
    pub(crate) quarantine: Vec<Quarantined>,
    #[serde(skip)]
    pub(crate) seconds: f64,
}

/// Frames that were applied, by type; one whose object could not be used is in no count.
#[derive(Debug, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) struct Frames {
    list: u64,
    added: u64,
    modified: u64,
    deleted: u64,
    bookmark: u64,
    error: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Quarantined {
    key: Option<String>,
    /// The version that the cache still shows.
    last_good: Option<String>,
    failed_version: String,
    reason: String,
}

impl Report {
    /// Read the cache's final state.
    pub(crate) fn new(
        snapshot: &Snapshot<JsonObject>,
        paths: &[FieldPath],
        counts: Counts,
        run: ReplayedFile,
    ) -> Self {
        let indexes = paths.iter().map(|path| {
            let values = snapshot
                .index_values_by_name(path.as_str())
                .expect("an index was declared for each path");
            let counted = values.map(|(value, objects)| (value.clone(), objects.len()));
            (path.as_str().to_owned(), counted.collect())
        });
        Self {
            resource_version: snapshot.resource_version().to_string(),
            objects: snapshot.len(),
            indexes: indexes.collect(),
            errors: counts.bad_objects,
            frames: Frames {
                list: counts.lists,
                added: counts.added,
                modified: counts.modified,
                deleted: counts.deleted,
                bookmark: counts.bookmarks,
                error: counts.errors,
            },
            resets: counts.resets,
            batches: counts.batches,
            coalesced: run.coalesced,
            quarantine: snapshot
                .quarantine()
                .map(|object| Quarantined {
                    key: object.key.as_ref().map(ToString::to_string),
                    last_good: object.last_good.as_ref().map(ToString::to_string),
                    failed_version: object.failed_version.to_string(),
                    reason: object.reason.clone(),
                })
                .collect(),
            file: run.file,
            compression: run.compression,
            synced: run.synced,
            until_reached: run.until_reached,
            lines: run.lines,
            seconds: run.seconds,
        }
    }

    /// One JSON document.
    pub(crate) fn json(&self) -> String {
        let mut json = serde_json::to_string(self).expect("keys are strings, values are plain");
        json.push('\n');
        json
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text)
            .expect("writing to a string never fails");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Frames {
            list,
            added,
            modified,
            deleted,
            bookmark,
            error,
        } = &self.frames;
        let total = list + added + modified + deleted + bookmark + error;
        let end = if self.until_reached {
            ", stopped by --until"
        } else {
            ""
        };
        writeln!(
            out,
            "{} ({}): {} lines in {:.1} s{end}",
            self.file, self.compression, self.lines, self.seconds
        )?;
        writeln!(
            out,
            "frames           {total}: {list} LIST, {added} ADDED, {modified} MODIFIED, {deleted} DELETED, {bookmark} BOOKMARK, {error} ERROR"
        )?;
        writeln!(
            out,
            "batches          {}, {} frames coalesced",
            self.batches, self.coalesced
        )?;
        if self.resets > 0 {
            writeln!(out, "resets           {}", self.resets)?;
        }
        let version = match &*self.resource_version {
            "" => "none",
            version => version,
        };
        writeln!(out, "resourceVersion  {version}")?;
        let partial = if self.synced {
            ""
        } else {
            "  (no list in the stream: only what the watch told)"
        };
        writeln!(out, "objects          {}{partial}", self.objects)?;
        if self.errors > 0 {
            writeln!(
                out,
                "errors           {} objects could not be used; {} are in quarantine at the end",
                self.errors,
                self.quarantine.len()
            )?;
        }
        for (index, values) in &self.indexes {
            write_index(out, index, values)?;
        }
        Ok(())
    }
}

/// What is known of the file and the run.
pub(crate) struct ReplayedFile {
    pub(crate) file: String,
    pub(crate) compression: &'static str,
    pub(crate) synced: bool,
    pub(crate) until_reached: bool,
    pub(crate) lines: u64,
    pub(crate) coalesced: u64,
    pub(crate) seconds: f64,
}

fn write_index(
    out: &mut String,
    index: &str,
    values: &BTreeMap<String, usize>,
) -> std::fmt::Result {
    write!(out, "{index:<16} ")?;
    if values.is_empty() {
        return writeln!(out, "no object has a value");
    }
    let mut shown: Vec<_> = values.iter().collect();
    if shown.len() > VALUES_SHOWN {
        shown.sort_by_key(|&(value, count)| (std::cmp::Reverse(*count), value));
        shown.truncate(VALUES_SHOWN);
    }
    let listed: Vec<String> = shown
        .iter()
        .map(|(value, count)| format!("{value} {count}"))
        .collect();
    write!(out, "{}", listed.join(", "))?;
    if values.len() > VALUES_SHOWN {
        write!(
            out,
            ", and {} more values (--json lists all)",
            values.len() - VALUES_SHOWN
        )?;
    }
    writeln!(out)
}
