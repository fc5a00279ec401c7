//! Lane: one server with one set of options, as it appears in rows and tables.

use super::programs::{ServerProgram, apache, caddy, floor, h2o, h3, haproxy, lighttpd, nginx, rocknet, varnish};

pub use super::variant::{KeyKind, Scheme, Variant, Version};

/// A server with its options, measured in a row.
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
    /// Name in `/proc` of a descriptor that the server must have open, such as `anon_inode:[io_uring]`. Without it the
    /// server gets no figures, because it has silently fallen back to another I/O back end.
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
pub const FLOOR_H3: Lane = http3(plain(&h3::FLOOR));
pub const REFERENCE_H3: Lane = http3(plain(&h3::REFERENCE));
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
pub const VARNISH: Lane = plain(&varnish::PROGRAM);

/// Returns a lane with default options, named after the server.
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

/// Returns `lane` with HTTP/2.
pub const fn http2(lane: Lane) -> Lane {
    Lane {
        version: Version::Http2,
        ..lane
    }
}

/// Returns `lane` with HTTP/3 and an ECDSA key.
pub const fn http3(lane: Lane) -> Lane {
    Lane {
        version: Version::Http3,
        ..over_tls(lane)
    }
}

/// Returns `lane` over TLS with an ECDSA key.
pub const fn over_tls(lane: Lane) -> Lane {
    Lane {
        scheme: Scheme::Https(KeyKind::Ecdsa),
        ..lane
    }
}

/// Returns `lane` over TLS with an RSA key, whose signatures cost more.
pub const fn by_rsa(lane: Lane) -> Lane {
    Lane {
        scheme: Scheme::Https(KeyKind::Rsa),
        ..lane
    }
}

/// Returns `lane` as a proxy for `upstreams` upstreams.
pub const fn proxied(lane: Lane, upstreams: u32) -> Lane {
    Lane {
        variant: Variant::Proxied(upstreams),
        ..lane
    }
}

/// Returns `lane` as a cache in front of an upstream.
pub const fn cached(lane: Lane) -> Lane {
    Lane {
        variant: Variant::Cached,
        ..lane
    }
}

/// Returns `lane` with a FastCGI application.
pub const fn by_fastcgi(lane: Lane) -> Lane {
    Lane {
        variant: Variant::FastCgi,
        ..lane
    }
}

/// Returns `lane` with PHP scripts.
pub const fn with_php(lane: Lane) -> Lane {
    Lane {
        variant: Variant::Php,
        ..lane
    }
}

/// Returns `lane` with PHP scripts behind a cache.
pub const fn with_cached_php(lane: Lane) -> Lane {
    Lane {
        variant: Variant::CachedPhp,
        ..lane
    }
}

impl Lane {
    /// Returns true if `name` is the name of this lane or of its server.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.server.name == name
    }

    /// Describes the options of the server for the report.
    pub fn settings(&self) -> String {
        let mut words = self.server.settings.to_owned();
        for (name, value) in self.environment {
            words.push_str(&format!("; {name}={value}"));
        }
        words
    }
}
