//! Runs slowhttptest: clients that send and read as slowly as possible must not block others.

use super::server::TestServer;
use crate::Failure;
use crate::command::output;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Attacks of slowhttptest, by name and option.
pub const ATTACKS: &[(&str, &str)] = &[
    ("slow headers", "-H"),
    ("slow bodies", "-B"),
    ("overlapping ranges", "-R"),
    ("slow readers", "-X"),
];
/// New connections per second. The default of 500 connections is open after three seconds.
const RATE: &str = "200";
/// Size of the page: large enough that a slow reader needs long for it.
const PAGE_BYTES: usize = 1 << 20;
/// Number of last lines of the report that are printed. They contain the result.
const REPORT_LINES: usize = 12;

/// Runs one attack against a new server, so that an earlier attack has no effect on it.
pub fn run(program: &Path, option: &str, seconds: u32, connections: u32) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    fs::write(
        folder.path().join("page.html"),
        "0123456789abcde\n".repeat(PAGE_BYTES / 16),
    )?;
    let server = TestServer::of_folder(program, folder.path())?;
    let mut command = Command::new("slowhttptest");
    command.args([option, "-c", &connections.to_string(), "-r", RATE]);
    command.args(["-l", &seconds.to_string(), "-u", &server.url("/page.html")]);
    let text = output(&mut command)?;
    let lines: Vec<&str> = text.lines().collect();
    println!("{}", lines[lines.len().saturating_sub(REPORT_LINES)..].join("\n"));
    judge(&text)
}

/// Fails if the server was unavailable during the attack. slowhttptest probes the server, and each of its reports
/// states whether the probe received a response.
fn judge(text: &str) -> Result<(), Failure> {
    let reports: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("service available:"))
        .collect();
    let refused = reports.iter().filter(|line| line.contains("NO")).count();
    match (reports.len(), refused) {
        (0, _) => Err("no report of the service in slowhttptest's output".into()),
        (_, 0) => Ok(()),
        (all, refused) => Err(format!("the service was unavailable in {refused} of {all} reports").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_probe_fails_the_attack() {
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
