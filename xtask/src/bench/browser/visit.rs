//! Loads the page of 60 resources in headless Chromium and parses the times that its script reports.

use super::content::{PATH, RESOURCES};
use crate::Failure;
use crate::command::find;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Seconds after which a browser that hangs is stopped. A visit with 100 ms of round trip and 5 % of loss takes half a
/// minute.
const TIMEOUT_SECONDS: &str = "120";

/// Installed Chromium.
pub struct Browser {
    program: PathBuf,
}

/// Version of HTTP to which a visit is restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
    Http3,
}

/// Times of one visit, in milliseconds since the start of the navigation.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Visit {
    /// End of DOMContentLoaded.
    pub parsed: f64,
    /// End of the load event.
    pub loaded: f64,
    /// The document, and then the resources in the order of their requests.
    pub parts: Vec<PartTiming>,
}

/// Times of the document or of a resource, in milliseconds since the start of the navigation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PartTiming {
    /// Last segment of the URL.
    pub name: String,
    /// ALPN name of the protocol that it arrived over.
    protocol: String,
    /// True if the page is not rendered before it has arrived.
    blocking: bool,
    pub start: f64,
    pub first_byte: f64,
    pub end: f64,
    /// Bytes of the body as transferred.
    bytes: u64,
}

impl Browser {
    /// Finds Chromium.
    pub fn find() -> Result<Browser, Failure> {
        let program = find("chromium").ok_or("chromium is missing: apt-get install chromium")?;
        Ok(Browser { program })
    }

    /// Loads the page of a server with an empty profile. `wrapper`: a program with arguments that runs the command
    /// after them; empty for none. `options`: further options of the browser. Fails if a resource is missing, or if one
    /// arrived over another version of HTTP.
    pub fn visit(
        &self,
        wrapper: &[OsString],
        (host, port): (&str, u16),
        protocol: Protocol,
        options: &[&str],
    ) -> Result<Visit, Failure> {
        let profile = tempfile::tempdir()?;
        let mut all = protocol.options(host, port);
        all.extend(owned(options));
        all.push(format!("--user-data-dir={}", profile.path().display()));
        let text = self.dump(wrapper, &all, &format!("https://{host}:{port}{PATH}"))?;
        let visit = parse(&text).ok_or_else(|| format!("no load times in the browser's output: {text}"))?;
        match visit.parts.iter().find(|part| part.protocol != protocol.alpn()) {
            Some(part) => Err(format!(
                "{} arrived over {:?} instead of {}",
                part.name,
                part.protocol,
                protocol.alpn()
            )
            .into()),
            None => Ok(visit),
        }
    }

    /// Returns the DOM after the page has loaded.
    fn dump(&self, wrapper: &[OsString], options: &[String], url: &str) -> Result<String, Failure> {
        let words = [wrapper, &["timeout".into(), TIMEOUT_SECONDS.into()]].concat();
        let output = Command::new(&words[0])
            .args(&words[1..])
            .arg(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--dump-dom",
            ])
            .args(options)
            .arg(url)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Protocol {
    /// Returns the name by which ALPN and `nextHopProtocol` call the version.
    fn alpn(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        }
    }

    /// Returns the options that restrict the browser to this version for a site.
    fn options(self, host: &str, port: u16) -> Vec<String> {
        match self {
            Self::Http1 => owned(&["--disable-quic", "--disable-http2"]),
            Self::Http2 => owned(&["--disable-quic"]),
            Self::Http3 => vec![format!("--origin-to-force-quic-on={host}:{port}")],
        }
    }
}

impl Visit {
    /// Returns the moment at which the last resource that blocks rendering has arrived.
    pub fn last_blocking(&self) -> f64 {
        let blocking = self.parts.iter().filter(|part| part.blocking);
        blocking.map(|part| part.end).fold(0.0, f64::max)
    }

    /// Returns the number of bytes of all bodies as transferred.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Parses the times from the page that reports them. Returns `None` if the browser did not load all resources.
fn parse(page: &str) -> Option<Visit> {
    let (json, _) = page.split_once("times ")?.1.rsplit_once(" end")?;
    let visit: Visit = serde_json::from_str(json).ok()?;
    (visit.parts.len() == 1 + RESOURCES).then_some(visit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str =
        r#"{"name":"0.css","protocol":"h3","blocking":true,"start":1.5,"first_byte":20,"end":30.25,"bytes":12}"#;

    #[test]
    fn times_are_read_only_if_all_resources_were_loaded() {
        let page = |parts| {
            let parts = vec![PART; parts].join(",");
            format!("<html>times {{\"parsed\":812.5,\"loaded\":2300,\"parts\":[{parts}]}} end</html>")
        };
        let visit = parse(&page(60)).expect("a visit");
        assert_eq!((visit.parsed, visit.loaded, visit.parts.len()), (812.5, 2300.0, 60));
        assert_eq!((visit.last_blocking(), visit.bytes()), (30.25, 720));
        assert_eq!(parse(&page(59)), None);
        assert_eq!(parse("<html>"), None);
    }
}
