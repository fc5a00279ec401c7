//! Finds the server programs of the bench, and writes their configurations and command lines.

pub mod apache;
pub mod caddy;
pub mod floor;
pub mod h2o;
pub mod h3;
pub mod haproxy;
pub mod lighttpd;
pub mod nginx;
pub mod rocknet;
pub mod varnish;

use super::content::{Certificate, Site};
use super::page::Page;
use super::variant::{Scheme, Variant, Version};
use crate::Failure;
use crate::tools::CADDY;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server program that can be measured or serve as a back end.
pub struct ServerProgram {
    /// Name on the command line and in tables.
    pub name: &'static str,
    /// Description of the program's options for the report.
    pub settings: &'static str,
    /// Maximum connections that the configuration permits. Rows that open more connections skip and report the program.
    pub connections: u32,
    /// Returns the path of the program, or `None` if it is not installed.
    find: fn() -> Option<PathBuf>,
    /// Argument that prints the version; `None` for programs that only this checkout has.
    version: Option<&'static str>,
    /// Writes the configuration and returns the command that starts the program.
    configure: fn(&Deployment<'_>) -> Result<Launch, Failure>,
}

/// Content, port and protocols of a server for one row.
pub struct Deployment<'a> {
    pub port: u16,
    pub site: &'a Site,
    /// Folder for the files of this server only.
    pub scratch: &'a Path,
    pub page: Page,
    pub variant: Variant,
    pub scheme: Scheme,
    pub version: Version,
    /// Ports of the upstreams, if the variant has any.
    pub upstreams: &'a [u16],
}

/// Command that starts a server.
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Configuration file as written, for the report.
    pub configuration: String,
}

/// Connection limit of servers whose configuration sets no limit.
const NO_LIMIT: u32 = u32::MAX;
/// Connection limit in tuned configurations: above the 10,000 of the largest row.
const CONNECTIONS: u32 = 20_000;

/// Idle FastCGI connections that are kept open: as many as any row uses.
const KEEP_ALIVE_CONNECTIONS: u32 = 64;

impl ServerProgram {
    pub fn path(&self) -> Option<PathBuf> {
        (self.find)()
    }

    pub fn is_floor(&self) -> bool {
        self.name.starts_with("floor")
    }

    pub fn configure(&self, deployment: &Deployment<'_>) -> Result<Launch, Failure> {
        (self.configure)(deployment).map_err(|failure| format!("{}: {failure}", self.name).into())
    }

    /// Returns the version in the first line of the program's version output.
    pub fn version(&self) -> String {
        // Caddy prints "unknown" if it was built by `go install`.
        if self.name == CADDY.name() {
            return CADDY.version().into();
        }
        let (Some(program), Some(argument)) = (self.path(), self.version) else {
            return "of this checkout".into();
        };
        let Ok(output) = Command::new(program).arg(argument).output() else {
            return "unknown".into();
        };
        // nginx prints its version on standard error.
        let text = [output.stdout, output.stderr].concat();
        let line = String::from_utf8_lossy(&text)
            .lines()
            .next()
            .unwrap_or("unknown")
            .to_owned();
        line.replace("Server version: ", "")
            .replace("nginx version: ", "")
            .split(" - ")
            .next()
            .unwrap_or("")
            .trim()
            .into()
    }
}

impl Deployment<'_> {
    fn is_http2(&self) -> bool {
        self.version == Version::Http2
    }

    /// Returns the certificate of a lane with TLS, or `None` without TLS.
    fn certificate(&self) -> Result<Option<Certificate>, Failure> {
        match self.scheme {
            Scheme::Http => Ok(None),
            Scheme::Https(kind) => self.site.certificate(kind).map(Some),
        }
    }
}

/// Returns the cargo profile of the measured builds: that of the variable `ROCKNET_PROFILE`, or `release`.
pub fn profile() -> String {
    std::env::var("ROCKNET_PROFILE").unwrap_or_else(|_| "release".into())
}

/// Writes `configuration` to `name` in the server's folder and returns its path.
fn write(deployment: &Deployment<'_>, name: &str, configuration: &str) -> Result<PathBuf, Failure> {
    let path = deployment.scratch.join(name);
    std::fs::write(&path, configuration)?;
    Ok(path)
}

/// Returns `line` if servers are started as root, and an empty string otherwise. `line` names the user that a server
/// switches to.
pub fn user(line: &str) -> &str {
    if rustix::process::geteuid().is_root() { line } else { "" }
}
