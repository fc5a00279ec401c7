//! Lane: one server with one set of options, as it stands in rows and tables.

use super::programs::{ServerProgram, apache, caddy, floor, h2o, haproxy, lighttpd, nginx, rocknet};

pub use super::variant::{KeyKind, Scheme, Variant, Version};

/// A server that takes part in a row.
#[derive(Clone, Copy)]
pub struct Lane {
    /// Name on the command line and in tables.
    pub name: &'static str,
    pub server: &'static ServerProgram,
    pub variant: Variant,
    pub scheme: Scheme,
    pub version: Version,
    /// Environment variables of the server.
    pub environment: &'static [(&'static str, &'static str)],
    /// Kind of a descriptor that the server must have open. A server that silently falls back to something else gets no
    /// figures.
    pub holds: Option<&'static str>,
}

pub const FLOOR: Lane = plain(&floor::PROGRAM);
pub const FLOOR_URING: Lane = Lane {
    holds: Some("anon_inode:[io_uring]"),
    ..plain(&floor::URING)
};
pub const FLOOR_TUNNEL: Lane = plain(&floor::TUNNEL);
pub const FLOOR_SLOW: Lane = plain(&floor::SLOW);
pub const FLOOR_FILE: Lane = plain(&floor::FILE);
pub const FLOOR_H2: Lane = http2(plain(&floor::H2));
pub const ROCKNET: Lane = plain(&rocknet::PROGRAM);
pub const ROCKNET_BEFORE: Lane = plain(&rocknet::BEFORE);
pub const ROCKNET_HANDLER: Lane = plain(&rocknet::WITH_HANDLER);
pub const H2O: Lane = plain(&h2o::PROGRAM);
pub const LIGHTTPD: Lane = plain(&lighttpd::PROGRAM);
pub const NGINX: Lane = plain(&nginx::TUNED);
pub const NGINX_AIO: Lane = plain(&nginx::AIO);
pub const NGINX_STOCK: Lane = plain(&nginx::STOCK);
pub const APACHE: Lane = plain(&apache::PROGRAM);
pub const CADDY: Lane = plain(&caddy::PROGRAM);
pub const HAPROXY: Lane = plain(&haproxy::PROGRAM);

/// Lane with default options, named as the server.
pub const fn plain(server: &'static ServerProgram) -> Lane {
    Lane {
        name: server.name,
        server,
        variant: Variant::Plain,
        scheme: Scheme::Http,
        version: Version::Http1,
        environment: &[],
        holds: None,
    }
}

/// The same server with HTTP/2.
pub const fn http2(lane: Lane) -> Lane {
    Lane {
        version: Version::Http2,
        ..lane
    }
}

/// The same server over TLS.
pub const fn over_tls(lane: Lane) -> Lane {
    Lane {
        scheme: Scheme::Https(KeyKind::Ecdsa),
        ..lane
    }
}

/// The same server over TLS with an RSA key, which is more expensive to sign with.
pub const fn by_rsa(lane: Lane) -> Lane {
    Lane {
        scheme: Scheme::Https(KeyKind::Rsa),
        ..lane
    }
}

/// The same server as a proxy for `upstreams` upstreams.
pub const fn proxied(lane: Lane, upstreams: u32) -> Lane {
    Lane {
        variant: Variant::Proxied(upstreams),
        ..lane
    }
}

/// The same server with a FastCGI application.
pub const fn by_fastcgi(lane: Lane) -> Lane {
    Lane {
        variant: Variant::FastCgi,
        ..lane
    }
}

/// The same server with PHP scripts.
pub const fn with_php(lane: Lane) -> Lane {
    Lane {
        variant: Variant::Php,
        ..lane
    }
}

impl Lane {
    /// Returns true if `name` is the name of this lane or of its server.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.server.name == name
    }

    /// Description of its options for the report.
    pub fn settings(&self) -> String {
        let mut words = self.server.settings.to_owned();
        for (name, value) in self.environment {
            words.push_str(&format!("; {name}={value}"));
        }
        words
    }
}
