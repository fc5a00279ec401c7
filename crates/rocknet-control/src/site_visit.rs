//! Visit of the server to one of its own sites.

use serde::{Deserialize, Serialize};

/// Result of a request that the server has sent to one of its own sites.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteVisit {
    /// URL of the request; empty if the site has no URL with a port.
    pub url: String,
    /// Status of the response; `None` after an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Error in place of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
