//! Runs the cases of `quic-go/` with quic-go, the implementation of QUIC and HTTP/3 in Go.

use super::site::{TestSite, UPSTREAM_PACKAGES};
use crate::command::{command, run as run_command};
use crate::{Failure, tools};
use std::path::{Path, PathBuf};

/// Cases of the program, without `chacha20`, which needs another environment. The last one leaves handshakes in
/// progress.
const CASES: [&str; 8] = [
    "handshake",
    "transfer",
    "keyupdate",
    "resumption",
    "zerortt",
    "multiconnect",
    "http3",
    "retry",
];
/// Silences a warning about sockets whose buffers quic-go cannot enlarge.
const WITHOUT_WARNING: (&str, &str) = ("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true");
/// Environment in which Go behaves as on a processor without AES, where it prefers ChaCha20.
const WITHOUT_AES: (&str, &str) = ("GODEBUG", "cpu.aes=off");

pub fn run(program: &Path) -> Result<(), Failure> {
    let client = client()?;
    let packages = tools::python_packages("http3-upstream", &UPSTREAM_PACKAGES)?;
    let site = TestSite::start(program, &packages, "")?;
    let run = |cases: &[&str], (variable, value)| -> Result<_, Failure> {
        let mut client = command(&client);
        client.arg(site.server.port()?.to_string()).arg(site.roots());
        run_command(client.arg(site.files()).args(cases).env(variable, value))
    };
    run(&["chacha20"], WITHOUT_AES)?;
    run(&CASES, WITHOUT_WARNING)
}

/// Builds the client and returns its path.
pub fn client() -> Result<PathBuf, Failure> {
    tools::go_program("quic-go-client", "xtask/src/conform/http3/quic-go")
}
