//! What a running server serves: what `sites` prints, a line for each.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::status::MAX_SHOWN;
use crate::text;

/// One site, told in short.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SiteSummary {
    /// As in the configuration: `example.com`, `:8081`.
    pub name: String,
    /// Where a browser finds it, the likeliest first.
    pub urls: Vec<String>,
    /// The folder its files lie in, if it has one.
    pub root: Option<PathBuf>,
    /// Routes of its own, beside the site's settings.
    pub routes: usize,
    pub kind: SiteKind,
    /// What keeps it from being served as configured, wholly or in part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What answers where no route says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SiteKind {
    /// The files below the root.
    Files,
    /// Other servers, which everything is passed on to.
    Proxy,
    /// An application, by FastCGI, SCGI or uwsgi.
    Application,
    /// A function of a shared library.
    Controller,
    /// Redirects alone.
    Redirect,
    /// Routes and rules alone: elsewhere every answer is 404.
    Routes,
    /// Nothing: every answer is 404.
    Nothing,
    /// The page of a fresh installation.
    Welcome,
    /// Something this version does not know, told by a newer server.
    #[default]
    #[serde(other)]
    Other,
}

impl SiteKind {
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

/// One line, without a newline: `example.com  files  http://example.com  /var/www  2 routes`.
impl fmt::Display for SiteSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(cells(self).join(GAP).trim_end())
    }
}

/// Several sites, in columns; each line ends with a newline.
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

const COLUMNS: usize = 6;

/// Longest fault that is shown, in characters: two paths and a sentence.
const MAX_FAULT: usize = 400;

const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;

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
                fault: None,
            },
            SiteSummary {
                name: ":8081".into(),
                urls: vec!["http://localhost:8081".into()],
                root: Some("/srv/zweite-ü".into()),
                routes: 1,
                kind: SiteKind::Files,
                fault: None,
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
    fn one_site_is_one_clean_line() {
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
    fn sites_go_over_a_wire() {
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
