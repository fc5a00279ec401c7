//! Purges of stored responses (`cache` of sites and routes).

use serde::{Deserialize, Serialize};

/// Stored responses to drop. Without any member, all are dropped. At most one of `url`, `prefix` and `tag` may be set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ResponsePurge {
    /// URL whose responses are dropped, such as `https://example.com/page`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Beginning of the URLs whose responses are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Tag of the responses that are dropped, as the application sent it in `Cache-Tag` or `Surrogate-Key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Name of the site whose responses are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}
