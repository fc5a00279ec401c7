//! The load generators: how each is called, and what it says of the run.

use super::LOAD_CORE;
use crate::Failure;
use crate::command::{find, shown};
use std::path::Path;
use std::process::{Command, Stdio};

/// One way to load a server.
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
}

/// What a load generator counted.
#[derive(Debug, Default, PartialEq)]
pub struct Count {
    pub requests: f64,
    /// MiB that were read, heads included.
    pub mebibytes: f64,
    pub seconds: f64,
    pub failures: u64,
    /// Answers whose status was not 2xx (wrk: nor 3xx).
    pub refused: u64,
    pub p99_ms: Option<f64>,
}

/// A round's length: long enough for half a million small requests, short enough for five rounds of eight servers.
const SECONDS: u32 = 3;
/// Many connections take a second to open; the round must not consist of that.
const SECONDS_MANY: u32 = 6;
const MANY: u32 = 5_000;
const SECONDS_QUICK: u32 = 1;
/// Patience for one answer: a gigabyte takes its time.
const PATIENCE: &str = "30s";
/// What a program said last is told with its failure: a line or two hold the reason, the rest is progress.
const LAST_LINES: usize = 3;
/// wrk calls `request` for each write: sixteen requests at once make a pipeline.
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

    /// Counts bytes instead of requests.
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

    pub fn connections(&self) -> u32 {
        match self {
            Self::Wrk { connections, .. } => *connections,
            Self::Ab { concurrent, .. } => *concurrent,
        }
    }

    pub fn counts_bytes(&self) -> bool {
        matches!(self, Self::Wrk { bulk: true, .. })
    }

    /// How often a round is begun again when the load generator itself fails: `ab` gives up for a single answer it did not see
    /// of a hundred thousand, `wrk` counts such an answer and goes on.
    pub fn retries(&self) -> usize {
        match self {
            Self::Wrk { .. } => 0,
            Self::Ab { .. } => 1,
        }
    }

    /// Loads `url` once, from the load's core. A failure tells the command and what it said last.
    pub fn run(&self, url: &str, host: Option<&str>, scratch: &Path, quick: bool) -> Result<Count, Failure> {
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
                command.args(["wrk", "-t1", "--latency", "--timeout", PATIENCE]);
                command.args([format!("-c{connections}"), format!("-d{seconds}s")]);
                if *pipelined {
                    let script = scratch.join("pipeline.lua");
                    std::fs::write(&script, PIPELINE)?;
                    command.arg("-s").arg(script);
                }
                if let Some(host) = host {
                    command.args(["-H", &format!("Host: {host}")]);
                }
                command.arg(url);
                count(&mut command, parse_wrk)
            }
            Self::Ab { requests, concurrent } => {
                let requests = if quick { requests / 10 } else { *requests };
                // -r: a broken connection is a failure to be counted, not the end of the run.
                command.args([
                    "ab",
                    "-q",
                    "-r",
                    "-n",
                    &requests.to_string(),
                    "-c",
                    &concurrent.to_string(),
                    url,
                ]);
                count(&mut command, parse_ab)
            }
        }
    }
}

/// The version line of each load generator, for the report.
pub fn versions() -> Vec<String> {
    [("wrk", "-v"), ("ab", "-V")]
        .iter()
        .filter_map(|(program, option)| {
            // Both end with an error after telling their version, so only what they print counts.
            let output = Command::new(find(program)?).arg(option).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let line = text.lines().next()?.replace("This is ApacheBench", "ab");
            Some(line.split([',', '<', '[']).next()?.trim().to_owned())
        })
        .collect()
}

/// Runs a load generator and reads its count.
fn count(command: &mut Command, parse: fn(&str) -> Result<Count, Failure>) -> Result<Count, Failure> {
    let name = shown(command);
    let told = |what: String, said: &str| -> Failure { format!("`{name}` {what}: {}", last_lines(said)).into() };
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| told(format!("did not start ({error})"), ""))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        parse(&said).map_err(|error| told(error.to_string(), &said))
    } else {
        Err(told(format!("failed ({})", output.status), &said))
    }
}

/// The end of what a program said, as one line.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(LAST_LINES)..] {
        [] => "it said nothing".into(),
        last => last.join(" / "),
    }
}

fn parse_wrk(text: &str) -> Result<Count, Failure> {
    let mut count = Count::default();
    let mut found = false;
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [number, "requests", "in", time, read, "read"] = words[..] {
            found = true;
            count.requests = number.parse()?;
            count.seconds = milliseconds(time.trim_end_matches(',')).ok_or("wrk: no time")? / 1e3;
            count.mebibytes = mebibytes(read).ok_or("wrk: no size")?;
        } else if let ["99%", time] = words[..] {
            // wrk tells zero when no answer was whole yet.
            count.p99_ms = milliseconds(time).filter(|time| *time > 0.0);
        } else if line.starts_with("Socket errors:") {
            let numbers = line
                .split(|letter: char| !letter.is_ascii_digit())
                .filter_map(|word| word.parse::<u64>().ok());
            count.failures += numbers.sum::<u64>();
        } else if let Some(number) = line.strip_prefix("Non-2xx or 3xx responses:") {
            count.refused = number.trim().parse()?;
        }
    }
    if found {
        Ok(count)
    } else {
        Err("counted nothing".into())
    }
}

fn parse_ab(text: &str) -> Result<Count, Failure> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let requests = field("Complete requests:").ok_or("counted nothing")?;
    Ok(Count {
        requests,
        mebibytes: field("Total transferred:").unwrap_or(0.0) / f64::from(1 << 20),
        seconds: field("Time taken for tests:").unwrap_or(0.0),
        failures: field("Failed requests:").unwrap_or(0.0) as u64,
        refused: field("Non-2xx responses:").unwrap_or(0.0) as u64,
        p99_ms: field("99%"),
    })
}

/// wrk's times: `870.00us`, `1.20ms`, `3.00s`, `1.50m`.
fn milliseconds(text: &str) -> Option<f64> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    let factor = match &text[split..] {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 60e3,
        _ => return None,
    };
    Some(number * factor)
}

/// wrk's sizes, in steps of 1024: `512.00B`, `1.50KB`, `35.20MB`, `9.81GB`.
fn mebibytes(text: &str) -> Option<f64> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    let step = 1024.0;
    let factor = match &text[split..] {
        "B" => 1.0 / step / step,
        "KB" => 1.0 / step,
        "MB" => 1.0,
        "GB" => step,
        "TB" => step * step,
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "\
Running 3s test @ http://127.0.0.1:1/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   409.60us  120.00us   3.50ms   90.12%
    Req/Sec   150.20k     5.10k  160.00k    80.00%
  Latency Distribution
     50%  400.00us
     99%    1.25ms
  448000 requests in 3.00s, 1.50GB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 7
Requests/sec: 149333.33
Transfer/sec:    512.00MB
";
    const AB: &str = "\
Concurrency Level:      10
Time taken for tests:   4.000 seconds
Complete requests:      100000
Failed requests:        2
   (Connect: 0, Receive: 1, Length: 0, Exceptions: 1)
Non-2xx responses:      5
Total transferred:      2097152 bytes
Requests per second:    25000.00 [#/sec] (mean)
  50%      1
  99%      3
 100%      9 (longest request)
";

    #[test]
    fn what_wrk_says() {
        let expected = Count {
            requests: 448_000.0,
            mebibytes: 1536.0,
            seconds: 3.0,
            failures: 10,
            refused: 7,
            p99_ms: Some(1.25),
        };
        assert_eq!(parse_wrk(WRK).unwrap(), expected);
        assert!(parse_wrk("unable to connect").is_err());
    }

    #[test]
    fn what_ab_says() {
        let expected = Count {
            requests: 100_000.0,
            mebibytes: 2.0,
            seconds: 4.0,
            failures: 2,
            refused: 5,
            p99_ms: Some(3.0),
        };
        assert_eq!(parse_ab(AB).unwrap(), expected);
        assert!(parse_ab("apr_socket_connect(): Connection refused").is_err());
    }

    #[test]
    fn a_failure_tells_the_command_and_what_it_said_last() {
        let rows = [
            (
                "echo one; echo two; echo three; echo; echo four >&2; exit 119",
                "failed (exit status: 119): two / three / four",
            ),
            ("exit 1", "failed (exit status: 1): it said nothing"),
            ("echo 'unable to connect'", "counted nothing: unable to connect"),
        ];
        for (script, expected) in rows {
            let failure = count(Command::new("sh").args(["-c", script]), parse_wrk)
                .unwrap_err()
                .to_string();
            assert_eq!(failure, format!("`sh -c {script}` {expected}"));
        }
        let failure = count(&mut Command::new("/no/such/program"), parse_ab)
            .unwrap_err()
            .to_string();
        assert!(failure.starts_with("`/no/such/program` did not start ("), "{failure}");
    }

    #[test]
    fn units() {
        for (text, expected) in [
            ("870.00us", 0.87),
            ("1.20ms", 1.2),
            ("3.00s", 3000.0),
            ("1.50m", 90_000.0),
        ] {
            assert!((milliseconds(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
        for (text, expected) in [("1024.00KB", 1.0), ("2.00MB", 2.0), ("1.00GB", 1024.0)] {
            assert!((mebibytes(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
        assert_eq!((milliseconds("fast"), mebibytes("9.0QB")), (None, None));
    }
}
