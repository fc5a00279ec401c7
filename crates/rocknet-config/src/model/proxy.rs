//! Settings of the reverse proxy of a site or route.

use std::collections::BTreeMap;
use std::time::Duration;

use super::address_rewrites::AddressRewrites;
use super::upstream::{Upstream, UpstreamTls, WeightedUpstream};
use crate::choice::{Choice, Word, choice};

choice! {
    /// Load-balancing policy: the choice of the upstream for a request.
    pub enum Balance {
        RandomTwo = "random_two", "the less loaded of two that are picked at random";
        RoundRobin = "round_robin", "one after the other";
        LeastConn = "least_conn", "the one with the fewest requests in flight";
        IpHash = "ip_hash", "the same for the same client address";
        Uri = "uri", "the same for the same path";
    }
    with {
        /// The same upstream for the same value of this header field.
        Header(String),
    }
    default RandomTwo
}

choice! {
    /// Header fields that name the client to an upstream.
    #[derive(Copy)]
    pub enum Forwarded {
        XForwarded = "x-forwarded", "`X-Forwarded-For`, `-Proto` and `-Host`";
        Standard = "forwarded", "`Forwarded` (RFC 7239)";
        Both = "both", "all of these fields";
    }
    with {
        /// No header field.
        Off,
    }
    default XForwarded
}

choice! {
    /// Time at which the name of an upstream is resolved again.
    #[derive(Copy, Hash, PartialOrd, Ord)]
    pub enum Resolve {
        Ttl = "ttl", "when the TTL of the DNS answer has expired";
    }
    with {
        /// At this interval.
        Every(Duration),
    }
    default Ttl
}

impl Balance {
    /// Policies that do not depend on the request: the words before `ip_hash`. Only they are available for
    /// applications, which are reached over FastCGI, SCGI or uwsgi.
    pub(crate) const KEYLESS: &'static [Word] = Balance::WORDS.split_at(3).0;

    /// Prefix that marks the name of a header field in the value of `balance`.
    pub(crate) const HEADER: &'static str = "header:";
}

/// Upstream group of a site or route, and how requests are forwarded to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Upstreams, at least one.
    pub to: Vec<WeightedUpstream>,
    /// Load-balancing policy.
    pub balance: Balance,
    /// Name of the cookie that keeps a client with the same upstream; `None`: no cookie.
    pub sticky: Option<String>,
    /// Header fields that are set in forwarded requests; an empty value removes a field. `Host` replaces the client's
    /// `Host`.
    pub headers: BTreeMap<String, String>,
    /// Prefix that is removed from paths before requests are forwarded, without a slash at its end.
    pub strip: Option<String>,
    /// Rewriting of the addresses in `Location`, `Content-Location` and `Refresh` of responses.
    pub redirects: AddressRewrites,
    /// Rewriting of the paths of cookies.
    pub cookie_paths: AddressRewrites,
    /// Rewriting of the domains of cookies. An empty replacement removes the domain.
    pub cookie_domains: AddressRewrites,
    /// Health checks in the background; `None`: no checks.
    pub health: Option<Health>,
    /// Header fields that name the client to upstreams.
    pub forwarded: Forwarded,
    /// Sends the file that a response names by `X-Accel-Redirect` or `X-Sendfile` in place of its body.
    pub send_files: bool,
    /// Replaces the bodies of error responses of upstreams with the pages of `errors`.
    pub intercept: bool,
    /// Maximum number of bytes of a response that are buffered for a slow client; 0: no buffering.
    pub buffering: usize,
    /// Part of a request body that is buffered before the request is forwarded.
    pub request_buffering: RequestBuffering,
    /// Server that receives copies of requests.
    pub mirror: Option<Mirror>,
    /// Time at which names are resolved again.
    pub resolve: Resolve,
    /// Number of failures within `fail_time` after which an upstream is out of rotation for `fail_time`; 0: never.
    pub fails: u32,
    /// Time in which `fails` are counted, and for which an upstream is out of rotation.
    pub fail_time: Duration,
    /// Maximum number of concurrent requests at one upstream, including tunnels. `None`: the maximum is 1,024, and
    /// tunnels do not count.
    pub connections: Option<u32>,
    /// Timeout of a request that waits until an upstream is below its limit.
    pub queue: Duration,
    /// Time in which an upstream that has recovered reaches its full share of requests.
    pub slow_start: Duration,
    /// Timeout for an upstream to accept a connection.
    pub connect: Duration,
    /// Timeout for the head of the response, from the end of the request.
    pub first_byte: Duration,
    /// Timeout for the next bytes of a response, and for the next request on an idle connection.
    pub idle: Duration,
    /// TLS settings for upstreams under `https://`.
    pub tls: UpstreamTls,
}

impl Proxy {
    /// Returns a proxy to these upstreams, with defaults for everything else.
    pub fn to(to: Vec<WeightedUpstream>) -> Proxy {
        Proxy {
            to,
            balance: Balance::default(),
            sticky: None,
            headers: BTreeMap::new(),
            strip: None,
            redirects: AddressRewrites::default(),
            cookie_paths: AddressRewrites::default(),
            cookie_domains: AddressRewrites::default(),
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
    /// Returns true if `X-Forwarded-For`, `-Proto` and `-Host` are sent.
    pub fn has_x_forwarded(self) -> bool {
        matches!(self, Forwarded::XForwarded | Forwarded::Both)
    }

    /// Returns true if `Forwarded` (RFC 7239) is sent.
    pub fn has_standard(self) -> bool {
        matches!(self, Forwarded::Standard | Forwarded::Both)
    }
}

/// Server that receives copies of requests; its responses are discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The server.
    pub to: Upstream,
    /// Number of requests out of 10,000 that are copied, picked at random.
    pub share: u32,
    /// Maximum size of a request body, in bytes; requests with a larger body are not copied.
    pub content: usize,
}

impl Mirror {
    /// Returns a mirror of all requests, with defaults for everything else.
    pub fn to(to: Upstream) -> Mirror {
        Mirror {
            to,
            share: Mirror::ALL,
            content: 64 * 1024,
        }
    }

    /// `share` of a mirror that receives all requests.
    pub const ALL: u32 = 10_000;
}

/// Health checks of upstreams in the background.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Health {
    /// Path, and optionally query, of the request.
    pub path: String,
    /// Status of a healthy upstream; `None`: 2xx or 3xx.
    pub status: Option<u16>,
    /// Time between two checks.
    pub interval: Duration,
    /// Timeout of a check, connection and response together.
    pub timeout: Duration,
    /// Number of passed checks in a row after which an upstream is healthy.
    pub rise: u32,
    /// Number of failed checks in a row after which an upstream is unhealthy. The very first check decides immediately.
    pub fall: u32,
    /// Header fields of checks: the fields that the proxy sets in requests, and the fields that are set only in checks.
    pub headers: BTreeMap<String, String>,
}

impl Health {
    /// Returns checks of this path, with defaults for everything else.
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

/// Part of a request body that is buffered before the request is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestBuffering {
    /// Nothing: the body is streamed.
    #[default]
    None,
    /// Up to this number of bytes, in memory; the rest of a longer body is streamed.
    First(usize),
    /// The whole body, in memory or on disk.
    Whole,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_have_the_policies_that_do_not_depend_on_the_request() {
        let words: Vec<_> = Balance::KEYLESS.iter().map(|word| word.text).collect();
        assert_eq!(words, ["random_two", "round_robin", "least_conn"]);
    }
}
