//! `informant replay`: a recorded list/watch stream through the same flow as a live one.
mod fault;
mod input;
mod lines;
mod list;
mod progress;
mod report;
mod session;

use crate::output;
use fault::{Stopped, StreamFault};
use informant::ResourceVersion;
use informant::json::{FieldPath, Frame};
use lines::Lines;
use progress::Bar;
use report::{ReplayedFile, Report};
use session::{Progress, Session};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Exit code when the stream or an object in it is at fault, as for wrong arguments.
pub(crate) const FAULT: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  informant replay watch.jsonl.gz
  informant replay watch.jsonl.gz --index label:app --index status.phase
  informant replay watch.jsonl.gz --until 16031 --json
  curl -sN $APISERVER/api/v1/pods?watch=1 | jq -c . | informant replay -

The format: one JSON document a line, plain or compressed with gzip or zstd.
  {\"type\":\"LIST\",\"object\":{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[…]}}
  {\"type\":\"ADDED|MODIFIED|DELETED\",\"object\":{…}}
  {\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\"}}}
  {\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}
A LIST may be split over several lines with metadata.continue; the last page publishes it. After an
ERROR of code 410 a LIST must follow, or a streaming list. A LIST at a lower version than was
reached before it is taken as a reset of the source.

Exit codes:
  0  everything was applied
  2  the arguments or the stream are at fault (one error says where), or objects in it are (each
     is reported with its line and kept in quarantine, and the replay goes on to the end)";

/// Feed a recorded list/watch stream through the cache, and print what is in it at the end.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The recording; `-` is the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Count objects by this field: a dotted path, `label:NAME` or `annotation:NAME` (repeatable)
    #[arg(long, value_name = "FIELD")]
    index: Vec<FieldPath>,

    /// Stop after the last frame whose resourceVersion is not above this one
    #[arg(long, value_name = "VERSION", value_parser = decimal_version)]
    until: Option<ResourceVersion>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// The longest line that is accepted, in bytes, or with a unit (KiB, MiB, GiB)
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    max_line: usize,
}

/// Run the command.
pub(crate) fn run(mut options: Options) -> ExitCode {
    let mut seen = Vec::new();
    options.index.retain(|path| {
        let new = !seen.contains(path);
        seen.push(path.clone());
        new
    });
    match replay(&options) {
        Ok(report) => {
            let text = if options.json {
                report.json()
            } else {
                report.text()
            };
            let code = if report.errors > 0 { FAULT } else { 0 };
            output::print(&text, code)
        }
        Err(stopped) => {
            output::complain(&format!("error: {stopped}"));
            ExitCode::from(FAULT)
        }
    }
}

fn replay(options: &Options) -> Result<Report, Stopped> {
    let started = Instant::now();
    let file = &options.file;
    let stop = |line, fault| Stopped {
        file: file.clone(),
        line,
        fault,
    };
    let input = input::open(file).map_err(|error| stop(None, opening(error)))?;
    let bar = Bar::new(input.size, input.position.clone());
    let mut lines = Lines::new(input.bytes, options.max_line);
    let mut session = Session::new(&options.index, options.until.clone());
    let mut frames = 0_u64;
    let until_reached = loop {
        let number = lines.number() + 1;
        let line = match lines.next_line() {
            Ok(None) => break false,
            Ok(Some(line)) => line,
            Err(fault) => return Err(stop(Some(number), fault.into())),
        };
        if line.trim().is_empty() {
            continue;
        }
        let frame = Frame::decode(line).map_err(|fault| stop(Some(number), fault.into()))?;
        let mut notify = |notice| bar.say(&format!("{}:{number}: {notice}", file.display()));
        match session.feed(frame, &mut notify) {
            Ok(Progress::GoOn) => frames += 1,
            Ok(Progress::UntilReached) => break true,
            Err(fault) => return Err(stop(Some(number), fault)),
        }
        bar.tick();
    };
    if frames == 0 && !until_reached {
        return Err(stop(None, StreamFault::Empty));
    }
    session
        .finish(until_reached)
        .map_err(|fault| stop(Some(lines.number()), fault))?;
    drop(bar);
    let run = ReplayedFile {
        file: file.display().to_string(),
        compression: input.compression.name(),
        synced: session.has_synced(),
        until_reached,
        lines: lines.number() - u64::from(until_reached),
        coalesced: session.coalesced(),
        seconds: started.elapsed().as_secs_f64(),
    };
    let snapshot = session.snapshot();
    Ok(Report::new(
        &snapshot,
        &options.index,
        session.counts(),
        run,
    ))
}

fn opening(error: std::io::Error) -> StreamFault {
    match error.kind() {
        std::io::ErrorKind::IsADirectory => StreamFault::Directory,
        _ => StreamFault::Open(error),
    }
}

fn decimal_version(text: &str) -> Result<ResourceVersion, String> {
    let version = ResourceVersion::new(text);
    let zero = ResourceVersion::zero();
    match version.compare(&zero, informant::Versioning::Decimal) {
        Some(_) => Ok(version),
        None => Err("a version must be a decimal number".to_owned()),
    }
}

fn size(text: &str) -> Result<usize, String> {
    let error = || format!("{text:?} is no size; write 1048576, 512KiB, 64MiB or 1GiB");
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: usize = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        _ => return Err(error()),
    };
    let number: usize = digits.parse().map_err(|_| error())?;
    match number.checked_mul(unit) {
        Some(0) | None => Err(error()),
        Some(size) => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("1048576"), Ok(1 << 20));
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("2 KiB"), Ok(2 << 10));
        for text in ["", "MiB", "0", "1.5MiB", "-1", "9XB", "99999999999GiB"] {
            assert!(size(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn until_takes_decimal_numbers_of_any_length() {
        for text in ["0", "16031", "123456789012345678901234567890"] {
            assert_eq!(decimal_version(text).unwrap().to_string(), text);
        }
        for text in ["", "x", "010", "-1", "1.0", " 1"] {
            assert!(decimal_version(text).is_err(), "{text:?}");
        }
    }
}
