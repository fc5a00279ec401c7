//! Relation between the requests of a translated condition and those of the original one.
//!
//! A condition under which requests are refused may be wider than the original, and one under which they pass may be
//! narrower. The opposite could admit requests that the original refuses.

use crate::condition::{Condition, Conditions};

/// Requests for which a translated condition holds, compared with the original condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accuracy {
    Exact,
    /// All requests of the original, and others.
    AtLeast,
    /// Only requests of the original, but not all of them.
    AtMost,
    /// Some requests of the original, and others.
    Unknown,
}

impl Accuracy {
    /// Returns the accuracy of a condition. `has_all`: true if it holds for all requests of the original. `has_only`:
    /// true if it holds for no other requests.
    pub fn of(has_all: bool, has_only: bool) -> Accuracy {
        match (has_all, has_only) {
            (true, true) => Accuracy::Exact,
            (true, false) => Accuracy::AtLeast,
            (false, true) => Accuracy::AtMost,
            (false, false) => Accuracy::Unknown,
        }
    }

    /// Returns true if the condition contains all requests of the original. A refusal needs this.
    pub fn has_all(self) -> bool {
        matches!(self, Accuracy::Exact | Accuracy::AtLeast)
    }

    /// Returns true if the condition contains only requests of the original. An exception needs this.
    pub fn has_only(self) -> bool {
        matches!(self, Accuracy::Exact | Accuracy::AtMost)
    }

    /// Returns the accuracy of two conditions together. It is the same whether both must hold, or one of them.
    pub fn and(self, other: Accuracy) -> Accuracy {
        Accuracy::of(self.has_all() && other.has_all(), self.has_only() && other.has_only())
    }

    pub fn negated_if(self, is_negated: bool) -> Accuracy {
        match is_negated {
            true => Accuracy::of(self.has_only(), self.has_all()),
            false => self,
        }
    }
}

/// Translated conditions of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tests {
    /// Alternatives under which the rule applies; empty if it never does.
    pub alternatives: Vec<Conditions>,
    pub accuracy: Accuracy,
    /// Difference from the original conditions, if there is one.
    pub difference: Option<&'static str>,
}

/// Difference of conditions about files, such as `RewriteCond %{REQUEST_FILENAME} -f`. Symbolic links differ too: they
/// count as the files and folders to which they lead.
pub(super) const OF_FILES: &str =
    "a path after the name of a script, and a name with a leading dot, do not count as files for RockNet";

impl Tests {
    pub fn exact(alternatives: Vec<Conditions>) -> Tests {
        Tests {
            alternatives,
            accuracy: Accuracy::Exact,
            difference: None,
        }
    }

    pub fn of(condition: Condition) -> Tests {
        Tests::exact(vec![vec![condition]])
    }

    /// Sets the accuracy, and also the difference if the accuracy is not exact.
    pub fn differing(self, accuracy: Accuracy, difference: &'static str) -> Tests {
        let is_exact = accuracy == Accuracy::Exact;
        Tests {
            accuracy,
            difference: (!is_exact).then_some(difference),
            ..self
        }
    }

    /// Returns the difference for the note of a rewrite or redirect; `None` if it is [`OF_FILES`]. For these rules,
    /// that difference concerns few paths and does no harm. A refusal is different: if it applies to fewer requests
    /// than in Apache, the import adds a note to it.
    pub fn visible_difference(&self) -> Option<&'static str> {
        self.difference.filter(|difference| *difference != OF_FILES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negation_of_more_is_less() {
        use Accuracy::{AtLeast, AtMost, Exact, Unknown};
        for (accuracy, negated) in [(Exact, Exact), (AtLeast, AtMost), (AtMost, AtLeast), (Unknown, Unknown)] {
            assert_eq!(accuracy.negated_if(true), negated);
        }
        assert_eq!(AtLeast.and(Exact), AtLeast);
        assert_eq!(AtLeast.and(AtMost), Unknown);
    }
}
