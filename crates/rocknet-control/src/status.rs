//! State of a running server, for the command `status` and for charts.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{ListeningSocket, text};

/// State and counters of the server at one moment. Counters are totals since start unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Status {
    /// Version of RockNet.
    pub version: String,
    /// Process ID.
    pub pid: u32,
    /// Time since start, in seconds.
    pub uptime_s: u64,
    /// CPU time of all threads since start, in milliseconds; 0 on systems other than Linux.
    pub cpu_ms: u64,
    /// Resident memory now, in bytes; 0 on systems other than Linux.
    pub memory_bytes: u64,
    /// Mode of the server.
    pub mode: Mode,
    /// Absolute path of the configuration file; `None` for a server without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_file: Option<PathBuf>,
    /// Limits of the process and of the programs that it starts, in a few words; empty if they are unknown.
    pub sandbox: String,
    /// Listening addresses as URLs or socket paths, ordered by port.
    pub listeners: Vec<String>,
    /// The same listeners as addresses, ports and files, in the same order.
    pub sockets: Vec<ListeningSocket>,
    /// Number of workers of all listeners.
    pub workers: usize,
    /// Number of restarts of workers that failed.
    pub worker_restarts: u64,
    /// Number of connections that are open now.
    pub connections_open: u64,
    /// Number of accepted connections.
    pub connections_total: u64,
    /// Connections by version of HTTP. A connection without a request has no version.
    pub protocols: Protocols,
    /// UDP ports that serve HTTP/3.
    pub http3_ports: Vec<u16>,
    /// Number of connections that are open now and use QUIC.
    pub http3_open: u64,
    /// Number of connections and streams that now carry another protocol, such as WebSocket.
    pub tunnels_open: u64,
    /// Number of received requests.
    pub requests: u64,
    /// Load of the last 10 seconds and of the last minute. If the server runs for a shorter time, there is one
    /// interval, which begins with its start.
    pub load: Vec<IntervalLoad>,
    /// Number of bytes sent to clients, including header sections.
    pub bytes_sent: u64,
    /// Responses by status class.
    pub responses: Responses,
    /// Response times of the busiest sites, busiest first.
    pub durations: Vec<SiteDurations>,
    /// Number of responses of all sites by response time: the entry at index `i` counts the responses that took less
    /// than `8 << i` microseconds. The last one counts all. Clients compute the percentiles of an interval from two
    /// such lists.
    pub duration_counts: Vec<u64>,
    /// State of the file cache.
    pub cache: Cache,
    /// Number of log records dropped because a disk or pipe was too slow or full.
    pub log_drops: u64,
    /// Number of successful reloads of the configuration.
    pub reloads: u64,
    /// Number of configurations in memory: the current one, and older ones that exchanges in progress still use.
    pub snapshots: u64,
    /// Error of the last reload; `None` if that reload was successful, or before the first reload.
    pub last_reload_error: Option<String>,
}

/// Connections by version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Protocols {
    /// HTTP/1.1 and HTTP/1.0.
    pub http1: ProtocolConnections,
    /// HTTP/2.
    pub http2: ProtocolConnections,
    /// HTTP/3.
    pub http3: ProtocolConnections,
}

/// Connections of one version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProtocolConnections {
    /// Number of connections that are open now.
    pub open: u64,
    /// Number of connections since start.
    pub total: u64,
}

/// Load of the server during an interval that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IntervalLoad {
    /// Length of the interval in milliseconds.
    pub interval_ms: u64,
    /// Received requests per second.
    pub requests_per_second: f64,
    /// Bytes sent to clients per second, including header sections.
    pub bytes_per_second: f64,
    /// Responses with a status of 500 or above, per second.
    pub server_errors_per_second: f64,
    /// Median of the response times in microseconds; `None` without a response.
    pub p50_us: Option<u64>,
    /// 90th percentile of the response times in microseconds; `None` without a response.
    pub p90_us: Option<u64>,
    /// 99th percentile of the response times in microseconds; `None` without a response.
    pub p99_us: Option<u64>,
}

/// Mode of the server, which selects the defaults of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Production.
    #[default]
    Prod,
    /// Development.
    Dev,
}

/// Number of final responses by the first digit of their status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Responses {
    /// 2xx.
    #[serde(rename = "2xx")]
    pub successful: u64,
    /// 3xx.
    #[serde(rename = "3xx")]
    pub redirection: u64,
    /// 4xx.
    #[serde(rename = "4xx")]
    pub client_error: u64,
    /// 5xx.
    #[serde(rename = "5xx")]
    pub server_error: u64,
}

/// Response times of one site in microseconds. A response time is measured from the request head until the whole
/// response is queued for the socket.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SiteDurations {
    /// Name of the site.
    pub site: String,
    /// Number of responses.
    pub responses: u64,
    /// Median: half of the responses took at most this time.
    pub p50_us: u64,
    /// 99th percentile: 99 % of the responses took at most this time.
    pub p99_us: u64,
}

/// The file cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cache {
    /// Number of files in memory now.
    pub entries: u64,
    /// Number of bytes in memory now.
    pub bytes: u64,
    /// Number of lookups that found the file in memory.
    pub hits: u64,
    /// Number of lookups that did not find the file in memory.
    pub misses: u64,
}

impl Mode {
    /// Returns the name used in JSON and on terminals.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Prod => "prod",
            Mode::Dev => "dev",
        }
    }
}

/// Writes one line with a name and a value for each property. Each line ends with a newline.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { cache, responses, .. } = self;
        let mut row = |name: &str, value: String| writeln!(f, "{name:NAME_WIDTH$}{value}");
        let version = text::sanitized(&self.version, MAX_SHOWN);
        row(
            "RockNet",
            format!("{version}, {} mode, process {}", self.mode.name(), self.pid),
        )?;
        row("up for", text::duration(self.uptime_s))?;
        if self.memory_bytes > 0 {
            let cpu = text::short_duration(self.cpu_ms.saturating_mul(1000));
            row(
                "resources",
                format!("{} of memory, {cpu} of CPU time", text::bytes(self.memory_bytes)),
            )?;
        }
        let mut workers = format!(
            "{} {}",
            self.workers,
            if self.workers == 1 { "thread" } else { "threads" }
        );
        if self.worker_restarts > 0 {
            workers += &format!(", restarts after failures: {}", text::count(self.worker_restarts));
        }
        row("workers", workers)?;
        for (index, listener) in self.listeners.iter().enumerate() {
            row(
                if index == 0 { "listening" } else { "" },
                text::sanitized(listener, MAX_SHOWN),
            )?;
        }
        let (open, total) = (text::count(self.connections_open), text::count(self.connections_total));
        row("connections", format!("{open} open, {total} in all"))?;
        let Protocols { http1, http2, http3 } = self.protocols;
        let versions = [("HTTP/1", http1), ("HTTP/2", http2), ("HTTP/3", http3)];
        let used = versions.iter().filter(|(_, connections)| connections.total > 0);
        for (index, (name, connections)) in used.enumerate() {
            let (open, total) = (text::count(connections.open), text::count(connections.total));
            row(
                if index == 0 { "versions" } else { "" },
                format!("{name}: {open} open, {total} in all"),
            )?;
        }
        if !self.http3_ports.is_empty() {
            let ports: Vec<_> = self.http3_ports.iter().take(PORTS_SHOWN).map(u16::to_string).collect();
            let more = if self.http3_ports.len() > PORTS_SHOWN {
                ", …"
            } else {
                ""
            };
            let open = text::count(self.http3_open);
            row("HTTP/3", format!("{open} open, UDP {}{more}", ports.join(", ")))?;
        }
        if self.tunnels_open > 0 {
            row("tunnels", format!("{} open", text::count(self.tunnels_open)))?;
        }
        row("requests", text::count(self.requests))?;
        for (index, load) in self.load.iter().enumerate() {
            row(if index == 0 { "load" } else { "" }, load.to_string())?;
        }
        let Responses {
            successful,
            redirection,
            client_error,
            server_error,
        } = responses;
        let classes = [
            ("2xx", successful),
            ("3xx", redirection),
            ("4xx", client_error),
            ("5xx", server_error),
        ];
        row(
            "responses",
            classes
                .map(|(class, number)| format!("{class} {}", text::count(*number)))
                .join(", "),
        )?;
        row("sent", text::bytes(self.bytes_sent))?;
        for (index, durations) in self.durations.iter().take(DURATIONS_SHOWN).enumerate() {
            let SiteDurations {
                site, p50_us, p99_us, ..
            } = durations;
            let (site, p50, p99) = (
                text::sanitized(site, MAX_SHOWN),
                text::short_duration(*p50_us),
                text::short_duration(*p99_us),
            );
            row(
                if index == 0 { "durations" } else { "" },
                format!("{site}: 50 % within {p50}, 99 % within {p99}"),
            )?;
        }
        let (entries, share) = (
            text::count(cache.entries),
            text::share(cache.hits, cache.hits.saturating_add(cache.misses)),
        );
        row(
            "cache",
            format!("{entries} files, {}, {share} hits", text::bytes(cache.bytes)),
        )?;
        if !self.sandbox.is_empty() {
            row("sandbox", text::sanitized(&self.sandbox, MAX_SHOWN))?;
        }
        row("reloads", text::count(self.reloads))?;
        if self.log_drops > 0 {
            row(
                "log",
                format!(
                    "{} records lost: the disk or pipe is too slow, or full",
                    text::count(self.log_drops)
                ),
            )?;
        }
        if let Some(error) = &self.last_reload_error {
            write!(
                f,
                "the last reload changed nothing:\n{}",
                text::indented(error, ERROR_INDENT)
            )?;
        }
        Ok(())
    }
}

/// Writes one line without a newline: `12.3 requests/s in the last 10 s: 50 % within 80 µs, 99 % within 1.2 ms`.
impl fmt::Display for IntervalLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.interval_ms.saturating_add(500) / 1000;
        let interval = text::duration(seconds.max(1));
        write!(f, "{:.1} requests/s in the last {interval}", self.requests_per_second)?;
        if let (Some(p50), Some(p99)) = (self.p50_us, self.p99_us) {
            let (p50, p99) = (text::short_duration(p50), text::short_duration(p99));
            write!(f, ": 50 % within {p50}, 99 % within {p99}")?;
        }
        Ok(())
    }
}

/// Maximum number of sites whose response times are shown, so that the output of `status` fits on a terminal.
const DURATIONS_SHOWN: usize = 8;

/// Width of the name column: the longest name and two spaces.
const NAME_WIDTH: usize = 13;

/// Number of spaces before each line of an error.
const ERROR_INDENT: usize = 2;

/// Maximum number of UDP ports that are shown.
const PORTS_SHOWN: usize = 8;

/// Maximum number of characters of a version, listener or name that are shown: one line of a wide terminal.
pub(crate) const MAX_SHOWN: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Status {
        Status {
            version: "0.1.0".into(),
            pid: 4711,
            uptime_s: 93_784,
            cpu_ms: 1_500,
            memory_bytes: 3 << 20,
            mode: Mode::Dev,
            config_file: Some("/etc/rocknet/rocknet.toml".into()),
            sandbox: "programs are limited (seccomp)".into(),
            listeners: vec!["http://0.0.0.0:80".into(), "http://[::]:80".into()],
            sockets: Vec::new(),
            workers: 8,
            worker_restarts: 0,
            connections_open: 12,
            connections_total: 1_234,
            protocols: Protocols {
                http1: ProtocolConnections { open: 9, total: 1_200 },
                http2: ProtocolConnections::default(),
                http3: ProtocolConnections { open: 2, total: 30 },
            },
            http3_ports: vec![443, 8443],
            http3_open: 2,
            tunnels_open: 0,
            requests: 1_234_567,
            load: vec![
                IntervalLoad {
                    interval_ms: 12_300,
                    requests_per_second: 1234.56,
                    p50_us: Some(80),
                    p99_us: Some(1_234),
                    ..IntervalLoad::default()
                },
                IntervalLoad {
                    interval_ms: 60_000,
                    ..IntervalLoad::default()
                },
            ],
            bytes_sent: 5_368_709_120,
            responses: Responses {
                successful: 1_200_000,
                redirection: 30_000,
                client_error: 4_560,
                server_error: 7,
            },
            durations: vec![
                SiteDurations {
                    site: "a.test".into(),
                    responses: 1_234_000,
                    p50_us: 1,
                    p99_us: 12_287,
                },
                SiteDurations {
                    site: "b.test".into(),
                    responses: 567,
                    p50_us: 106_495,
                    p99_us: 1_572_863,
                },
            ],
            duration_counts: vec![1, 2],
            cache: Cache {
                entries: 42,
                bytes: 1_572_864,
                hits: 900,
                misses: 100,
            },
            log_drops: 0,
            reloads: 3,
            snapshots: 1,
            last_reload_error: None,
        }
    }

    #[test]
    fn a_terminal_shows_aligned_lines() {
        let expected = "\
RockNet      0.1.0, dev mode, process 4711
up for       1 d 2 h
resources    3.0 MiB of memory, 1.5 s of CPU time
workers      8 threads
listening    http://0.0.0.0:80
             http://[::]:80
connections  12 open, 1,234 in all
versions     HTTP/1: 9 open, 1,200 in all
             HTTP/3: 2 open, 30 in all
HTTP/3       2 open, UDP 443, 8443
requests     1,234,567
load         1234.6 requests/s in the last 12 s: 50 % within 80 µs, 99 % within 1.2 ms
             0.0 requests/s in the last 1 min
responses    2xx 1,200,000, 3xx 30,000, 4xx 4,560, 5xx 7
sent         5.0 GiB
durations    a.test: 50 % within 1 µs, 99 % within 12.2 ms
             b.test: 50 % within 106.4 ms, 99 % within 1.5 s
cache        42 files, 1.5 MiB, 90.0 % hits
sandbox      programs are limited (seccomp)
reloads      3
";
        assert_eq!(sample().to_string(), expected);
    }

    #[test]
    fn problems_are_shown_only_if_there_are_any() {
        let status = Status {
            workers: 1,
            worker_restarts: 3,
            tunnels_open: 1_000,
            log_drops: 1_000,
            last_reload_error: Some("rocknet.toml:3:1: unknown key `rot`\n  \u{1b}[31mdid you mean `root`?".into()),
            ..sample()
        };
        let shown = status.to_string();
        for line in [
            "workers      1 thread, restarts after failures: 3\n",
            "tunnels      1,000 open\n",
            "log          1,000 records lost: the disk or pipe is too slow, or full\n",
            "the last reload changed nothing:\n  rocknet.toml:3:1: unknown key `rot`\n    ?[31mdid you mean `root`?\n",
        ] {
            assert!(shown.contains(line), "{line:?} in {shown}");
        }
        assert!(!shown.contains('\u{1b}'));
        let nothing = Status::default().to_string();
        assert!(nothing.contains("cache        0 files, 0 B, – hits\n"), "{nothing}");
        assert!(!nothing.contains("log") && !nothing.contains("last reload"));
    }

    #[test]
    fn extreme_values_are_shown() {
        let cache = Cache {
            entries: u64::MAX,
            bytes: u64::MAX,
            hits: u64::MAX,
            misses: u64::MAX,
        };
        let shown = Status {
            cache,
            uptime_s: u64::MAX,
            bytes_sent: u64::MAX,
            ..sample()
        }
        .to_string();
        assert!(shown.contains("16.0 EiB"), "{shown}");
    }

    #[test]
    fn a_status_is_serialized() {
        let status = Status {
            last_reload_error: Some("x".into()),
            ..sample()
        };
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json["mode"], "dev");
        assert_eq!(json["responses"]["4xx"], 4_560);
        assert_eq!(json["cache"]["hits"], 900);
        assert_eq!(serde_json::from_value::<Status>(json).unwrap(), status);
        // A status from a server of another version has missing and unknown fields.
        let other: Status = serde_json::from_str(r#"{"pid": 7, "responses": {"2xx": 1}, "moons": 2}"#).unwrap();
        let expected = Status {
            pid: 7,
            responses: Responses {
                successful: 1,
                ..Responses::default()
            },
            ..Status::default()
        };
        assert_eq!(other, expected);
    }
}
