//! The servers of the bench: where each is found, how it is configured, and how it is started.

pub mod apache;
pub mod caddy;
pub mod floor;
pub mod h2o;
pub mod haproxy;
pub mod lighttpd;
pub mod nginx;
pub mod rocknet;

use super::content::{Certificate, Site};
use super::page::Page;
use super::variant::{Scheme, Variant, Version};
use crate::Failure;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A server that can take part.
pub struct ServerProgram {
    /// How it is called on the command line and in tables.
    pub name: &'static str,
    /// Its settings in words, for the report.
    pub settings: &'static str,
    /// The most connections its settings admit: rows that open more leave it out and say so.
    pub connections: u32,
    /// Where its program lies, when it is there.
    find: fn() -> Option<PathBuf>,
    /// The argument that makes it tell its version; none for our own.
    version: Option<&'static str>,
    /// Writes its configuration and says how it is started.
    configure: fn(&Deployment<'_>) -> Result<Launch, Failure>,
}

/// What a server is to serve, where.
pub struct Deployment<'a> {
    pub port: u16,
    pub site: &'a Site,
    /// A folder of the server's own.
    pub scratch: &'a Path,
    pub page: Page,
    pub variant: Variant,
    pub scheme: Scheme,
    pub version: Version,
    /// The ports of the servers to pass requests on to, where the variant has any.
    pub upstreams: &'a [u16],
}

/// How a server is started.
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Its configuration file as written, for the report.
    pub configuration: String,
}

/// More connections than any row opens, for the servers whose settings do not limit them.
const NO_LIMIT: u32 = u32::MAX;
/// What the tuned servers are told: above the 10,000 of the largest row.
const CONNECTIONS: u32 = 20_000;

/// Connections by FastCGI that are kept open: as many as any row has.
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

    /// The first line in which the program tells its version.
    pub fn version(&self) -> String {
        let (Some(program), Some(argument)) = (self.path(), self.version) else {
            return "of this checkout".into();
        };
        let Ok(output) = Command::new(program).arg(argument).output() else {
            return "unknown".into();
        };
        // nginx tells its version on standard error.
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

    /// The certificate to answer with, in a lane that speaks TLS.
    fn certificate(&self) -> Result<Option<Certificate>, Failure> {
        match self.scheme {
            Scheme::Http => Ok(None),
            Scheme::Https(kind) => self.site.certificate(kind).map(Some),
        }
    }
}

/// Writes `configuration` to `name` in the server's folder and returns its path.
fn write(deployment: &Deployment<'_>, name: &str, configuration: &str) -> Result<PathBuf, Failure> {
    let path = deployment.scratch.join(name);
    std::fs::write(&path, configuration)?;
    Ok(path)
}

/// The user that servers started as root drop to; without root they have no choice and are told none.
pub fn user(line: &str) -> &str {
    if rustix::process::geteuid().is_root() { line } else { "" }
}
