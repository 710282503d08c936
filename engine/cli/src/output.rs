//! Writing to people and to pipes.
use std::io::{self, Write};
use std::process::ExitCode;

/// Print `text` as the command's result and end with `code`. A reader that has gone away (`head`)
/// is no error.
pub(crate) fn print(text: &str, code: u8) -> ExitCode {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("error: the result cannot be written: {error}"));
            ExitCode::from(if code == 0 { 1 } else { code })
        }
        _ => ExitCode::from(code),
    }
}

/// Say something on the standard error. If even that is gone, there is nobody left to tell.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
