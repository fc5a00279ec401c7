//! `cargo xtask conform reload`: reloads and upgrades a server under the load of clients of other projects. No request
//! may fail, no connection may be cut, and nothing may be left over.

mod clients;
mod generators;
mod process;
mod reloads;
mod site;
mod upgrades;

use self::clients::Clients;
use self::site::ReloadSite;
use crate::packages::{self, Purpose};
use crate::{Failure, tools};
use std::path::Path;

/// Name of a part, and its work with the built server.
type ReloadPart = (&'static str, fn(&Path) -> Result<(), Failure>);

/// Parts of the step: the same load with each I/O back end.
pub const PARTS: [ReloadPart; 2] = [
    ("reload epoll", |program| run(program, "epoll")),
    ("reload io_uring", |program| run(program, "io_uring")),
];

fn run(program: &Path, backend: &'static str) -> Result<(), Failure> {
    packages::require(Purpose::Applications)?;
    let client = Clients::build()?;
    let packages = tools::python_packages("http3-upstream", &super::http3::site::UPSTREAM_PACKAGES)?;
    let site = ReloadSite::start(program, backend, &packages)?;
    let outcome = reloads::run(&site, &client).and_then(|()| upgrades::run(&site, &client));
    outcome.map_err(|error| format!("{error}\nlast lines of the error log:\n{}", site.last_errors()))?;
    site.stop()
}
