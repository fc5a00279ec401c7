//! Runs the cases of `xtask/h3i` with h3i, the client of quiche that can violate the rules of HTTP/3.

use super::site::{TestSite, UPSTREAM_PACKAGES};
use crate::command::{cargo, command, run as run_command};
use crate::{Failure, repository, tools};
use std::path::{Path, PathBuf};

/// Variable in which BoringSSL expects the file with the trusted roots.
const ROOTS: &str = "SSL_CERT_FILE";

pub fn run(program: &Path) -> Result<(), Failure> {
    let client = build()?;
    let packages = tools::python_packages("http3-upstream", &UPSTREAM_PACKAGES)?;
    let site = TestSite::start(program, &packages, "")?;
    run_command(
        command(client)
            .arg(site.server.port()?.to_string())
            .env(ROOTS, site.roots()),
    )
}

/// Builds the client, a workspace of its own, and returns its path. The first build takes minutes.
fn build() -> Result<PathBuf, Failure> {
    let target = repository::target().join("h3i");
    let mut cargo = cargo();
    cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
    cargo.arg(repository::root().join("xtask/h3i/Cargo.toml"));
    run_command(cargo.arg("--target-dir").arg(&target))?;
    Ok(target.join("release/h3i-client"))
}
