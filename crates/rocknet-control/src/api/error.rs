//! Reason why a request failed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Status 421 (RFC 9110 §15.5.20), with which a process replies after another process has taken over its sockets. The
/// client repeats the request over a new connection.
pub const TAKEN_OVER: u16 = 421;

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

    /// Creates the error of a process whose sockets another process has taken over.
    pub fn taken_over() -> ApiError {
        ApiError::new(
            TAKEN_OVER,
            "another process has taken over: repeat the request over a new connection",
        )
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl std::error::Error for ApiError {}
