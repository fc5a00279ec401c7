//! Header fields of the request to an authorization service (`auth = { forward = "…" }`): those that describe the
//! client's request, and those of the client that are left out.

use std::io::Write;

use rocknet_proto::method::Method;
use rocknet_proto::request::{Request, split_target};
use rocknet_proto::semantics::safe_path::SafePath;

use crate::proxy::write_without_dots;
use crate::values;

/// Fields of the client that are not sent to the authorization service. The request to it has no body and offers no
/// other protocol. The fields of ranges and conditions are left out, so that they do not change the status of its
/// response. The last five names are those of [`description`], which the client must not set.
pub(super) const NOT_SENT: [&str; 20] = [
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Expect",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Range",
    "Sec-WebSocket-Extensions",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Version",
    "TE",
    "X-Forwarded-Method",
    "X-Forwarded-Uri",
    "X-Original-Method",
    "X-Original-URI",
    "X-Original-URL",
];

/// Returns the fields that describe a request to the authorization service, besides those of the proxy.
pub(super) fn description(request: &Request<'_>, scheme: &[u8], host: &[u8]) -> [(&'static str, Vec<u8>); 5] {
    // Over HTTP/2 and HTTP/3, a WebSocket connection begins with CONNECT, and upstreams receive GET.
    let method = match request.method {
        Method::Connect => &b"GET"[..],
        _ => request.method_name,
    };
    let target = unambiguous(&values::origin_target(request));
    let url = [scheme, b"://", host, &target].concat();
    [
        ("X-Forwarded-Method", method.to_vec()),
        ("X-Forwarded-Uri", target.clone()),
        ("X-Original-Method", method.to_vec()),
        ("X-Original-URI", target),
        ("X-Original-URL", url),
    ]
}

/// Returns a target in the form in which RockNet itself understands its path: without dot segments, repeated slashes
/// and needless percent-encoding. Otherwise the service could decide about another path than the one that is served.
fn unambiguous(target: &[u8]) -> Vec<u8> {
    let (path, query) = split_target(target);
    let has_two = |wanted: &[u8]| path.windows(2).any(|window| window == wanted);
    let mut out = Vec::with_capacity(target.len());
    match SafePath::parse(path) {
        Ok(_) if !path.contains(&b'%') && !has_two(b"//") && !has_two(b"/.") => out.extend_from_slice(path),
        Ok(safe) => encode(&safe.into_str(), &mut out),
        // A path that no file can have, such as one with an encoded slash, keeps its encoding.
        Err(_) => write_without_dots(path, &mut out),
    }
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    out
}

/// Appends a decoded path with the percent-encoding that a URL needs (RFC 3986 §3.3).
fn encode(path: &str, out: &mut Vec<u8>) {
    for &byte in path.as_bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() => out.push(byte),
            byte if b"/-._~!$&'()*+,;=:@".contains(&byte) => out.push(byte),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_one_form() {
        for (target, expected) in [
            ("/a/b?c=/../d", "/a/b?c=/../d"),
            ("/public/../admin", "/admin"),
            ("/public/%2e%2e/admin?x", "/admin?x"),
            ("//admin", "/admin"),
            ("/%61dmin/", "/admin/"),
            ("/a%20b@c", "/a%20b@c"),
            ("/%C3%A4", "/%C3%A4"),
            // An encoded slash does not separate segments for RockNet, but it may for an upstream.
            ("/x/../admin%2Fy", "/admin%2Fy"),
            ("/", "/"),
        ] {
            let written = unambiguous(target.as_bytes());
            assert_eq!(String::from_utf8_lossy(&written), expected, "{target}");
        }
    }
}
