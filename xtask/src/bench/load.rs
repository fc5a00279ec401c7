//! Runs load generators and parses their output.

mod output;

use super::cores::LOAD_CORE;
use super::echo::echo;
use super::http3;
use super::measure::Meter;
use super::programs::h3::load_generator;
use crate::Failure;
use crate::command::{find, shown};
use crate::tools::{OHA, oha};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub use super::count::Count;
pub use super::target::Target;

/// A load generator with its parameters.
pub enum Load {
    Wrk {
        connections: u32,
        pipelined: bool,
        bulk: bool,
    },
    Ab {
        requests: u32,
        concurrent: u32,
    },
    H2load {
        connections: u32,
        /// Concurrent streams on each connection.
        streams: u32,
    },
    /// Messages of `size` bytes, one per tunnel. The next ones are sent after all echoes have been received.
    Echo {
        tunnels: u32,
        size: u32,
        /// Counts bytes instead of messages.
        bulk: bool,
    },
    /// Requests over HTTP/3.
    H3 {
        connections: u32,
        /// Concurrent streams on each connection.
        streams: u32,
        /// Counts bytes instead of requests.
        bulk: bool,
    },
    /// Requests over HTTP/3 by oha, as a check of the load generator of this repository.
    Oha {
        connections: u32,
        /// Concurrent streams on each connection.
        streams: u32,
    },
    /// Handshakes of QUIC, each with one request over HTTP/3.
    H3Handshakes {
        /// Resumes the TLS session of an earlier connection.
        resumed: bool,
    },
    /// One connection at a time, each resuming the TLS session of the previous one, as a returning browser does.
    Resume,
}

/// Duration of a round in seconds: long enough for half a million small requests, short enough for five rounds of eight
/// servers.
const SECONDS: u32 = 3;
/// Duration of a round with many connections in seconds. Opening them takes a second.
const SECONDS_MANY: u32 = 6;
/// Number of connections from which a round takes [`SECONDS_MANY`].
const MANY: u32 = 5_000;
const SECONDS_QUICK: u32 = 1;
/// Concurrent handshakes of QUIC. A TLS client keeps at most eight tickets of a server.
const HANDSHAKES: u32 = 8;
/// Timeout for one response, long enough for a gigabyte.
const WRK_TIMEOUT: &str = "30s";
/// Number of last lines of output shown with a failure. One or two contain the reason; earlier lines show progress.
const LAST_LINES: usize = 3;
/// Script that sends pipelined requests: wrk calls `request` for each write, so a string of sixteen requests is a
/// pipeline.
const PIPELINE: &str = "\
local batch
function init(arguments)
  local one = wrk.format()
  batch = one:rep(16)
end
function request()
  return batch
end
";

/// Script that posts the file whose name replaces `FILE`.
const POST: &str = "\
local file = assert(io.open([[FILE]], 'rb'))
wrk.method = 'POST'
wrk.body = file:read('*a')
file:close()
";

/// Script that requests the numbered files one after another. It stops wrk after the last response, because wrk would
/// otherwise sleep until its configured time has passed.
const SEQUENCE: &str = "\
local ffi = require('ffi')
ffi.cdef('int kill(int, int); int getpid();')
local interrupt = 2
local sent, received, all = 0, 0, 0
function init(arguments)
  all = tonumber(arguments[1])
end
function request()
  sent = sent + 1
  return wrk.format('GET', wrk.path .. math.min(sent, all) .. '.bin')
end
function response()
  received = received + 1
  if received == all then
    ffi.C.kill(ffi.C.getpid(), interrupt)
    wrk.thread:stop()
  end
end
";

impl Load {
    pub const fn wrk(connections: u32) -> Self {
        Self::Wrk {
            connections,
            pipelined: false,
            bulk: false,
        }
    }

    pub const fn pipelined(connections: u32) -> Self {
        Self::Wrk {
            connections,
            pipelined: true,
            bulk: false,
        }
    }

    /// Returns a load that counts bytes instead of requests.
    pub const fn bulk(connections: u32) -> Self {
        Self::Wrk {
            connections,
            pipelined: false,
            bulk: true,
        }
    }

    pub const fn ab(requests: u32, concurrent: u32) -> Self {
        Self::Ab { requests, concurrent }
    }

    pub const fn h3(connections: u32, streams: u32) -> Self {
        Self::H3 {
            connections,
            streams,
            bulk: false,
        }
    }

    /// Returns a load with downloads over HTTP/3 that counts bytes.
    pub const fn h3_bulk(connections: u32) -> Self {
        Self::H3 {
            connections,
            streams: 1,
            bulk: true,
        }
    }

    pub const fn h2load(connections: u32, streams: u32) -> Self {
        Self::H2load { connections, streams }
    }

    pub fn connections(&self) -> u32 {
        match self {
            Self::H2load { connections, .. } => *connections,
            Self::Wrk { connections, .. } => *connections,
            Self::Ab { concurrent, .. } => *concurrent,
            Self::Echo { tunnels, .. } => *tunnels,
            Self::H3 { connections, .. } => *connections,
            Self::Oha { connections, .. } => *connections,
            Self::H3Handshakes { .. } => HANDSHAKES,
            Self::Resume => 1,
        }
    }

    pub fn counts_bytes(&self) -> bool {
        matches!(
            self,
            Self::Wrk { bulk: true, .. } | Self::Echo { bulk: true, .. } | Self::H3 { bulk: true, .. }
        )
    }

    /// Number of times a round is repeated when the load generator itself fails. `ab` aborts for one missing response
    /// in a hundred thousand; `wrk` counts it and continues.
    pub fn retries(&self) -> usize {
        match self {
            Self::Ab { .. } => 1,
            _ => 0,
        }
    }

    /// Runs the load generator as [`Load::run`] does, and measures the server with `meter`. The opening of connections
    /// is excluded if the load generator permits it.
    pub fn run_metered(
        &self,
        target: &Target<'_>,
        scratch: &Path,
        quick: bool,
        meter: &mut Meter,
    ) -> Result<Count, Failure> {
        let seconds = match (quick, self.connections() >= MANY) {
            (true, _) => SECONDS_QUICK,
            (false, true) => SECONDS_MANY,
            (false, false) => SECONDS,
        };
        match self {
            Self::H3 {
                connections, streams, ..
            } => return http3::requests(target, (*connections, *streams), seconds, meter),
            Self::H3Handshakes { resumed } => {
                return http3::handshakes(target, HANDSHAKES, *resumed, seconds, meter);
            }
            _ => {}
        }
        meter.begin();
        let count = self.run(target, scratch, quick)?;
        meter.end();
        Ok(count)
    }

    /// Runs the load generator on the load core. An error contains the command and its last lines of output.
    pub fn run(&self, target: &Target<'_>, scratch: &Path, quick: bool) -> Result<Count, Failure> {
        let Target { url, host, content, .. } = *target;
        let mut command = Command::new("taskset");
        command.args(["-c", &LOAD_CORE.to_string()]);
        match self {
            Self::Wrk {
                connections, pipelined, ..
            } => {
                let seconds = match (quick, *connections >= MANY) {
                    (true, _) => SECONDS_QUICK,
                    (false, true) => SECONDS_MANY,
                    (false, false) => SECONDS,
                };
                command.args(["wrk", "-t1", "--latency", "--timeout", WRK_TIMEOUT]);
                command.args([format!("-c{connections}"), format!("-d{seconds}s")]);
                if *pipelined {
                    let script = scratch.join("pipeline.lua");
                    std::fs::write(&script, PIPELINE)?;
                    command.arg("-s").arg(script);
                }
                if let Some(content) = content {
                    let script = scratch.join("post.lua");
                    std::fs::write(&script, POST.replace("FILE", &content.display().to_string()))?;
                    command.arg("-s").arg(script);
                }
                if let Some(host) = host {
                    command.args(["-H", &format!("Host: {host}")]);
                }
                command.arg(url);
                count(&mut command, output::wrk)
            }
            Self::Ab { requests, concurrent } => {
                let requests = if quick { requests / 10 } else { *requests };
                // -r: a broken connection counts as a failure instead of ending the run.
                command.args(["ab", "-q", "-r"]);
                command.args(["-n", &requests.to_string(), "-c", &concurrent.to_string()]);
                if let Some(host) = host {
                    // ab sends this name in TLS handshakes too.
                    command.args(["-H", &format!("Host: {host}")]);
                }
                command.arg(url);
                count(&mut command, output::ab)
            }
            Self::H2load { connections, streams } => {
                let seconds = if quick { SECONDS_QUICK } else { SECONDS };
                command.args(["h2load", "-t1", &format!("-c{connections}"), &format!("-m{streams}")]);
                command.args([format!("-D{seconds}"), "--warm-up-time=0".into()]);
                if let Some(content) = content {
                    command.arg("-d").arg(content);
                }
                command.arg(url);
                count(&mut command, output::h2load)
            }
            Self::Echo { tunnels, size, .. } => {
                let port = url.split([':', '/']).find_map(|part| part.parse().ok());
                let seconds = if quick { SECONDS_QUICK } else { SECONDS };
                let time = Duration::from_secs(seconds.into());
                echo(port.ok_or("a URL with a port")?, *tunnels, *size, time)
            }
            Self::Oha { connections, streams } => {
                let seconds = if quick { SECONDS_QUICK } else { SECONDS };
                command.arg(oha().ok_or("oha is not built")?);
                command.args(["-z", &format!("{seconds}s"), "--http-version", "3", "--insecure"]);
                command.args(["-c", &connections.to_string(), "-p", &streams.to_string()]);
                command.args(["--no-tui", "--output-format", "json", url]);
                let counted = count(&mut command, output::oha)?;
                // oha includes its wait for the ends of the connections.
                let seconds = f64::from(seconds);
                Ok(Count { seconds, ..counted })
            }
            Self::H3 { .. } | Self::H3Handshakes { .. } => Err("HTTP/3 is only loaded with a meter".into()),
            Self::Resume => {
                let (address, path) = url
                    .strip_prefix("https://")
                    .and_then(|rest| rest.split_once('/'))
                    .ok_or("resumption needs an https:// URL")?;
                let seconds = if quick { SECONDS_QUICK } else { SECONDS };
                command.args(["openssl", "s_time", "-reuse", "-tls1_3", "-connect", address]);
                command.args(["-www", &format!("/{path}"), "-time", &seconds.to_string()]);
                let start = Instant::now();
                let counted = count(&mut command, output::s_time)?;
                // s_time reports only whole seconds.
                let seconds = start.elapsed().as_secs_f64();
                Ok(Count { seconds, ..counted })
            }
        }
    }
}

/// Requests the files `1.bin`, `2.bin` and so on below `url` with wrk: `count` files, each once.
pub fn sequence(url: &str, connections: u32, count: u64, scratch: &Path) -> Result<Count, Failure> {
    let script = scratch.join("sequence.lua");
    std::fs::write(&script, SEQUENCE)?;
    let mut command = Command::new("taskset");
    command.args(["-c", &LOAD_CORE.to_string()]);
    command.args(["wrk", "-t1", "--latency", "--timeout", WRK_TIMEOUT, "-d", WRK_TIMEOUT]);
    command.arg(format!("-c{connections}")).arg("-s").arg(script);
    command.args([url, "--", &count.to_string()]);
    self::count(&mut command, output::wrk)
}

/// Returns the version line of each load generator for the report.
pub fn versions() -> Vec<String> {
    [
        ("wrk", "-v"),
        ("ab", "-V"),
        ("h2load", "--version"),
        ("openssl", "version"),
        ("chromium", "--version"),
    ]
    .iter()
    .filter_map(|(program, option)| {
        // Some programs exit with an error after printing their version, so the exit status is ignored.
        let output = Command::new(find(program)?).arg(option).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().next()?.replace("This is ApacheBench", "ab");
        Some(line.split([',', '<', '[', '(']).next()?.trim().to_owned())
    })
    .chain(oha().map(|_| format!("oha {OHA}")))
    .chain(load_generator().map(|_| "h3-load of this checkout".to_owned()))
    .collect()
}

/// Runs a load generator and parses its output.
fn count(command: &mut Command, parse: fn(&str) -> Result<Count, Failure>) -> Result<Count, Failure> {
    let name = shown(command);
    let failure = |what: String, output: &str| -> Failure { format!("`{name}` {what}: {}", last_lines(output)).into() };
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failure(format!("did not start ({error})"), ""))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        parse(&printed).map_err(|error| failure(error.to_string(), &printed))
    } else {
        Err(failure(format!("failed ({})", output.status), &printed))
    }
}

/// Returns the last lines of a program's output, joined into one line.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(LAST_LINES)..] {
        [] => "no output".into(),
        last => last.join(" / "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_its_last_output() {
        let rows = [
            (
                "echo one; echo two; echo three; echo; echo four >&2; exit 119",
                "failed (exit status: 119): two / three / four",
            ),
            ("exit 1", "failed (exit status: 1): no output"),
            ("echo 'unable to connect'", "counted nothing: unable to connect"),
        ];
        for (script, expected) in rows {
            let failure = count(Command::new("sh").args(["-c", script]), output::wrk)
                .unwrap_err()
                .to_string();
            assert_eq!(failure, format!("`sh -c {script}` {expected}"));
        }
        let failure = count(&mut Command::new("/no/such/program"), output::ab)
            .unwrap_err()
            .to_string();
        assert!(failure.starts_with("`/no/such/program` did not start ("), "{failure}");
    }
}
