//! Runs the cases of `aioquic/cases.py` with aioquic, an implementation of QUIC and HTTP/3 in Python.

use super::site::{TestSite, UPSTREAM_PACKAGES};
use crate::command::{command, run as run_command};
use crate::{Failure, tools};
use std::fs;
use std::path::Path;

/// The client, in a fixed version.
const PACKAGE: &str = "aioquic==1.7.2";
/// Modules of the client program, by file name.
const MODULES: [(&str, &str); 5] = [
    ("cases.py", include_str!("aioquic/cases.py")),
    ("client.py", include_str!("aioquic/client.py")),
    ("half_open.py", include_str!("aioquic/half_open.py")),
    ("violations.py", include_str!("aioquic/violations.py")),
    ("websocket.py", include_str!("aioquic/websocket.py")),
];
/// Cases of `cases.py`. The last one leaves handshakes in progress.
const CASES: [&str; 16] = [
    "files",
    "large",
    "parallel",
    "upload",
    "qpack",
    "key_update",
    "version_negotiation",
    "ciphers",
    "resumption",
    "address_change",
    "cancellation",
    "reserved",
    "violations",
    "events",
    "websocket",
    "retry",
];

pub fn run(program: &Path) -> Result<(), Failure> {
    let [uvicorn, websockets] = UPSTREAM_PACKAGES;
    let packages = tools::python_packages("http3", &[PACKAGE, uvicorn, websockets])?;
    let site = TestSite::start(program, &packages, "")?;
    let client = tempfile::tempdir()?;
    for (name, text) in MODULES {
        fs::write(client.path().join(name), text)?;
    }
    run_command(
        command("python3")
            .arg(client.path().join("cases.py"))
            .arg(site.server.port()?.to_string())
            .arg(site.roots())
            .arg(site.files())
            .args(CASES)
            .env("PYTHONPATH", &packages),
    )
}
