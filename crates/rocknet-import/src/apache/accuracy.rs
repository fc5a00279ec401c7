//! Relation between the requests of a translated condition and those of the original one.
//!
//! A condition under which requests are refused may be wider than the original, and one under which they pass may be
//! narrower. The opposite could admit requests that the original refuses.

use crate::condition::{Condition, Conditions};

/// Requests for which a translated condition holds, compared with the original condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accuracy {
    /// The same requests as the original.
    Exact,
    /// All requests of the original, and possibly others.
    MayAdd,
    /// Only requests of the original, but possibly not all of them.
    MayMiss,
    /// Requests of the original, but possibly not all of them, and possibly others.
    MayAddAndMiss,
}

impl Accuracy {
    /// Returns the accuracy of a condition. `misses_none`: true if it holds for all requests of the original.
    /// `adds_none`: true if it holds for no other requests.
    pub fn of(misses_none: bool, adds_none: bool) -> Accuracy {
        match (misses_none, adds_none) {
            (true, true) => Accuracy::Exact,
            (true, false) => Accuracy::MayAdd,
            (false, true) => Accuracy::MayMiss,
            (false, false) => Accuracy::MayAddAndMiss,
        }
    }

    /// Returns true if the condition holds for all requests of the original. A refusal needs this.
    pub fn misses_none(self) -> bool {
        matches!(self, Accuracy::Exact | Accuracy::MayAdd)
    }

    /// Returns true if the condition holds for no other requests than the original. An exception needs this.
    pub fn adds_none(self) -> bool {
        matches!(self, Accuracy::Exact | Accuracy::MayMiss)
    }

    /// Returns the accuracy of two conditions together. It is the same whether both must hold, or one of them.
    pub fn and(self, other: Accuracy) -> Accuracy {
        Accuracy::of(
            self.misses_none() && other.misses_none(),
            self.adds_none() && other.adds_none(),
        )
    }

    /// Returns the accuracy of the negated condition if `is_negated`. A condition that holds for more requests than the
    /// original excludes more of them when negated, so `MayAdd` becomes `MayMiss`, and the reverse.
    pub fn negated_if(self, is_negated: bool) -> Accuracy {
        match is_negated {
            true => Accuracy::of(self.adds_none(), self.misses_none()),
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
        use Accuracy::{Exact, MayAdd, MayAddAndMiss, MayMiss};
        for (accuracy, negated) in [
            (Exact, Exact),
            (MayAdd, MayMiss),
            (MayMiss, MayAdd),
            (MayAddAndMiss, MayAddAndMiss),
        ] {
            assert_eq!(accuracy.negated_if(true), negated);
        }
        assert_eq!(MayAdd.and(Exact), MayAdd);
        assert_eq!(MayAdd.and(MayMiss), MayAddAndMiss);
    }
}
