//! Checks of the requirements of a server on its machine.

use serde::{Deserialize, Serialize};

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DoctorVerdict {
    /// The requirement is met.
    Good,
    /// The server works, with a disadvantage.
    Fair,
    /// Something does not work.
    Bad,
    /// Not checked, for example because the check needs root.
    Skipped,
    /// A result that only a newer server knows.
    #[default]
    #[serde(other)]
    Other,
}

impl DoctorVerdict {
    /// Returns the name used in JSON and on terminals.
    pub fn name(self) -> &'static str {
        match self {
            DoctorVerdict::Good => "good",
            DoctorVerdict::Fair => "fair",
            DoctorVerdict::Bad => "bad",
            DoctorVerdict::Skipped => "skipped",
            DoctorVerdict::Other => "other",
        }
    }
}

/// A check with its result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DoctorCheck {
    /// Subject, such as `port`.
    pub check: String,
    /// Stable name of a finding, such as `port-in-use`; empty if the requirement is met.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// Result.
    pub verdict: DoctorVerdict,
    /// Description, with the remedy if there is one.
    pub found: String,
    /// File, address, name or account that the finding is about; `None` for the machine as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Command for a terminal of the server's machine that removes the cause, or shows more; `None` if no command does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// True if `rocknet doctor --fix` can remove the cause.
    #[serde(skip_serializing_if = "is_false")]
    pub fix: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}
