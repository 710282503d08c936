//! Running the command.
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What a run of the command left behind.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    fn of(output: Output) -> Self {
        let run = Self {
            code: output.status.code().expect("no signal ended it"),
            stdout: String::from_utf8(output.stdout).expect("the result is text"),
            stderr: String::from_utf8(output.stderr).expect("the errors are text"),
        };
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        run
    }

    /// The one JSON document on the standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?} {}", self.stdout, self.stderr))
    }

    /// The single error that a fault of the stream ends with; nothing else is printed.
    pub(crate) fn fault(&self) -> &str {
        assert_eq!(self.code, 2, "{}", self.stderr);
        assert_eq!(self.stdout, "");
        let error = self.stderr.trim_end();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
            .strip_prefix("error: ")
            .expect("it says that it is an error")
    }
}

/// Run the command.
pub(crate) fn informant(arguments: &[&str]) -> Run {
    Run::of(command(arguments).output().expect("the command runs"))
}

/// Run the command with this on its standard input.
pub(crate) fn informant_fed(arguments: &[&str], input: &[u8]) -> Run {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the command runs");
    // The command may end before it has read everything.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    Run::of(child.wait_with_output().expect("it ends"))
}

/// The command, to be started.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informant"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A file of this run, removed when dropped.
pub(crate) struct File(PathBuf);

impl File {
    pub(crate) fn new(content: impl AsRef<[u8]>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.jsonl", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, content).expect("the target directory can be written to");
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("the path is text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Replay these lines.
pub(crate) fn replay(lines: &[&str], arguments: &[&str]) -> Run {
    let mut content = lines.join("\n");
    content.push('\n');
    replay_bytes(content.as_bytes(), arguments)
}

/// Replay a file of these bytes.
pub(crate) fn replay_bytes(bytes: &[u8], arguments: &[&str]) -> Run {
    let file = File::new(bytes);
    let mut all = vec!["replay", file.path()];
    all.extend(arguments);
    let mut run = informant(&all);
    // What the file is called does not matter.
    run.stderr = run.stderr.replace(file.path(), "FILE");
    run
}

/// A list frame of pods, each written `name@version`.
pub(crate) fn list(version: u64, pods: &[&str]) -> String {
    let items: Vec<String> = pods.iter().map(|pod| object(pod)).collect();
    format!(
        r#"{{"type":"LIST","object":{{"kind":"PodList","metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}}}"#,
        items.join(",")
    )
}

/// A page of a list that is not its last one.
pub(crate) fn page(version: u64, pods: &[&str]) -> String {
    let token = format!(r#"{{"continue":"more","resourceVersion":"{version}"}}"#);
    let plain = format!(r#"{{"resourceVersion":"{version}"}}"#);
    list(version, pods).replace(&plain, &token)
}

/// A watch frame about a pod, written `name@version`.
pub(crate) fn event(kind: &str, pod: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{}}}"#, object(pod))
}

/// A bookmark frame.
pub(crate) fn bookmark(version: u64) -> String {
    format!(r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}"}}}}}}"#)
}

/// The frame of an expired watch.
pub(crate) const GONE: &str =
    r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;

fn object(pod: &str) -> String {
    let (name, version) = pod.split_once('@').expect("written name@version");
    format!(
        r#"{{"metadata":{{"namespace":"ns","name":"{name}","uid":"u-{name}","resourceVersion":"{version}","labels":{{"name":"{name}"}}}}}}"#
    )
}
