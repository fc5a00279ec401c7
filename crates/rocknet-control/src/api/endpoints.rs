//! Endpoints of the control API, and the request that each of them parses.
//!
//! To add an endpoint, define a constant here, and list it in [`ENDPOINTS`] and in [`Request::endpoint`]. Define its
//! request in `request.rs`, its reply in `reply.rs`, and the schema of the reply in `openapi.rs`.

use super::endpoint::{Endpoint, Input, Method, from_json, without_body};
use super::error::ApiError;
use super::request::Request;
use crate::config::{ConfigFileName, Edits, MAX_EDITS};
use crate::explanation::ExplainUrl;
use crate::level::LogLevelChange;
use crate::logs::LogFilter;
use crate::route::SiteName;
use crate::upgrade::UpgradeOrder;

/// All endpoints.
pub const ENDPOINTS: [&Endpoint; 41] = [
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
    &CONFIG_STATE,
    &SITE_FORM,
    &SERVER_FORM,
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
    &START_PHP_POOL,
    &STOP_PHP_POOL,
    &PURGE_FILE_CACHE,
    &PURGE_RESPONSES,
    &BANS,
    &ADD_BAN,
    &LIFT_BAN,
    &OFFENDERS,
    &DOCTOR,
    &EXPLAIN,
    &VISIT_SITE,
    &PERMISSION,
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
            Request::ConfigState => &CONFIG_STATE,
            Request::SiteForm(_) => &SITE_FORM,
            Request::ServerForm => &SERVER_FORM,
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
            Request::StartPhpPool(_) => &START_PHP_POOL,
            Request::StopPhpPool(_) => &STOP_PHP_POOL,
            Request::PurgeFileCache => &PURGE_FILE_CACHE,
            Request::PurgeResponses(_) => &PURGE_RESPONSES,
            Request::Bans => &BANS,
            Request::AddBan(_) => &ADD_BAN,
            Request::LiftBan(_) => &LIFT_BAN,
            Request::Offenders => &OFFENDERS,
            Request::Doctor => &DOCTOR,
            Request::Explain(_) => &EXPLAIN,
            Request::VisitSite(_) => &VISIT_SITE,
            Request::Permission => &PERMISSION,
            Request::OpenApi => &OPEN_API_DOCUMENT,
            Request::Logs(_) => &LOGS,
            Request::DashboardLink => &DASHBOARD_LINK,
        }
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
const CONFIG_STATE: Endpoint = Endpoint::new(
    Method::Get,
    "/api/config/state",
    "Differences between the files of the configuration and what the server has loaded, without their text.",
    |input| without_body(input, Request::ConfigState),
);
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
const SERVER_FORM: Endpoint = Endpoint::new(
    Method::Get,
    "/api/config/server",
    "Common keys of the server as fields of a form, with their documentation.",
    |input| without_body(input, Request::ServerForm),
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
    |input| edits(input).map(Request::CheckEdits),
);
const EDIT_CONFIG: Endpoint = Endpoint::new(
    Method::Post,
    "/api/config/edit",
    "Edits the configuration file and loads it; comments and order are kept.",
    |input| {
        let edits = edits(input)?;
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
const START_PHP_POOL: Endpoint = Endpoint::new(
    Method::Post,
    "/api/php/start",
    "Starts a pool of PHP that was stopped or has failed.",
    |input| from_json(input).map(Request::StartPhpPool),
);
const STOP_PHP_POOL: Endpoint = Endpoint::new(
    Method::Post,
    "/api/php/stop",
    "Ends the processes of a pool of PHP once their requests are complete, until it is started again.",
    |input| from_json(input).map(Request::StopPhpPool),
);
const PURGE_FILE_CACHE: Endpoint = Endpoint::new(
    Method::Post,
    "/api/cache/purge",
    "Removes every file from the file cache.",
    |input| without_body(input, Request::PurgeFileCache),
);
const PURGE_RESPONSES: Endpoint = Endpoint::new(
    Method::Post,
    "/api/responses/purge",
    "Drops stored responses: those of a URL, of a URL prefix, with a tag, of a site, or all.",
    |input| from_json(input).map(Request::PurgeResponses),
);

const BANS: Endpoint = Endpoint::new(
    Method::Get,
    "/api/bans",
    "Banned clients and networks, and the files of ban lists.",
    |input| without_body(input, Request::Bans),
);
const ADD_BAN: Endpoint = Endpoint::new(Method::Post, "/api/bans/add", "Bans an address or network.", |input| {
    from_json(input).map(Request::AddBan)
});
const LIFT_BAN: Endpoint = Endpoint::new(
    Method::Post,
    "/api/bans/lift",
    "Lifts the ban of an address or network.",
    |input| from_json(input).map(Request::LiftBan),
);
const OFFENDERS: Endpoint = Endpoint::new(
    Method::Get,
    "/api/offenders",
    "Clients with the most failed logins, missing files, refused requests and failed handshakes of the last minutes.",
    |input| without_body(input, Request::Offenders),
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
const VISIT_SITE: Endpoint = Endpoint::new(
    Method::Get,
    "/api/site/visit",
    "Lets the server request the start page of the site in `name`, and returns the status of the response.",
    |input| {
        let name = SiteName::from_query(input.query).map_err(|error| ApiError::new(400, error))?;
        without_body(input, Request::VisitSite(name))
    },
)
.secret();
const PERMISSION: Endpoint = Endpoint::new(
    Method::Get,
    "/api/permission",
    "Permission of the client: `read` or `full`.",
    |input| without_body(input, Request::Permission),
);
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

/// Reads the edits of a request, and checks their number.
fn edits(input: &Input<'_>) -> Result<Edits, ApiError> {
    let edits: Edits = from_json(input)?;
    if edits.edits.len() > MAX_EDITS {
        let message = format!("`edits` has more than {MAX_EDITS} edits: send them in several requests");
        return Err(ApiError::new(400, message));
    }
    Ok(edits)
}

#[cfg(test)]
mod tests;
