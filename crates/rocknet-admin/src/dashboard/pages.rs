//! Pages of the dashboard: queries the data of a view and renders its template.

use std::borrow::Borrow;

use askama::Template;
use form_urlencoded::{byte_serialize, parse};
use rocknet_control::api::{ApiError, Level, LogLevel, Permission, Reply, Request};
use rocknet_control::config::{Change, ConfigText};
use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_control::php::{PhpPoolSummary, PhpState};
use rocknet_control::text;
use rocknet_control::{
    CertificateSummary, SiteKind, SiteSummary, Status as ServerStatus, UpstreamState, UpstreamSummary,
};
use rocknet_proto::Status;

use crate::Control;
use crate::content::status;

/// Kinds of requests of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    Overview,
    Websites,
    AddWebsite,
    EditWebsite,
    Logs,
    Upstreams,
    Certificates,
    Settings,
    History,
    Php,
    Doctor,
    Login,
    Logout,
    /// Server-sent events with the state of the server.
    Events,
    /// A script, the style sheet or the icon.
    Asset,
}

/// Views with their paths and their names in the navigation.
const VIEWS: [(PageKind, &str, &str); 9] = [
    (PageKind::Overview, "/", "Overview"),
    (PageKind::Websites, "/websites", "Websites"),
    (PageKind::Logs, "/logs", "Logs"),
    (PageKind::Upstreams, "/upstreams", "Upstreams"),
    (PageKind::Certificates, "/certificates", "Certificates"),
    (PageKind::Php, "/php", "PHP"),
    (PageKind::Settings, "/settings", "Settings"),
    (PageKind::History, "/history", "History"),
    (PageKind::Doctor, "/doctor", "Doctor"),
];

impl PageKind {
    /// Returns the kind of a path; `None` if the path is not one of the dashboard.
    pub fn find(path: &str) -> Option<PageKind> {
        let view = VIEWS.iter().find(|(_, known, _)| *known == path);
        match path {
            "/websites/add" => Some(PageKind::AddWebsite),
            "/websites/edit" => Some(PageKind::EditWebsite),
            "/login" => Some(PageKind::Login),
            "/logout" => Some(PageKind::Logout),
            "/events" => Some(PageKind::Events),
            _ if path.starts_with("/assets/") => Some(PageKind::Asset),
            _ => view.map(|(page, ..)| *page),
        }
    }

    /// Returns the methods of requests of this kind.
    pub fn methods(self) -> &'static [&'static str] {
        match self {
            PageKind::Login => &["GET", "HEAD", "POST"],
            PageKind::Logout => &["POST"],
            _ => &["GET", "HEAD"],
        }
    }

    /// Returns true if the view is only for those who may change the server: it shows the text of the configuration,
    /// which may contain secrets, or has no other purpose than a change.
    fn needs_full_permission(self) -> bool {
        matches!(
            self,
            PageKind::AddWebsite | PageKind::EditWebsite | PageKind::Logs | PageKind::Settings | PageKind::History
        )
    }
}

/// Parts that all pages have.
struct Frame<'a> {
    /// Path of the folder with scripts and styles.
    assets: &'a str,
    title: &'static str,
    /// Path of the current entry of the navigation.
    current: &'static str,
    views: &'static [(PageKind, &'static str, &'static str)],
    /// True if the visitor may change the server.
    can_change: bool,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage<'a> {
    frame: Frame<'a>,
    status: ServerStatus,
}

#[derive(Template)]
#[template(path = "websites.html")]
struct WebsitesPage<'a> {
    frame: Frame<'a>,
    sites: Vec<SiteSummary>,
}

#[derive(Template)]
#[template(path = "add.html")]
struct AddPage<'a> {
    frame: Frame<'a>,
}

#[derive(Template)]
#[template(path = "edit.html")]
struct EditPage<'a> {
    frame: Frame<'a>,
    site: SiteSummary,
}

#[derive(Template)]
#[template(path = "logs.html")]
struct LogsPage<'a> {
    frame: Frame<'a>,
    level: Level,
}

#[derive(Template)]
#[template(path = "upstreams.html")]
struct UpstreamsPage<'a> {
    frame: Frame<'a>,
    upstreams: Vec<UpstreamSummary>,
}

#[derive(Template)]
#[template(path = "certificates.html")]
struct CertificatesPage<'a> {
    frame: Frame<'a>,
    certificates: Vec<CertificateSummary>,
}

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage<'a> {
    frame: Frame<'a>,
    config: ConfigText,
}

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage<'a> {
    frame: Frame<'a>,
    changes: Vec<Change>,
    /// Revision of the present text, which an undo replaces.
    revision: String,
}

#[derive(Template)]
#[template(path = "php.html")]
struct PhpPage<'a> {
    frame: Frame<'a>,
    pools: Vec<PhpPoolSummary>,
}

#[derive(Template)]
#[template(path = "doctor.html")]
struct DoctorPage<'a> {
    frame: Frame<'a>,
    checks: Vec<DoctorCheck>,
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    frame: Frame<'a>,
    error: &'a ApiError,
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    assets: &'a str,
    /// Error that is shown in place of the form.
    error: Option<&'a ApiError>,
}

/// Renders the page for signing in.
pub fn login(assets: &str) -> String {
    rendered(&LoginPage { assets, error: None })
}

/// Renders the page of a request that was rejected.
pub fn refused(assets: &str, error: &ApiError) -> String {
    rendered(&LoginPage {
        assets,
        error: Some(error),
    })
}

/// Renders a view with its data. If the data cannot be queried, the page shows the error.
pub async fn render<C: Control>(
    page: PageKind,
    query: &[u8],
    permission: Permission,
    assets: &str,
    control: &C,
) -> (Status, String) {
    let frame = || Frame {
        assets,
        title: title(page),
        current: path(page),
        views: &VIEWS,
        can_change: permission == Permission::Full,
    };
    if page.needs_full_permission() && permission != Permission::Full {
        let error = ApiError::new(
            403,
            "this view needs the full token; you are signed in with the read token",
        );
        return (
            Status::FORBIDDEN,
            rendered(&ErrorPage {
                frame: frame(),
                error: &error,
            }),
        );
    }
    match view(page, query, frame(), control).await {
        Ok(text) => (Status::OK, text),
        Err(error) => (
            status(error.status),
            rendered(&ErrorPage {
                frame: frame(),
                error: &error,
            }),
        ),
    }
}

async fn view<C: Control>(page: PageKind, query: &[u8], frame: Frame<'_>, control: &C) -> Result<String, ApiError> {
    Ok(match (page, request(page)) {
        (PageKind::AddWebsite, _) => rendered(&AddPage { frame }),
        (PageKind::History, _) => {
            let revision = match control.execute(Request::Config).await? {
                Reply::Config(config) => config.revision,
                _ => return Err(other_reply()),
            };
            match control.execute(Request::ConfigHistory).await? {
                Reply::ConfigHistory(changes) => rendered(&HistoryPage {
                    frame,
                    changes,
                    revision,
                }),
                _ => return Err(other_reply()),
            }
        }
        (_, Some(request)) => match control.execute(request).await? {
            Reply::Status(status) => rendered(&OverviewPage { frame, status: *status }),
            Reply::Sites(sites) if page == PageKind::EditWebsite => {
                let name = parse(query).find_map(|(key, value)| (key == "name").then_some(value));
                let mut sites = sites.into_iter();
                let site = sites.find(|site| name.as_deref() == Some(&*site.name));
                let site = site.ok_or_else(|| ApiError::new(404, "there is no website with this name"))?;
                rendered(&EditPage { frame, site })
            }
            Reply::Sites(sites) => rendered(&WebsitesPage { frame, sites }),
            Reply::LogLevel(LogLevel { level, .. }) => rendered(&LogsPage { frame, level }),
            Reply::Upstreams(upstreams) => rendered(&UpstreamsPage { frame, upstreams }),
            Reply::Certificates(certificates) => rendered(&CertificatesPage { frame, certificates }),
            Reply::Config(config) => rendered(&SettingsPage { frame, config: *config }),
            Reply::PhpPools(pools) => rendered(&PhpPage { frame, pools }),
            Reply::Doctor(checks) => rendered(&DoctorPage { frame, checks }),
            _ => return Err(other_reply()),
        },
        (_, None) => return Err(ApiError::new(404, "there is no such page")),
    })
}

/// Returns the request for the data of a view.
fn request(page: PageKind) -> Option<Request> {
    Some(match page {
        PageKind::Overview => Request::Status,
        PageKind::Websites | PageKind::EditWebsite => Request::Sites,
        PageKind::Logs => Request::LogLevel,
        PageKind::Upstreams => Request::Upstreams,
        PageKind::Certificates => Request::Certificates,
        PageKind::Settings => Request::Config,
        PageKind::History => Request::ConfigHistory,
        PageKind::Php => Request::PhpPools,
        PageKind::Doctor => Request::Doctor,
        PageKind::AddWebsite | PageKind::Login | PageKind::Logout | PageKind::Events | PageKind::Asset => return None,
    })
}

fn other_reply() -> ApiError {
    ApiError::new(500, "the server has sent another reply")
}

fn title(page: PageKind) -> &'static str {
    match page {
        PageKind::AddWebsite => "Add a website",
        PageKind::EditWebsite => "Edit a website",
        _ => VIEWS
            .iter()
            .find(|(known, ..)| *known == page)
            .map_or("", |(.., name)| name),
    }
}

fn path(page: PageKind) -> &'static str {
    match page {
        PageKind::AddWebsite | PageKind::EditWebsite => "/websites",
        _ => VIEWS
            .iter()
            .find(|(known, ..)| *known == page)
            .map_or("", |(_, path, _)| path),
    }
}

// The parameters of the functions below are borrowed or not: a template passes fields as references, and results of
// expressions as values.

fn count(number: impl Borrow<u64>) -> String {
    text::count(*number.borrow())
}

fn bytes(number: impl Borrow<u64>) -> String {
    text::bytes(*number.borrow())
}

fn share(part: impl Borrow<u64>, whole: impl Borrow<u64>) -> String {
    text::share(*part.borrow(), *whole.borrow())
}

fn duration(seconds: impl Borrow<u64>) -> String {
    text::duration(*seconds.borrow())
}

fn short(microseconds: impl Borrow<u64>) -> String {
    text::short_duration(*microseconds.borrow())
}

/// Returns the words for the kind of a website.
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

/// Encodes text for the query of a URL.
fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// Returns the kind of a line of a diff, as a class of the style sheet.
fn diff_class(line: &str) -> &'static str {
    match line.as_bytes().first() {
        Some(b'+') => "added",
        Some(b'-') => "removed",
        Some(b'@') => "place",
        _ => "same",
    }
}

/// Renders a template. A template fails only if the formatting of one of its values does, and none of them does.
fn rendered(page: &impl Template) -> String {
    page.render()
        .unwrap_or_else(|error| format!("the page cannot be rendered: {error}"))
}

#[cfg(test)]
mod tests;
