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

fn build() -> Result<PathBuf, String> {
    let found = Command::new("go").arg("version").output();
    if !found.is_ok_and(|output| output.status.success()) {
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
