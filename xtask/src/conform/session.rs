//! HTTP session with a website: runs curl with cookies kept from page to page, over HTTP/2 by default.

use super::server::TestServer;
use crate::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

/// Timeout for a response in seconds. It is long because installing an application is slow on a busy machine.
const TIMEOUT_SECONDS: &str = "120";
/// Properties of a response that curl prints after the body, one per line.
const WRITE_OUT: &str = "%{http_version}\n%{http_code}\n%{redirect_url}\n%{content_type}\n";
/// Name of the file with the cookies.
const COOKIES: &str = "cookies";
/// Maximum characters of a wrong page in an error: enough to find the reason.
const MAX_SHOWN: usize = 4000;

pub struct Session {
    url: String,
    folder: Rc<tempfile::TempDir>,
    roots: PathBuf,
    /// Option of curl for the HTTP version.
    version: &'static str,
    /// Value of curl's option `--connect-to` if the name of the site does not lead to the server.
    connect_to: Option<String>,
}

/// Response of a page.
pub struct PageResponse {
    pub url: String,
    pub status: u16,
    /// Absolute URL of a redirect; empty if the response is not a redirect.
    pub location: String,
    pub media_type: String,
    pub content: Vec<u8>,
}

impl Session {
    /// Starts a session with `server`, without cookies. The session trusts the local CA below the `state` folder.
    pub fn new(server: &TestServer, state: &Path) -> Result<Self, Failure> {
        Ok(Self {
            url: server.url(""),
            folder: Rc::new(tempfile::tempdir()?),
            roots: state.join("local/ca.pem"),
            version: "--http2",
            connect_to: None,
        })
    }

    /// Starts a session with a site of `server` at the default port of HTTPS, where the URLs of the site have no port.
    pub fn of_site(name: &str, server: &TestServer, state: &Path) -> Result<Self, Failure> {
        Ok(Self {
            url: format!("https://{name}"),
            connect_to: Some(format!("{name}:443:127.0.0.1:{}", server.port()?)),
            ..Self::new(server, state)?
        })
    }

    /// Returns a session with a copy of the cookies.
    pub fn copy(&self) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        if self.cookies().exists() {
            fs::copy(self.cookies(), folder.path().join(COOKIES))?;
        }
        Ok(Self {
            folder: Rc::new(folder),
            ..self.with_version(self.version)
        })
    }

    /// Returns the path of the file with the cookies, in the format of Netscape.
    pub fn cookies(&self) -> PathBuf {
        self.folder.path().join(COOKIES)
    }

    /// Returns the same session with another HTTP version.
    pub fn with_version(&self, version: &'static str) -> Self {
        Self {
            url: self.url.clone(),
            folder: Rc::clone(&self.folder),
            roots: self.roots.clone(),
            version,
            connect_to: self.connect_to.clone(),
        }
    }

    /// Returns the path of the trusted root certificates.
    pub fn roots(&self) -> &Path {
        &self.roots
    }

    /// Returns the full URL of a path. A full URL is returned unchanged.
    pub fn url(&self, path: &str) -> String {
        if path.starts_with('/') {
            format!("{}{path}", self.url)
        } else {
            path.to_owned()
        }
    }

    /// Requests a path, or a full URL taken from a page.
    pub fn get(&self, path: &str) -> Result<PageResponse, Failure> {
        self.request(path, &[])
    }

    /// Submits a form as browsers do.
    pub fn post(&self, path: &str, form: &[(&str, &str)]) -> Result<PageResponse, Failure> {
        let mut options = Vec::new();
        for (name, value) in form {
            options.push("--data-urlencode".to_owned());
            options.push(format!("{name}={value}"));
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.request(path, &options)
    }

    /// Requests a path with additional options of curl.
    pub fn request(&self, path: &str, options: &[&str]) -> Result<PageResponse, Failure> {
        self.page(path, self.curl(path, options).stdin(Stdio::null()))
    }

    /// Returns a curl command that prints the body and the properties of the response.
    pub fn curl(&self, path: &str, options: &[&str]) -> Command {
        let cookies = self.cookies();
        let mut curl = Command::new("curl");
        curl.args([
            "-sS",
            "--path-as-is",
            "--max-time",
            TIMEOUT_SECONDS,
            "-w",
            WRITE_OUT,
            self.version,
        ]);
        curl.arg("--cacert").arg(&self.roots);
        curl.arg("-b").arg(&cookies).arg("-c").arg(&cookies);
        if let Some(target) = &self.connect_to {
            curl.args(["--connect-to", target]);
        }
        curl.args(options).arg(self.url(path));
        curl
    }

    /// Runs a curl command that writes the body to a file, and returns the response.
    pub fn page(&self, path: &str, curl: &mut Command) -> Result<PageResponse, Failure> {
        let url = self.url(path);
        // curl creates no file for an empty body.
        fs::write(self.content(), "")?;
        let run = curl.arg("-o").arg(self.content()).output()?;
        let output = String::from_utf8_lossy(&run.stdout);
        if !run.status.success() {
            let why = String::from_utf8_lossy(&run.stderr);
            return Err(format!("{url}: {}", why.trim()).into());
        }
        let mut fields = output.lines();
        let mut next = || fields.next().unwrap_or_default();
        let version = next();
        if version != self.version.trim_start_matches("--http") {
            return Err(format!("{url} used HTTP/{version} instead of {}", self.version).into());
        }
        Ok(PageResponse {
            status: next().parse()?,
            location: next().to_owned(),
            media_type: next().to_owned(),
            content: fs::read(self.content())?,
            url,
        })
    }

    fn content(&self) -> PathBuf {
        self.folder.path().join("content")
    }
}

impl PageResponse {
    /// Checks that the response has this status and contains these parts.
    pub fn expect(self, status: u16, parts: &[&str]) -> Result<Self, Failure> {
        if self.status != status {
            return Err(self.wrong(&format!("{}, not {status}", self.status)));
        }
        let text = self.text();
        match parts.iter().find(|part| !text.contains(**part)) {
            None => {
                println!("{status} {}", self.url);
                Ok(self)
            }
            Some(part) => Err(self.wrong(&format!("no {part:?}"))),
        }
    }

    /// Checks that the response redirects to a URL that contains `location`.
    pub fn expect_redirect(self, location: &str) -> Result<Self, Failure> {
        if self.location.contains(location) {
            return self.expect(302, &[]);
        }
        Err(self.wrong(&format!("it redirects to {:?} instead of {location:?}", self.location)))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    /// Returns the initial value of a form field, such as a CSRF token.
    pub fn field(&self, name: &str) -> Result<String, Failure> {
        field(&self.text(), name).ok_or_else(|| self.wrong(&format!("no field {name:?}")))
    }

    /// Returns the string at `pointer` of a JSON page.
    pub fn json(&self, pointer: &str) -> Result<String, Failure> {
        let value: serde_json::Value = serde_json::from_slice(&self.content)?;
        match value.pointer(pointer) {
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(value) => Ok(value.to_string()),
            None => Err(self.wrong(&format!("no {pointer}"))),
        }
    }

    /// Returns the error for a page that is not as expected.
    pub fn wrong(&self, why: &str) -> Failure {
        let text: String = self.text().chars().take(MAX_SHOWN).collect();
        format!("{}: {why} ({} {})\n{text}", self.url, self.status, self.location).into()
    }
}

fn field(html: &str, name: &str) -> Option<String> {
    let inputs = html.split("<input").skip(1);
    let tag = inputs
        .filter_map(|rest| rest.split('>').next())
        .find(|tag| attribute(tag, "name") == Some(name))?;
    let value = attribute(tag, "value").unwrap_or_default();
    Some(
        value
            .replace("&quot;", "\"")
            .replace("&#039;", "'")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    ['"', '\''].into_iter().find_map(|quote| {
        let (_, rest) = tag.split_once(&format!(" {name}={quote}"))?;
        rest.split(quote).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_forms_are_read_from_the_page() {
        let html = "<form><input type=\"text\" id=\"a\"><input type='hidden' name='nonce' value='1f&amp;2' />\
                    <input value=\"x\" name=\"token\">\n<input name=\"empty\"></form>";
        let rows = [
            ("nonce", Some("1f&2")),
            ("token", Some("x")),
            ("empty", Some("")),
            ("a", None),
            ("", None),
        ];
        for (name, expected) in rows {
            assert_eq!(field(html, name).as_deref(), expected, "{name}");
        }
    }
}
