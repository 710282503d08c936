//! What the figures were measured on.
use crate::allocator;
use std::fs;

/// Processor, cores, memory, kernel, compiler and allocator, in one line.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "{} x {}, {} GiB, Linux {}, {}, {}",
        cores,
        processor(),
        memory_gib(),
        kernel(),
        env!("BENCH_RUSTC"),
        allocator::NAME,
    )
}

fn processor() -> String {
    field("/proc/cpuinfo", "model name").unwrap_or_else(|| "processor of an unknown kind".into())
}

fn memory_gib() -> u64 {
    field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .map_or(0, |kib| kib.div_ceil(1024 * 1024))
}

fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
}

fn field(path: &str, name: &str) -> Option<String> {
    fs::read_to_string(path).ok()?.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    })
}
