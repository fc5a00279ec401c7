//! Servers that requests are passed on to, as meant.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::choice::choice;

choice! {
    /// A version of the PROXY protocol.
    #[derive(Copy, Hash, PartialOrd, Ord)]
    pub enum ProxyProtocol {
        V1 = "v1", "a line of text";
        V2 = "v2", "binary";
    }
}

/// A server and its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedUpstream {
    pub upstream: Upstream,
    /// At least 1.
    pub weight: u32,
    pub role: UpstreamRole,
}

impl WeightedUpstream {
    /// Weight of a server that names none.
    pub(crate) const WEIGHT: u32 = 1;
}

/// Role of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpstreamRole {
    /// Takes its share of requests.
    #[default]
    Active,
    /// Takes all requests while no server with a share is available.
    Backup,
    /// Takes the requests of clients that a cookie keeps with it; new clients go elsewhere.
    Drain,
}

/// A server that requests are passed on to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Upstream {
    pub host: Host,
    /// Connections are under TLS.
    pub is_secure: bool,
    /// Requests are in HTTP/2, which the server is known to speak.
    pub http2: bool,
    /// Version of the PROXY protocol whose header begins its connections.
    pub proxy_protocol: Option<ProxyProtocol>,
}

impl Upstream {
    /// Returns a server that speaks HTTP/1.1 in the clear, without the PROXY protocol.
    pub fn at(host: Host) -> Upstream {
        Upstream {
            host,
            is_secure: false,
            http2: false,
            proxy_protocol: None,
        }
    }
}

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    Unix(PathBuf),
    Address(IpAddr, u16),
    /// Name that is looked up in the DNS.
    Name(String, u16),
}

/// Formats the address as it is written for applications.
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

/// Formats the URL as it is written.
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

/// Verification of servers under TLS, and the certificate that they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Files of the trusted authorities; empty: those of the system.
    pub ca: Vec<PathBuf>,
    /// Name in the handshake, which the certificate has to be for; `None`: the host of the URL.
    pub server_name: Option<String>,
    /// Checks certificates. Without, an attacker in between can read and answer.
    pub verify: bool,
    /// Files of the client certificate and of its key.
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
