//! Starts a measured server on its core, polls it until it responds, and stops it with its children.

use super::client::{Client, Response};
use super::cores::SERVER_CORE;
use super::http3;
use super::lane::{Lane, Scheme, Version};
use super::measure::tree;
use super::programs::Launch;
use crate::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub struct ServerProcess {
    child: Child,
    /// True if strace runs the server. The stop signal is then sent to the server only, and strace exits after it.
    traced: bool,
}

/// Timeout for the first response of a server, long enough for a start under valgrind.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that a server has to stop before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// Poll interval while a server stops.
const STOP_POLL: Duration = Duration::from_millis(5);
/// Poll interval while a server starts: short, because the time to the first response is measured too.
const START_POLL: Duration = Duration::from_micros(200);

impl ServerProcess {
    /// Starts `launch` under `wrapper` (strace or valgrind with their options, or nothing). Its output goes to a file
    /// in `scratch`, which is shown if the server does not start.
    pub fn start(lane: &Lane, launch: &Launch, wrapper: &[&str], scratch: &Path) -> Result<Self, Failure> {
        Self::start_on(SERVER_CORE, lane, launch, wrapper, scratch)
    }

    /// Starts a server as [`ServerProcess::start`] does, on the core `core`.
    pub fn start_on(
        core: usize,
        lane: &Lane,
        launch: &Launch,
        wrapper: &[&str],
        scratch: &Path,
    ) -> Result<Self, Failure> {
        let log = File::create(scratch.join("output.txt"))?;
        let child = Command::new("taskset")
            .args(["-c", &core.to_string()])
            .args(wrapper)
            .arg(&launch.program)
            .args(&launch.arguments)
            // The caller's environment must not select the I/O back end of the measured server.
            .env_remove("ROCKNET_BACKEND")
            .envs(lane.environment.iter().copied())
            .current_dir(scratch)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self {
            child,
            traced: wrapper.first() == Some(&"strace"),
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Polls until the server responds. An error contains the server's output.
    pub fn first_response(&mut self, lane: &Lane, port: u16, path: &str, scratch: &Path) -> Result<Response, Failure> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let ended = self.child.try_wait()?.is_some();
            match get(lane, port, path) {
                Ok(response) if !ended => return Ok(response),
                _ if ended || Instant::now() > deadline => {
                    let output = std::fs::read_to_string(scratch.join("output.txt")).unwrap_or_default();
                    return Err(format!("did not start: {}", output.trim()).into());
                }
                _ => sleep(START_POLL),
            }
        }
    }

    /// Sends SIGTERM to all processes of the server and kills those that do not stop in time.
    pub fn stop(&mut self) {
        let all = tree(self.child.id());
        let targets: Vec<u32> = if self.traced && all.len() > 1 {
            all[1..].to_vec()
        } else {
            vec![self.child.id()]
        };
        signal(&targets, Signal::TERM);
        let deadline = Instant::now() + STOP_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            sleep(STOP_POLL);
        }
        let left: Vec<u32> = all
            .into_iter()
            .filter(|pid| Path::new(&format!("/proc/{pid}")).exists())
            .collect();
        signal(&left, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

/// Requests `path` once. HTTP/2 and HTTP/3 use a program, because this request is not timed.
fn get(lane: &Lane, port: u16, path: &str) -> io::Result<Response> {
    match lane.version {
        Version::Http1 => Client::connect(lane, port, path).and_then(Client::get_head),
        Version::Http2 => get_with_curl(lane, port, path),
        Version::Http3 => http3::get(port, path),
    }
}

fn get_with_curl(lane: &Lane, port: u16, path: &str) -> io::Result<Response> {
    let mut curl = Command::new("curl");
    curl.args([
        "--insecure",
        "--silent",
        match lane.scheme {
            Scheme::Http => "--http2-prior-knowledge",
            Scheme::Https(_) => "--http2",
        },
        "--max-time",
        "10",
        "--output",
        "/dev/null",
    ]);
    curl.args(["--write-out", "%{http_code} %{size_download}"]);
    curl.arg(format!("{}://127.0.0.1:{port}{path}", lane.scheme.name()));
    let output = curl.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let response = text.split_once(' ').and_then(|(status, length)| {
        Some(Response {
            status: status.parse().ok()?,
            length: length.parse().ok(),
        })
    });
    match response {
        Some(response) if output.status.success() => Ok(response),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, text)),
    }
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids {
        if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Returns a port that is free now. The configuration of a measured server needs the number in advance.
pub fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
