//! Natural order of names: `img2` before `img10`, upper and lower case together.

use std::cmp::Ordering;

/// Compares two names. The order is total: names that differ only in case or leading zeros (`a01`, `A1`) are ordered by
/// their bytes.
pub fn compare(a: &str, b: &str) -> Ordering {
    NameParts(a).cmp(NameParts(b)).then_with(|| a.cmp(b))
}

/// Iterator over the parts of a name that are compared one by one: a letter, or a run of digits.
struct NameParts<'a>(&'a str);

/// A letter, and for a number its length and its digits without leading zeros.
///
/// Numbers use the letter `0`, so they sort where digits do, and the order of the tuples is the natural order. Numbers
/// of any length compare without overflow.
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
            // One lower-case letter is enough for sorting, and needs no buffer for letters whose lower case has two.
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

    /// Short names of few letters, so that equal prefixes, numbers and cases are frequent.
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
