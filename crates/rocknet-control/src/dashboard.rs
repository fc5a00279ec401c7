//! Link to the dashboard of a running server, which the command `dashboard` prints.

use serde::{Deserialize, Serialize};

/// A link that signs one browser in to the dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DashboardLink {
    /// URL with a code that is valid once.
    pub url: String,
    /// Time in seconds until the code expires.
    pub lifetime_s: u64,
}
