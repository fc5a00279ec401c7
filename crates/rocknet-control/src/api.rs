//! Interface of a running server for programs: requests and replies, and their form in HTTP.
//!
//! Requests are sent over HTTP, with JSON in both directions. [`ENDPOINTS`] lists them. A request that fails has an
//! [`ApiError`] as its reply.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::certificate::CertificateSummary;
use crate::config::{Candidate, Change, Checked, ConfigFileName, ConfigText, Edits, Finding, Replacement, Saved, Undo};
use crate::dashboard::DashboardLink;
use crate::doctor::DoctorCheck;
use crate::explanation::{ExplainUrl, UrlExplanation};
pub use crate::level::{Level, LogLevel, LogLevelChange};
use crate::logs::LogFilter;
use crate::php::{PhpPoolName, PhpPoolSummary};
use crate::route::{RouteTraffic, SiteDetail, SiteName};
use crate::site::SiteSummary;
use crate::site_form::SiteForm;
use crate::status::Status;
use crate::upgrade::UpgradeOrder;
use crate::upstream::{UpstreamAddress, UpstreamSummary};

/// Maximum size in bytes of the body of a request: a configuration of the maximum size, in which JSON escapes half of
/// the characters.
pub const MAX_REQUEST_BODY: usize = 512 * 1024;

/// Media type of the metrics (OpenMetrics 1.0).
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Media type of server-sent events.
pub const EVENT_STREAM: &str = "text/event-stream";

/// Description of the API in OpenAPI 3.1, with a newline at the end.
pub const OPEN_API: &str = include_str!("../../../docs/openapi.json");

/// Media type of all other bodies.
pub const JSON: &str = "application/json";

/// Request to a running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Queries the state of the server; the reply is a [`Status`].
    Status,
    /// Queries the sites; the reply is a list of [`SiteSummary`].
    Sites,
    /// Queries a site with the effective settings of its routes; the reply is a [`SiteDetail`].
    Site(SiteName),
    /// Queries the counters of the routes with requests, the busiest first; the reply is a list of [`RouteTraffic`].
    Routes,
    /// Reads the configuration again; the reply is [`Done`]. An invalid configuration changes nothing.
    Reload,
    /// Finishes the requests in progress and ends the server; the reply is [`Done`].
    Stop,
    /// Starts a new process that takes over, and ends this one after its connections; the reply is [`Done`]. If the new
    /// process fails, this one continues.
    Upgrade(UpgradeOrder),
    /// Queries the metrics; the reply is text in the format of OpenMetrics.
    Metrics,
    /// Queries the level of the error log; the reply is a [`LogLevel`].
    LogLevel,
    /// Changes the level of the error log until the next reload; the reply is the new [`LogLevel`].
    SetLogLevel(LogLevelChange),
    /// Reads a file of the configuration; the reply is a [`ConfigText`].
    Config(ConfigFileName),
    /// Queries the form of a site; the reply is a [`SiteForm`].
    SiteForm(SiteName),
    /// Checks a text as the configuration; the reply is [`Checked`]. Nothing is changed.
    CheckConfig(Candidate),
    /// Checks the text that edits would produce; the reply is [`Checked`]. Nothing is changed.
    CheckEdits(Edits),
    /// Replaces the text of the configuration file and loads it; the reply is [`Saved`].
    ReplaceConfig(Replacement),
    /// Edits the configuration file and loads it; the reply is [`Saved`].
    EditConfig(Edits),
    /// Queries the changes of the configuration file by this API, the latest first; the reply is a list of [`Change`].
    ConfigHistory,
    /// Restores an earlier text of the configuration file and loads it; the reply is [`Saved`].
    UndoConfig(Undo),
    /// Queries the certificates; the reply is a list of [`CertificateSummary`].
    Certificates,
    /// Queries the upstreams; the reply is a list of [`UpstreamSummary`].
    Upstreams,
    /// Stops sending new clients to an upstream until the next start; the reply is [`Done`].
    DrainUpstream(UpstreamAddress),
    /// Ends the effect of [`Request::DrainUpstream`]; the reply is [`Done`].
    EnableUpstream(UpstreamAddress),
    /// Queries the pools of PHP that the server runs; the reply is a list of [`PhpPoolSummary`].
    PhpPools,
    /// Starts new processes in a pool of PHP. The old ones complete their requests. The reply is [`Done`].
    RestartPhpPool(PhpPoolName),
    /// Removes every file from the file cache; the reply is [`Done`].
    PurgeFileCache,
    /// Queries what a URL leads to; the reply is a [`UrlExplanation`].
    Explain(ExplainUrl),
    /// Queries the description of the API; the reply is [`OPEN_API`].
    OpenApi,
    /// Queries log lines; the reply is a stream of [`LogEvent`](crate::logs::LogEvent) as server-sent events.
    Logs(LogFilter),
    /// Checks the requirements of the server on its machine; the reply is a list of [`DoctorCheck`].
    Doctor,
    /// Creates a link that signs a browser in to the dashboard; the reply is a [`DashboardLink`].
    DashboardLink,
}

/// Reply to a request that succeeded.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// State of the server.
    Status(Box<Status>),
    /// Summaries of the sites, in the order of their names.
    Sites(Vec<SiteSummary>),
    /// A site with its routes.
    Site(Box<SiteDetail>),
    /// Counters of routes.
    Routes(Vec<RouteTraffic>),
    /// Message about a completed or accepted instruction.
    Done(Done),
    /// Metrics as text. They are not sent as JSON.
    Metrics(String),
    /// Level of the error log.
    LogLevel(LogLevel),
    /// File of the configuration.
    Config(Box<ConfigText>),
    /// Form of a site.
    SiteForm(Box<SiteForm>),
    /// Result of a check.
    Checked(Checked),
    /// Result of a change of the configuration.
    Saved(Saved),
    /// Changes of the configuration, the latest first.
    ConfigHistory(Vec<Change>),
    /// Certificates, in the order of the sites.
    Certificates(Vec<CertificateSummary>),
    /// Upstreams, in the order of their addresses.
    Upstreams(Vec<UpstreamSummary>),
    /// Pools of PHP.
    PhpPools(Vec<PhpPoolSummary>),
    /// Checks of the requirements of the server.
    Doctor(Vec<DoctorCheck>),
    /// Link to the dashboard.
    DashboardLink(DashboardLink),
    /// Explanation of a URL.
    Explanation(Box<UrlExplanation>),
    /// Description of the API, which is JSON already.
    OpenApi(&'static str),
}

/// Message about an instruction that was carried out, or that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Done {
    /// Text for the operator, without a newline at the end.
    pub message: String,
    /// Warnings, such as changed keys that take effect only after a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

impl Done {
    /// Creates a message without warnings.
    pub fn new(message: impl Into<String>) -> Done {
        Done {
            message: message.into(),
            findings: Vec::new(),
        }
    }
}

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

/// Permission of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Permits requests that change nothing and whose replies contain no secrets.
    Read,
    /// Permits every request.
    Full,
}

/// Variable parts of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Input<'i> {
    /// Query of the target, without the question mark.
    pub query: &'i [u8],
    /// Body.
    pub body: &'i [u8],
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
    /// Permission that the client needs.
    pub permission: Permission,
    parse: fn(&Input<'_>) -> Result<Request, ApiError>,
}

impl Endpoint {
    const fn new(
        method: Method,
        path: &'static str,
        summary: &'static str,
        parse: fn(&Input<'_>) -> Result<Request, ApiError>,
    ) -> Endpoint {
        Endpoint {
            method,
            path,
            summary,
            permission: match method {
                Method::Get => Permission::Read,
                Method::Post | Method::Put => Permission::Full,
            },
            parse,
        }
    }

    /// Requires full permission, because the reply may contain secrets.
    const fn secret(self) -> Endpoint {
        Endpoint {
            permission: Permission::Full,
            ..self
        }
    }

    /// Parses a request.
    ///
    /// # Errors
    ///
    /// Fails with status 400 if the query or the body is not valid for this endpoint.
    pub fn parse(&self, input: &Input<'_>) -> Result<Request, ApiError> {
        (self.parse)(input)
    }
}

const STATUS: Endpoint = Endpoint::new(
    Method::Get,
    "/api/status",
    "State and counters of the server.",
    |input| without_body(input, Request::Status),
);
const SITES: Endpoint = Endpoint::new(
    Method::Get,
    "/api/sites",
    "Sites with their URLs, handlers and routes.",
    |input| without_body(input, Request::Sites),
);
const SITE: Endpoint = Endpoint::new(
    Method::Get,
    "/api/site",
    "The site in `name` with its routes and their effective settings.",
    |input| {
        let name = SiteName::from_query(input.query).map_err(|error| ApiError::new(400, error))?;
        without_body(input, Request::Site(name))
    },
)
.secret();
const ROUTES: Endpoint = Endpoint::new(
    Method::Get,
    "/api/routes",
    "Counters of the routes that have had requests, the busiest first.",
    |input| without_body(input, Request::Routes),
);
const RELOAD: Endpoint = Endpoint::new(
    Method::Post,
    "/api/reload",
    "Reads the configuration again; an invalid one changes nothing.",
    |input| without_body(input, Request::Reload),
);
const STOP: Endpoint = Endpoint::new(
    Method::Post,
    "/api/stop",
    "Finishes the requests in progress and ends the server.",
    |input| without_body(input, Request::Stop),
);
const UPGRADE: Endpoint = Endpoint::new(
    Method::Post,
    "/api/upgrade",
    "Starts a new process that takes over without a gap.",
    |input| {
        let order = match input.body {
            [] => UpgradeOrder::default(),
            _ => from_json(input)?,
        };
        order.check().map_err(|error| ApiError::new(400, error))?;
        Ok(Request::Upgrade(order))
    },
);
const LOG_LEVEL: Endpoint = Endpoint::new(Method::Get, "/api/log-level", "Level of the error log.", |input| {
    without_body(input, Request::LogLevel)
});
const SET_LOG_LEVEL: Endpoint = Endpoint::new(
    Method::Put,
    "/api/log-level",
    "Changes the level of the error log until the next reload.",
    |input| {
        let change: LogLevelChange = from_json(input)?;
        change.check().map_err(|error| ApiError::new(400, error))?;
        Ok(Request::SetLogLevel(change))
    },
);

const METRICS: Endpoint = Endpoint::new(
    Method::Get,
    "/metrics",
    "Metrics in the format of OpenMetrics.",
    |input| without_body(input, Request::Metrics),
);

const CONFIG: Endpoint = Endpoint::new(
    Method::Get,
    "/api/config",
    "Text of the configuration file, or of the included file in `file`, with its revision.",
    |input| {
        let file = ConfigFileName::from_query(input.query).map_err(|error| ApiError::new(400, error))?;
        without_body(input, Request::Config(file))
    },
)
.secret();
const SITE_FORM: Endpoint = Endpoint::new(
    Method::Get,
    "/api/config/site",
    "Common keys of the site in `name` as fields of a form, with their documentation.",
    |input| {
        let name = SiteName::from_query(input.query).map_err(|error| ApiError::new(400, error))?;
        without_body(input, Request::SiteForm(name))
    },
)
.secret();
const REPLACE_CONFIG: Endpoint = Endpoint::new(
    Method::Put,
    "/api/config",
    "Checks, writes and loads a new text; nothing changes if it cannot be used.",
    |input| from_json(input).map(Request::ReplaceConfig),
);
const CHECK_CONFIG: Endpoint = Endpoint::new(
    Method::Post,
    "/api/config/check",
    "Checks a text as the configuration, without a change.",
    |input| from_json(input).map(Request::CheckConfig),
);
const CHECK_EDITS: Endpoint = Endpoint::new(
    Method::Post,
    "/api/config/check-edits",
    "Checks the text that edits would produce, without a change.",
    |input| from_json(input).map(Request::CheckEdits),
);
const EDIT_CONFIG: Endpoint = Endpoint::new(
    Method::Post,
    "/api/config/edit",
    "Edits the configuration file and loads it; comments and order are kept.",
    |input| {
        let edits: Edits = from_json(input)?;
        if edits.edits.is_empty() {
            return Err(ApiError::new(400, "`edits` is empty"));
        }
        Ok(Request::EditConfig(edits))
    },
);
const CONFIG_HISTORY: Endpoint = Endpoint::new(
    Method::Get,
    "/api/config/history",
    "Changes of the configuration file by this API, the latest first, each with its diff.",
    |input| without_body(input, Request::ConfigHistory),
)
.secret();
const UNDO_CONFIG: Endpoint = Endpoint::new(
    Method::Post,
    "/api/config/undo",
    "Restores the text of the configuration file before a change, and loads it.",
    |input| from_json(input).map(Request::UndoConfig),
);

const CERTIFICATES: Endpoint = Endpoint::new(
    Method::Get,
    "/api/certificates",
    "Certificates of the sites, with issuer and end of validity.",
    |input| without_body(input, Request::Certificates),
);
const UPSTREAMS: Endpoint = Endpoint::new(
    Method::Get,
    "/api/upstreams",
    "Upstreams with their states and requests in progress.",
    |input| without_body(input, Request::Upstreams),
);
const DRAIN_UPSTREAM: Endpoint = Endpoint::new(
    Method::Post,
    "/api/upstreams/drain",
    "Sends no new clients to an upstream until it is enabled or the server is started again.",
    |input| from_json(input).map(Request::DrainUpstream),
);
const ENABLE_UPSTREAM: Endpoint = Endpoint::new(
    Method::Post,
    "/api/upstreams/enable",
    "Sends new clients to a drained upstream again.",
    |input| from_json(input).map(Request::EnableUpstream),
);
const PHP_POOLS: Endpoint = Endpoint::new(
    Method::Get,
    "/api/php",
    "Pools of PHP that the server runs, with their processes and restarts.",
    |input| without_body(input, Request::PhpPools),
);
const RESTART_PHP_POOL: Endpoint = Endpoint::new(
    Method::Post,
    "/api/php/restart",
    "Starts new processes in a pool of PHP; the old ones complete their requests.",
    |input| from_json(input).map(Request::RestartPhpPool),
);
const PURGE_FILE_CACHE: Endpoint = Endpoint::new(
    Method::Post,
    "/api/cache/purge",
    "Removes every file from the file cache.",
    |input| without_body(input, Request::PurgeFileCache),
);

const DOCTOR: Endpoint = Endpoint::new(
    Method::Get,
    "/api/doctor",
    "Checks of the machine and the configuration, each with its remedy.",
    |input| without_body(input, Request::Doctor),
);
const EXPLAIN: Endpoint = Endpoint::new(
    Method::Get,
    "/api/explain",
    "Site, route and effective settings of the URL in `url`, and what it leads to.",
    |input| {
        let url = ExplainUrl::from_query(input.query).map_err(|error| ApiError::new(400, error))?;
        without_body(input, Request::Explain(url))
    },
)
.secret();
const OPEN_API_DOCUMENT: Endpoint = Endpoint::new(
    Method::Get,
    "/api/openapi.json",
    "This description of the API.",
    |input| without_body(input, Request::OpenApi),
);
const LOGS: Endpoint = Endpoint::new(
    Method::Get,
    "/api/logs",
    "Recent lines of the error log and, with `follow=true`, new lines of all logs, as server-sent events.",
    |input| {
        let filter = LogFilter::from_query(input.query).map_err(|error| ApiError::new(400, error))?;
        without_body(input, Request::Logs(filter))
    },
)
.secret();

const DASHBOARD_LINK: Endpoint = Endpoint::new(
    Method::Post,
    "/api/dashboard/link",
    "Creates a link that signs one browser in to the dashboard.",
    |input| without_body(input, Request::DashboardLink),
);

/// All endpoints.
pub const ENDPOINTS: [&Endpoint; 30] = [
    &STATUS,
    &SITES,
    &SITE,
    &ROUTES,
    &RELOAD,
    &STOP,
    &UPGRADE,
    &METRICS,
    &LOG_LEVEL,
    &SET_LOG_LEVEL,
    &CONFIG,
    &SITE_FORM,
    &REPLACE_CONFIG,
    &CHECK_CONFIG,
    &CHECK_EDITS,
    &EDIT_CONFIG,
    &CONFIG_HISTORY,
    &UNDO_CONFIG,
    &CERTIFICATES,
    &UPSTREAMS,
    &DRAIN_UPSTREAM,
    &ENABLE_UPSTREAM,
    &PHP_POOLS,
    &RESTART_PHP_POOL,
    &PURGE_FILE_CACHE,
    &DOCTOR,
    &EXPLAIN,
    &OPEN_API_DOCUMENT,
    &LOGS,
    &DASHBOARD_LINK,
];

impl Request {
    /// Returns the endpoint of the request.
    pub fn endpoint(&self) -> &'static Endpoint {
        match self {
            Request::Status => &STATUS,
            Request::Sites => &SITES,
            Request::Site(_) => &SITE,
            Request::Routes => &ROUTES,
            Request::Reload => &RELOAD,
            Request::Stop => &STOP,
            Request::Upgrade(_) => &UPGRADE,
            Request::Metrics => &METRICS,
            Request::LogLevel => &LOG_LEVEL,
            Request::SetLogLevel(_) => &SET_LOG_LEVEL,
            Request::Config(_) => &CONFIG,
            Request::SiteForm(_) => &SITE_FORM,
            Request::CheckConfig(_) => &CHECK_CONFIG,
            Request::CheckEdits(_) => &CHECK_EDITS,
            Request::ReplaceConfig(_) => &REPLACE_CONFIG,
            Request::EditConfig(_) => &EDIT_CONFIG,
            Request::ConfigHistory => &CONFIG_HISTORY,
            Request::UndoConfig(_) => &UNDO_CONFIG,
            Request::Certificates => &CERTIFICATES,
            Request::Upstreams => &UPSTREAMS,
            Request::DrainUpstream(_) => &DRAIN_UPSTREAM,
            Request::EnableUpstream(_) => &ENABLE_UPSTREAM,
            Request::PhpPools => &PHP_POOLS,
            Request::RestartPhpPool(_) => &RESTART_PHP_POOL,
            Request::PurgeFileCache => &PURGE_FILE_CACHE,
            Request::Doctor => &DOCTOR,
            Request::Explain(_) => &EXPLAIN,
            Request::OpenApi => &OPEN_API_DOCUMENT,
            Request::Logs(_) => &LOGS,
            Request::DashboardLink => &DASHBOARD_LINK,
        }
    }

    /// Returns the body of the request as JSON, or `None` if the request has no body.
    pub fn body(&self) -> Option<String> {
        match self {
            Request::SetLogLevel(change) => to_json(change),
            Request::CheckConfig(candidate) => to_json(candidate),
            Request::ReplaceConfig(replacement) => to_json(replacement),
            Request::CheckEdits(edits) | Request::EditConfig(edits) => to_json(edits),
            Request::UndoConfig(undo) => to_json(undo),
            Request::Upgrade(order) => to_json(order),
            Request::DrainUpstream(address) | Request::EnableUpstream(address) => to_json(address),
            Request::RestartPhpPool(pool) => to_json(pool),
            Request::Status
            | Request::Sites
            | Request::Site(_)
            | Request::Routes
            | Request::Reload
            | Request::Stop
            | Request::Metrics
            | Request::LogLevel
            | Request::Config(_)
            | Request::SiteForm(_)
            | Request::ConfigHistory
            | Request::Certificates
            | Request::Upstreams
            | Request::PhpPools
            | Request::PurgeFileCache
            | Request::Doctor
            | Request::Explain(_)
            | Request::OpenApi
            | Request::Logs(_)
            | Request::DashboardLink => None,
        }
    }

    /// Returns the query of the request, or `None` if it has none.
    pub fn query(&self) -> Option<String> {
        match self {
            Request::Logs(filter) => Some(filter.query()),
            Request::Explain(url) => Some(url.query()),
            Request::Site(name) => Some(name.query()),
            Request::Config(file) => file.query(),
            Request::SiteForm(site) => Some(site.query()),
            _ => None,
        }
    }
}

fn without_body(input: &Input<'_>, request: Request) -> Result<Request, ApiError> {
    if input.body.is_empty() {
        Ok(request)
    } else {
        Err(ApiError::new(400, "this request has no body"))
    }
}

fn to_json(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}

fn from_json<'b, T: Deserialize<'b>>(input: &Input<'b>) -> Result<T, ApiError> {
    serde_json::from_slice(input.body).map_err(|error| ApiError::new(400, format!("the body is not valid: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Edit;

    #[test]
    fn every_request_is_parsed_by_its_endpoint() {
        let requests = [
            Request::Status,
            Request::Sites,
            Request::Site(SiteName { name: "a".into() }),
            Request::Routes,
            Request::Reload,
            Request::Stop,
            Request::Upgrade(UpgradeOrder {
                binary: Some("/a".into()),
                timeout: Some(3),
            }),
            Request::Metrics,
            Request::LogLevel,
            Request::SetLogLevel(LogLevelChange::new(Level::Debug)),
            Request::Config(ConfigFileName {
                file: Some("sites/a b.toml".into()),
            }),
            Request::SiteForm(SiteName { name: "a.test".into() }),
            Request::CheckConfig(Candidate {
                text: "a".into(),
                file: Some("b".into()),
            }),
            Request::ReplaceConfig(Replacement {
                text: "a".into(),
                revision: "b".into(),
                file: None,
            }),
            Request::EditConfig(Edits {
                edits: vec![
                    Edit::Set {
                        path: vec!["a".into()],
                        value: "1".into(),
                    },
                    Edit::Remove { path: vec!["a".into()] },
                    Edit::AddSite {
                        name: "a".into(),
                        root: "b".into(),
                    },
                    Edit::CopySite {
                        from: "a".into(),
                        to: "b".into(),
                    },
                    Edit::RenameSite {
                        from: "a".into(),
                        to: "b".into(),
                    },
                    Edit::SetField {
                        site: "a".into(),
                        field: "root".into(),
                        text: "b".into(),
                    },
                ],
                ..Edits::default()
            }),
            Request::ConfigHistory,
            Request::UndoConfig(Undo::default()),
            Request::Certificates,
            Request::Upstreams,
            Request::DrainUpstream(UpstreamAddress { address: "a".into() }),
            Request::EnableUpstream(UpstreamAddress { address: "a".into() }),
            Request::PhpPools,
            Request::RestartPhpPool(PhpPoolName { name: "8.2".into() }),
            Request::PurgeFileCache,
            Request::Doctor,
            Request::Explain(ExplainUrl { url: "/".into() }),
            Request::OpenApi,
            Request::Logs(LogFilter::default()),
            Request::CheckEdits(Edits {
                edits: Vec::new(),
                revision: Some("a".into()),
                file: Some("b".into()),
            }),
            Request::DashboardLink,
        ];
        assert_eq!(requests.len(), ENDPOINTS.len());
        for request in requests {
            let endpoint = request.endpoint();
            let (query, body) = (request.query().unwrap_or_default(), request.body().unwrap_or_default());
            let input = Input {
                query: query.as_bytes(),
                body: body.as_bytes(),
            };
            assert_eq!(endpoint.parse(&input), Ok(request));
            let listed = ENDPOINTS
                .iter()
                .filter(|other| other.path == endpoint.path && other.method == endpoint.method);
            assert_eq!(listed.count(), 1, "{}", endpoint.path);
        }
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
            (&EDIT_CONFIG, r#"{"edits": []}"#),
            (&UPGRADE, r#"{"timeout": 0}"#),
            (&UPGRADE, r#"{"timeout": 51}"#),
        ] {
            let input = Input {
                body: body.as_bytes(),
                ..Input::default()
            };
            let error = endpoint.parse(&input).unwrap_err();
            assert_eq!(error.status, 400, "{body:?}: {error}");
        }
    }
}
