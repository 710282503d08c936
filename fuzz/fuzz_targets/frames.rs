//! Arbitrary bytes as a recorded frame: an answer or an error, never a panic.
#![no_main]
use informant::json::Frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Frame::decode(text);
    }
});
