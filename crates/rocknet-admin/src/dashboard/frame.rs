//! Views of the dashboard with their paths, and the parts that all pages have.

use askama::Template;
use form_urlencoded::byte_serialize;
use rocknet_control::api::{ApiError, Permission};

use super::site_form::FormMode;

/// Kinds of requests of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    Overview,
    Websites,
    AddWebsite,
    EditWebsite,
    CopyWebsite,
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
pub const VIEWS: [(PageKind, &str, &str); 9] = [
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
            "/websites/copy" => Some(PageKind::CopyWebsite),
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
            PageKind::Login | PageKind::EditWebsite | PageKind::CopyWebsite => &["GET", "HEAD", "POST"],
            PageKind::Logout => &["POST"],
            _ => &["GET", "HEAD"],
        }
    }

    /// Returns the purpose of the form that browsers send to this page; `None` if the page takes no form.
    pub fn form(self) -> Option<FormMode> {
        match self {
            PageKind::EditWebsite => Some(FormMode::Edit),
            PageKind::CopyWebsite => Some(FormMode::Copy),
            _ => None,
        }
    }

    /// Returns true if the view is only for visitors who may change the server: it shows the configuration, its history
    /// or the logs, which may contain secrets, or has no other purpose than a change.
    pub fn needs_full_permission(self) -> bool {
        matches!(
            self,
            PageKind::AddWebsite
                | PageKind::EditWebsite
                | PageKind::CopyWebsite
                | PageKind::Logs
                | PageKind::Settings
                | PageKind::History
        )
    }
}

/// Parts that all pages have.
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
}

impl<'a> Frame<'a> {
    pub fn new(page: PageKind, permission: Permission, assets: &'a str) -> Frame<'a> {
        Frame {
            assets,
            title: title(page),
            current: path(page),
            views: &VIEWS,
            can_change: permission == Permission::Full,
        }
    }
}

/// Returns the error for a reply of another kind than the request expects.
pub fn other_reply() -> ApiError {
    ApiError::new(500, "the server has sent another reply")
}

/// Returns the title of a view; empty for a request that is not a view.
fn title(page: PageKind) -> &'static str {
    match page {
        PageKind::AddWebsite => "Add a website",
        PageKind::EditWebsite => "Edit a website",
        PageKind::CopyWebsite => "Duplicate a website",
        _ => VIEWS
            .iter()
            .find(|(known, ..)| *known == page)
            .map_or("", |(.., name)| name),
    }
}

/// Returns the path of the entry of the navigation that a view belongs to; empty for a request that is not a view.
fn path(page: PageKind) -> &'static str {
    match page {
        PageKind::AddWebsite | PageKind::EditWebsite | PageKind::CopyWebsite => "/websites",
        _ => VIEWS
            .iter()
            .find(|(known, ..)| *known == page)
            .map_or("", |(_, path, _)| path),
    }
}

/// Encodes text for the query of a URL.
pub fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// Renders a template. A template fails only if the formatting of one of its values does, and none of them does.
pub fn rendered(page: &impl Template) -> String {
    page.render()
        .unwrap_or_else(|error| format!("the page cannot be rendered: {error}"))
}
