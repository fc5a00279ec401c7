//! The settings in which a server takes part: what it does, and what is spoken with it.

/// RockNet with one setting changed; the others have `Plain` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Plain,
    AccessLog,
    /// So many sites known by name; the middle one is asked for.
    Sites(u32),
    /// As many with a certificate each.
    Certificates(u32),
    /// Two routes that list folders; `ranked`: of high and low priority.
    Listings {
        ranked: bool,
    },
    /// Everything is passed on to so many servers.
    Proxied(u32),
    /// Everything is passed on to so many addresses of one server.
    Spread(u32),
    /// Everything is passed on to a server that sends back what comes through a tunnel.
    Tunnels,
    /// Two routes are passed on to one slow server that takes few requests at once; `ranked`: of high and low priority.
    Queued {
        ranked: bool,
    },
    /// An application by FastCGI that costs next to nothing answers.
    FastCgi,
    /// php-fpm runs scripts.
    Php,
    /// A controller gives the small page, by the setting that says where it runs.
    Controller {
        runs: &'static str,
    },
}

/// What is spoken below HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    /// TLS with the certificate of the run for this kind of key.
    Https(KeyKind),
}

/// What a certificate is signed by and handshakes are proved with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// On P-256, as most sites have now.
    Ecdsa,
    /// Of 2048 bits.
    Rsa,
}

/// What is spoken of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http1,
    /// By prior knowledge in the clear, by ALPN over TLS.
    Http2,
}

impl Variant {
    /// Addresses of servers behind the one that is measured.
    pub fn upstreams(self) -> u32 {
        match self {
            Self::Proxied(count) | Self::Spread(count) => count,
            Self::Tunnels | Self::Queued { .. } | Self::FastCgi | Self::Php => 1,
            _ => 0,
        }
    }

    /// The name to ask for, where sites are told apart by it.
    pub fn host(self) -> Option<String> {
        match self {
            Self::Sites(count) | Self::Certificates(count) => Some(site_name(count / 2)),
            _ => None,
        }
    }
}

impl Scheme {
    /// How it is written in a URL.
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
