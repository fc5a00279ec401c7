//! Formats decimal numbers by hand, because `format!` costs more than a whole record.

/// Number of digits of the largest `u64`.
const DIGITS_MAX: usize = 20;

/// Appends `value` without leading zeros.
#[inline]
pub(super) fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; DIGITS_MAX];
    let mut at = DIGITS_MAX;
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Formats a status code with three digits: `000` for 0, which means that no response began, and `999` for any number
/// above 999.
#[inline]
pub(super) fn status(value: u16) -> [u8; 3] {
    let mut digits = [0; 3];
    three(&mut digits, value.min(999));
    digits
}

/// Writes the last two digits of `value` at the start of `out`.
pub(super) fn two(out: &mut [u8], value: u8) {
    out[0] = b'0' + value / 10 % 10;
    out[1] = b'0' + value % 10;
}

/// Writes the last three digits of `value` at the start of `out`.
pub(super) fn three(out: &mut [u8], value: u16) {
    out[0] = b'0' + (value / 100 % 10) as u8;
    two(&mut out[1..], (value % 100) as u8);
}

/// Writes the last four digits of `value` at the start of `out`.
pub(super) fn four(out: &mut [u8], value: u16) {
    two(out, (value / 100 % 100) as u8);
    two(&mut out[2..], (value % 100) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_agree_with_the_standard_library() {
        let powers = (0..20)
            .map(|power| 10u64.pow(power))
            .flat_map(|power| [power - 1, power, power + 1]);
        for value in powers.chain([u64::MAX, 2326]) {
            let mut out = b"x".to_vec();
            decimal(&mut out, value);
            assert_eq!(String::from_utf8(out), Ok(format!("x{value}")));
        }
    }

    #[test]
    fn numbers_have_fixed_widths() {
        for (value, expected) in [
            (0, *b"000"),
            (7, *b"007"),
            (200, *b"200"),
            (999, *b"999"),
            (1000, *b"999"),
        ] {
            assert_eq!(status(value), expected);
        }
        let mut year = [0; 4];
        four(&mut year, 2026);
        assert_eq!(&year, b"2026");
    }
}
