//! Write a recording to the standard output: `generate-trace SEED FRAMES`.
use informant_tests::trace::generate;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse().ok());
    let (Some(Some(seed)), Some(Some(frames)), None) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        eprintln!("usage: generate-trace SEED FRAMES");
        return ExitCode::from(2);
    };
    let frames: u64 = frames;
    let trace = generate(seed, usize::try_from(frames).unwrap_or(usize::MAX));
    match io::stdout().write_all(trace.text().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
