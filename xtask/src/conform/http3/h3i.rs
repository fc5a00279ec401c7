//! Runs the cases of `xtask/h3i` with h3i, the client of quiche that can violate the rules of HTTP/3.

use super::site::{TestSite, UPSTREAM_PACKAGES};
use crate::command::{cargo, command, run as run_command};
use crate::{Failure, repository, tools};
use std::path::{Path, PathBuf};

/// Variable in which BoringSSL expects the file with the trusted roots.
const ROOTS: &str = "SSL_CERT_FILE";

/// Maximum growth of the server's memory during a flood of RETIRE_CONNECTION_ID. The connection IDs that the client
/// retires would need five times as much if the server kept them.
const MAX_GROWTH_KIB: u64 = 2048;

pub fn run(program: &Path) -> Result<(), Failure> {
    let client = build()?;
    let packages = tools::python_packages("http3-upstream", &UPSTREAM_PACKAGES)?;
    let site = TestSite::start(program, &packages, "")?;
    let port = site.server.port()?.to_string();
    run_command(command(&client).arg(&port).env(ROOTS, site.roots()))?;
    let before = site.server.peak_memory_kib()?;
    run_command(
        command(&client)
            .args([&port, "--retire-connection-ids"])
            .env(ROOTS, site.roots()),
    )?;
    let grown = site.server.peak_memory_kib()?.saturating_sub(before);
    println!("memory has grown by {grown} KiB");
    if grown > MAX_GROWTH_KIB {
        return Err(format!("a flood of RETIRE_CONNECTION_ID has cost {grown} KiB").into());
    }
    Ok(())
}

/// Builds the client, which is a separate workspace, and returns its path. The first build takes minutes.
fn build() -> Result<PathBuf, Failure> {
    let target = repository::target().join("h3i");
    let mut cargo = cargo();
    cargo.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
    cargo.arg(repository::root().join("xtask/h3i/Cargo.toml"));
    run_command(cargo.arg("--target-dir").arg(&target))?;
    Ok(target.join("release/h3i-client"))
}
