//! The servers that requests are passed on to, as meant.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::keys::proxy::{Balance, Forwarded, ProxyProtocol, Resolve};
pub use crate::keys::server::TrustedField;

/// What `proxy` says at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// One at least.
    pub to: Vec<Weighted>,
    pub balance: Balance,
    /// The name of the cookie that keeps a client with its server.
    pub sticky: Option<String>,
    /// Fields that requests get; an empty value removes one. `Host` is the one they are asked by.
    pub headers: BTreeMap<String, String>,
    /// What paths begin with that is not passed on, without a slash at its end.
    pub strip: Option<String>,
    /// Checks in the background.
    pub health: Option<Health>,
    /// What servers are told of the client.
    pub forwarded: Forwarded,
    /// Files that answers name are sent in their place.
    pub send_files: bool,
    /// Errors of servers get the pages of `errors`.
    pub intercept: bool,
    /// Bytes of an answer that are received ahead of the client; 0: none.
    pub buffering: usize,
    /// How much of a request's body is received before a server is asked.
    pub request_buffering: RequestBuffering,
    /// Where copies of requests go.
    pub mirror: Option<Mirror>,
    /// When names are looked up again.
    pub resolve: Resolve,
    /// Failures within `fail_time` after which a server is left alone for as long; 0: never.
    pub fails: u32,
    pub fail_time: Duration,
    /// Requests that one server has at once, tunnels among them; `None`: the default of 1,024, without tunnels.
    pub connections: Option<u32>,
    /// How long a request waits for a server with room.
    pub queue: Duration,
    /// In which a server that has come back gets its share again.
    pub slow_start: Duration,
    /// Until a connection is taken.
    pub connect: Duration,
    /// Until the head of an answer is there.
    pub first_byte: Duration,
    /// Between two pieces of an answer, and between two requests on a connection.
    pub idle: Duration,
    /// What is asked of servers under TLS.
    pub tls: UpstreamTls,
}

impl Proxy {
    /// To these servers, with the defaults of everything else.
    pub fn to(to: Vec<Weighted>) -> Proxy {
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

/// Whom servers under TLS are taken for, and what they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Files of the authorities whose certificates are believed; empty: those of the system.
    pub ca: Vec<PathBuf>,
    /// The name that is asked for, and that the certificate has to be for; `None`: the host of the URL.
    pub server_name: Option<String>,
    /// Whether certificates are looked at. Without, anybody in between can read and answer.
    pub verify: bool,
    /// What servers are shown that ask for a certificate: the file of it, and of its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl Default for UpstreamTls {
    fn default() -> UpstreamTls {
        UpstreamTls {
            ca: Vec::new(),
            server_name: None,
            verify: true,
            client: None,
        }
    }
}

/// A server and its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted {
    pub upstream: Upstream,
    /// At least 1.
    pub weight: u32,
    pub duty: Duty,
}

impl Weighted {
    /// The share of a server that names none.
    pub(crate) const WEIGHT: u32 = 1;
}

/// What a server is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duty {
    /// Its share of requests.
    #[default]
    Share,
    /// All requests while none of those that have a share can be asked.
    Backup,
    /// Those whom a cookie keeps with it: new clients go elsewhere.
    Drain,
}

impl Forwarded {
    pub fn has_x_forwarded(self) -> bool {
        matches!(self, Forwarded::XForwarded | Forwarded::Both)
    }

    pub fn has_standard(self) -> bool {
        matches!(self, Forwarded::Standard | Forwarded::Both)
    }
}

/// A server that gets copies of requests, and whose answers nobody hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub to: Upstream,
    /// Of ten thousand requests.
    pub share: u32,
    /// Requests with more content than that are not copied.
    pub content: usize,
}

impl Mirror {
    /// All requests, with the defaults of everything else.
    pub fn to(to: Upstream) -> Mirror {
        Mirror {
            to,
            share: Mirror::ALL,
            content: 64 * 1024,
        }
    }

    pub const ALL: u32 = 10_000;
}

/// How servers are checked in the background.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Health {
    /// With a query, if need be.
    pub path: String,
    /// What a server that is well answers; `None`: 2xx or 3xx.
    pub status: Option<u16>,
    pub interval: Duration,
    pub timeout: Duration,
    /// Checks in a row that make it well.
    pub rise: u32,
    /// Checks in a row that make it sick.
    pub fall: u32,
    /// Fields that checks have: those that the proxy gives to requests, and their own.
    pub headers: BTreeMap<String, String>,
}

impl Health {
    /// Of this path, with the defaults of everything else.
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

/// A server that is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Upstream {
    pub host: Host,
    /// Under TLS.
    pub is_secure: bool,
    /// Asked in HTTP/2, which it is known to speak.
    pub http2: bool,
    /// Its connections begin with a header of the PROXY protocol.
    pub announce: Option<ProxyProtocol>,
}

impl Upstream {
    /// One that is asked in HTTP/1.1, in the clear, and is told nothing before requests.
    pub fn at(host: Host) -> Upstream {
        Upstream {
            host,
            is_secure: false,
            http2: false,
            announce: None,
        }
    }
}

/// Where it listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    Unix(PathBuf),
    Address(IpAddr, u16),
    /// To be looked up.
    Name(String, u16),
}

/// As it is written for applications.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Unix(path) => write!(f, "unix:{}", path.display()),
            Host::Address(IpAddr::V6(ip), port) => write!(f, "[{ip}]:{port}"),
            Host::Address(ip, port) => write!(f, "{ip}:{port}"),
            Host::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// As it is written.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.is_secure, self.http2) {
            (true, _) => "https",
            (false, true) => "h2c",
            (false, false) => "http",
        };
        match &self.host {
            Host::Unix(path) => write!(f, "unix:{}", path.display()),
            Host::Address(IpAddr::V6(ip), port) => write!(f, "{scheme}://[{ip}]:{port}"),
            Host::Address(ip, port) => write!(f, "{scheme}://{ip}:{port}"),
            Host::Name(name, port) => write!(f, "{scheme}://{name}:{port}"),
        }
    }
}

/// Addresses that are treated alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The first `length` bits are those of `ip`.
    Ip { ip: IpAddr, length: u8 },
    /// Whoever comes through a Unix socket.
    Unix,
}

impl Network {
    /// Whether an address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let Network::Ip { ip, length } = *self else {
            return false;
        };
        let (ours, theirs, bits) = match (ip, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => (u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits(), theirs.to_bits(), 128),
            _ => return false,
        };
        let ignored = bits - u32::from(length).min(bits);
        // Shifting by all bits there are is no shift.
        ours.checked_shr(ignored).unwrap_or(0) == theirs.checked_shr(ignored).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        for (ip, length, address, held) in [
            ("10.0.0.0", 8, "10.255.0.1", true),
            ("10.0.0.0", 8, "11.0.0.1", false),
            ("10.0.0.0", 8, "::ffff:10.1.2.3", true),
            ("192.0.2.7", 32, "192.0.2.7", true),
            ("192.0.2.7", 32, "192.0.2.6", false),
            ("0.0.0.0", 0, "203.0.113.9", true),
            ("0.0.0.0", 0, "2001:db8::1", false),
            ("::", 0, "2001:db8::1", true),
            ("2001:db8::", 32, "2001:db8:1::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
            ("::1", 128, "::1", true),
        ] {
            let network = Network::Ip {
                ip: ip.parse().expect("an address"),
                length,
            };
            let address = address.parse().expect("an address");
            assert_eq!(network.contains(address), held, "{ip}/{length} {address}");
        }
        assert!(!Network::Unix.contains("::1".parse().expect("an address")));
    }
}

/// How much of a request's body is received before a server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestBuffering {
    /// Nothing: it is sent on as it comes.
    #[default]
    None,
    /// So many bytes, in memory; what is longer is sent on as it comes.
    First(usize),
    /// All of it, in memory or on disk.
    Whole,
}
