//! Lines of a stream, one at a time, none longer than a limit.
use std::io::{self, BufRead, Read};

/// Reads lines, each into the same buffer.
pub(crate) struct Lines<R> {
    bytes: R,
    buffer: Vec<u8>,
    number: u64,
    limit: usize,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineFault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the line is longer than {limit} bytes; --max-line allows more")]
    TooLong { limit: usize },
    #[error("bytes that are not UTF-8 at column {column}")]
    NotUtf8 { column: usize },
}

impl<R: BufRead> Lines<R> {
    /// The lines of `bytes`; `limit` bytes are allowed, not counting the end of the line.
    pub(crate) fn new(bytes: R, limit: usize) -> Self {
        Self {
            bytes,
            buffer: Vec::new(),
            number: 0,
            limit,
        }
    }

    /// The number of the line read last, from 1; after a fault, that of the line at fault.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end; `None` at the end of the stream. A byte order mark at the
    /// beginning of the stream is no part of a line.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, LineFault> {
        self.buffer.clear();
        let most = u64::try_from(self.limit)
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        self.number += 1;
        (&mut self.bytes)
            .take(most)
            .read_until(b'\n', &mut self.buffer)?;
        let mut line = match self.buffer.as_slice() {
            [] => {
                self.number -= 1;
                return Ok(None);
            }
            [line @ .., b'\n'] => line,
            line if line.len() > self.limit => {
                return Err(LineFault::TooLong { limit: self.limit });
            }
            line => line,
        };
        if self.number == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        match std::str::from_utf8(line) {
            Ok(line) => Ok(Some(line)),
            Err(error) => Err(LineFault::NotUtf8 {
                column: error.valid_up_to() + 1,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], limit: usize) -> Vec<String> {
        let mut lines = Lines::new(bytes, limit);
        let mut all = Vec::new();
        loop {
            let line = lines.next_line().map(|line| line.map(str::to_owned));
            match line {
                Ok(Some(line)) => all.push(line),
                Ok(None) => return all,
                Err(fault) => {
                    all.push(format!("{}: {fault}", lines.number()));
                    return all;
                }
            }
        }
    }

    #[test]
    fn the_limit_holds_at_the_limit_and_one_past_it() {
        assert_eq!(lines(b"abcd\nabcd", 4), ["abcd", "abcd"]);
        assert_eq!(
            lines(b"a\nabcde\n", 4),
            [
                "a",
                "2: the line is longer than 4 bytes; --max-line allows more"
            ]
        );
        assert_eq!(
            lines(b"a\nabcde", 4),
            [
                "a",
                "2: the line is longer than 4 bytes; --max-line allows more"
            ]
        );
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        assert_eq!(lines(b"\xef\xbb\xbfa\nb", 9), ["a", "b"]);
        assert_eq!(lines(b"a\n\xef\xbb\xbfb", 9), ["a", "\u{feff}b"]);
    }

    #[test]
    fn what_is_not_text_is_a_fault_of_its_line() {
        assert_eq!(
            lines(b"a\nab\xff\n", 9),
            ["a", "2: bytes that are not UTF-8 at column 3"]
        );
        assert_eq!(lines(b"", 9), [""; 0]);
        assert_eq!(lines(b"\n\n", 9), ["", ""]);
    }
}
