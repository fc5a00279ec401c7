//! Summaries of the sites of a running server, which the command `sites` prints one per line.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::explanation::ConfigPosition;
use crate::status::MAX_SHOWN;
use crate::text;

/// A summary of one site.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteSummary {
    /// Name as in the configuration: `example.com`, `:8081`.
    pub name: String,
    /// URLs: each name of the site at each of its ports, in the order of the configuration, then `unix:` with the path
    /// of each socket.
    pub urls: Vec<String>,
    /// Folder with the site's files, if any.
    pub root: Option<PathBuf>,
    /// Number of routes, not counting the root route.
    pub routes: usize,
    /// The routes; empty if the server has more than 10,000 of them in all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub route_list: Vec<RouteSummary>,
    /// Kind of responses where no route applies.
    pub kind: SiteKind,
    /// True if the site has `enabled = false`, so that it is not served.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Error that prevents the site, or a part of it, from being served as configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A route of a site, without its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RouteSummary {
    /// Pattern as in the configuration.
    pub pattern: String,
    /// Kind of its responses.
    pub kind: SiteKind,
    /// Position in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<ConfigPosition>,
}

/// Kind of responses of a site where no route applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SiteKind {
    /// Files below the root folder.
    Files,
    /// Responses of upstreams to which all requests are proxied.
    Proxy,
    /// Responses of an application that speaks FastCGI, SCGI or uwsgi.
    Application,
    /// Responses of a controller in a shared library.
    Controller,
    /// Redirects only.
    Redirect,
    /// Responses of routes and rules only; other requests get 404.
    Routes,
    /// Nothing: every response is 404.
    Nothing,
    /// The welcome page of a new installation.
    Welcome,
    /// Responses of a handler that the embedding program mounts, or a kind that only a newer server knows.
    #[default]
    #[serde(other)]
    Other,
}

impl SiteKind {
    /// Returns the name used in JSON and on terminals.
    pub fn name(self) -> &'static str {
        match self {
            SiteKind::Files => "files",
            SiteKind::Proxy => "proxy",
            SiteKind::Application => "application",
            SiteKind::Controller => "controller",
            SiteKind::Redirect => "redirect",
            SiteKind::Routes => "routes",
            SiteKind::Nothing => "nothing",
            SiteKind::Welcome => "welcome",
            SiteKind::Other => "other",
        }
    }
}

impl SiteSummary {
    /// Returns the URL to open in a browser, an HTTPS URL if there is one; `None` if the site cannot be opened.
    pub fn url(&self) -> Option<&str> {
        if self.disabled {
            return None;
        }
        let urls = || self.urls.iter().map(String::as_str);
        urls()
            .find(|url| url.starts_with("https://") && !url.contains('*'))
            .or_else(|| urls().find(|url| url.starts_with("http://") && !url.contains('*')))
    }
}

/// Writes one line without a newline: `example.com  files  http://example.com  /var/www  2 routes`.
impl fmt::Display for SiteSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(cells(self).join(GAP).trim_end())
    }
}

/// Formats sites in aligned columns. Each line ends with a newline.
#[derive(Debug, Clone, Copy)]
pub struct SiteList<'a>(pub &'a [SiteSummary]);

impl fmt::Display for SiteList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no sites");
        }
        let rows: Vec<_> = self.0.iter().map(cells).collect();
        let mut widths = [0; COLUMNS];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in &rows {
            let line = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:width$}{GAP}"))
                .collect::<String>();
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Returns the columns of a site: name, kind, URLs, root, number of routes (or `disabled`), and error.
fn cells(site: &SiteSummary) -> [String; COLUMNS] {
    let urls = match &site.urls[..] {
        [] => "–".into(),
        [first] => text::sanitized(first, MAX_SHOWN),
        [first, rest @ ..] => format!("{} and {} more", text::sanitized(first, MAX_SHOWN), rest.len()),
    };
    let root = site
        .root
        .as_ref()
        .map_or("–".into(), |root| text::sanitized(&root.to_string_lossy(), MAX_SHOWN));
    let routes = match site.routes {
        _ if site.disabled => "disabled".into(),
        0 => String::new(),
        1 => "1 route".into(),
        routes => format!("{routes} routes"),
    };
    let fault = site.fault.as_ref().map_or(String::new(), |fault| {
        format!("ERROR: {}", text::sanitized(fault, MAX_FAULT))
    });
    [
        text::sanitized(&site.name, MAX_SHOWN),
        site.kind.name().into(),
        urls,
        root,
        routes,
        fault,
    ]
}

/// Number of columns that [`cells`] returns.
const COLUMNS: usize = 6;

/// Maximum number of characters of an error that are shown: room for two paths and a sentence.
const MAX_FAULT: usize = 400;

/// Space between two columns.
const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a site with several URLs, a site with one, and a site without URLs and root.
    fn sample() -> [SiteSummary; 3] {
        [
            SiteSummary {
                name: "example.com".into(),
                urls: vec![
                    "http://example.com".into(),
                    "http://www.example.com".into(),
                    "http://e.test".into(),
                ],
                root: Some("/var/www/example".into()),
                routes: 2,
                kind: SiteKind::Files,
                ..SiteSummary::default()
            },
            SiteSummary {
                name: ":8081".into(),
                urls: vec!["http://localhost:8081".into()],
                root: Some("/srv/zweite-ü".into()),
                routes: 1,
                kind: SiteKind::Files,
                ..SiteSummary::default()
            },
            SiteSummary {
                name: "old.test".into(),
                kind: SiteKind::Redirect,
                fault: Some("/x.pem: cannot be read\n".into()),
                ..SiteSummary::default()
            },
        ]
    }

    #[test]
    fn a_terminal_shows_columns() {
        let expected = "\
example.com  files     http://example.com and 2 more  /var/www/example  2 routes
:8081        files     http://localhost:8081          /srv/zweite-ü     1 route
old.test     redirect  –                              –                           ERROR: /x.pem: cannot be read?
";
        assert_eq!(SiteList(&sample()).to_string(), expected);
        assert_eq!(SiteList(&[]).to_string(), "no sites\n");
    }

    #[test]
    fn a_site_is_one_line_without_control_characters() {
        let [_, second, third] = sample();
        assert_eq!(
            second.to_string(),
            ":8081  files  http://localhost:8081  /srv/zweite-ü  1 route"
        );
        assert_eq!(
            third.to_string(),
            "old.test  redirect  –  –    ERROR: /x.pem: cannot be read?"
        );
        let hostile = SiteSummary {
            root: Some("/a\n\u{1b}[2J".into()),
            ..second
        };
        assert_eq!(
            hostile.to_string(),
            ":8081  files  http://localhost:8081  /a??[2J  1 route"
        );
    }

    #[test]
    fn sites_are_serialized() {
        let json = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<Vec<SiteSummary>>(&json).unwrap(), sample());
        let newer: SiteSummary = serde_json::from_str(r#"{"name": "a", "kind": "oracle", "moons": 2}"#).unwrap();
        assert_eq!(
            newer,
            SiteSummary {
                name: "a".into(),
                ..SiteSummary::default()
            }
        );
        assert_eq!(newer.kind.name(), "other");
    }
}
