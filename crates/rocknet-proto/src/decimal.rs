//! Formats numbers in decimal without allocation.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_digits() {
        for value in [0, 9, 10, 99, 100, 12_345, u64::MAX - 1, u64::MAX] {
            assert_eq!(digits(value, &mut [0; MAX_DIGITS]), value.to_string().as_bytes());
        }
    }
}
