//! Runs the clients of `clients/`: Go's HTTP/1.1 and HTTP/2, and quic-go, with slow downloads, uploads and WebSockets.

use super::process::wait;
use super::site::ReloadSite;
use crate::command::command;
use crate::{Failure, tools};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Kinds of exchanges that end quickly, so that each of them has to make progress between two reloads.
const QUICK: [&str; 4] = ["get", "connect", "echo", "script"];
/// Number of complete exchanges of each quick kind between two reloads, over all four protocols together.
const PROGRESS: u64 = 2;
/// Number of kinds of exchanges: six over four protocols, and the echoes of each protocol.
const KINDS: usize = 28;
/// Number of kinds whose exchanges are complete only at the end of the load: a WebSocket over each protocol.
const LASTING: usize = 4;

/// The built program.
pub struct Clients(PathBuf);

impl Clients {
    pub fn build() -> Result<Clients, Failure> {
        Ok(Clients(tools::go_program(
            "reload-clients",
            "xtask/src/conform/reload/clients",
        )?))
    }

    /// Starts the clients of a site.
    pub fn start(&self, site: &ReloadSite) -> Result<RunningClients, Failure> {
        let (clear, secure) = site.ports();
        let mut child = command(&self.0)
            .args([clear.to_string(), secure.to_string()])
            .arg(site.roots())
            .arg(site.files())
            // quic-go cannot enlarge the buffers of sockets without root's rights, and warns about it.
            .env("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input of the clients")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output of the clients")?);
        Ok(RunningClients {
            child,
            channel: RefCell::new((input, output)),
        })
    }
}

/// The clients, killed when dropped.
pub struct RunningClients {
    child: Child,
    channel: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

/// Numbers of complete exchanges by kind, and of failures.
#[derive(Deserialize)]
pub struct Counts {
    pub counts: BTreeMap<String, u64>,
    pub failed: u64,
}

impl Counts {
    /// Returns the sum of the counts of a kind over all protocols.
    fn of_kind(&self, kind: &str) -> u64 {
        let all = self.counts.iter().filter(|(name, _)| name.ends_with(kind));
        all.map(|(_, count)| count).sum()
    }
}

impl RunningClients {
    pub fn counts(&self) -> Result<Counts, Failure> {
        let (input, output) = &mut *self.channel.borrow_mut();
        writeln!(input, "counts")?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Opens connections to another port with TLS, which are used until the end.
    pub fn visit(&self, port: u16) -> Result<(), Failure> {
        Ok(writeln!(self.channel.borrow_mut().0, "visit {port}")?)
    }

    /// Waits until quick exchanges of each kind were completed, or one has failed.
    pub fn wait_for_progress(&self) -> Result<(), Failure> {
        let before = self.counts()?;
        wait("exchanges of the clients", || {
            let now = self.counts()?;
            let has_grown = |kind: &&str| now.of_kind(kind) >= before.of_kind(kind) + PROGRESS;
            Ok(now.failed > before.failed || QUICK.iter().all(has_grown))
        })
    }

    /// Waits until exchanges of all kinds were completed.
    pub fn wait_for_all_kinds(&self) -> Result<(), Failure> {
        wait("an exchange of each kind", || {
            let now = self.counts()?;
            Ok(now.failed > 0 || now.counts.len() >= KINDS - LASTING)
        })
    }

    /// Fails if an exchange has failed.
    pub fn check(&self) -> Result<(), Failure> {
        let failed = self.counts()?.failed;
        if failed == 0 {
            return Ok(());
        }
        let (input, output) = &mut *self.channel.borrow_mut();
        writeln!(input, "failures")?;
        let mut failures = String::new();
        loop {
            let before = failures.len();
            if output.read_line(&mut failures)? == 0 || failures[before..].trim().is_empty() {
                return Err(format!("{failed} exchanges of the clients failed:\n{failures}").into());
            }
        }
    }

    /// Completes all exchanges. Fails if one has failed.
    pub fn end(mut self) -> Result<(), Failure> {
        writeln!(self.channel.borrow_mut().0, "end")?;
        let mut errors = String::new();
        let mut printed = String::new();
        self.channel.borrow_mut().1.read_to_string(&mut printed)?;
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut errors)?;
        }
        let status = self.child.wait()?;
        // The clients print a line for each kind.
        if !status.success() || printed.lines().count() < KINDS {
            return Err(format!("exchanges of the clients failed ({status}):\n{errors}{printed}").into());
        }
        print!("{printed}");
        Ok(())
    }
}

impl Drop for RunningClients {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
