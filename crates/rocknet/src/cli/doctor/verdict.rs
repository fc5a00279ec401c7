//! Results of the checks of `rocknet doctor`.

use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};

/// A check with its subject, its result, and a description that includes the remedy.
pub struct Check {
    pub subject: &'static str,
    /// Stable name of the finding, for programs; empty if the requirement is met.
    pub code: &'static str,
    pub verdict: DoctorVerdict,
    /// Description of the result, with the remedy of a problem.
    pub found: String,
    /// File, address, name or account that the finding is about.
    pub place: Option<String>,
    /// Command that removes the cause, or shows more; `None` if no command does.
    pub command: Option<String>,
    /// Repair that `--fix` offers; `None` if the operator has to decide what to do.
    pub fix: Option<Fix>,
}

/// A repair that `rocknet doctor --fix` offers.
pub struct Fix {
    /// The repair in the imperative, such as "add the line … to /etc/hosts".
    pub action: String,
    /// Carries out the repair. Returns what was done, or the reason why it failed.
    pub apply: Box<dyn Fn() -> Result<String, String>>,
}

impl Check {
    /// Creates the result of a requirement that is met.
    pub fn good(subject: &'static str, found: impl Into<String>) -> Check {
        Check::new(subject, "", DoctorVerdict::Good, found.into())
    }

    /// Creates the result of a requirement that is not met, but without which the server works.
    pub fn fair(subject: &'static str, code: &'static str, found: impl Into<String>) -> Check {
        Check::new(subject, code, DoctorVerdict::Fair, found.into())
    }

    /// Creates the result of a requirement that is not met, so that something does not work.
    pub fn bad(subject: &'static str, code: &'static str, found: impl Into<String>) -> Check {
        Check::new(subject, code, DoctorVerdict::Bad, found.into())
    }

    /// Creates the result of a check that was not carried out. `why`: the reason, and what would make it possible.
    pub fn skipped(subject: &'static str, code: &'static str, why: impl Into<String>) -> Check {
        Check::new(subject, code, DoctorVerdict::Skipped, why.into())
    }

    fn new(subject: &'static str, code: &'static str, verdict: DoctorVerdict, found: String) -> Check {
        Check {
            subject,
            code,
            verdict,
            found,
            place: None,
            command: None,
            fix: None,
        }
    }

    /// Adds the file, address, name or account that the finding is about.
    pub fn place(self, place: &impl ToString) -> Check {
        Check {
            place: Some(place.to_string()),
            ..self
        }
    }

    /// Adds the command that removes the cause, or shows more.
    pub fn command(self, command: impl Into<String>) -> Check {
        Check {
            command: Some(command.into()),
            ..self
        }
    }

    /// Adds the repair that `--fix` offers.
    pub fn fix(self, action: impl Into<String>, apply: impl Fn() -> Result<String, String> + 'static) -> Check {
        let fix = Fix {
            action: action.into(),
            apply: Box::new(apply),
        };
        Check { fix: Some(fix), ..self }
    }
}

impl From<&Check> for DoctorCheck {
    fn from(check: &Check) -> DoctorCheck {
        DoctorCheck {
            check: check.subject.to_owned(),
            code: check.code.to_owned(),
            verdict: check.verdict,
            found: check.found.clone(),
            place: check.place.clone(),
            command: check.command.clone(),
            fix: check.fix.is_some(),
        }
    }
}
