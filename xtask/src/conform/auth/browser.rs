//! Browser of the checks: a session of curl whose cookies can be read and changed, and the requests that the
//! application has received.

use crate::Failure;
use crate::conform::server::TestServer;
use crate::conform::session::{PageResponse, Session};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Name of the site. No name server is queried for it.
pub const SITE: &str = "app.test";
/// Field of a browser that opens a page.
const PAGE: &str = "Accept: text/html,*/*;q=0.8";
/// Field of a program.
pub const PROGRAM: &str = "Accept: application/json";
/// Number of pages of a provider until the user is logged in. More pages are a loop.
const MAX_PAGES: usize = 12;
/// Column of the name in the file with the cookies, which is followed by the value.
const NAME_COLUMN: usize = 5;

/// A browser at the site of the checks.
pub struct LoginBrowser(Session);

/// A request as the application has received it.
#[derive(Deserialize)]
pub struct ReceivedRequest {
    pub method: String,
    pub target: String,
    pub body: String,
    fields: BTreeMap<String, Vec<String>>,
}

impl ReceivedRequest {
    /// Returns the values of a field, separated by bars. `name`: with capitals as Go writes them.
    pub fn field(&self, name: &str) -> String {
        self.fields.get(name).map(|values| values.join("|")).unwrap_or_default()
    }
}

impl LoginBrowser {
    /// Starts a browser without cookies. `state`: state folder of the server.
    pub fn new(server: &TestServer, state: &Path) -> Result<LoginBrowser, Failure> {
        Ok(LoginBrowser(Session::of_site(SITE, server, state)?))
    }

    /// Returns another browser with a copy of the cookies.
    pub fn copy(&self) -> Result<LoginBrowser, Failure> {
        Ok(LoginBrowser(self.0.copy()?))
    }

    /// Returns the same browser with another HTTP version.
    pub fn with_version(&self, version: &'static str) -> LoginBrowser {
        LoginBrowser(self.0.with_version(version))
    }

    /// Opens a page of the site.
    pub fn open(&self, target: &str) -> Result<PageResponse, Failure> {
        self.0.request(target, &["-H", PAGE])
    }

    /// Requests a target of the site with options of curl.
    pub fn request(&self, target: &str, options: &[&str]) -> Result<PageResponse, Failure> {
        self.0.request(target, options)
    }

    /// Opens a page with more fields, and returns the request that the application has received.
    pub fn received(&self, target: &str, fields: &[&str]) -> Result<ReceivedRequest, Failure> {
        let mut options = vec!["-H", PAGE];
        options.extend(fields.iter().flat_map(|field| ["-H", field]));
        self.received_with(target, &options)
    }

    /// Requests a target with options of curl, and returns the request that the application has received.
    pub fn received_with(&self, target: &str, options: &[&str]) -> Result<ReceivedRequest, Failure> {
        let response = self.0.request(target, options)?.expect(200, &[])?;
        serde_json::from_slice(&response.content).map_err(|error| response.wrong(&error.to_string()))
    }

    /// Follows redirects at other servers than the site, and calls `submit` for each page in between. Returns the first
    /// URL at the site.
    pub fn follow(
        &self,
        location: &str,
        submit: impl Fn(&Session, &PageResponse) -> Result<PageResponse, Failure>,
    ) -> Result<String, Failure> {
        let elsewhere = self.0.with_version("--http1.1");
        let site = format!("https://{SITE}/");
        let mut location = location.to_owned();
        for _ in 0..MAX_PAGES {
            if location.starts_with(&site) {
                return Ok(location);
            }
            let mut response = elsewhere.request(&location, &["-H", PAGE])?;
            if response.location.is_empty() {
                response = submit(&elsewhere, &response)?;
            }
            if response.location.is_empty() {
                return Err(response.wrong("the provider does not redirect"));
            }
            location = response.location;
        }
        Err(format!("{location}: the provider redirects again and again").into())
    }

    /// Returns the names and values of the cookies of the site.
    pub fn cookies(&self) -> Result<Vec<(String, String)>, Failure> {
        let is_own = |line: &&str| line.trim_start_matches("#HttpOnly_").starts_with(SITE);
        let text = self.jar()?;
        let pairs = text.lines().filter(is_own).filter_map(|line| {
            let mut columns = line.split('\t').skip(NAME_COLUMN);
            Some((columns.next()?.to_owned(), columns.next()?.to_owned()))
        });
        Ok(pairs.collect())
    }

    /// Changes the values of the cookies whose names begin with `prefix`. Fails if there is no such cookie.
    pub fn change_cookies(&self, prefix: &str, change: impl Fn(&str) -> String) -> Result<(), Failure> {
        let mut is_changed = false;
        let mut changed = String::new();
        for line in self.jar()?.lines() {
            let mut columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let is_wanted = columns.get(NAME_COLUMN).is_some_and(|name| name.starts_with(prefix));
            if let Some(value) = columns.get_mut(NAME_COLUMN + 1).filter(|_| is_wanted) {
                *value = change(value);
                is_changed = true;
            }
            changed.push_str(&columns.join("\t"));
            changed.push('\n');
        }
        if !is_changed {
            return Err(format!("no cookie {prefix}").into());
        }
        Ok(fs::write(self.0.cookies(), changed)?)
    }

    fn jar(&self) -> Result<String, Failure> {
        Ok(fs::read_to_string(self.0.cookies())?)
    }
}

/// Returns a text with another character in its middle.
pub fn falsified(text: &str) -> String {
    let middle = text.len() / 2;
    let other = if text[middle..].starts_with('A') { "B" } else { "A" };
    format!("{}{other}{}", &text[..middle], &text[middle + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falsified_text_differs_in_one_character() {
        assert_eq!(falsified("xyz"), "xAz");
        assert_eq!(falsified("AAAA"), "AABA");
    }
}
