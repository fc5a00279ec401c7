//! Programs of `bench/h3`: the floor of HTTP/3, a reference server, and the load generator.

use super::{Deployment, Launch, NO_LIMIT, ServerProgram, profile};
use crate::command::{cargo, run};
use crate::{Failure, repository};
use std::ffi::OsString;
use std::path::PathBuf;

pub const FLOOR: ServerProgram = ServerProgram {
    name: "floor-h3",
    settings: "quinn-proto on one epoll loop; requests are not parsed, HEADERS and DATA encoded in advance, all responses \
               of a connection in one send",
    connections: NO_LIMIT,
    find: || built("floor-h3"),
    version: None,
    configure: |deployment| configure("floor-h3", deployment, &[]),
};

/// The usual way to make an HTTP/3 server in Rust.
pub const REFERENCE: ServerProgram = ServerProgram {
    name: "reference-h3",
    settings: "quinn with the h3 crate on one thread of tokio; 13 constant bytes, files read in pieces of 64 KiB",
    connections: NO_LIMIT,
    find: || built("reference-h3"),
    version: None,
    configure: |deployment| configure("reference-h3", deployment, &[deployment.site.root().into()]),
};

/// Returns the path of the load generator if it has been built.
pub fn load_generator() -> Option<PathBuf> {
    built("h3-load")
}

/// Builds the programs. They are a separate workspace.
pub fn build() -> Result<(), Failure> {
    let mut cargo = cargo();
    cargo.args([
        "build",
        "--locked",
        "--quiet",
        "--profile",
        &profile(),
        "--manifest-path",
    ]);
    cargo.arg(repository::root().join("bench/h3/Cargo.toml"));
    run(cargo.arg("--target-dir").arg(target()))
}

fn target() -> PathBuf {
    repository::target().join("bench-h3")
}

fn built(name: &str) -> Option<PathBuf> {
    Some(target().join(profile()).join(name)).filter(|path| path.exists())
}

fn configure(name: &str, deployment: &Deployment<'_>, more: &[OsString]) -> Result<Launch, Failure> {
    let certificate = deployment.certificate()?.ok_or("HTTP/3 needs a certificate")?;
    let mut arguments = vec![
        deployment.port.to_string().into(),
        certificate.chain.into(),
        certificate.key.into(),
    ];
    arguments.extend_from_slice(more);
    Ok(Launch {
        program: built(name).ok_or("not built")?,
        arguments,
        configuration: String::new(),
    })
}
