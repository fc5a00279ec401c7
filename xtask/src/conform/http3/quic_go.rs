//! Runs the cases of `quic-go/` with quic-go, the implementation of QUIC and HTTP/3 in Go.

use super::site::{EARLY_DATA, TestSite, UPSTREAM_PACKAGES};
use crate::command::{command, output, run as run_command};
use crate::{Failure, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
/// Cases on a site that accepts early data.
const EARLY_DATA_CASES: [&str; 2] = ["earlydata", "replay"];
/// Silences a warning about sockets whose buffers quic-go cannot enlarge.
const WITHOUT_WARNING: (&str, &str) = ("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true");
/// Environment in which Go behaves as on a processor without AES, where it prefers ChaCha20.
const WITHOUT_AES: (&str, &str) = ("GODEBUG", "cpu.aes=off");

pub fn run(program: &Path) -> Result<(), Failure> {
    let client = QuicGoClient::build()?;
    let packages = tools::python_packages("http3-upstream", &UPSTREAM_PACKAGES)?;
    let site = TestSite::start(program, &packages, "")?;
    client.run(&site, &["chacha20"], WITHOUT_AES)?;
    client.run(&site, &CASES, WITHOUT_WARNING)?;
    let early = TestSite::start(program, &packages, EARLY_DATA)?;
    client.run(&early, &EARLY_DATA_CASES, WITHOUT_WARNING)
}

/// Client program with quic-go, which runs the cases and transfers single bodies.
pub struct QuicGoClient {
    program: PathBuf,
}

impl QuicGoClient {
    /// Builds the program.
    pub fn build() -> Result<QuicGoClient, Failure> {
        let program = tools::go_program("quic-go-client", "xtask/src/conform/http3/quic-go")?;
        Ok(QuicGoClient { program })
    }

    /// Runs cases on a site, with a variable of the environment and its value.
    fn run(&self, site: &TestSite, cases: &[&str], (variable, value): (&str, &str)) -> Result<(), Failure> {
        let mut client = command(&self.program);
        client.arg(site.server.port()?.to_string()).arg(site.roots());
        run_command(client.arg(site.files()).args(cases).env(variable, value))
    }

    /// Requests a path, whose response must have the bytes of `file`. The site at `port` has the local CA below
    /// `state`.
    pub fn get(&self, port: u16, state: &Path, path: &str, file: &Path) -> Result<(), Failure> {
        self.transfer(&mut self.command("get", port, state, path), path, file)
    }

    /// Sends `file` to a path, which must respond with the length and the digest.
    pub fn put(&self, port: u16, state: &Path, path: &str, file: &Path) -> Result<(), Failure> {
        self.transfer(self.command("put", port, state, path).arg(file), path, file)
    }

    fn command(&self, direction: &str, port: u16, state: &Path, path: &str) -> Command {
        let mut client = command(&self.program);
        client.arg(direction).arg(port.to_string());
        client.arg(state.join("local/ca.pem")).arg(path);
        client
    }

    /// Runs the client, which must print the status 200 and the digest of `file`.
    fn transfer(&self, client: &mut Command, path: &str, file: &Path) -> Result<(), Failure> {
        let printed = output(client)?;
        let expected = format!("200 {}", digest(file)?);
        if printed.trim() != expected {
            return Err(format!("{path}: {printed:?}, not {expected:?}").into());
        }
        println!("{path}: {expected}");
        Ok(())
    }
}

/// Returns the length and the SHA-256 of a file.
fn digest(file: &Path) -> Result<String, Failure> {
    let printed = output(command("sha256sum").arg(file))?;
    let hexadecimal = printed.split(' ').next().unwrap_or_default();
    Ok(format!("{} {hexadecimal}", fs::metadata(file)?.len()))
}
