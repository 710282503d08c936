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

/// A number with its thousands set apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration in microseconds, in the unit in which it is easiest to read.
pub(crate) fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_durations_have_units() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(micros(999), "999 µs");
        assert_eq!(micros(1_500), "1.5 ms");
        assert_eq!(micros(2_500_000), "2.5 s");
    }
}
