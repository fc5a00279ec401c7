//! State of a running server, for the command `status` and for charts.

mod display;
mod response_cache;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ListeningSocket;

pub use self::response_cache::{ResponseCache, ResponseCacheDisk, ratio};

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
    /// I/O back end of the workers, such as `epoll` or `io_uring`; empty if it is unknown.
    pub backend: String,
    /// Limits of the process and of the programs that it starts, in a few words; empty if they are unknown.
    pub sandbox: String,
    /// Capabilities of the process, such as `CAP_NET_BIND_SERVICE`, or `none` or `all`; empty if they are unknown.
    pub capabilities: String,
    /// Listening addresses as URLs or socket paths, ordered by port.
    pub listeners: Vec<String>,
    /// The same listeners as addresses, ports and files, in the same order.
    pub sockets: Vec<ListeningSocket>,
    /// Number of workers of all listeners.
    pub workers: usize,
    /// Number of restarts of workers after failures.
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
    /// Load of the last 10 seconds and of the last minute. An interval longer than the running time begins with the
    /// start of the server. If both begin there, only one is listed.
    pub load: Vec<IntervalLoad>,
    /// Number of bytes sent to clients, including header sections.
    pub bytes_sent: u64,
    /// Responses by status class.
    pub responses: Responses,
    /// Requests above the limits (`limit`) of the configuration.
    pub limited: LimitedRequests,
    /// Number of requests about which an authorization service (`auth.forward`) or a login provider (`auth.oidc`) did
    /// not decide, because it failed or did not respond in time.
    pub auth_errors: u64,
    /// Response times of the busiest sites, busiest first.
    pub durations: Vec<SiteDurations>,
    /// Number of responses of all sites by response time: the entry at index `i` counts the responses that took less
    /// than `8 << i` microseconds. The last one counts all. Clients compute the percentiles of an interval from two
    /// such lists.
    pub duration_counts: Vec<u64>,
    /// State of the file cache.
    pub cache: Cache,
    /// State of the response cache.
    pub response_cache: ResponseCache,
    /// Number of bans of clients, and of networks that operators have banned.
    pub bans: u64,
    /// Number of log records dropped because a disk or pipe was too slow or full.
    pub log_drops: u64,
    /// Number of successful reloads of the configuration.
    pub reloads: u64,
    /// Number of configurations in memory: the current one, and older ones that exchanges in progress still use.
    pub snapshots: u64,
    /// Error of the last reload; `None` if that reload was successful, or before the first reload.
    pub last_reload_error: Option<String>,
}

/// Requests above the limits that are in use. A limit that a reload removes takes its numbers with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LimitedRequests {
    /// Number of requests that were refused.
    pub refused: u64,
    /// Number of requests that had to wait.
    pub delayed: u64,
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

/// Maximum number of characters of a version, listener or name that are shown: one line of a wide terminal.
pub(crate) const MAX_SHOWN: usize = 120;
