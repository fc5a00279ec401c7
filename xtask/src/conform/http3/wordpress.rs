//! Loads a post of WordPress and its picture over HTTP/3.

use super::chromium;
use super::quic_go::QuicGoClient;
use crate::Failure;
use crate::conform::wordpress::Blog;
use crate::conform::{access_log, browser, trusted};
use crate::packages::{self, Purpose};
use std::path::Path;

pub fn run(program: &Path) -> Result<(), Failure> {
    packages::require(Purpose::Applications)?;
    let client = QuicGoClient::build()?;
    let blog = Blog::publish(program)?;
    let home = blog.application.home();
    let server = blog.application.server()?;
    let picture = path_of(&blog.sent.whole)?;
    client.get(server.port()?, &home.join("state"), picture, &blog.picture)?;

    trusted::rocknet(program, "trust", home)?;
    let (dom, log) = chromium::load_over_quic(server, &blog.post, home)?;
    let parts = ["Ebb at noon", "The water goes.", &blog.sent.whole];
    browser::judge(&dom, &log, &parts).map_err(|wrong| format!("{}: {wrong}", blog.post))?;
    for path in [path_of(&blog.post)?, picture] {
        access_log::await_text(&home.join("access.log"), &format!("\"GET {path} HTTP/3.0\" 200 "))?;
    }
    println!("Chromium loaded the post and its picture over HTTP/3");
    Ok(())
}

/// Returns the path of a URL.
fn path_of(url: &str) -> Result<&str, Failure> {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let at = rest.find('/').ok_or_else(|| format!("no path in {url}"))?;
    Ok(&rest[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_url_begins_with_its_slash() {
        let rows = [
            ("https://localhost:8443/a/b/", Some("/a/b/")),
            ("https://localhost/", Some("/")),
            ("https://localhost", None),
            ("/a", None),
        ];
        for (url, expected) in rows {
            assert_eq!(path_of(url).ok(), expected, "{url}");
        }
    }
}
