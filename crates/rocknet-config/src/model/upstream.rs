//! Upstreams: servers that requests are forwarded to.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::choice::choice;

choice! {
    /// Version of the PROXY protocol.
    #[derive(Copy, Hash, PartialOrd, Ord)]
    pub enum ProxyProtocol {
        V1 = "v1", "version 1, a line of text";
        V2 = "v2", "version 2, binary";
    }
}

/// Upstream with its weight and role in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedUpstream {
    /// The upstream.
    pub upstream: Upstream,
    /// Share of requests relative to the other upstreams, at least 1.
    pub weight: u32,
    /// Role in the group.
    pub role: UpstreamRole,
}

impl WeightedUpstream {
    /// Default weight.
    pub(crate) const WEIGHT: u32 = 1;
}

/// Role of an upstream in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpstreamRole {
    /// Receives its share of requests.
    #[default]
    Active,
    /// Receives requests only while no active upstream is available.
    Backup,
    /// Receives only requests of clients that a cookie keeps with it.
    Drain,
}

/// Server that requests are forwarded to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Upstream {
    /// Address.
    pub host: Host,
    /// True if connections use TLS.
    pub is_secure: bool,
    /// True if requests use only HTTP/2, without a fallback to HTTP/1.1: without TLS by prior knowledge (RFC 9113
    /// §3.3), and with TLS because ALPN offers no other protocol.
    pub http2: bool,
    /// Version of the PROXY protocol header that is sent at the beginning of connections; `None`: no header.
    pub proxy_protocol: Option<ProxyProtocol>,
}

impl Upstream {
    /// Returns an upstream that speaks HTTP/1.1 without TLS and without the PROXY protocol.
    pub fn at(host: Host) -> Upstream {
        Upstream {
            host,
            is_secure: false,
            http2: false,
            proxy_protocol: None,
        }
    }
}

/// Address of a back end: an upstream or an application.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// IP address and port.
    Address(IpAddr, u16),
    /// Host name, which the resolver of the system resolves (`/etc/hosts`, DNS and others), and port number.
    Name(String, u16),
}

/// Formats the address as in the configuration of an application: `host:port` or `unix:/path`.
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

/// Formats the upstream as in the configuration: as a URL or `unix:/path`.
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

/// TLS settings for upstreams: verification, and the client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTls {
    /// PEM files of the trusted certificate authorities; empty: the authorities of the system.
    pub ca: Vec<PathBuf>,
    /// Server name in the handshake (SNI), which the certificate must be valid for; `None`: the host of the URL.
    pub server_name: Option<String>,
    /// Verifies certificates. Without verification, an attacker in the network can read and change everything.
    pub verify: bool,
    /// PEM files of the client certificate and of its key; `None`: no client certificate.
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
