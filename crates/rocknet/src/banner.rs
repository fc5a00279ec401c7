//! What start-up prints: which URL leads to what, and how to stop.

use std::fmt::Write as _;

use rocknet_control::{SiteKind, SiteSummary};

/// The URLs and what they lead to, and the notes below them; plain text, or with colour.
pub fn places(sites: &[SiteSummary], notes: &[String], colour: bool) -> String {
    let paint = |style: &'static str| if colour { style } else { "" };
    let mut out = format!("{}RockNet{} {}\n\n", paint(BOLD), paint(OFF), env!("CARGO_PKG_VERSION"));
    let lines: Vec<_> = sites.iter().take(MAX_SITES).flat_map(lines).collect();
    let width = lines
        .iter()
        .map(|(url, _)| url.chars().count())
        .max()
        .unwrap_or_default();
    for (url, target) in &lines {
        let gap = width - url.chars().count();
        let _ = write!(out, "  {}{url}{}", paint(CYAN), paint(OFF));
        let _ = match target {
            Some(target) => writeln!(out, "{:gap$}  {}→{}  {target}", "", paint(DIM), paint(OFF)),
            None => writeln!(out),
        };
    }
    if sites.len() > MAX_SITES {
        let _ = writeln!(out, "  and {} more sites", sites.len() - MAX_SITES);
    }
    if sites.is_empty() {
        out.push_str("  no site is configured\n");
    }
    for note in notes {
        let _ = write!(out, "\n{note}\n");
    }
    out.push('\n');
    out
}

/// How to lead the server, and to stop it.
pub fn way_out(has_console: bool, has_file: bool) -> String {
    match (has_console, has_file) {
        (true, true) => "Type status, sites, reload, quit or help. Ctrl+C stops.\n".to_owned(),
        // Without a file there is nothing to reload.
        (true, false) => "Type status, sites, quit or help. Ctrl+C stops.\n".to_owned(),
        (false, _) => format!("Ctrl+C stops, or: kill {}\n", std::process::id()),
    }
}

/// A line for each URL; what it leads to stands beside the first.
fn lines(site: &SiteSummary) -> Vec<(String, Option<String>)> {
    let target = match (&site.root, site.kind) {
        _ if site.fault.is_some() => format!("ERROR: {}", plain(site.fault.as_deref().unwrap_or_default())),
        (_, SiteKind::Proxy) => "other servers".to_owned(),
        (_, SiteKind::Application) => "an application".to_owned(),
        (Some(root), _) => plain(&root.to_string_lossy()),
        (None, SiteKind::Redirect) => "redirects".to_owned(),
        (None, SiteKind::Controller) => "a controller".to_owned(),
        (None, SiteKind::Routes) => "routes".to_owned(),
        (None, SiteKind::Nothing) => "nothing".to_owned(),
        (None, SiteKind::Files | SiteKind::Welcome | SiteKind::Other) => "default page".to_owned(),
    };
    let mut lines: Vec<_> = site.urls.iter().take(MAX_URLS).map(|url| (plain(url), None)).collect();
    if let Some((_, first)) = lines.first_mut() {
        *first = Some(target);
    }
    if site.urls.len() > MAX_URLS {
        lines.push((format!("and {} more URLs", site.urls.len() - MAX_URLS), None));
    }
    lines
}

/// Names of folders may hold anything; a terminal must not act on it.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Sites shown: with more, the block would leave the screen, and `sites` lists them all.
const MAX_SITES: usize = 16;

/// URLs shown for a site, for the same reason.
const MAX_URLS: usize = 4;

const BOLD: &str = "\x1b[1m";
const CYAN: &str = "\x1b[36m";
const DIM: &str = "\x1b[2m";
const OFF: &str = "\x1b[0m";

#[cfg(test)]
mod tests {
    use super::*;

    fn site(urls: &[&str], root: Option<&str>, kind: SiteKind) -> SiteSummary {
        SiteSummary {
            urls: urls.iter().map(|&url| url.into()).collect(),
            root: root.map(Into::into),
            kind,
            ..SiteSummary::default()
        }
    }

    #[test]
    fn urls_stand_in_a_column_beside_what_they_lead_to() {
        let sites = [
            site(
                &["http://example.com/", "http://a.test/"],
                Some("/var/\u{1b}www"),
                SiteKind::Files,
            ),
            site(&["http://localhost:8081/"], None, SiteKind::Welcome),
            site(&["unix:/run/x"], None, SiteKind::Redirect),
            SiteSummary {
                fault: Some("no certificate".into()),
                ..site(&["https://b.test/"], Some("/srv"), SiteKind::Files)
            },
        ];
        let text = places(&sites, &["A note.".into()], false);
        let (_, shown) = text.split_once('\n').unwrap();
        assert_eq!(
            shown,
            "\n  http://example.com/     →  /var/\u{fffd}www\n  http://a.test/\n  \
             http://localhost:8081/  →  default page\n  unix:/run/x             →  redirects\n  \
             https://b.test/         →  ERROR: no certificate\n\nA note.\n\n"
        );
        assert!(places(&sites, &[], true).contains("\x1b[36mhttp://example.com/\x1b[0m"));
    }

    #[test]
    fn thousands_of_sites_and_names_leave_the_block_short() {
        let urls = vec!["http://a.test/"; 1000];
        let sites = vec![site(&urls, None, SiteKind::Welcome); 10_000];
        let text = places(&sites, &[], false);
        assert!(text.contains("and 9984 more sites") && text.contains("and 996 more URLs"));
        assert!(text.lines().count() < 100);
        assert!(places(&[], &[], false).contains("no site"));
    }
}
