//! Interface of a running server for programs: requests and replies, and their form in HTTP.
//!
//! Requests are sent over HTTP, with JSON in both directions. [`ENDPOINTS`] lists them. A request that fails has an
//! [`ApiError`] as its reply.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::site::SiteSummary;
use crate::status::Status;

/// Maximum size in bytes of the body of a request.
pub const MAX_REQUEST_BODY: usize = 64 * 1024;

/// Media type of the metrics (OpenMetrics 1.0).
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Media type of all other bodies.
pub const JSON: &str = "application/json";

/// Request to a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Queries the state of the server; the reply is a [`Status`].
    Status,
    /// Queries the sites; the reply is a list of [`SiteSummary`].
    Sites,
    /// Reads the configuration again; the reply is [`Done`]. An invalid configuration changes nothing.
    Reload,
    /// Finishes the requests in progress and ends the server; the reply is [`Done`].
    Stop,
    /// Queries the metrics; the reply is text in the format of OpenMetrics.
    Metrics,
    /// Queries the level of the error log; the reply is a [`LogLevel`].
    LogLevel,
    /// Changes the level of the error log until the next reload; the reply is the new [`LogLevel`].
    SetLogLevel(Level),
}

/// Reply to a request that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// State of the server.
    Status(Box<Status>),
    /// Summaries of the sites, in the order of their names.
    Sites(Vec<SiteSummary>),
    /// Message about a completed or accepted instruction.
    Done(Done),
    /// Metrics as text. They are not sent as JSON.
    Metrics(String),
    /// Level of the error log.
    LogLevel(LogLevel),
}

/// Message about an instruction that was carried out, or that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Done {
    /// Text for the operator, without a newline at the end.
    pub message: String,
}

/// Level of the error log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLevel {
    /// Minimum severity of the messages that are written.
    pub level: Level,
}

/// Severity of a message in the error log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The server, or a site, does not work as configured.
    Error,
    /// The server works, but the operator should act.
    Warn,
    /// Milestones in the life of the server.
    Info,
    /// Details for the diagnosis of a problem.
    Debug,
    /// Every step.
    Trace,
}

impl Level {
    /// All levels, from the most to the least severe.
    pub const ALL: [Level; 5] = [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];

    /// Returns the word of the configuration and of JSON.
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }

    /// Returns the level with a name, or `None` if no level has it.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// Method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads, and changes nothing.
    Get,
    /// Gives an instruction.
    Post,
    /// Replaces a value.
    Put,
}

impl Method {
    /// Returns the name of HTTP.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }
}

/// Method and path of a kind of request.
#[derive(Debug)]
pub struct Endpoint {
    /// Method.
    pub method: Method,
    /// Path.
    pub path: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    parse: fn(&[u8]) -> Result<Request, ApiError>,
}

impl Endpoint {
    const fn new(
        method: Method,
        path: &'static str,
        summary: &'static str,
        parse: fn(&[u8]) -> Result<Request, ApiError>,
    ) -> Endpoint {
        Endpoint {
            method,
            path,
            summary,
            parse,
        }
    }

    /// Parses the body of a request.
    ///
    /// # Errors
    ///
    /// Fails with status 400 if the body is not valid for this endpoint.
    pub fn parse(&self, body: &[u8]) -> Result<Request, ApiError> {
        (self.parse)(body)
    }
}

const STATUS: Endpoint = Endpoint::new(
    Method::Get,
    "/api/status",
    "State and counters of the server.",
    |body| without_body(body, Request::Status),
);
const SITES: Endpoint = Endpoint::new(
    Method::Get,
    "/api/sites",
    "Sites with their URLs and handlers.",
    |body| without_body(body, Request::Sites),
);
const RELOAD: Endpoint = Endpoint::new(
    Method::Post,
    "/api/reload",
    "Reads the configuration again; an invalid one changes nothing.",
    |body| without_body(body, Request::Reload),
);
const STOP: Endpoint = Endpoint::new(
    Method::Post,
    "/api/stop",
    "Finishes the requests in progress and ends the server.",
    |body| without_body(body, Request::Stop),
);
const LOG_LEVEL: Endpoint = Endpoint::new(Method::Get, "/api/log-level", "Level of the error log.", |body| {
    without_body(body, Request::LogLevel)
});
const SET_LOG_LEVEL: Endpoint = Endpoint::new(
    Method::Put,
    "/api/log-level",
    "Changes the level of the error log until the next reload.",
    |body| {
        let LogLevel { level } = from_json(body)?;
        Ok(Request::SetLogLevel(level))
    },
);

const METRICS: Endpoint = Endpoint::new(
    Method::Get,
    "/metrics",
    "Metrics in the format of OpenMetrics.",
    |body| without_body(body, Request::Metrics),
);

/// All endpoints.
pub const ENDPOINTS: [&Endpoint; 7] = [&STATUS, &SITES, &RELOAD, &STOP, &METRICS, &LOG_LEVEL, &SET_LOG_LEVEL];

impl Request {
    /// Returns the endpoint of the request.
    pub fn endpoint(&self) -> &'static Endpoint {
        match self {
            Request::Status => &STATUS,
            Request::Sites => &SITES,
            Request::Reload => &RELOAD,
            Request::Stop => &STOP,
            Request::Metrics => &METRICS,
            Request::LogLevel => &LOG_LEVEL,
            Request::SetLogLevel(_) => &SET_LOG_LEVEL,
        }
    }

    /// Returns the body of the request as JSON, or `None` if the request has no body.
    pub fn body(&self) -> Option<String> {
        match *self {
            Request::SetLogLevel(level) => serde_json::to_string(&LogLevel { level }).ok(),
            Request::Status
            | Request::Sites
            | Request::Reload
            | Request::Stop
            | Request::Metrics
            | Request::LogLevel => None,
        }
    }
}

fn without_body(body: &[u8], request: Request) -> Result<Request, ApiError> {
    if body.is_empty() {
        Ok(request)
    } else {
        Err(ApiError::new(400, "this request has no body"))
    }
}

fn from_json<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::new(400, format!("the body is not valid: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_parsed_by_its_endpoint() {
        let requests = [
            Request::Status,
            Request::Sites,
            Request::Reload,
            Request::Stop,
            Request::Metrics,
            Request::LogLevel,
            Request::SetLogLevel(Level::Debug),
        ];
        for request in requests {
            let endpoint = request.endpoint();
            let body = request.body().unwrap_or_default();
            assert_eq!(endpoint.parse(body.as_bytes()), Ok(request));
            let listed = ENDPOINTS
                .iter()
                .filter(|other| other.path == endpoint.path && other.method == endpoint.method);
            assert_eq!(listed.count(), 1, "{}", endpoint.path);
        }
        assert_eq!(requests.len(), ENDPOINTS.len());
    }

    #[test]
    fn other_bodies_are_rejected() {
        for (endpoint, body) in [
            (&STATUS, "{}"),
            (&RELOAD, " "),
            (&SET_LOG_LEVEL, ""),
            (&SET_LOG_LEVEL, "{}"),
            (&SET_LOG_LEVEL, r#"{"level": "loud"}"#),
            (&SET_LOG_LEVEL, r#"{"level": "info"} {}"#),
        ] {
            let error = endpoint.parse(body.as_bytes()).unwrap_err();
            assert_eq!(error.status, 400, "{body:?}: {error}");
        }
    }

    #[test]
    fn levels_have_the_names_of_the_configuration() {
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.name()), Some(level));
            assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{level}\""));
        }
        assert_eq!(Level::from_name("Info"), None);
    }
}
