//! Runs the HTTP/3 load generator of `bench/h3`: requests, handshakes, idle connections and first responses.

use super::client::Response;
use super::cores::LOAD_CORE;
use super::count::Count;
use super::measure::Meter;
use super::page::MIB;
use super::programs::h3::load_generator;
use super::target::Target;
use crate::Failure;
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Path that each connection requests before a load, so that it is open when the load begins. All servers have it.
const FIRST_PATH: &str = "/hello.html";
/// Line that the load generator prints when all connections are open.
const READY: &str = "ready";

/// A load generator whose connections are open. It waits for the start of its load. When the value is dropped, the load
/// is started, and the end of the load generator is awaited.
pub struct OpenConnections {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// Figures that the load generator prints.
#[derive(Deserialize)]
struct Report {
    requests: u64,
    bytes: u64,
    seconds: f64,
    failures: u64,
    refused: u64,
    p50_us: Option<u64>,
    p99_us: Option<u64>,
    garbage: Option<u64>,
    full_handshakes: Option<u64>,
    status: Option<u16>,
    length: Option<u64>,
    reason: Option<String>,
}

/// Runs a load of requests. `(connections, streams)`: number of connections, and of concurrent requests on each.
pub fn requests(
    target: &Target<'_>,
    (connections, streams): (u32, u32),
    seconds: u32,
    meter: &mut Meter,
) -> Result<Count, Failure> {
    let (connections, streams) = (connections.to_string(), streams.to_string());
    let arguments = ["-c", &connections, "-m", &streams, "--first", FIRST_PATH];
    let arguments = arguments.map(str::to_owned).to_vec();
    run(target, arguments, seconds, meter).map(|(count, _)| count)
}

/// Runs a load of handshakes, `concurrent` at once, each with one request. In a load of resumed handshakes, each full
/// one is a failure.
pub fn handshakes(
    target: &Target<'_>,
    concurrent: u32,
    resumed: bool,
    seconds: u32,
    meter: &mut Meter,
) -> Result<Count, Failure> {
    let kind = if resumed { "resumed" } else { "full" };
    let arguments = ["-c", &concurrent.to_string(), "--handshakes", kind]
        .map(str::to_owned)
        .to_vec();
    let (mut count, full) = run(target, arguments, seconds, meter)?;
    if resumed {
        count.failures += full;
    }
    Ok(count)
}

fn run(
    target: &Target<'_>,
    mut arguments: Vec<String>,
    seconds: u32,
    meter: &mut Meter,
) -> Result<(Count, u64), Failure> {
    if let Some(length) = target.length {
        arguments.extend(["--length".into(), length.to_string()]);
    }
    arguments.extend(["--seconds".into(), seconds.to_string(), target.url.into()]);
    let mut connections = OpenConnections::open(&arguments)?;
    meter.begin();
    connections.start();
    let report = connections.report();
    meter.end();
    let report = report?;
    if let Some(reason) = &report.reason {
        eprintln!("{}: {} failures, the last: {reason}", target.url, report.failures);
    }
    let count = Count {
        requests: report.requests as f64,
        mebibytes: report.bytes as f64 / MIB as f64,
        seconds: report.seconds,
        failures: report.failures,
        refused: report.refused,
        p99_ms: report.p99_us.map(|time| time as f64 / 1e3),
    };
    Ok((count, report.full_handshakes.unwrap_or(0)))
}

/// Latencies of a client beside datagrams that belong to no connection.
pub struct BesideGarbage {
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub requests_per_second: f64,
    pub garbage_per_second: f64,
}

/// Runs a load of one connection that sends one request after the other, while `rate` datagrams per second arrive that
/// belong to no connection.
pub fn beside_garbage(url: &str, rate: u32, seconds: u32) -> Result<BesideGarbage, Failure> {
    let (rate, seconds) = (rate.to_string(), seconds.to_string());
    let arguments = ["--first", FIRST_PATH, "--garbage", &rate, "--seconds", &seconds, url];
    let mut connections = OpenConnections::open(&arguments.map(str::to_owned))?;
    connections.start();
    let report = connections.report()?;
    let failed = report.failures + report.refused;
    let (Some(p50), Some(p99), 0) = (report.p50_us, report.p99_us, failed) else {
        return Err(format!("{failed} requests of {} failed", failed + report.requests).into());
    };
    Ok(BesideGarbage {
        p50_ms: p50 as f64 / 1e3,
        p99_ms: p99 as f64 / 1e3,
        requests_per_second: report.requests as f64 / report.seconds,
        garbage_per_second: report.garbage.unwrap_or(0) as f64 / report.seconds,
    })
}

/// Opens connections that stay idle after one request each.
pub fn idle(port: u16, path: &str, connections: usize) -> io::Result<OpenConnections> {
    OpenConnections::open(&[
        "-c".into(),
        connections.to_string(),
        "--idle".into(),
        format!("https://127.0.0.1:{port}{path}"),
    ])
}

/// Requests `path` once.
pub fn get(port: u16, path: &str) -> io::Result<Response> {
    let url = format!("https://127.0.0.1:{port}{path}");
    let output = command(&["--requests", "1", "--timeout", "1", "--first", FIRST_PATH, &url])?.output()?;
    let report: Report = serde_json::from_slice(&output.stdout)
        .map_err(|_| io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))?;
    Ok(Response {
        status: report.status.ok_or(io::ErrorKind::InvalidData)?,
        length: report.length,
    })
}

fn command<A: AsRef<std::ffi::OsStr>>(arguments: &[A]) -> io::Result<Command> {
    let program = load_generator().ok_or_else(|| io::Error::other("h3-load is not built"))?;
    let mut command = Command::new("taskset");
    command
        .args(["-c", &LOAD_CORE.to_string()])
        .arg(program)
        .args(arguments);
    Ok(command)
}

impl OpenConnections {
    /// Opens the connections of a load. The load generator limits the time of each step itself.
    fn open(arguments: &[String]) -> io::Result<Self> {
        let mut command = command(&[&["--wait".to_owned()], arguments].concat())?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut connections = Self {
            child,
            output: BufReader::new(output),
        };
        if connections.line()?.trim() == READY {
            Ok(connections)
        } else {
            Err(connections.failure())
        }
    }

    /// Starts the load.
    fn start(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for the figures of the load.
    fn report(&mut self) -> io::Result<Report> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|_| self.failure())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    /// Returns the reason why the load generator has ended early.
    fn failure(&mut self) -> io::Error {
        self.start();
        let mut text = String::new();
        if let Some(errors) = &mut self.child.stderr {
            let _ = errors.read_to_string(&mut text);
        }
        io::Error::other(text.trim().to_owned())
    }
}

impl Drop for OpenConnections {
    fn drop(&mut self) {
        self.start();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_parsed() {
        let text = r#"{"requests": 10, "bytes": 130, "seconds": 0.5, "failures": 1, "refused": 2, "p50_us": 20,
            "p99_us": null, "full_handshakes": null, "garbage": null, "status": 200, "length": 13, "reason": "closed"}"#;
        let report: Report = serde_json::from_str(text).expect("a report");
        assert_eq!(
            (report.requests, report.bytes, report.failures, report.refused),
            (10, 130, 1, 2)
        );
        assert_eq!(
            (report.p99_us, report.status, report.length),
            (None, Some(200), Some(13))
        );
        assert_eq!(report.reason.as_deref(), Some("closed"));
    }
}
