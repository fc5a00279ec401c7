//! Variants of a server: its configuration, and the protocols with which it is loaded.

/// Configuration of a server: plain, or with one option changed. Servers other than RockNet support only some variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Plain,
    /// A site for other hosts: it listens on all addresses and compresses text.
    Public,
    AccessLog,
    /// Requests are limited; `limit` is the value of the key.
    Limited {
        limit: &'static str,
    },
    /// This many named sites; the middle one is requested.
    Sites(u32),
    /// This many sites with a certificate each.
    Certificates(u32),
    /// Two routes that list folders; if `ranked`, of high and low priority.
    Listings {
        ranked: bool,
    },
    /// A proxy for this many upstreams.
    Proxied(u32),
    /// A cache in front of one upstream. Responses are stored for an hour.
    Cached,
    /// A proxy for this many addresses of one upstream.
    Spread(u32),
    /// A proxy for an upstream that echoes through a tunnel.
    Tunnels,
    /// Two routes to one slow upstream with few concurrent requests; if `ranked`, of high and low priority.
    Queued {
        ranked: bool,
    },
    /// A FastCGI application with negligible cost.
    FastCgi,
    /// PHP scripts run by php-fpm.
    Php,
    /// PHP scripts behind a cache, on a site with a limit of another path. Responses are stored for an hour.
    CachedPhp,
    /// A controller that returns the small page. `runs` is the option that selects where the controller runs.
    Controller {
        runs: &'static str,
    },
}

/// Protocol below HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    /// TLS with the certificate of the run for this kind of key.
    Https(KeyKind),
}

/// Key type of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// P-256, as most sites use now.
    Ecdsa,
    /// 2048 bits.
    Rsa,
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http1,
    /// With prior knowledge without TLS, by ALPN with TLS.
    Http2,
    /// Over QUIC, always with TLS.
    Http3,
}

impl Variant {
    /// Returns the number of upstream addresses.
    pub fn upstreams(self) -> u32 {
        match self {
            Self::Proxied(count) | Self::Spread(count) => count,
            Self::Cached | Self::Tunnels | Self::Queued { .. } | Self::FastCgi | Self::Php | Self::CachedPhp => 1,
            _ => 0,
        }
    }

    /// Returns the host name of the requests, if the sites differ by name.
    pub fn host(self) -> Option<String> {
        match self {
            Self::Sites(count) | Self::Certificates(count) => Some(site_name(count / 2)),
            _ => None,
        }
    }
}

impl Scheme {
    /// Returns the scheme for a URL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https(_) => "https",
        }
    }
}

pub fn site_name(index: u32) -> String {
    format!("site-{index}.example")
}
