//! Reason why a request failed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiError {
    /// Status code of HTTP. It is not part of the body.
    #[serde(skip)]
    pub status: u16,
    /// Text for the operator: one line.
    pub error: String,
    /// Details of several lines, such as the findings in a configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

impl ApiError {
    /// Creates an error with a status code of HTTP and a text.
    pub fn new(status: u16, error: impl Into<String>) -> ApiError {
        ApiError {
            status,
            error: error.into(),
            details: None,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl std::error::Error for ApiError {}
