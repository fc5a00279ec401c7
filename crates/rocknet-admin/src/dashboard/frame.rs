//! Views of the dashboard with their paths, and the parts that their pages have in common.

use askama::Template;
use form_urlencoded::{byte_serialize, parse};
use rocknet_control::api::{ApiError, ENDPOINTS, Permission};
use rocknet_handler::exchange::Exchange;
use rocknet_proto::KnownField;
use rocknet_proto::semantics::negotiation::preferred_media_type;

use super::assets;
use super::notice::Notice;
use super::site_form::FormMode;

/// Kind of request to the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    Overview,
    Websites,
    AddWebsite,
    EditWebsite,
    CopyWebsite,
    Logs,
    Upstreams,
    /// Stored responses, limits, bans, and the clients with the most offences.
    Traffic,
    Certificates,
    Settings,
    History,
    Php,
    Doctor,
    Maintenance,
    Explain,
    Login,
    Logout,
    /// Server-sent events with the state of the server.
    Events,
    /// A script, the style sheet or the icon.
    Asset,
    /// Address without a page, opened by a browser.
    Unknown,
}

/// Views with their paths and their names in the navigation.
pub const VIEWS: [(PageKind, &str, &str); 11] = [
    (PageKind::Overview, "/", "Overview"),
    (PageKind::Websites, "/websites", "Websites"),
    (PageKind::Logs, "/logs", "Logs"),
    (PageKind::Upstreams, "/upstreams", "Upstreams"),
    (PageKind::Traffic, "/traffic", "Traffic"),
    (PageKind::Certificates, "/certificates", "Certificates"),
    (PageKind::Php, "/php", "PHP"),
    (PageKind::Settings, "/settings", "Settings"),
    (PageKind::History, "/history", "History"),
    (PageKind::Doctor, "/doctor", "Doctor"),
    (PageKind::Maintenance, "/maintenance", "Maintenance"),
];

impl PageKind {
    /// Returns the kind of page that a request is for; `None` for the API, and for a program that requests an unknown
    /// address.
    pub fn of(exchange: &Exchange) -> Option<PageKind> {
        let path: &str = &exchange.path;
        let found = PageKind::find(path);
        // True if the path leads to data or to nothing. A browser that opens it gets the page `Unknown` instead.
        let has_no_page = match found {
            Some(PageKind::Asset) => assets::find(path).is_none(),
            Some(PageKind::Events) => true,
            Some(_) => false,
            None => !is_of_api(path),
        };
        if has_no_page && prefers_pages(exchange) {
            return Some(PageKind::Unknown);
        }
        found
    }

    /// Returns the kind of a path; `None` if the path is not one of the dashboard.
    pub fn find(path: &str) -> Option<PageKind> {
        let view = VIEWS.iter().find(|(_, known, _)| *known == path);
        match path {
            "/websites/add" => Some(PageKind::AddWebsite),
            "/websites/edit" => Some(PageKind::EditWebsite),
            "/websites/copy" => Some(PageKind::CopyWebsite),
            "/explain" => Some(PageKind::Explain),
            "/login" => Some(PageKind::Login),
            "/logout" => Some(PageKind::Logout),
            "/events" => Some(PageKind::Events),
            _ if path.starts_with("/assets/") => Some(PageKind::Asset),
            _ => view.map(|(page, ..)| *page),
        }
    }

    /// Returns true if another site may link to the page. Signing out, scripts and data are only for the dashboard
    /// itself.
    pub fn takes_links(self) -> bool {
        !matches!(self, PageKind::Logout | PageKind::Events | PageKind::Asset)
    }

    /// Returns the methods that a request of this kind may have.
    pub fn methods(self) -> &'static [&'static str] {
        match self {
            page if page.takes_form() || page == PageKind::Login => &["GET", "HEAD", "POST"],
            PageKind::Logout => &["POST"],
            _ => &["GET", "HEAD"],
        }
    }

    /// Returns the purpose of the website form that browsers send to this page; `None` if the page has no such form.
    pub fn form(self) -> Option<FormMode> {
        match self {
            PageKind::AddWebsite => Some(FormMode::Add),
            PageKind::EditWebsite => Some(FormMode::Edit),
            PageKind::CopyWebsite => Some(FormMode::Copy),
            _ => None,
        }
    }

    /// Returns true if the page accepts forms with instructions.
    pub fn takes_instructions(self) -> bool {
        matches!(self, PageKind::Maintenance | PageKind::Php | PageKind::Traffic)
    }

    /// Returns true if the page accepts forms.
    pub fn takes_form(self) -> bool {
        self.takes_instructions() || self.form().is_some()
    }

    /// Returns true if only visitors who may change the server may open the view. Such a view shows the
    /// configuration, its history or the logs, which may contain secrets, or its only purpose is a change.
    pub fn needs_full_permission(self) -> bool {
        matches!(
            self,
            PageKind::AddWebsite
                | PageKind::EditWebsite
                | PageKind::CopyWebsite
                | PageKind::Explain
                | PageKind::Logs
                | PageKind::Settings
                | PageKind::History
        )
    }
}

/// Returns true if a client prefers a page to JSON, as browsers do when a user opens an address.
pub fn prefers_pages(exchange: &Exchange) -> bool {
    let accept = exchange.request.view().fields.get(KnownField::Accept);
    // 1 is the position of `text/html` in the list.
    accept.is_some_and(|accept| preferred_media_type(accept, &["application/json", "text/html"]) == Some(1))
}

/// Returns true if a path is in the API, which sends no pages.
fn is_of_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/") || ENDPOINTS.iter().any(|endpoint| endpoint.path == path)
}

/// Parts that the pages of all views have in common. An error page in place of a view has them too.
pub struct Frame<'a> {
    /// Path of the folder with scripts and styles.
    pub assets: &'a str,
    pub title: &'static str,
    /// Path of the current entry of the navigation.
    pub current: &'static str,
    /// Entries of the navigation: [`VIEWS`].
    pub views: &'static [(PageKind, &'static str, &'static str)],
    /// True if the visitor may change the server.
    pub can_change: bool,
    /// Report about the last instruction, if the page shows one.
    pub notice: Option<Notice>,
}

impl<'a> Frame<'a> {
    pub fn new(page: PageKind, permission: Permission, assets: &'a str) -> Frame<'a> {
        Frame {
            assets,
            title: title(page),
            current: path(page),
            views: &VIEWS,
            can_change: permission == Permission::Full,
            notice: None,
        }
    }

    /// Returns the text of a field in the refused form; empty if no form was refused or it lacks the field.
    pub fn input(&self, field: &str) -> String {
        self.notice
            .as_ref()
            .map(|notice| notice.input(field))
            .unwrap_or_default()
    }
}

/// Returns the error for a reply of the wrong kind.
pub fn other_reply() -> ApiError {
    ApiError::new(500, "the server sent a reply of the wrong kind")
}

/// Returns the title of a view or of its error page; empty for pages without a title.
fn title(page: PageKind) -> &'static str {
    match page {
        PageKind::AddWebsite => "Add a website",
        PageKind::EditWebsite => "Edit a website",
        PageKind::CopyWebsite => "Duplicate a website",
        PageKind::Explain => "Explain an address",
        PageKind::Unknown => "Not found",
        PageKind::Logout => "Method not allowed",
        _ => VIEWS
            .iter()
            .find(|(known, ..)| *known == page)
            .map_or("", |(.., name)| name),
    }
}

/// Returns the path of the view in the navigation that contains a page; empty if no view contains it.
pub fn path(page: PageKind) -> &'static str {
    match page {
        PageKind::AddWebsite | PageKind::EditWebsite | PageKind::CopyWebsite | PageKind::Explain => "/websites",
        _ => VIEWS
            .iter()
            .find(|(known, ..)| *known == page)
            .map_or("", |(_, path, _)| path),
    }
}

/// Returns a parameter of a query, or a field of a form; `None` if it is missing.
pub fn parameter(text: &[u8], wanted: &str) -> Option<String> {
    parse(text).find_map(|(key, value)| (key == wanted).then(|| value.into_owned()))
}

/// Encodes text for the query of a URL.
pub fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// Renders a template. A template fails only if one of its values cannot be formatted, which does not occur.
pub fn rendered(page: &impl Template) -> String {
    page.render()
        .unwrap_or_else(|error| format!("the page cannot be rendered: {error}"))
}
