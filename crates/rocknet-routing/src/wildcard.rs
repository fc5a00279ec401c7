//! Patterns for values of header fields, cookies and query parameters, in which each star matches any run of bytes.
//! Matching takes linear time.

use memchr::memmem;

/// A pattern split at its stars.
#[derive(Debug, Clone)]
pub(super) struct Wildcard {
    /// Texts between the stars, in lower case if case is ignored. A single piece means that the pattern has no star.
    pieces: Box<[Box<[u8]>]>,
    /// True if the case of ASCII letters is ignored.
    folds_case: bool,
}

impl Wildcard {
    pub(super) fn new(pattern: &str, folds_case: bool) -> Wildcard {
        let lower = pattern.to_ascii_lowercase();
        let pattern = if folds_case { lower.as_str() } else { pattern };
        Wildcard {
            pieces: pattern.split('*').map(|piece| piece.as_bytes().into()).collect(),
            folds_case,
        }
    }

    /// Returns true for the empty pattern, which means that the field, cookie or parameter must be absent.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_empty()) && self.pieces.len() == 1
    }

    pub(super) fn matches(&self, value: &[u8]) -> bool {
        if self.folds_case && value.iter().any(u8::is_ascii_uppercase) {
            return self.matches_bytes(&value.to_ascii_lowercase());
        }
        self.matches_bytes(value)
    }

    /// Searches the middle pieces from left to right, each at its first occurrence. A later occurrence would leave less
    /// room for the rest of the pattern, so backtracking could not find further matches.
    fn matches_bytes(&self, value: &[u8]) -> bool {
        let [first, between @ .., last] = &*self.pieces else {
            return self.pieces.first().is_some_and(|only| **only == *value);
        };
        let open = value.strip_prefix(&**first).and_then(|rest| rest.strip_suffix(&**last));
        let Some(mut open) = open else { return false };
        for piece in between {
            let Some(at) = memmem::find(open, piece) else {
                return false;
            };
            open = &open[at + piece.len()..];
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_documented() {
        for (pattern, value, exact, folded) in [
            ("*", "", true, true),
            ("*", "anything / at all", true, true),
            ("", "", true, true),
            ("", "x", false, false),
            ("de*", "de-CH,de", true, true),
            ("de*", "DE", false, true),
            ("*bot*", "Googlebot/2.1", true, true),
            ("*Bot*", "googlebot", false, true),
            ("*bot*", "bo t", false, false),
            ("a*a", "a", false, false),
            ("a*a", "aa", true, true),
            ("a*b*c", "a-b-b-c", true, true),
            ("a*b*c", "a-c-b", false, false),
            ("**", "x", true, true),
            ("é*", "éa", true, true),
        ] {
            for (folds, expected) in [(false, exact), (true, folded)] {
                let got = Wildcard::new(pattern, folds).matches(value.as_bytes());
                assert_eq!(got, expected, "{pattern:?} on {value:?}, folding: {folds}");
            }
        }
        assert!(Wildcard::new("", true).is_empty() && !Wildcard::new("*", true).is_empty());
    }

    /// Matches by the definition, with backtracking.
    fn naive(pattern: &[u8], value: &[u8]) -> bool {
        match pattern.split_first() {
            None => value.is_empty(),
            Some((b'*', rest)) => (0..=value.len()).any(|run| naive(rest, &value[run..])),
            Some((byte, rest)) => value.first() == Some(byte) && naive(rest, &value[1..]),
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_naive_rule(pattern in "[ab*]{0,8}", value in "[ab]{0,10}") {
            let got = Wildcard::new(&pattern, false).matches(value.as_bytes());
            proptest::prop_assert_eq!(got, naive(pattern.as_bytes(), value.as_bytes()));
        }
    }
}
