//! Compares names in natural order: `img2` before `img10`, and without regard to case.

use std::cmp::Ordering;

/// Compares two names. The order is total: names that differ only in case or in leading zeros (`a01`, `A1`) are ordered
/// by their bytes.
pub fn compare(a: &str, b: &str) -> Ordering {
    NameParts(a).cmp(NameParts(b)).then_with(|| a.cmp(b))
}

/// Iterator over the parts of a name. A part is a single character or a run of digits, and names are compared part by
/// part.
struct NameParts<'a>(&'a str);

/// A character in lower case. If it stands for a number, also the length and the digits of the number, without leading
/// zeros.
///
/// Numbers use the character `0`, so that they sort where digits do and the order of the tuples is the natural order. A
/// longer number is greater, so numbers of any length are compared without overflow.
type NamePart<'a> = (char, usize, &'a str);

impl<'a> Iterator for NameParts<'a> {
    type Item = NamePart<'a>;

    fn next(&mut self) -> Option<NamePart<'a>> {
        let first = self.0.chars().next()?;
        if first.is_ascii_digit() {
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (run, rest) = self.0.split_at(end);
            self.0 = rest;
            let digits = run.trim_start_matches('0');
            Some(('0', digits.len(), digits))
        } else {
            self.0 = &self.0[first.len_utf8()..];
            // A few characters become two in lower case. Only the first of them is used: it suffices for sorting and
            // needs no buffer.
            Some((first.to_lowercase().next().unwrap_or(first), 0, ""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_in_natural_order() {
        let rows: [&[&str]; 7] = [
            &["img1", "img2", "img10", "img100"],
            &["a", "A1", "a2", "B1", "b2", "c"],
            &["chapter 2.txt", "chapter 10.txt"],
            &["img.png", "img2.png", "imga.png"],
            &["v1.2.9", "v1.2.10", "v1.10.0"],
            &[
                "1",
                "2",
                "18446744073709551615",
                "18446744073709551616",
                "99999999999999999999999",
            ],
            &["A01", "A1", "a001", "a01", "a1", "a1b", "a2"],
        ];
        for row in rows {
            for (at, a) in row.iter().enumerate() {
                for (other, b) in row.iter().enumerate() {
                    assert_eq!(compare(a, b), at.cmp(&other), "{a} against {b}");
                }
            }
        }
    }

    /// Generates short names from few letters, so that equal prefixes, equal numbers and differences in case are
    /// frequent.
    fn name() -> impl Strategy<Value = String> {
        prop_oneof!["[aAbİß0-2. ]{0,6}", ".{0,8}"]
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in name(), b in name(), c in name()) {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &b) == Ordering::Equal, a == b);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le(), "{:?} {:?} {:?}", a, b, c);
            }
        }
    }
}
