//! Tells the binary which compiler built it: a measurement without its compiler is worth little.
use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_else(|| "rustc of an unknown version".to_owned());
    println!("cargo:rustc-env=BENCH_RUSTC={}", version.trim());
    println!("cargo:rerun-if-changed=build.rs");
}
