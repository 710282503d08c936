//! The real client-go, in a process of its own: a small Go program that we build when it is asked
//! for, and that measures one sample for each line that we send it.
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// A driver that holds one client-go indexer (or what the commands make).
pub(crate) struct ClientGo {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// The Go module of the driver, in the source tree that this binary was built from.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/client-go");

impl ClientGo {
    /// Start a driver that holds `objects` pods.
    ///
    /// # Errors
    /// Why client-go cannot be measured here, in a few words: rows say it.
    pub(crate) fn start(objects: usize) -> Result<Self, String> {
        static DRIVER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let driver = DRIVER.get_or_init(build).as_ref().map_err(String::clone)?;
        let mut child = Command::new(driver)
            .arg(objects.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the Go driver does not start: {error}"))?;
        let commands = child.stdin.take();
        let answers = child.stdout.take().ok_or("the Go driver has no output")?;
        Ok(Self {
            child,
            commands,
            answers: BufReader::new(answers),
        })
    }

    /// One sample: the figures that the driver answers.
    ///
    /// # Panics
    /// When the driver dies or answers what we do not understand: a fault of the bench.
    pub(crate) fn figures(&mut self, command: &str) -> Vec<f64> {
        let commands = self
            .commands
            .as_mut()
            .expect("commands are open until drop");
        writeln!(commands, "{command}").expect("the Go driver takes commands");
        let mut answer = String::new();
        self.answers
            .read_line(&mut answer)
            .expect("the Go driver answers");
        serde_json::from_str(&answer).unwrap_or_else(|error| {
            panic!("the Go driver answered {answer:?} to {command:?}: {error}")
        })
    }

    /// The figures of a command that needs more than its own line.
    pub(crate) fn fed(&mut self, command: &str, lines: impl Iterator<Item = String>) -> Vec<f64> {
        let mut text = command.to_owned();
        for line in lines {
            let commands = self
                .commands
                .as_mut()
                .expect("commands are open until drop");
            writeln!(commands, "{text}").expect("the Go driver takes commands");
            text = line;
        }
        self.figures(&text)
    }

    /// The sample of a command that answers one figure.
    pub(crate) fn figure(&mut self, command: &str) -> f64 {
        self.figures(command)[0]
    }
}

impl Drop for ClientGo {
    fn drop(&mut self) {
        // The end of its input ends the driver.
        self.commands.take();
        let _ = self.child.wait();
    }
}

fn has_go() -> bool {
    let found = Command::new("go").arg("version").output();
    found.is_ok_and(|output| output.status.success())
}

fn build() -> Result<PathBuf, String> {
    if !has_go() {
        return Err("no Go".to_owned());
    }
    let output = driver_path();
    eprintln!("building the client-go driver with `go build` ...");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&output)
        .arg(".")
        .current_dir(MODULE)
        .status();
    match built {
        Ok(status) if status.success() => Ok(output),
        Ok(status) => Err(format!("go build failed: {status}")),
        Err(error) => Err(format!("go build failed: {error}")),
    }
}

/// Beside this binary, hence in the build directory.
fn driver_path() -> PathBuf {
    std::env::current_exe()
        .ok()
        .and_then(|binary| binary.parent().map(Path::to_owned))
        .unwrap_or_else(std::env::temp_dir)
        .join("informant-bench-client-go")
}

/// One cell of client-go's own informer benchmark.
pub(crate) struct Cell {
    pub(crate) pods: usize,
    pub(crate) readers: usize,
    pub(crate) lists_per_second: f64,
    pub(crate) writes_per_second: f64,
}

/// Run client-go's `BenchmarkSharedIndexInformer`, unmodified, `count` times for each cell. Its fake
/// watch sends no bookmarks, so that streaming lists, which are on by default, must be off: with them
/// it never begins.
///
/// # Errors
/// Why it cannot be run here.
pub(crate) fn own_benchmark(
    pods: &[usize],
    readers: &[usize],
    count: usize,
) -> Result<Vec<Cell>, String> {
    if !has_go() {
        return Err("no Go".to_owned());
    }
    let either = |numbers: &[usize]| {
        let numbers: Vec<_> = numbers.iter().map(usize::to_string).collect();
        format!("({})", numbers.join("|"))
    };
    let cells = format!(
        "^BenchmarkSharedIndexInformer$/^podCount={}$/^readers={}$",
        either(pods),
        either(readers)
    );
    let output = Command::new("go")
        .args([
            "test",
            "k8s.io/client-go/tools/cache",
            "-run",
            "^$",
            "-bench",
            &cells,
        ])
        .args(["-benchtime", "200ms", "-count", &count.to_string()])
        .env("KUBE_FEATURE_WatchListClient", "false")
        .current_dir(MODULE)
        .output()
        .map_err(|error| format!("go test failed: {error}"))?;
    if !output.status.success() {
        return Err(format!("go test failed: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(parse_cell).collect())
}

/// `BenchmarkSharedIndexInformer/podCount=10000/readers=1-2  300  93148 ns/op  3149 reads/s ...`
fn parse_cell(line: &str) -> Option<Cell> {
    let words: Vec<_> = line.split_whitespace().collect();
    let before = |unit: &str| {
        let at = words.iter().position(|word| *word == unit)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    let after = |mark: &str| {
        let (_, rest) = words.first()?.split_once(mark)?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    Some(Cell {
        pods: after("podCount=")?,
        readers: after("readers=")?,
        lists_per_second: before("reads/s")?,
        writes_per_second: before("writes/s")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_go_test_is_a_cell() {
        let line = "BenchmarkSharedIndexInformer/podCount=10000/readers=20-2 \t 300 \t 54054843 ns/op \t 703.3 reads/s \t 18.31 writes/s";
        let cell = parse_cell(line).unwrap();
        assert_eq!((cell.pods, cell.readers), (10_000, 20));
        assert!((cell.lists_per_second - 703.3).abs() < 1e-9);
        assert!((cell.writes_per_second - 18.31).abs() < 1e-9);
        assert!(parse_cell("PASS").is_none());
    }
}
