//! Loads a page in headless Chromium: with QUIC forced for the site, and with QUIC found by `Alt-Svc`.

use super::site::{EARLY_DATA, TestSite, UPSTREAM_PACKAGES, free_port};
use crate::conform::page_server::PageServer;
use crate::conform::server::TestServer;
use crate::conform::{access_log, browser, trusted};
use crate::{Failure, tools};
use std::fs;
use std::path::Path;

/// Files of the page, which report that they were loaded.
const FILES: [(&str, &str); 4] = [
    ("style.css", "body { color: rgb(1, 2, 3) }"),
    ("script.js", "window.loaded = \"loaded\";"),
    (
        "picture.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><rect width=\"9\" height=\"9\"/></svg>",
    ),
    ("visit.html", "<!doctype html><title>Visit</title>"),
];
/// Page with sub-resources, an upload and a WebSocket.
const PAGE: &str = include_str!("chromium/page.html");
/// Items that the script of the page adds.
const PAGE_ITEMS: [&str; 8] = [
    "script loaded rgb(1, 2, 3)",
    "upload arrived",
    "echo ahoy",
    "navigation h3",
    "/style.css h3",
    "/script.js h3",
    "/picture.svg h3",
    "/app/digest h3",
];
/// WebSocket of the page in the access log: Chromium opens it over TCP.
const WEBSOCKET: &str = "\"GET /app/echo HTTP/1.1\" 101 ";
/// Page that loads another one until it arrives over HTTP/3.
const ANNOUNCED: &str = include_str!("chromium/announced.html");
const ANNOUNCED_ITEMS: [&str; 2] = ["first h2", "later h3"];

/// Path of the pages.
const PATH: &str = "/held/page";
/// The site listens on IPv4 only, and Chromium tries QUIC only with the first address of a name.
const IPV4: &str = "--host-resolver-rules=MAP localhost 127.0.0.1";
/// Over QUIC, Chromium accepts a CA that it does not ship only for hosts with this option. A port that is not the
/// site's forces nothing.
const UNFORCED: &str = "--origin-to-force-quic-on=localhost:1";

pub fn run(program: &Path) -> Result<(), Failure> {
    let packages = tools::python_packages("http3-upstream", &UPSTREAM_PACKAGES)?;
    for (settings, shown) in [("", "without early data"), (EARLY_DATA, "with early data")] {
        let site = serve(program, &packages, PAGE, settings)?;
        let url = site.server.url(PATH);
        check(&url, load_over_quic(&site.server, &url, site.home())?, &PAGE_ITEMS)?;
        access_log::await_text(&site.home().join("access.log"), WEBSOCKET)?;
        println!(
            "{shown} and with QUIC forced, the page and its resources arrive over HTTP/3, and the WebSocket over HTTP/1.1"
        );
    }

    let site = serve(program, &packages, ANNOUNCED, "")?;
    let url = site.server.url(PATH);
    let loaded = browser::load_with_quic(&[IPV4, UNFORCED], &url, Some(site.home()))?;
    check(&url, loaded, &ANNOUNCED_ITEMS)?;
    println!("without QUIC forced, the first visit uses HTTP/2, and a later one HTTP/3");
    Ok(())
}

/// Starts a site with a page at [`PATH`]. `settings`: more tables of its configuration.
fn serve(program: &Path, packages: &Path, page: &'static str, settings: &str) -> Result<TestSite, Failure> {
    let held = PageServer::start(page)?.port;
    let route = format!("[site.localhost.route.\"/held/*\"]\nproxy = \"http://127.0.0.1:{held}\"\n{settings}");
    let site = TestSite::start_at(free_port()?, program, packages, &route)?;
    for (name, text) in FILES {
        fs::write(site.files().join(name), text)?;
    }
    trusted::rocknet(program, "trust", site.home())?;
    Ok(site)
}

/// Loads a URL of a server with QUIC forced, so that nothing arrives over TCP. Returns the DOM and the log. `home` is
/// the home folder with the root certificates that the browser trusts.
pub fn load_over_quic(server: &TestServer, url: &str, home: &Path) -> Result<(String, String), Failure> {
    let forced = format!("--origin-to-force-quic-on=localhost:{}", server.port()?);
    browser::load_with_quic(&[IPV4, &forced], url, Some(home))
}

/// Checks that a page has `items` in this order, and that its log has no errors.
fn check(url: &str, (dom, log): (String, String), items: &[&str]) -> Result<(), Failure> {
    let items: Vec<_> = items.iter().map(|item| format!("<li>{item}</li>")).collect();
    let items: Vec<_> = items.iter().map(String::as_str).collect();
    browser::judge(&dom, &log, &items).map_err(|wrong| format!("{url}: {wrong}"))?;
    Ok(())
}
