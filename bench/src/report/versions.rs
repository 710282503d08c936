//! Which versions of everything were measured.
use std::process::Command;

const LOCK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"));
const GO_MODULE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/peers/client-go/go.mod"
));

pub(super) fn all() -> Vec<String> {
    let mut versions = vec![format!(
        "informant {} ({})",
        env!("CARGO_PKG_VERSION"),
        commit()
    )];
    if cfg!(feature = "peers-kube") {
        versions.extend(locked("kube-runtime"));
    }
    versions.extend(client_go());
    versions.extend(go());
    versions.extend(locked("hashbrown"));
    versions.push(env!("BENCH_RUSTC").to_owned());
    versions
}

fn locked(name: &str) -> Option<String> {
    let wanted = format!("name = \"{name}\"");
    // A crate that is there twice is there in its newest version last.
    let (_, after) = LOCK.rsplit_once(&wanted)?;
    let version = after.lines().nth(1)?.split('"').nth(1)?;
    Some(format!("{name} {version}"))
}

fn client_go() -> Option<String> {
    let line = GO_MODULE
        .lines()
        .find(|line| line.contains("k8s.io/client-go "))?;
    let version = line.split_whitespace().last()?;
    Some(format!("client-go {version}"))
}

fn go() -> Option<String> {
    let output = Command::new("go")
        .args(["env", "GOVERSION"])
        .output()
        .ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn commit() -> String {
    Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(
            || "no commit known".to_owned(),
            |text| text.trim().to_owned(),
        )
}
