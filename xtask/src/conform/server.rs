//! Runs the built server as a process, on a port chosen by the kernel. The server's first lines of output contain the
//! port.

use super::cpu_time;
use crate::Failure;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// A running server, killed when dropped.
pub struct TestServer {
    child: Child,
    /// URL of the server, which may end with a slash.
    url: String,
}

/// Timeout for the server to print its URL: far longer than a busy machine needs.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Beginnings of the URL in the server's output.
const SCHEMES: [&str; 2] = ["http://", "https://"];

impl TestServer {
    /// Starts `program` with `arguments` in `folder`, and waits for the line with its URL.
    pub fn start(program: &Path, arguments: &[&str], folder: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (line, lines) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                // The output is read to the end, because a full pipe would block the server.
                for read in BufReader::new(output).lines().map_while(Result::ok) {
                    let _ = line.send(read);
                }
            });
        }
        let mut server = Self {
            child,
            url: String::new(),
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while server.url.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = lines.recv_timeout(left);
            let line = line.map_err(|_| format!("`rocknet {}` printed no URL", arguments.join(" ")))?;
            server.url = url(&line).unwrap_or_default().to_owned();
        }
        Ok(server)
    }

    /// Serves `folder` and its subfolders.
    pub fn of_folder(program: &Path, folder: &Path) -> Result<Self, Failure> {
        Self::start(program, &["serve", ".", "--listen", "127.0.0.1:0"], folder)
    }

    /// Returns the port chosen by the kernel.
    pub fn port(&self) -> Result<u16, Failure> {
        let (_, rest) = self.url.split_once("://").unwrap_or_default();
        let port = rest
            .split('/')
            .next()
            .and_then(|host| host.rsplit(':').next()?.parse().ok());
        port.ok_or_else(|| format!("no port in {}", self.url).into())
    }

    /// Returns the peak resident memory of the server in KiB.
    pub fn peak_memory_kib(&self) -> Result<u64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| "no peak memory in the status of the server".into())
    }

    /// Returns the CPU time of the server in seconds, without that of the programs that it runs.
    pub fn cpu_time(&self) -> Result<f64, Failure> {
        cpu_time::of_process(self.child.id())
    }

    /// Returns the full URL of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url.trim_end_matches('/'))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the URL in a line of a server's output.
pub fn url(line: &str) -> Option<&str> {
    line.split_whitespace()
        .find(|word| SCHEMES.iter().any(|scheme| word.starts_with(scheme)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_the_word_with_a_known_scheme() {
        let rows = [
            (
                "  http://127.0.0.1:41417/  →  /srv/www",
                Some("http://127.0.0.1:41417/"),
            ),
            ("  https://localhost:8443/", Some("https://localhost:8443/")),
            ("RockNet 0.1.0", None),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(url(line), expected, "{line:?}");
        }
    }
}
