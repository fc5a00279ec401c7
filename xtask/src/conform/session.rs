//! A visitor of a website: curl, over HTTP/2 unless told otherwise, with cookies that it keeps from page to page.

use super::server::TestServer;
use crate::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

/// Seconds that an answer may take: installing an application is slow on a busy machine.
const TIMEOUT_SECONDS: &str = "120";
/// What curl tells of an answer beside its content, a line each.
const WRITE_OUT: &str = "%{http_version}\n%{http_code}\n%{redirect_url}\n%{content_type}\n";
/// As much of a wrong page as helps to find out why.
const MAX_SHOWN: usize = 4000;

pub struct Session {
    url: String,
    folder: Rc<tempfile::TempDir>,
    roots: PathBuf,
    /// The option of curl for the version of HTTP.
    version: &'static str,
}

/// What a session was shown.
pub struct PageResponse {
    pub url: String,
    pub status: u16,
    /// Where the answer leads to, whole; empty where it leads nowhere.
    pub location: String,
    pub media_type: String,
    pub content: Vec<u8>,
}

impl Session {
    /// A visitor of `server` who trusts the local CA below its `state` folder, and has no cookies yet.
    pub fn new(server: &TestServer, state: &Path) -> Result<Self, Failure> {
        Ok(Self {
            url: server.url(""),
            folder: Rc::new(tempfile::tempdir()?),
            roots: state.join("local/ca.pem"),
            version: "--http2",
        })
    }

    /// The same session by another version of HTTP.
    pub fn with_version(&self, version: &'static str) -> Self {
        Self {
            url: self.url.clone(),
            folder: Rc::clone(&self.folder),
            roots: self.roots.clone(),
            version,
        }
    }

    /// The file of certificates that are trusted.
    pub fn roots(&self) -> &Path {
        &self.roots
    }

    /// The whole URL of a path; one that is whole stays as it is.
    pub fn url(&self, path: &str) -> String {
        if path.starts_with('/') {
            format!("{}{path}", self.url)
        } else {
            path.to_owned()
        }
    }

    /// Asks for a path, or for a whole URL that a page named.
    pub fn get(&self, path: &str) -> Result<PageResponse, Failure> {
        self.request(path, &[])
    }

    /// Sends a form as browsers do.
    pub fn post(&self, path: &str, form: &[(&str, &str)]) -> Result<PageResponse, Failure> {
        let mut options = Vec::new();
        for (name, value) in form {
            options.push("--data-urlencode".to_owned());
            options.push(format!("{name}={value}"));
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.request(path, &options)
    }

    /// Asks with more options of curl.
    pub fn request(&self, path: &str, options: &[&str]) -> Result<PageResponse, Failure> {
        self.page(path, self.curl(path, options).stdin(Stdio::null()))
    }

    /// A curl that asks, and prints content and what is told of the answer.
    pub fn curl(&self, path: &str, options: &[&str]) -> Command {
        let cookies = self.folder.path().join("cookies");
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
        curl.args(options).arg(self.url(path));
        curl
    }

    /// Runs such a curl, its content put aside: what it was shown.
    pub fn page(&self, path: &str, curl: &mut Command) -> Result<PageResponse, Failure> {
        let url = self.url(path);
        // A page without content leaves no file.
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
            return Err(format!("{url} came by HTTP/{version}, not by {}", self.version).into());
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
    /// It must have this status and hold these parts.
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

    /// It must lead to `location`, or further on from there.
    pub fn expect_redirect(self, location: &str) -> Result<Self, Failure> {
        if self.location.contains(location) {
            return self.expect(302, &[]);
        }
        Err(self.wrong(&format!("it leads to {:?}, not {location:?}", self.location)))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    /// What a field of a form holds before anybody has touched it: the secrets that tell a form from a forged one.
    pub fn field(&self, name: &str) -> Result<String, Failure> {
        field(&self.text(), name).ok_or_else(|| self.wrong(&format!("no field {name:?}")))
    }

    /// The string at `pointer` of a page in JSON.
    pub fn json(&self, pointer: &str) -> Result<String, Failure> {
        let value: serde_json::Value = serde_json::from_slice(&self.content)?;
        match value.pointer(pointer) {
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(value) => Ok(value.to_string()),
            None => Err(self.wrong(&format!("no {pointer}"))),
        }
    }

    /// The failure for a page that is not what it should be.
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
