//! Pages of the dashboard: queries the data of a view and renders its template.

mod site;

use std::borrow::Borrow;

use askama::Template;
use form_urlencoded::parse;
use rocknet_control::api::{ApiError, Level, LogLevel, Permission, Reply, Request};
use rocknet_control::config::{Change, ConfigFileName, ConfigText};
use rocknet_control::doctor::{DoctorCheck, DoctorVerdict};
use rocknet_control::php::{PhpPoolSummary, PhpState};
use rocknet_control::text;
use rocknet_control::{
    CertificateSummary, SiteKind, SiteSummary, Status as ServerStatus, UpstreamState, UpstreamSummary,
};
use rocknet_proto::Status;

use super::frame::{Frame, PageKind, encoded, other_reply, rendered};
use super::site_form::FormMode;
use crate::Control;
use crate::content::status;
pub use site::{SentForm, Submitted};

/// Declares the template of a view: the parts that all pages have, and the data of the view.
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
page!(AddPage, "add.html");
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

/// Renders a view with its data. If the data cannot be queried, the page shows the error.
pub async fn render<C: Control>(
    page: PageKind,
    query: &[u8],
    permission: Permission,
    assets: &str,
    control: &C,
) -> (Status, String) {
    let frame = || Frame::new(page, permission, assets);
    if page.needs_full_permission() && permission != Permission::Full {
        return failed(frame(), &needs_full_token());
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

/// Returns the error for a visitor who may only read.
fn needs_full_token() -> ApiError {
    let message = "this view needs the full token; you are signed in with the read token";
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
/// Status 404 for a page that is not a view, or the error of the request for the data.
async fn view<C: Control>(page: PageKind, query: &[u8], frame: Frame<'_>, control: &C) -> Result<String, ApiError> {
    if let Some(mode) = page.form() {
        return site::view(mode, query, frame, control).await;
    }
    let request = request(page, query).ok_or_else(|| ApiError::new(404, "there is no such page"))?;
    let request = match request {
        ViewData::None => return Ok(rendered(&AddPage { frame })),
        ViewData::Of(request) => request,
    };
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

/// Data of a view.
enum ViewData {
    /// The view shows nothing of the server.
    None,
    /// The view shows the reply to a request.
    Of(Request),
}

/// Returns the data of a view without a form; `None` for views with a form, and for pages that are not views.
fn request(page: PageKind, query: &[u8]) -> Option<ViewData> {
    let parameter = |wanted: &str| parse(query).find_map(|(key, value)| (key == wanted).then(|| value.into_owned()));
    Some(ViewData::Of(match page {
        PageKind::AddWebsite => return Some(ViewData::None),
        PageKind::Overview => Request::Status,
        PageKind::Websites => Request::Sites,
        PageKind::Logs => Request::LogLevel,
        PageKind::Upstreams => Request::Upstreams,
        PageKind::Certificates => Request::Certificates,
        PageKind::Settings => Request::Config(ConfigFileName {
            file: parameter("file").map(Into::into),
        }),
        PageKind::History => Request::ConfigHistory,
        PageKind::Php => Request::PhpPools,
        PageKind::Doctor => Request::Doctor,
        PageKind::EditWebsite
        | PageKind::CopyWebsite
        | PageKind::Login
        | PageKind::Logout
        | PageKind::Events
        | PageKind::Asset => return None,
    }))
}

// The functions below format values in templates. Their parameters are borrowed or not, because a template passes
// fields as references, and results of expressions as values.

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

/// Returns the kind of a line of a diff, as a class of the style sheet.
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
