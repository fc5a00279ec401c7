//! Interface of a running server for programs: requests and replies, and their form in HTTP.
//!
//! Requests are sent over HTTP, with JSON in both directions. [`ENDPOINTS`] lists them. A request that fails has an
//! [`ApiError`] as its reply.

mod endpoint;
mod endpoints;
mod error;
mod permission;
mod reply;
mod request;

pub use crate::level::{Level, LogLevel, LogLevelChange};
pub use endpoint::{Endpoint, Input, Method};
pub use endpoints::ENDPOINTS;
pub use error::{ApiError, TAKEN_OVER};
pub use permission::{GrantedPermission, Permission};
pub use reply::{Done, Reply};
pub use request::Request;

/// Maximum size in bytes of the body of a request: a configuration of the maximum size (256 KiB), in which JSON escapes
/// half of the characters, and the other fields.
pub const MAX_REQUEST_BODY: usize = 512 * 1024;

/// Media type of the metrics (OpenMetrics 1.0).
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Media type of server-sent events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// Description of the API in OpenAPI 3.1, with a newline at the end.
pub const OPEN_API: &str = include_str!("../../../docs/openapi.json");

/// Media type of all other bodies.
pub const JSON: &str = "application/json";
