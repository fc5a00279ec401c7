//! Formats numbers and untrusted text for terminals.

use rocknet_proto::semantics::date;

/// Formats a number with commas: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes in the largest unit that yields at least 1: `1.5 MiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    // The value is rounded to tenths before the unit is chosen, so that `1024.0 KiB` never appears.
    let tenths = |unit: usize| (u128::from(number) * 10 + (1 << (10 * unit + 9))) >> (10 * (unit + 1));
    let unit = (0..UNITS.len())
        .find(|&unit| tenths(unit) < 10_240)
        .unwrap_or(UNITS.len() - 1);
    format!("{}.{} {}", tenths(unit) / 10, tenths(unit) % 10, UNITS[unit])
}

/// Formats seconds in the largest unit that is not zero and the next smaller unit: `3 d 4 h`, `12 min 5 s`. The smaller
/// unit is omitted if it is zero: `1 h`.
pub fn duration(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = UNITS
        .iter()
        .position(|&(length, _)| seconds >= length)
        .unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut words = Vec::new();
    for (length, name) in &UNITS[first..UNITS.len().min(first + 2)] {
        if rest >= *length || words.is_empty() {
            words.push(format!("{} {name}", rest / length));
        }
        rest %= length;
    }
    words.join(" ")
}

/// Formats a short duration in the largest unit that yields at least 1, rounded down: `850 µs`, `12.3 ms`.
pub fn short_duration(microseconds: u64) -> String {
    match microseconds {
        0..1_000 => format!("{microseconds} µs"),
        1_000..1_000_000 => format!("{}.{} ms", microseconds / 1_000, microseconds / 100 % 10),
        _ => format!("{}.{} s", microseconds / 1_000_000, microseconds / 100_000 % 10),
    }
}

/// Formats a Unix time in seconds as a date of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(unix_seconds: u64) -> String {
    String::from_utf8_lossy(&date::format(unix_seconds)).into_owned()
}

/// Formats a share in percent: `87.5 %`. Returns a dash if the whole is zero.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Truncates untrusted text to `max_chars` characters and replaces control characters with `?`, because escape
/// sequences could redraw the terminal.
pub fn sanitized(word: &str, max_chars: usize) -> String {
    let mut text: String = word.chars().take(max_chars).map(without_control).collect();
    if word.chars().nth(max_chars).is_some() {
        text.push('…');
    }
    text
}

/// Returns the character, or `?` for a control character.
fn without_control(character: char) -> char {
    if character.is_control() { '?' } else { character }
}

/// Indents each line of untrusted text by `by` spaces and replaces control characters with `?`.
pub fn indented(text: &str, by: usize) -> String {
    text.lines()
        .map(|line| format!("{:by$}{}\n", "", line.chars().map(without_control).collect::<String>()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (123_456, "123,456"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), expected);
        }
        for (number, expected) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (1_048_576, "1.0 MiB"),
            (1 << 40, "1.0 TiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(number), expected);
        }
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (3_600, "1 h"),
            (3_660, "1 h 1 min"),
            (3_601, "1 h"),
            (90_000, "1 d 1 h"),
            (10 * 86_400 + 59, "10 d"),
        ] {
            assert_eq!(duration(seconds), expected);
        }
        for (microseconds, expected) in [
            (0, "0 µs"),
            (999, "999 µs"),
            (1_000, "1.0 ms"),
            (12_287, "12.2 ms"),
            (1_572_863, "1.5 s"),
        ] {
            assert_eq!(short_duration(microseconds), expected);
        }
        for (part, whole, expected) in [
            (0, 0, "–"),
            (0, 5, "0.0 %"),
            (1, 3, "33.3 %"),
            (2, 3, "66.7 %"),
            (u64::MAX, u64::MAX, "100.0 %"),
        ] {
            assert_eq!(share(part, whole), expected);
        }
    }

    #[test]
    fn untrusted_text_is_sanitized() {
        assert_eq!(sanitized("short", 5), "short");
        assert_eq!(sanitized("longer", 5), "longe…");
        assert_eq!(sanitized("\u{1b}[31m\n", 10), "?[31m?");
        assert_eq!(indented("a\n\u{7}b\r\n", 2), "  a\n  ?b\n");
        assert_eq!(indented("", 2), "");
    }
}
