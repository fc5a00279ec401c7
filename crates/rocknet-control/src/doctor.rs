//! Results of the checks of `rocknet doctor`.

use serde::{Deserialize, Serialize};

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Works.
    Good,
    /// Works, with a disadvantage.
    Fair,
    /// Does not work.
    Bad,
    /// A result that only a newer server knows.
    #[default]
    #[serde(other)]
    Other,
}

impl Verdict {
    /// Returns the name used in JSON and on terminals.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Fair => "fair",
            Verdict::Bad => "bad",
            Verdict::Other => "other",
        }
    }
}

/// A check with its subject, its result, and a description that includes the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Check {
    /// Subject, such as `port`.
    #[serde(rename = "check")]
    pub subject: String,
    /// Result.
    pub verdict: Verdict,
    /// Description, with the remedy if there is one.
    pub found: String,
}

/// Results of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Diagnosis {
    /// Checks in the order of their execution.
    pub checks: Vec<Check>,
}

impl Check {
    /// Creates a check that found no problem.
    pub fn good(subject: &str, found: impl Into<String>) -> Check {
        Check::new(subject, Verdict::Good, found)
    }

    /// Creates a check that found a disadvantage.
    pub fn fair(subject: &str, found: impl Into<String>) -> Check {
        Check::new(subject, Verdict::Fair, found)
    }

    /// Creates a check that found a problem.
    pub fn bad(subject: &str, found: impl Into<String>) -> Check {
        Check::new(subject, Verdict::Bad, found)
    }

    fn new(subject: &str, verdict: Verdict, found: impl Into<String>) -> Check {
        Check {
            subject: subject.to_owned(),
            verdict,
            found: found.into(),
        }
    }
}
