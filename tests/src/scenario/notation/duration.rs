//! Times: `3s`, `800ms`, `1h30m`.
use super::super::trouble::{Place, Reading, Trouble};
use std::time::Duration;

/// Read a time span.
///
/// # Errors
/// When it is none, or lacks its unit.
pub fn duration(place: Place, text: &str) -> Reading<Duration> {
    let text = text.trim();
    let bad = || {
        Trouble::new(place, format!("{text:?} is no time span"))
            .suggest("write a number with a unit: 300ms, 3s, 5m, 1h30m")
    };
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(bad)?;
        let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let factor = match rest[..letters].to_lowercase().as_str() {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => return Err(bad()),
        };
        rest = rest[letters..].trim_start();
        // Nothing here is finer than a microsecond, and 0.8 shall not become 799 ms and something.
        let micros = (number * factor * 1e6).round();
        total += Duration::try_from_secs_f64(micros / 1e6).map_err(|_| bad())?;
    }
    if text.is_empty() {
        Err(bad())
    } else {
        Ok(total)
    }
}

/// A time span as it is written.
pub fn show_duration(duration: Duration) -> String {
    let micros = duration.as_micros();
    match micros {
        m if m % 3_600_000_000 == 0 && m > 0 => format!("{}h", m / 3_600_000_000),
        m if m % 60_000_000 == 0 && m > 0 => format!("{}m", m / 60_000_000),
        m if m < 1_000_000 && m > 0 => format!("{}ms", m as f64 / 1e3),
        m => format!("{}s", m as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_needed_and_may_be_joined() {
        let read = |text| duration(Place::default(), text);
        for (text, millis) in [
            ("3s", 3000),
            ("0.8s", 800),
            ("800ms", 800),
            ("1h30m", 5_400_000),
            ("0", 0),
        ] {
            assert_eq!(read(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for text in ["3", "s", "", "3 parsecs", "-1s"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(show_duration(Duration::from_millis(5)), "5ms");
        assert_eq!(show_duration(Duration::from_secs(90)), "90s");
        assert_eq!(show_duration(Duration::from_secs(120)), "2m");
    }
}
