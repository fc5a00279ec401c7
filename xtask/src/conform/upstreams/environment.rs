//! Environment of the step `upstreams`: the built server, the Python packages, and a folder for its files.

use super::upstream::{Upstream, UpstreamKind};
use crate::Failure;
use crate::conform::server::TestServer;
use std::fs;
use std::path::Path;

/// Maximum lines of the log in an error: enough to find the reason.
const MAX_LINES: usize = 20;

/// Paths that all parts of the step need.
pub struct Environment<'a> {
    pub program: &'a Path,
    pub packages: &'a Path,
    pub home: &'a Path,
}

impl Environment<'_> {
    /// Starts an upstream. `name` distinguishes upstreams of one kind.
    pub fn upstream(&self, kind: &'static UpstreamKind, name: &str) -> Result<Upstream, Failure> {
        Upstream::start(kind, name, self.home, self.packages)
    }

    /// Returns the last lines of the built server's error log.
    pub fn errors(&self) -> String {
        let text = fs::read_to_string(self.home.join("errors.log")).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(MAX_LINES).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Starts the built server with `site` as a proxy for `upstreams`.
    pub fn serve(&self, site: &str, upstreams: &[&Upstream]) -> Result<TestServer, Failure> {
        let to: Vec<_> = upstreams
            .iter()
            .map(|upstream| format!("\"{}\"", upstream.url()))
            .collect();
        let settings = format!(
            "[server]\nstate = \"state\"\n[log]\nerrors = \"errors.log\"\n{site}proxy = [{}]\n",
            to.join(", ")
        );
        fs::write(self.home.join("rocknet.toml"), settings)?;
        TestServer::start(self.program, &["run"], self.home)
    }
}
