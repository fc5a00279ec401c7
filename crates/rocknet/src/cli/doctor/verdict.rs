//! Results of the checks of `rocknet doctor`.

use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Works.
    Good,
    /// Works, with a disadvantage.
    Fair,
    /// Does not work.
    Bad,
}

/// A check with its subject, its result, and a description that includes the remedy.
pub struct Check {
    pub subject: &'static str,
    pub verdict: Verdict,
    pub found: String,
    /// Command that removes the cause, or shows more; `None` if no command does.
    pub command: Option<String>,
}

impl Verdict {
    /// Returns the word for the verdict in text and JSON output.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Fair => "fair",
            Verdict::Bad => "bad",
        }
    }
}

impl Check {
    pub fn good(subject: &'static str, found: String) -> Check {
        Check {
            subject,
            verdict: Verdict::Good,
            found,
            command: None,
        }
    }

    pub fn fair(subject: &'static str, found: impl Into<String>) -> Check {
        Check {
            subject,
            verdict: Verdict::Fair,
            found: found.into(),
            command: None,
        }
    }

    pub fn bad(subject: &'static str, found: String) -> Check {
        Check {
            subject,
            verdict: Verdict::Bad,
            found,
            command: None,
        }
    }

    /// Adds the command that removes the cause, or shows more.
    pub fn command(self, command: impl Into<String>) -> Check {
        Check {
            command: Some(command.into()),
            ..self
        }
    }
}

impl From<&Check> for DoctorCheck {
    fn from(check: &Check) -> DoctorCheck {
        DoctorCheck {
            check: check.subject.to_owned(),
            verdict: match check.verdict {
                Verdict::Good => DoctorVerdict::Good,
                Verdict::Fair => DoctorVerdict::Fair,
                Verdict::Bad => DoctorVerdict::Bad,
            },
            found: check.found.clone(),
            command: check.command.clone(),
        }
    }
}
