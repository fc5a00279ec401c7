//! Formats and parses decimal numbers, without allocation.

/// Number of digits of `u64::MAX`.
pub(crate) const MAX_DIGITS: usize = 20;

/// Writes the digits of `value` to the end of `buffer` and returns them.
pub(crate) fn digits(mut value: u64, buffer: &mut [u8; MAX_DIGITS]) -> &[u8] {
    let mut start = MAX_DIGITS;
    loop {
        start -= 1;
        buffer[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &buffer[start..];
        }
    }
}

/// Parses `1*DIGIT` whose value fits in 64 bits. Returns `None` for other text, such as a sign, a space or a list.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_of_64_bits_are_parsed() {
        for (text, expected) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("+1", None),
            (" 1", None),
            ("1,1", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn writes_digits() {
        for value in [0, 9, 10, 99, 100, 12_345, u64::MAX - 1, u64::MAX] {
            assert_eq!(digits(value, &mut [0; MAX_DIGITS]), value.to_string().as_bytes());
        }
    }
}
