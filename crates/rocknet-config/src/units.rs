//! Parses and formats durations, sizes and rates: `"10s"`, `"50KiB"`, `"500B/s"`.

use std::time::Duration;

/// Units of time with their lengths in milliseconds, smallest first.
const TIME: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
];

/// Units of size with their numbers of bytes.
const SIZE: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Error of an invalid duration, size or rate. The text is the remedy that is shown with the error, such as
/// `write "10s"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitError(pub String);

/// Parses a duration: whole numbers with units, largest first (`"500ms"`, `"10s"`, `"1h30m"`).
pub(crate) fn duration(text: &str) -> Result<Duration, UnitError> {
    let general =
        || UnitError("write a whole number and a unit: \"500ms\", \"10s\", \"5m\", \"1h\" or \"7d\"".to_owned());
    let mut rest = text.trim();
    let mut total: u64 = 0;
    // Length of the previous unit. The next unit has to be smaller.
    let mut previous = u64::MAX;
    if rest.is_empty() {
        return Err(general());
    }
    while !rest.is_empty() {
        let (number, after) = leading_number(rest).ok_or_else(general)?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let Some((_, length)) = TIME.iter().find(|(name, _)| *name == unit) else {
            if unit.is_empty() {
                return Err(UnitError(format!(
                    "a unit is missing: write \"{number}s\" for seconds or \"{number}ms\" for milliseconds"
                )));
            }
            return Err(corrected(text).map_or_else(general, |text| UnitError(format!("write \"{text}\""))));
        };
        if *length >= previous {
            return Err(general());
        }
        previous = *length;
        let part = number.checked_mul(*length).ok_or_else(general)?;
        total = total.checked_add(part).ok_or_else(general)?;
        rest = next;
    }
    Ok(Duration::from_millis(total))
}

/// Returns a duration with the units that [`duration`] takes: `1h30m` for `1 hour 30 min`. `None` if a unit is unknown
/// or missing, or if the units are not in order.
fn corrected(text: &str) -> Option<String> {
    let (mut rest, mut corrected) = (text.trim(), String::new());
    while !rest.is_empty() {
        let (number, after) = leading_number(rest)?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let unit = match unit.trim().to_ascii_lowercase().as_str() {
            "ms" | "msec" | "millis" | "milliseconds" => "ms",
            "s" | "sec" | "secs" | "second" | "seconds" => "s",
            // `M` could mean months.
            "m" if unit.contains('M') => return None,
            "m" | "min" | "mins" | "minute" | "minutes" => "m",
            "h" | "hr" | "hour" | "hours" => "h",
            "d" | "day" | "days" => "d",
            "w" | "week" | "weeks" => "w",
            _ => return None,
        };
        corrected.push_str(&format!("{number}{unit}"));
        rest = next;
    }
    duration(&corrected).is_ok().then_some(corrected)
}

/// Parses a size: `"50KiB"`, `"100MB"`, or bytes without a unit.
pub(crate) fn size(text: &str) -> Result<u64, UnitError> {
    let general =
        || UnitError("write a whole number and a unit: \"512B\", \"50KiB\", \"100MB\" or \"2GiB\"".to_owned());
    let (number, unit) = leading_number(text.trim()).ok_or_else(general)?;
    if unit.is_empty() {
        return Ok(number);
    }
    let Some((_, bytes)) = SIZE.iter().find(|(name, _)| *name == unit) else {
        let letter = unit.trim().chars().next().unwrap_or(' ').to_ascii_uppercase();
        let lower = unit.trim().to_ascii_lowercase();
        // `-`, which is not in the list, stands for a unit that does not begin with an ASCII character.
        let is_size_unit = ["", "b", "ib", "bytes", "byte"].contains(&lower.get(1..).unwrap_or("-"));
        return Err(match letter {
            'K' | 'M' | 'G' | 'T' if is_size_unit => UnitError(format!(
                "write \"{number}{letter}iB\" (steps of 1024) or \"{number}{letter}B\" (steps of 1000)"
            )),
            'B' if "bytes".starts_with(&lower) => UnitError(format!("write \"{number}B\"")),
            _ => general(),
        });
    };
    number.checked_mul(*bytes).ok_or_else(general)
}

/// Parses a rate: `"500B/s"`, `"1KiB/s"`, or bytes per second without a unit.
pub(crate) fn rate(text: &str) -> Result<u64, UnitError> {
    let general = || UnitError("write bytes per second: \"500B/s\", \"1KiB/s\" or \"2MB/s\"".to_owned());
    let text = text.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_err(|_| general());
    }
    let amount = text.strip_suffix("/s").ok_or_else(general)?;
    size(amount).map_err(|_| general())
}

/// Splits a text after the number that it begins with; `None` if there is no number, or if it does not fit in `u64`.
pub(crate) fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

/// Formats a duration in the largest units: exactly, apart from fractions of a millisecond.
pub(crate) fn format_duration(duration: Duration) -> String {
    let mut remaining = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if remaining == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    // Weeks are not used, because "30d" is clearer than "4w2d".
    for (unit, length) in TIME.iter().rev().filter(|(unit, _)| *unit != "w") {
        if remaining >= *length {
            text.push_str(&format!("{}{unit}", remaining / length));
            remaining %= length;
        }
    }
    text
}

/// Formats a duration as timeouts are usually written: below two minutes in seconds, such as `"65s"` rather than
/// `"1m5s"`.
pub(crate) fn format_timeout(duration: Duration) -> String {
    match (duration.as_secs(), duration.subsec_nanos()) {
        (seconds @ 1..120, 0) => format!("{seconds}s"),
        _ => format_duration(duration),
    }
}

/// Formats a size exactly, in the largest unit that divides it.
pub(crate) fn format_size(bytes: u64) -> String {
    if bytes == 0 {
        return "0".to_owned();
    }
    let exact = SIZE
        .iter()
        .filter(|(_, factor)| bytes.is_multiple_of(*factor))
        .max_by_key(|(_, factor)| *factor);
    exact.map_or_else(
        || bytes.to_string(),
        |(unit, factor)| format!("{}{unit}", bytes / factor),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_units() {
        // (text, milliseconds or a part of the help)
        let rows: &[(&str, Result<u64, &str>)] = &[
            ("500ms", Ok(500)),
            ("10s", Ok(10_000)),
            ("1m30s", Ok(90_000)),
            ("2w", Ok(1_209_600_000)),
            ("0s", Ok(0)),
            ("10", Err("\"10s\"")),
            ("10 s", Err("\"10s\"")),
            ("5min", Err("\"5m\"")),
            ("3 hours", Err("\"3h\"")),
            ("1h 30m", Err("\"1h30m\"")),
            (" 1 Hour 30 min ", Err("\"1h30m\"")),
            ("1w 2days", Err("\"1w2d\"")),
            ("1 m", Err("\"1m\"")),
            ("1M", Err("whole number")),
            ("1h 30", Err("whole number")),
            ("1s 1m", Err("whole number")),
            ("1h,30m", Err("whole number")),
            ("1h30", Err("\"30s\"")),
            ("1s1m", Err("whole number")),
            ("1s1s", Err("whole number")),
            ("-1s", Err("whole number")),
            ("1.5s", Err("whole number")),
            ("", Err("whole number")),
            ("s", Err("whole number")),
            // Too large for 64 bits: the first number itself, the second one in milliseconds.
            ("99999999999999999999s", Err("whole number")),
            ("9999999999999999999s", Err("whole number")),
        ];
        for (text, want) in rows {
            match (duration(text), want) {
                (Ok(got), Ok(ms)) => assert_eq!(got.as_millis(), u128::from(*ms), "{text}"),
                (Err(UnitError(help)), Err(part)) => assert!(help.contains(part), "{text}: {help}"),
                (got, want) => panic!("{text}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn sizes_and_rates_are_whole_numbers_with_units() {
        // (parser, text, bytes or a part of the help)
        type Row<'a> = (fn(&str) -> Result<u64, UnitError>, &'a str, Result<u64, &'a str>);
        let rows: &[Row<'_>] = &[
            (size, "50KiB", Ok(51_200)),
            (size, "100MB", Ok(100_000_000)),
            (size, "7", Ok(7)),
            (size, "7B", Ok(7)),
            (size, "10m", Err("\"10MiB\"")),
            (size, "10kb", Err("\"10KiB\"")),
            (size, "10 MB", Err("\"10MiB\"")),
            (size, "5 bytes", Err("\"5B\"")),
            (size, "1.5GB", Err("whole number")),
            (size, "99999999TiB", Err("whole number")),
            (size, "ä", Err("whole number")),
            (size, "1ä", Err("whole number")),
            (rate, "500B/s", Ok(500)),
            (rate, "1KiB/s", Ok(1024)),
            (rate, "500", Ok(500)),
            (rate, "1KiB", Err("bytes per second")),
            (rate, "", Err("bytes per second")),
        ];
        for (parse, text, want) in rows {
            match (parse(text), want) {
                (Ok(got), Ok(bytes)) => assert_eq!(got, *bytes, "{text}"),
                (Err(UnitError(help)), Err(part)) => assert!(help.contains(part), "{text}: {help}"),
                (got, want) => panic!("{text}: {got:?}, not {want:?}"),
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn formatted_values_parse_back(ms in 0_u64..100_000_000_000, bytes in 0_u64..1 << 50) {
            let time = Duration::from_millis(ms);
            proptest::prop_assert_eq!(duration(&format_duration(time)), Ok(time));
            proptest::prop_assert_eq!(duration(&format_timeout(time)), Ok(time));
            proptest::prop_assert_eq!(size(&format_size(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = (duration(&text), size(&text), rate(&text));
        }
    }
}
