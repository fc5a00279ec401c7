//! The start-up block: the URLs with their targets, and how to stop the server.

use std::fmt::Write as _;
use std::net::IpAddr;

use rocknet_config::Config;
use rocknet_config::model::Listen;
use rocknet_control::{SiteKind, SiteSummary};

use super::search::resolved;
use super::terminal_text::printable;

/// Renders the URLs with their targets, and the notes below them. `colour`: true to use the styles of a terminal.
pub fn start_block(sites: &[SiteSummary], notes: &[String], colour: bool) -> String {
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

/// Returns the URLs for other machines of sites without names that listen on all addresses. `addresses`: IP addresses
/// of this machine.
pub fn urls_for_other_machines(sites: &[SiteSummary], config: &Config, addresses: &[IpAddr]) -> Vec<String> {
    let is_any_address = |listen: &Listen| match listen {
        Listen::Tcp { address, .. } => address.is_none_or(|address| address.is_unspecified()),
        Listen::Unix(_) => false,
    };
    let reachable = sites.iter().filter(|summary| {
        let site = config.sites.iter().find(|site| site.name == summary.name);
        site.is_some_and(|site| site.names.is_empty() && site.listen.iter().any(is_any_address))
    });
    let local: Vec<&String> = reachable
        .flat_map(|site| &site.urls)
        .filter(|url| url.contains(LOCALHOST))
        .collect();
    let urls = addresses.iter().take(MAX_ADDRESSES).flat_map(|address| {
        let host = match address {
            IpAddr::V4(address) => format!("//{address}"),
            IpAddr::V6(address) => format!("//[{address}]"),
        };
        local.iter().map(move |url| url.replacen(LOCALHOST, &host, 1))
    });
    urls.collect()
}

/// Returns the line about terminal commands and stopping. `has_console`: the server reads commands from the terminal.
/// `has_file`: the server has a configuration file.
pub fn stop_hint(has_console: bool, has_file: bool) -> String {
    match (has_console, has_file) {
        (true, true) => "Type status, sites, reload, quit or help. Ctrl+C stops.\n".to_owned(),
        // Without a configuration file there is nothing to reload.
        (true, false) => "Type status, sites, quit or help. Ctrl+C stops.\n".to_owned(),
        (false, _) => format!("Ctrl+C stops, or: kill {}\n", std::process::id()),
    }
}

/// Returns a line for each of the first [`MAX_URLS`] URLs of a site. If there are more, adds a line with their
/// number. Only the first line has a second part, the target.
fn lines(site: &SiteSummary) -> Vec<(String, Option<String>)> {
    let target = match (&site.root, site.kind) {
        _ if site.fault.is_some() => format!("ERROR: {}", printable(site.fault.as_deref().unwrap_or_default())),
        (_, SiteKind::Proxy) => "other servers".to_owned(),
        (_, SiteKind::Application) => "an application".to_owned(),
        (_, SiteKind::Controller) => "a controller".to_owned(),
        (_, SiteKind::Other) => "a handler of the program".to_owned(),
        (Some(root), _) => printable(&resolved(root).to_string_lossy()),
        (None, SiteKind::Redirect) => "redirects".to_owned(),
        (None, SiteKind::Routes) => "routes".to_owned(),
        (None, SiteKind::Nothing) => "nothing".to_owned(),
        // A site of the kind `Files` always has a root, so this is the welcome page.
        (None, SiteKind::Files | SiteKind::Welcome) => "welcome page".to_owned(),
    };
    let mut lines: Vec<_> = site
        .urls
        .iter()
        .take(MAX_URLS)
        .map(|url| (printable(url), None))
        .collect();
    if let Some((_, first)) = lines.first_mut() {
        *first = Some(target);
    }
    if site.urls.len() > MAX_URLS {
        lines.push((format!("and {} more URLs", site.urls.len() - MAX_URLS), None));
    }
    lines
}

/// Maximum number of sites in the block, so that it stays short. The terminal command `sites` lists all of them.
const MAX_SITES: usize = 16;

/// Maximum number of URLs of a site in the block, so that it stays short.
const MAX_URLS: usize = 4;

/// Maximum number of addresses of the machine in the note; further addresses mostly belong to bridges and containers.
const MAX_ADDRESSES: usize = 8;

/// Host in the URL of a site that has no name and listens on all addresses, with the slashes before the host.
const LOCALHOST: &str = "//localhost";

// Terminal escape sequences (SGR) for styles. `OFF` ends them all.
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
    fn urls_and_targets_form_two_columns() {
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
        let text = start_block(&sites, &["A note.".into()], false);
        let (_, shown) = text.split_once('\n').unwrap();
        assert_eq!(
            shown,
            "\n  http://example.com/     →  /var/\u{fffd}www\n  http://a.test/\n  \
             http://localhost:8081/  →  welcome page\n  unix:/run/x             →  redirects\n  \
             https://b.test/         →  ERROR: no certificate\n\nA note.\n\n"
        );
        assert!(start_block(&sites, &[], true).contains("\x1b[36mhttp://example.com/\x1b[0m"));
    }

    #[test]
    fn sites_on_all_addresses_have_urls_for_other_machines() {
        let addresses: Vec<IpAddr> = ["192.168.1.5", "2001:db8::5"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let listen = |address: Option<&str>| Listen::Tcp {
            address: address.map(|text| text.parse().unwrap()),
            port: 8000,
        };
        // Listening address, URL of the site, and `true` if URLs for other machines are expected.
        for (at, url, expected) in [
            (None, "http://localhost:8000/", true),
            (Some("0.0.0.0"), "http://localhost:8000/", true),
            (Some("127.0.0.1"), "http://127.0.0.1:8000/", false),
        ] {
            let config = Config::for_directory(std::path::Path::new("/w"), listen(at));
            let mut summary = site(&[url], Some("/w"), SiteKind::Files);
            summary.name = config.sites[0].name.clone();
            let urls = urls_for_other_machines(&[summary], &config, &addresses);
            let both: &[&str] = &["http://192.168.1.5:8000/", "http://[2001:db8::5]:8000/"];
            assert_eq!(urls, if expected { both } else { &[] }, "{at:?}");
        }
    }

    #[test]
    fn many_sites_and_urls_are_abbreviated() {
        let urls = vec!["http://a.test/"; 1000];
        let sites = vec![site(&urls, None, SiteKind::Welcome); 10_000];
        let text = start_block(&sites, &[], false);
        assert!(text.contains("and 9984 more sites") && text.contains("and 996 more URLs"));
        // 16 sites have five lines each: four URLs, and the number of further URLs.
        assert!(text.lines().count() < 100);
        assert!(start_block(&[], &[], false).contains("no site"));
    }
}
