//! Parses quality values: the `q` parameter of `Accept` and similar fields (RFC 9110 §12.4.2).

/// Preference for a media type or coding; a greater number is preferred. 0 is a refusal, and 1 stands for a coding that
/// the field does not list but permits. Every other number is the qvalue in thousandths plus 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Weight(u16);

impl Weight {
    /// Weight of a refusal.
    pub(super) const REFUSED: Weight = Weight(0);
    /// Weight of a coding that is acceptable but not listed.
    pub(super) const TOLERATED: Weight = Weight(1);
    /// Weight of the qvalue 1.
    pub(super) const ONE: Weight = Weight(1001);

    /// Parses `q=` and a qvalue: `0` or `1` with up to three decimals, which must be zero after `1` (RFC 9110 §12.4.2).
    /// Returns `None` for other bytes.
    pub(super) fn parse_parameter(parameter: &[u8]) -> Option<Weight> {
        let (name, value) = parameter.split_at_checked(2)?;
        if !name.eq_ignore_ascii_case(b"q=") {
            return None;
        }
        let (whole, decimals) = match value {
            [whole @ (b'0' | b'1')] => (whole, &[][..]),
            [whole @ (b'0' | b'1'), b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
            _ => return None,
        };
        let mut thousandths = 0;
        for position in 0..3 {
            let digit = decimals.get(position).copied().unwrap_or(b'0');
            if !digit.is_ascii_digit() {
                return None;
            }
            thousandths = thousandths * 10 + u16::from(digit - b'0');
        }
        match (whole, thousandths) {
            (b'0', 0) => Some(Weight::REFUSED),
            (b'0', thousandths) => Some(Weight::of_thousandths(thousandths)),
            (_, 0) => Some(Weight::ONE),
            _ => None,
        }
    }

    /// Creates a weight of 1 to 1000 thousandths.
    pub(super) fn of_thousandths(thousandths: u16) -> Weight {
        Weight(thousandths + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_parsed_and_ordered() {
        // Parameter, and the expected weight; `None` if it is invalid.
        let rows: &[(&str, Option<Weight>)] = &[
            ("q=0", Some(Weight::REFUSED)),
            ("q=0.", Some(Weight::REFUSED)),
            ("q=0.000", Some(Weight::REFUSED)),
            ("q=0.001", Some(Weight::of_thousandths(1))),
            ("Q=0.5", Some(Weight::of_thousandths(500))),
            ("q=0.999", Some(Weight::of_thousandths(999))),
            ("q=1", Some(Weight::ONE)),
            ("q=1.000", Some(Weight::ONE)),
            ("q=1.001", None),
            ("q=0.0000", None),
            ("q=0.x", None),
            ("q=2", None),
            ("q=.5", None),
            ("q=-0", None),
            ("q= 1", None),
            ("q=", None),
            ("q", None),
            ("", None),
            ("x=1", None),
        ];
        for &(parameter, expected) in rows {
            assert_eq!(Weight::parse_parameter(parameter.as_bytes()), expected, "{parameter}");
        }
        assert!(Weight::REFUSED < Weight::TOLERATED && Weight::TOLERATED < Weight::of_thousandths(1));
        assert_eq!(Weight::of_thousandths(1000), Weight::ONE);
    }
}
