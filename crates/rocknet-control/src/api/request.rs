//! Requests to a running server, and their form in HTTP: the query and the body.

use serde::Serialize;

use crate::ban::{BannedAddress, NewBan};
use crate::config::{Candidate, ConfigFileName, Edits, Replacement, Undo};
use crate::explanation::ExplainUrl;
use crate::level::LogLevelChange;
use crate::logs::LogFilter;
use crate::php::PhpPoolName;
use crate::response_purge::ResponsePurge;
use crate::route::SiteName;
use crate::upgrade::UpgradeOrder;
use crate::upstream::UpstreamAddress;
#[cfg(doc)]
use {
    super::{OPEN_API, permission::GrantedPermission, reply::Done},
    crate::certificate::CertificateSummary,
    crate::config::{Change, Checked, ConfigState, ConfigText, Saved},
    crate::dashboard::DashboardLink,
    crate::doctor::DoctorCheck,
    crate::explanation::UrlExplanation,
    crate::level::LogLevel,
    crate::php::PhpPoolSummary,
    crate::route::{RouteTraffic, SiteDetail},
    crate::site::SiteSummary,
    crate::site_form::{ServerForm, SiteForm},
    crate::site_visit::SiteVisit,
    crate::status::Status,
    crate::upstream::UpstreamSummary,
};

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
    /// Starts a new process that takes over, and ends this process once its connections have ended; the reply is
    /// [`Done`]. If the new process fails, this process continues.
    Upgrade(UpgradeOrder),
    /// Queries the metrics; the reply is text in the format of OpenMetrics.
    Metrics,
    /// Queries the level of the error log; the reply is a [`LogLevel`].
    LogLevel,
    /// Changes the level of the error log until the next reload; the reply is the new [`LogLevel`].
    SetLogLevel(LogLevelChange),
    /// Reads a file of the configuration; the reply is a [`ConfigText`].
    Config(ConfigFileName),
    /// Queries whether the files of the configuration have changed since they were loaded; the reply is a
    /// [`ConfigState`].
    ConfigState,
    /// Queries the form of a site; the reply is a [`SiteForm`].
    SiteForm(SiteName),
    /// Queries the form of the server; the reply is a [`ServerForm`].
    ServerForm,
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
    /// Sends new clients to a drained upstream again; the reply is [`Done`].
    EnableUpstream(UpstreamAddress),
    /// Queries the pools of PHP that the server runs; the reply is a list of [`PhpPoolSummary`].
    PhpPools,
    /// Starts new processes in a pool of PHP. The old processes complete their requests. The reply is [`Done`].
    RestartPhpPool(PhpPoolName),
    /// Starts a pool of PHP that was stopped or has failed; the reply is [`Done`]. A running pool stays as it is.
    StartPhpPool(PhpPoolName),
    /// Ends the processes of a pool of PHP once their requests are complete; the reply is [`Done`]. Other requests fail
    /// until the pool is started again.
    StopPhpPool(PhpPoolName),
    /// Removes every file from the file cache; the reply is [`Done`].
    PurgeFileCache,
    /// Drops stored responses; the reply is [`Done`].
    PurgeResponses(ResponsePurge),
    /// Queries the bans; the reply is a [`BanList`](crate::ban::BanList).
    Bans,
    /// Bans a client or network; the reply is [`Done`].
    AddBan(NewBan),
    /// Lifts a ban; the reply is [`Done`].
    LiftBan(BannedAddress),
    /// Queries the clients with the most offences; the reply is a list of
    /// [`OffenderSummary`](crate::ban::OffenderSummary).
    Offenders,
    /// Queries which site, route and settings apply to a URL; the reply is a [`UrlExplanation`].
    Explain(ExplainUrl),
    /// Lets the server request the start page of a site; the reply is a [`SiteVisit`].
    VisitSite(SiteName),
    /// Queries the permission of the client; the reply is a [`GrantedPermission`].
    Permission,
    /// Queries the description of the API; the reply is [`OPEN_API`].
    OpenApi,
    /// Queries log lines; the reply is a stream of [`LogEvent`](crate::logs::LogEvent) as server-sent events.
    Logs(LogFilter),
    /// Checks the requirements of the server on its machine; the reply is a list of [`DoctorCheck`].
    Doctor,
    /// Creates a link that signs a browser in to the dashboard; the reply is a [`DashboardLink`].
    DashboardLink,
}

impl Request {
    /// Returns the body of the request as JSON, or `None` if the request has no body.
    pub fn body(&self) -> Option<String> {
        match self {
            Request::SetLogLevel(change) => to_json(change),
            Request::CheckConfig(candidate) => to_json(candidate),
            Request::ReplaceConfig(replacement) => to_json(replacement),
            Request::CheckEdits(edits) | Request::EditConfig(edits) => to_json(edits),
            Request::UndoConfig(undo) => to_json(undo),
            Request::Upgrade(order) => to_json(order),
            Request::PurgeResponses(purge) => to_json(purge),
            Request::AddBan(ban) => to_json(ban),
            Request::LiftBan(address) => to_json(address),
            Request::DrainUpstream(address) | Request::EnableUpstream(address) => to_json(address),
            Request::RestartPhpPool(pool) | Request::StartPhpPool(pool) | Request::StopPhpPool(pool) => to_json(pool),
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
            | Request::ConfigState
            | Request::ServerForm
            | Request::Permission
            | Request::ConfigHistory
            | Request::Certificates
            | Request::Upstreams
            | Request::PhpPools
            | Request::PurgeFileCache
            | Request::Bans
            | Request::Offenders
            | Request::Doctor
            | Request::Explain(_)
            | Request::VisitSite(_)
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
            Request::Site(name) | Request::VisitSite(name) => Some(name.query()),
            Request::Config(file) => file.query(),
            Request::SiteForm(site) => Some(site.query()),
            _ => None,
        }
    }
}

fn to_json(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}
