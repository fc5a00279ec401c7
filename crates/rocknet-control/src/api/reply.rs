//! Replies to requests that succeeded.

use serde::{Deserialize, Serialize};

use super::permission::GrantedPermission;
use crate::ban::{BanList, OffenderSummary};
use crate::certificate::CertificateSummary;
use crate::config::{Change, Checked, ConfigState, ConfigText, Finding, Saved};
use crate::dashboard::DashboardLink;
use crate::doctor::DoctorCheck;
use crate::explanation::UrlExplanation;
use crate::level::LogLevel;
use crate::php::PhpPoolSummary;
use crate::route::{RouteTraffic, SiteDetail};
use crate::site::SiteSummary;
use crate::site_form::{ServerForm, SiteForm};
use crate::site_visit::SiteVisit;
use crate::status::Status;
use crate::upstream::UpstreamSummary;

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
    /// State of the files of the configuration.
    ConfigState(Box<ConfigState>),
    /// Form of a site.
    SiteForm(Box<SiteForm>),
    /// Form of the server.
    ServerForm(Box<ServerForm>),
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
    /// Bans and ban lists.
    Bans(Box<BanList>),
    /// Clients with the most offences, the worst first.
    Offenders(Vec<OffenderSummary>),
    /// Pools of PHP.
    PhpPools(Vec<PhpPoolSummary>),
    /// Checks of the requirements of the server.
    Doctor(Vec<DoctorCheck>),
    /// Link to the dashboard.
    DashboardLink(DashboardLink),
    /// Permission of the client.
    Permission(GrantedPermission),
    /// Explanation of a URL.
    Explanation(Box<UrlExplanation>),
    /// Result of a visit to a site.
    SiteVisit(SiteVisit),
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
