//! Names of the placeholders.

use super::error::TemplateError;
use super::foreign;
use super::placeholder::{Placeholder, Scope};
use crate::message::{nearest, short};

/// A placeholder with its name and meaning.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// Name, without braces. A name that ends in a dot is followed by the name of a field, cookie or parameter.
    pub name: &'static str,
    /// Smallest scope that has the value.
    pub scope: Scope,
    /// Meaning, for the documentation.
    pub meaning: &'static str,
    make: Make,
}

/// Makes the placeholder of a name.
#[derive(Debug, Clone, Copy)]
enum Make {
    Fixed(&'static Placeholder),
    /// From the rest of the name, after the dot.
    OfName(fn(Box<str>) -> Placeholder),
}

const fn fixed(name: &'static str, scope: Scope, placeholder: &'static Placeholder, meaning: &'static str) -> Named {
    let make = Make::Fixed(placeholder);
    Named {
        name,
        scope,
        meaning,
        make,
    }
}

const fn of_name(name: &'static str, make: fn(Box<str>) -> Placeholder, meaning: &'static str) -> Named {
    Named {
        name,
        scope: Scope::Request,
        meaning,
        make: Make::OfName(make),
    }
}

/// All placeholders, in the order of the documentation.
pub const NAMES: &[Named] = &[
    fixed(
        "client.ip",
        Scope::Request,
        &Placeholder::ClientIp,
        "address of the client: of the other end of the connection, or the one that a trusted proxy reports",
    ),
    fixed(
        "client.port",
        Scope::Request,
        &Placeholder::ClientPort,
        "port of the client; empty if it is unknown",
    ),
    fixed(
        "peer.ip",
        Scope::Request,
        &Placeholder::PeerIp,
        "address of the other end of the connection",
    ),
    fixed(
        "host",
        Scope::Request,
        &Placeholder::Host,
        "requested host in lower case, without port; empty if it is invalid",
    ),
    fixed(
        "authority",
        Scope::Request,
        &Placeholder::Authority,
        "requested host with port, as sent; empty if it is invalid",
    ),
    fixed("scheme", Scope::Request, &Placeholder::Scheme, "`http` or `https`"),
    fixed(
        "protocol",
        Scope::Request,
        &Placeholder::Protocol,
        "protocol version: `HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`",
    ),
    fixed("method", Scope::Request, &Placeholder::Method, "request method"),
    fixed(
        "path",
        Scope::Request,
        &Placeholder::Path,
        "path, decoded, after rewrites",
    ),
    fixed(
        "query",
        Scope::Request,
        &Placeholder::Query,
        "query after rewrites, as sent, without `?`",
    ),
    of_name(
        "query.",
        Placeholder::QueryParameter,
        "value of a query parameter, as sent",
    ),
    fixed(
        "target",
        Scope::Request,
        &Placeholder::Target,
        "path and query as received, before rewrites",
    ),
    of_name(
        "request.header.",
        Placeholder::RequestHeader,
        "first value of a request header field",
    ),
    of_name("request.cookie.", Placeholder::RequestCookie, "value of a cookie"),
    fixed(
        "request.id",
        Scope::Request,
        &Placeholder::RequestId,
        "identifier of the request: 32 hexadecimal digits, or `X-Request-Id` of a trusted proxy",
    ),
    fixed(
        "tls.version",
        Scope::Request,
        &Placeholder::TlsVersion,
        "TLS version, such as `TLSv1.3`; empty without TLS",
    ),
    fixed(
        "tls.cipher",
        Scope::Request,
        &Placeholder::TlsCipher,
        "cipher suite by its IANA name",
    ),
    fixed(
        "tls.server_name",
        Scope::Request,
        &Placeholder::TlsServerName,
        "host name that the client requested in the handshake (SNI)",
    ),
    fixed(
        "tls.client.subject",
        Scope::Request,
        &Placeholder::TlsClientSubject,
        "subject of the client's certificate",
    ),
    fixed(
        "tls.client.verify",
        Scope::Request,
        &Placeholder::TlsClientVerify,
        "`SUCCESS` if the client has sent a valid certificate, else `NONE`; empty without TLS",
    ),
    fixed(
        "tls.client.issuer",
        Scope::Request,
        &Placeholder::TlsClientIssuer,
        "issuer of the client's certificate",
    ),
    fixed(
        "tls.client.serial",
        Scope::Request,
        &Placeholder::TlsClientSerial,
        "serial number of the client's certificate, in hexadecimal digits",
    ),
    fixed(
        "tls.client.fingerprint",
        Scope::Request,
        &Placeholder::TlsClientFingerprint,
        "SHA-256 of the client's certificate, in hexadecimal digits",
    ),
    fixed(
        "tls.client.certificate",
        Scope::Request,
        &Placeholder::TlsClientCertificate,
        "the client's certificate as the value of `Client-Cert` (RFC 9440)",
    ),
    fixed(
        "tls.client.pem",
        Scope::Request,
        &Placeholder::TlsClientPem,
        "the client's certificate in PEM, percent-encoded",
    ),
    fixed(
        "user",
        Scope::Request,
        &Placeholder::User,
        "authenticated user; empty without `auth`",
    ),
    fixed(
        "site",
        Scope::Request,
        &Placeholder::Site,
        "name of the site in the configuration",
    ),
    fixed(
        "time.unix",
        Scope::Request,
        &Placeholder::UnixTime,
        "seconds since 1970, with milliseconds",
    ),
    fixed(
        "status",
        Scope::Response,
        &Placeholder::Status,
        "status code of the response",
    ),
    fixed(
        "upstream",
        Scope::Response,
        &Placeholder::Upstream,
        "address of the upstream that sent the response",
    ),
    fixed(
        "upstream.duration",
        Scope::Response,
        &Placeholder::UpstreamDuration,
        "seconds until the upstream sent the head of its response, with microseconds",
    ),
    fixed(
        "cache.status",
        Scope::Log,
        &Placeholder::CacheStatus,
        "outcome in the response cache: `HIT`, `MISS`, `EXPIRED`, `REVALIDATED`, `STALE` or `BYPASS`; empty without a cache",
    ),
    fixed(
        "time",
        Scope::Log,
        &Placeholder::Time,
        "local time as in RFC 3339: `2026-11-29T10:30:00+00:00`",
    ),
    fixed(
        "time.clf",
        Scope::Log,
        &Placeholder::ClfTime,
        "local time as in the Common Log Format, with brackets",
    ),
    fixed(
        "bytes.sent",
        Scope::Log,
        &Placeholder::BytesSent,
        "bytes of the response body",
    ),
    fixed(
        "bytes.received",
        Scope::Log,
        &Placeholder::BytesReceived,
        "bytes of the request body",
    ),
    fixed(
        "duration",
        Scope::Log,
        &Placeholder::Duration,
        "seconds from the request to the end of its response, with microseconds",
    ),
];

/// Returns the placeholder with this name.
pub(super) fn find(name: &str, scope: Scope) -> Result<Placeholder, TemplateError> {
    let named = NAMES.iter().find(|named| match named.make {
        Make::Fixed(_) => named.name == name,
        Make::OfName(_) => name.strip_prefix(named.name).is_some_and(|rest| !rest.is_empty()),
    });
    let Some(named) = named else {
        return Err(unknown(name));
    };
    if named.scope > scope {
        return Err(TemplateError {
            message: format!("`{{{name}}}` is not known before the response"),
            help: match named.scope {
                Scope::Log => "use it in `log.format`".to_owned(),
                _ => "use it in `headers` of a site or route, or in `log.format`".to_owned(),
            },
        });
    }
    Ok(match named.make {
        Make::Fixed(placeholder) => placeholder.clone(),
        Make::OfName(make) => make(name[named.name.len()..].into()),
    })
}

/// Returns the error for an unknown name, with its equivalent or the nearest name.
fn unknown(name: &str) -> TemplateError {
    let names = NAMES.iter().map(|named| named.name.trim_end_matches('.'));
    let similar = || {
        let near = nearest(name, names)?;
        let takes_name = NAMES.iter().any(|named| named.name.strip_suffix('.') == Some(near));
        Some(match takes_name {
            true => format!("{near}.NAME"),
            false => near.to_owned(),
        })
    };
    let help = match foreign::of_caddy(name).or_else(similar) {
        Some(equivalent) => format!("write {{{equivalent}}}, or {{{{{}}}}} for the text itself", short(name)),
        None => format!(
            "docs/placeholders.md lists all placeholders; write {{{{{}}}}} for the text itself",
            short(name)
        ),
    };
    TemplateError {
        message: format!("`{{{}}}` is not a placeholder", short(name)),
        help,
    }
}
