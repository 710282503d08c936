//! Compressed recordings: told by their bytes, whole or not.
use crate::informant::{Run, event, list, replay_bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use informant_tests::trace::generate;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

fn two_lines() -> (String, String) {
    (
        format!("{}\n", list(5, &["a@1"])),
        format!("{}\n", event("ADDED", "b@6")),
    )
}

fn assert_two_objects(run: &Run, compression: &str) {
    assert_eq!((run.code, &*run.stderr), (0, ""));
    assert_eq!(run.json()["objects"], 2);
    assert_eq!(run.json()["compression"], compression);
}

#[test]
fn one_or_several_members() {
    let (first, second) = two_lines();
    let both = format!("{first}{second}");
    assert_two_objects(&replay_bytes(&gzip(&both), &["--json"]), "gzip");
    assert_two_objects(&replay_bytes(&zstd(&both), &["--json"]), "zstd");
    // A line may even begin in one member and end in the next.
    for cut in [0, 1, first.len() - 1, first.len(), both.len() - 1] {
        let (before, after) = both.split_at(cut);
        let mut members = gzip(before);
        members.extend(gzip(after));
        assert_two_objects(&replay_bytes(&members, &["--json"]), "gzip");
        let mut frames = zstd(before);
        // A skippable frame in between, as parallel compressors write them.
        frames.extend(b"\x5e\x2a\x4d\x18\x03\0\0\0abc");
        frames.extend(zstd(after));
        assert_two_objects(&replay_bytes(&frames, &["--json"]), "zstd");
    }
}

#[test]
fn cut_off_anywhere_it_is_one_fault() {
    let (first, second) = two_lines();
    let both = format!("{first}{second}");
    for (format, whole) in [("gzip", gzip(&both)), ("zstd", zstd(&both))] {
        for length in 4..whole.len() {
            let run = replay_bytes(&whole[..length], &[]);
            let says = format!("cannot be read further: the {format} data is cut off");
            assert!(run.fault().contains(&says), "{length}: {}", run.stderr);
            assert!(run.fault().starts_with("FILE:"), "{}", run.stderr);
        }
    }
}

#[test]
fn the_line_of_a_fault_in_a_long_file_is_told() {
    let trace = generate(5, 2000);
    for whole in [gzip(&trace.text()), zstd(&trace.text())] {
        let run = replay_bytes(&whole[..whole.len() / 2], &[]);
        let line: u64 = run.fault().split(':').nth(1).unwrap().parse().unwrap();
        assert!((2..2000).contains(&line), "{}", run.stderr);
    }
}

#[test]
fn bytes_that_were_changed_never_panic() {
    let trace = generate(5, 60).text();
    let mut rng = fastrand::Rng::with_seed(11);
    for whole in [gzip(&trace), zstd(&trace)] {
        for _ in 0..60 {
            let mut bytes = whole.clone();
            let at = rng.usize(4..bytes.len());
            bytes[at] ^= 1 << rng.u8(..8);
            let run = replay_bytes(&bytes, &[]);
            // Either it is noticed, perhaps after a line that was changed, or it was one of the few
            // bits that mean nothing.
            let last = run.stderr.lines().last();
            assert!(
                run.code == 0 || last.is_some_and(|last| last.contains("FILE:")),
                "byte {at}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn garbage_after_the_end_is_a_fault() {
    let (first, _) = two_lines();
    let mut bytes = zstd(&first);
    bytes.extend(b"garbage");
    assert!(
        replay_bytes(&bytes, &[])
            .fault()
            .contains("the zstd data is corrupt")
    );
    let mut bytes = gzip(&first);
    bytes.extend(b"garbage that is long enough for a header");
    assert!(
        replay_bytes(&bytes, &[])
            .fault()
            .contains("the gzip data is corrupt")
    );
}

#[test]
fn a_bomb_is_stopped_by_the_line_limit() {
    // 64 MiB of one line in a few kilobytes.
    let bomb = gzip(&" ".repeat(64 << 20));
    let run = replay_bytes(&bomb, &["--max-line", "1MiB"]);
    assert!(
        run.fault()
            .starts_with("FILE:1: the line is longer than 1048576 bytes")
    );
}
