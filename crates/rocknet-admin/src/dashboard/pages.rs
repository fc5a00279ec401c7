//! Pages of the dashboard: queries the data of a view and renders its template.

mod explain;
mod maintenance;
mod site;
mod traffic;

use std::borrow::Borrow;

use askama::Template;
use rocknet_control::api::{ApiError, Level, LogLevel, Permission, Reply, Request};
use rocknet_control::config::{Change, ConfigFileName, ConfigText};
use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_control::php::{PhpPoolSummary, PhpState};
use rocknet_control::{
    CertificateSummary, SiteKind, SiteSummary, Status as ServerStatus, UpstreamState, UpstreamSummary,
};
use rocknet_proto::Status;

use super::figures::{bytes, count, duration, share, short, stored_bytes, stored_hits};
use super::frame::{Frame, PageKind, encoded, other_reply, parameter, rendered};
use super::notice::Notice;
use super::site_form::FormMode;
use crate::Control;
use crate::content::status;
pub use site::{SentForm, Submitted};

/// Declares the template of a view: the parts that all views have in common, and the data of the view.
macro_rules! page {
    ($name:ident, $path:literal $(, $data:ident: $type:ty)*) => {
        #[derive(Template)]
        #[template(path = $path)]
        struct $name<'a> {
            frame: Frame<'a>,
            $($data: $type,)*
        }
    };
}

page!(OverviewPage, "overview.html", status: ServerStatus);
page!(WebsitesPage, "websites.html", sites: Vec<SiteSummary>);
page!(LogsPage, "logs.html", level: Level);
page!(UpstreamsPage, "upstreams.html", upstreams: Vec<UpstreamSummary>);
page!(CertificatesPage, "certificates.html", certificates: Vec<CertificateSummary>);
page!(SettingsPage, "settings.html", config: ConfigText);
page!(HistoryPage, "history.html", changes: Vec<Change>);
page!(PhpPage, "php.html", pools: Vec<PhpPoolSummary>);
page!(DoctorPage, "doctor.html", checks: Vec<DoctorCheck>);
page!(ErrorPage, "error.html", error: &'a ApiError);

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    assets: &'a str,
    /// Name of the script; empty without a form.
    script: &'static str,
    /// Error that is shown in place of the form.
    error: Option<&'a ApiError>,
}

#[derive(Template)]
#[template(path = "arrival.html")]
struct ArrivalPage<'a> {
    assets: &'a str,
    /// Address that the browser opens next.
    target: &'a str,
}

#[derive(Template)]
#[template(path = "taken_over.html")]
struct TakenOverPage<'a> {
    assets: &'a str,
    message: &'a str,
}

/// Renders the page for signing in.
pub fn login(assets: &str) -> String {
    rendered(&LoginPage {
        assets,
        script: "login.js",
        error: None,
    })
}

/// Renders the page of a request that was rejected.
pub fn refused(assets: &str, error: &ApiError) -> String {
    rendered(&LoginPage {
        assets,
        script: "",
        error: Some(error),
    })
}

/// Renders the page that makes a browser open `target`, the address that it has just requested. If the first request
/// came from a link on another site, the browser sends the session cookie only with the second one.
pub fn arrival(assets: &str, target: &str) -> String {
    rendered(&ArrivalPage { assets, target })
}

/// Renders the page that is shown after another process has replaced the server. The page has no script, because the
/// session has ended.
pub fn taken_over(assets: &str, message: &str) -> String {
    rendered(&TakenOverPage { assets, message })
}

/// Renders an error in the frame of a page, in place of the page's data.
pub fn error(page: PageKind, permission: Permission, assets: &str, error: &ApiError) -> (Status, String) {
    failed(Frame::new(page, permission, assets), error)
}

/// Renders a view with its data. If the data cannot be queried, the page shows the error. `notice`: report about the
/// last instruction of the user, which the page shows; `None` without one.
pub async fn render<C: Control>(
    page: PageKind,
    query: &[u8],
    permission: Permission,
    assets: &str,
    control: &C,
    notice: Option<Notice>,
) -> (Status, String) {
    let frame = || Frame {
        notice: notice.clone(),
        ..Frame::new(page, permission, assets)
    };
    if page.needs_full_permission() && permission != Permission::Full {
        return failed(frame(), &needs_full_token());
    }
    if page == PageKind::Explain {
        return explain::view(query, frame(), control).await;
    }
    match view(page, query, frame(), control).await {
        Ok(text) => (Status::OK, text),
        Err(error) => failed(frame(), &error),
    }
}

/// Checks the form that a browser has sent to a page, and saves it unless only a check was requested.
pub async fn submit<C: Control>(
    page: PageKind,
    mode: FormMode,
    sent: SentForm<'_>,
    permission: Permission,
    assets: &str,
    control: &C,
) -> Submitted {
    let frame = || Frame::new(page, permission, assets);
    let rendered = |(status, text)| Submitted::Page(status, text);
    if permission != Permission::Full {
        return rendered(failed(frame(), &needs_full_token()));
    }
    match site::submit(mode, sent, frame(), control).await {
        Ok(submitted) => submitted,
        Err(error) => rendered(failed(frame(), &error)),
    }
}

/// Returns the error for a request that the read token does not permit.
pub fn needs_full_token() -> ApiError {
    let message = "this view or change needs the full token; you are signed in with the read token";
    ApiError::new(403, message)
}

/// Returns the page for an error, with its status.
fn failed(frame: Frame<'_>, error: &ApiError) -> (Status, String) {
    (status(error.status), rendered(&ErrorPage { frame, error }))
}

/// Renders a view with its data.
///
/// # Errors
///
/// Fails with status 404 if there is no data for this page, or with the error of the request for its data.
async fn view<C: Control>(page: PageKind, query: &[u8], frame: Frame<'_>, control: &C) -> Result<String, ApiError> {
    if let Some(mode) = page.form() {
        return site::view(mode, query, frame, control).await;
    }
    if page == PageKind::Maintenance {
        return maintenance::view(frame, control).await;
    }
    if page == PageKind::Traffic {
        return traffic::view(frame, control).await;
    }
    let request = request(page, query).ok_or_else(|| ApiError::new(404, "there is no page with this address"))?;
    Ok(match control.execute(request).await? {
        Reply::Status(status) => rendered(&OverviewPage { frame, status: *status }),
        Reply::Sites(sites) => rendered(&WebsitesPage { frame, sites }),
        Reply::LogLevel(LogLevel { level, .. }) => rendered(&LogsPage { frame, level }),
        Reply::Upstreams(upstreams) => rendered(&UpstreamsPage { frame, upstreams }),
        Reply::Certificates(certificates) => rendered(&CertificatesPage { frame, certificates }),
        Reply::Config(config) => rendered(&SettingsPage { frame, config: *config }),
        Reply::ConfigHistory(changes) => rendered(&HistoryPage { frame, changes }),
        Reply::PhpPools(pools) => rendered(&PhpPage { frame, pools }),
        Reply::Doctor(checks) => rendered(&DoctorPage { frame, checks }),
        _ => return Err(other_reply()),
    })
}

/// Returns the request for the data of a page that this file renders itself. Returns `None` for pages that are rendered
/// by a submodule, such as `maintenance`, and for pages without data, such as the login.
fn request(page: PageKind, query: &[u8]) -> Option<Request> {
    Some(match page {
        PageKind::Overview => Request::Status,
        PageKind::Websites => Request::Sites,
        PageKind::Logs => Request::LogLevel,
        PageKind::Upstreams => Request::Upstreams,
        PageKind::Certificates => Request::Certificates,
        PageKind::Settings => Request::Config(ConfigFileName {
            file: parameter(query, "file").map(Into::into),
        }),
        PageKind::History => Request::ConfigHistory,
        PageKind::Php => Request::PhpPools,
        PageKind::Doctor => Request::Doctor,
        PageKind::AddWebsite
        | PageKind::EditWebsite
        | PageKind::CopyWebsite
        | PageKind::Maintenance
        | PageKind::Traffic
        | PageKind::Explain
        | PageKind::Login
        | PageKind::Logout
        | PageKind::Events
        | PageKind::Asset
        | PageKind::Unknown => return None,
    })
}

/// Describes the kind of a website. The parameter is generic because a template passes fields as references, and
/// results of expressions as values.
fn kind_words(kind: impl Borrow<SiteKind>) -> &'static str {
    match kind.borrow() {
        SiteKind::Files => "Files of a folder",
        SiteKind::Proxy => "Forwards to another server",
        SiteKind::Application => "Application",
        SiteKind::Controller => "Controller",
        SiteKind::Redirect => "Redirects only",
        SiteKind::Routes => "Rules and routes only",
        SiteKind::Nothing => "Nothing yet",
        SiteKind::Welcome => "Welcome page",
        SiteKind::Other => "Other",
    }
}

/// Returns the CSS class of a line in a diff.
fn diff_class(line: &str) -> &'static str {
    match line.as_bytes().first() {
        Some(b'+') => "added",
        Some(b'-') => "removed",
        Some(b'@') => "place",
        _ => "same",
    }
}

#[cfg(test)]
mod tests;
