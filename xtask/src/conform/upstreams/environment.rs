//! Where the step runs: the built server, the packages of applications, and a folder for both.

use super::upstream::{Upstream, UpstreamKind};
use crate::Failure;
use crate::conform::server::TestServer;
use std::fs;
use std::path::Path;

/// As many lines of the log as help to find out why something failed.
const MAX_LINES: usize = 20;

/// What all parts of the step need.
pub struct Environment<'a> {
    pub program: &'a Path,
    pub packages: &'a Path,
    pub home: &'a Path,
}

impl Environment<'_> {
    pub fn upstream(&self, kind: &'static UpstreamKind, name: &str) -> Result<Upstream, Failure> {
        Upstream::start(kind, name, self.home, self.packages)
    }

    /// The last lines that the built server wrote into its error log.
    pub fn errors(&self) -> String {
        let text = fs::read_to_string(self.home.join("errors.log")).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(MAX_LINES).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// The built server, with all that `site` is asked passed on to these.
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
