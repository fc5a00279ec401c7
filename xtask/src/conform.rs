//! `cargo xtask conform`: the slow suites of others against a server built from this checkout. So far slowhttptest.

use crate::Failure;
use crate::command::{cargo, output, run as run_command};
use crate::packages::{self, Chore};
use crate::steps::Steps;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Options {
    /// Seconds that each attack lasts: above the server's deadlines, or nothing is shown
    #[arg(long, default_value_t = 75)]
    seconds: u32,
    /// Connections of each attack
    #[arg(long, default_value_t = 500)]
    connections: u32,
}

/// Each attack of slowhttptest: its name, and its option.
const ATTACKS: &[(&str, &str)] = &[
    ("slow headers", "-H"),
    ("slow bodies", "-B"),
    ("overlapping ranges", "-R"),
    ("slow readers", "-X"),
];
/// Connections per second: all are open after three seconds.
const RATE: &str = "200";
/// The longest the server may take to listen.
const START_PATIENCE: Duration = Duration::from_secs(10);
const START_STEP: Duration = Duration::from_millis(10);
/// Large enough that a slow reader finds something to read slowly.
const PAGE_BYTES: usize = 1 << 20;

pub fn run(options: &Options) -> Result<(), Failure> {
    packages::need(Chore::Conform)?;
    run_command(cargo().args(["build", "--release", "--locked", "-p", "rocknet"]))?;
    let folder = tempfile::tempdir()?;
    let mut steps = Steps::default();
    for (name, option) in ATTACKS {
        // A server of its own for each attack: what one left behind must not decide the next.
        steps.step(name, || {
            let mut server = Server::start(folder.path())?;
            let outcome = attack(option, server.port, options);
            server.stop();
            outcome
        });
    }
    steps.finish()
}

fn attack(option: &str, port: u16, options: &Options) -> Result<(), Failure> {
    let url = format!("http://127.0.0.1:{port}/page.html");
    let mut command = Command::new("slowhttptest");
    command.args([option, "-c", &options.connections.to_string(), "-r", RATE]);
    command.args(["-l", &options.seconds.to_string(), "-u", &url]);
    let text = output(&mut command)?;
    println!(
        "{}",
        text.lines()
            .rev()
            .take(12)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
            .join("\n")
    );
    judge(&text)
}

/// slowhttptest probes the server while it attacks, and says at each report whether the probe was answered.
fn judge(text: &str) -> Result<(), Failure> {
    let answers: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("service available:"))
        .collect();
    let refused = answers.iter().filter(|line| line.contains("NO")).count();
    match (answers.len(), refused) {
        (0, _) => Err("slowhttptest said nothing of the service".into()),
        (_, 0) => Ok(()),
        (all, refused) => Err(format!("the service was gone in {refused} of {all} reports").into()),
    }
}

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path) -> Result<Self, Failure> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        fs::write(folder.join("page.html"), "0123456789abcde\n".repeat(PAGE_BYTES / 16))?;
        let file = folder.join("rocknet.toml");
        let configuration = format!("[site.\":{port}\"]\nroot = \"{}\"\n", folder.display());
        fs::write(&file, configuration)?;
        let program = crate::repository::target().join("release/rocknet");
        let child = Command::new(program).arg("run").arg("-c").arg(file).spawn()?;
        let mut server = Self { child, port };
        let deadline = Instant::now() + START_PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline || server.child.try_wait()?.is_some() {
                server.stop();
                return Err("the server did not start".into());
            }
            sleep(START_STEP);
        }
        Ok(server)
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gap_in_the_service_fails_the_attack() {
        let rows = [
            ("service available:   YES\nservice available:   YES\n", true),
            ("service available:   YES\nservice available:   NO\n", false),
            ("", false),
        ];
        for (text, expected) in rows {
            assert_eq!(judge(text).is_ok(), expected, "{text:?}");
        }
    }
}
