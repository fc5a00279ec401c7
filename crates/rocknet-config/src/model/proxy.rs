//! The proxy of a site or route, as meant.

use std::collections::BTreeMap;
use std::time::Duration;

use super::upstream::{Upstream, UpstreamTls, WeightedUpstream};
use crate::choice::{Choice, Word, choice};

choice! {
    /// The server that a request goes to.
    pub enum Balance {
        RandomTwo = "random_two", "the less loaded of two that are drawn";
        RoundRobin = "round_robin", "one after the other";
        LeastConn = "least_conn", "the one with the fewest requests";
        IpHash = "ip_hash", "the same for the same client";
        Uri = "uri", "the same for the same path";
    }
    with {
        /// The same for the same value of this field.
        Header(String),
    }
    default RandomTwo
}

choice! {
    /// The fields in which a server learns whom a request is from.
    #[derive(Copy)]
    pub enum Forwarded {
        XForwarded = "x-forwarded", "`X-Forwarded-For`, `-Proto` and `-Host`";
        Standard = "forwarded", "`Forwarded` (RFC 7239)";
        Both = "both", "all of these";
    }
    with {
        Off,
    }
    default XForwarded
}

choice! {
    /// The time at which a name is looked up again.
    #[derive(Copy, Hash, PartialOrd, Ord)]
    pub enum Resolve {
        Ttl = "ttl", "as long as the DNS says";
    }
    with {
        Every(Duration),
    }
    default Ttl
}

impl Balance {
    /// The words of applications: those before `ip_hash`, which need nothing of the request.
    pub(crate) const KEYLESS: &'static [Word] = Balance::WORDS.split_at(3).0;

    /// Prefix of the name of a field.
    pub(crate) const HEADER: &'static str = "header:";
}

/// Upstreams of one place, and the way in which requests are passed on to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Upstreams, at least one.
    pub to: Vec<WeightedUpstream>,
    pub balance: Balance,
    /// The name of the cookie that keeps a client with its server.
    pub sticky: Option<String>,
    /// Header fields that are set in requests; an empty value removes a field. `Host` replaces the client's.
    pub headers: BTreeMap<String, String>,
    /// Prefix of paths that is not passed on, without a slash at its end.
    pub strip: Option<String>,
    /// Checks in the background.
    pub health: Option<Health>,
    /// Header fields that name the client.
    pub forwarded: Forwarded,
    /// Sends the files that responses name in their place.
    pub send_files: bool,
    /// Replaces error pages of upstreams by those of `errors`.
    pub intercept: bool,
    /// Bytes of a response that are received ahead of the client; 0: none.
    pub buffering: usize,
    /// Part of a request body that is received before the request is passed on.
    pub request_buffering: RequestBuffering,
    /// Server that receives copies of requests.
    pub mirror: Option<Mirror>,
    /// Time at which names are looked up again.
    pub resolve: Resolve,
    /// Failures within `fail_time` after which a server is out of rotation for as long; 0: never.
    pub fails: u32,
    pub fail_time: Duration,
    /// Concurrent requests of one server, tunnels among them; `None`: the default of 1,024, without tunnels.
    pub connections: Option<u32>,
    /// Longest wait of a request for a server with room.
    pub queue: Duration,
    /// Time in which a server that has recovered reaches its full share.
    pub slow_start: Duration,
    /// Longest time until a connection is accepted.
    pub connect: Duration,
    /// Longest time until the head of a response.
    pub first_byte: Duration,
    /// Longest pause within a response, and between two requests on a connection.
    pub idle: Duration,
    /// Demands on servers under TLS.
    pub tls: UpstreamTls,
}

impl Proxy {
    /// Returns a proxy to these servers, with the defaults of everything else.
    pub fn to(to: Vec<WeightedUpstream>) -> Proxy {
        Proxy {
            to,
            balance: Balance::default(),
            sticky: None,
            headers: BTreeMap::new(),
            strip: None,
            health: None,
            forwarded: Forwarded::default(),
            send_files: false,
            intercept: false,
            buffering: 0,
            request_buffering: RequestBuffering::None,
            mirror: None,
            resolve: Resolve::default(),
            fails: 3,
            fail_time: Duration::from_secs(10),
            connections: None,
            queue: Duration::from_secs(5),
            slow_start: Duration::ZERO,
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            tls: UpstreamTls::default(),
        }
    }
}

impl Forwarded {
    pub fn has_x_forwarded(self) -> bool {
        matches!(self, Forwarded::XForwarded | Forwarded::Both)
    }

    pub fn has_standard(self) -> bool {
        matches!(self, Forwarded::Standard | Forwarded::Both)
    }
}

/// A server that receives copies of requests; its responses are discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub to: Upstream,
    /// Share of ten thousand requests.
    pub share: u32,
    /// Requests with more content than that are not copied.
    pub content: usize,
}

impl Mirror {
    /// Returns a mirror of all requests, with the defaults of everything else.
    pub fn to(to: Upstream) -> Mirror {
        Mirror {
            to,
            share: Mirror::ALL,
            content: 64 * 1024,
        }
    }

    pub const ALL: u32 = 10_000;
}

/// Checks of servers in the background.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Health {
    /// Path of the request, with a query if need be.
    pub path: String,
    /// Status of a healthy server; `None`: 2xx or 3xx.
    pub status: Option<u16>,
    pub interval: Duration,
    pub timeout: Duration,
    /// Passed checks in a row after which a server is healthy.
    pub rise: u32,
    /// Failed checks in a row after which a server is unhealthy.
    pub fall: u32,
    /// Header fields of checks: those that the proxy sets in requests, and their own.
    pub headers: BTreeMap<String, String>,
}

impl Health {
    /// Returns checks of this path, with the defaults of everything else.
    pub fn of(path: String) -> Health {
        Health {
            path,
            status: None,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            rise: 2,
            fall: 3,
            headers: BTreeMap::new(),
        }
    }
}

/// Part of a request body that is received before the request is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestBuffering {
    /// None: the body is streamed.
    #[default]
    None,
    /// So many bytes, in memory; a longer body is streamed from there on.
    First(usize),
    /// The whole body, in memory or on disk.
    Whole,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_take_the_policies_that_need_no_request() {
        let words: Vec<_> = Balance::KEYLESS.iter().map(|word| word.text).collect();
        assert_eq!(words, ["random_two", "round_robin", "least_conn"]);
    }
}
