//! Converts sizes, durations and `Strict-Transport-Security` values of other servers to RockNet's form.

/// Converts a size to RockNet's form: `64`, `8k`, `10M` or `1g` (steps of 1024), or `10MB` (steps of 1000). Returns
/// `None` for other forms.
pub(crate) fn size(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (number, unit) = match lower.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => lower.split_at(at),
        None => (lower.as_str(), ""),
    };
    let number: u64 = number.parse().ok()?;
    let unit = match unit {
        "" | "b" => "B",
        "k" | "kib" => "KiB",
        "m" | "mib" => "MiB",
        "g" | "gib" => "GiB",
        "kb" => "KB",
        "mb" => "MB",
        "gb" => "GB",
        _ => return None,
    };
    Some(format!("{number}{unit}"))
}

/// Parses a duration, and returns its seconds: `30`, `30s`, `5m`, `1h`, `7d`, `2w`, `1M` (30 days), `1y`, `1h30m`, or
/// `500ms` rounded up. Returns `None` for other forms.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0_u64;
    let mut read = false;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let factor = match &rest[..letters] {
            "" | "s" => 1,
            "ms" => {
                total = total.checked_add(number.div_ceil(1000))?;
                0
            }
            "m" => 60,
            "h" => 3600,
            "d" => DAY,
            "w" => 7 * DAY,
            "M" => 30 * DAY,
            "y" => 365 * DAY,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(factor)?)?;
        rest = rest[letters..].trim_start();
        read = true;
    }
    read.then_some(total)
}

/// Returns a duration in RockNet's form.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0 => "0s".to_owned(),
        s if s.is_multiple_of(DAY) => format!("{}d", s / DAY),
        s if s.is_multiple_of(3600) => format!("{}h", s / 3600),
        s if s.is_multiple_of(60) => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

/// Converts a duration of another server to RockNet's form; `None` if it is invalid.
pub(crate) fn duration_of(text: &str) -> Option<String> {
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    // RockNet has milliseconds too, so they need no rounding to seconds.
    if text.strip_suffix("ms").is_some_and(is_number) {
        return Some(text.to_owned());
    }
    seconds(text).map(duration)
}

/// Parses a value of `Strict-Transport-Security`. Returns its `max-age` in seconds, and true if it has further parts,
/// such as `preload`. Returns `None` if it has no valid `max-age`.
pub(crate) fn hsts(value: &str) -> Option<(u64, bool)> {
    let mut age = None;
    let mut has_more = false;
    for part in value.split(';').map(str::trim) {
        match part.to_ascii_lowercase().strip_prefix("max-age=") {
            Some(seconds) => age = seconds.trim_matches('"').parse().ok(),
            None => has_more |= !part.is_empty(),
        }
    }
    age.map(|age| (age, has_more))
}

/// Seconds in a day.
const DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_converted() {
        for (text, expected) in [
            ("64", Some("64B")),
            ("8k", Some("8KiB")),
            ("1G", Some("1GiB")),
            ("x", None),
        ] {
            assert_eq!(size(text).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("30", Some("30s")),
            ("90s", Some("90s")),
            ("1h30m", Some("90m")),
            ("2w", Some("14d")),
            ("500ms", Some("500ms")),
            ("1s500ms", Some("2s")),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(duration_of(text).as_deref(), expected, "{text}");
        }
        assert_eq!(hsts("max-age=63072000; preload"), Some((63_072_000, true)));
        assert_eq!(hsts("nonsense"), None);
    }
}
