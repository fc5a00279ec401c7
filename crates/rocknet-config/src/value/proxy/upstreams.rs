//! Parses the upstreams of a proxy.

use std::net::{IpAddr, Ipv6Addr};

use crate::context::Check;
use crate::file::{Node, Text, Value};
use crate::finding::Code;
use crate::message::short;
use crate::model::{Host, Upstream, UpstreamRole, WeightedUpstream};
use crate::value::host::MAX_HOST_BYTES;
use crate::value::socket::{self, Help};
use crate::value::typed;

/// Maximum number of servers of one proxy. A larger group needs a load balancer of its own.
const MAX_UPSTREAMS: usize = 256;

/// Help for a server whose address is missing or invalid.
pub(super) const EXAMPLE: &str = "write the address of the server: \"http://127.0.0.1:3000\" or \"unix:/run/app.sock\"";

/// Reads the servers of a proxy; `None` after an error. `http2`: value of the key `http2`. If it is true, `http://` is
/// refused, because HTTP/2 without TLS is written as `h2c://`.
pub(super) fn upstreams(check: &mut Check<'_>, node: &Node, http2: bool) -> Option<Vec<WeightedUpstream>> {
    let items = typed::elements(node);
    if items.is_empty() {
        check.error(Code::BadValue, node.span, "`proxy` names no server", EXAMPLE);
        return None;
    }
    if items.len() > MAX_UPSTREAMS {
        let message = format!("`proxy` names more than {MAX_UPSTREAMS} servers");
        check.error(
            Code::BadValue,
            node.span,
            message,
            "name a load balancer in front of them",
        );
        return None;
    }
    let mut all: Vec<WeightedUpstream> = Vec::with_capacity(items.len());
    for item in items {
        let (written, table) = match &item.value {
            Value::Table(table) => match table.node("url") {
                Some(url) => (url, Some(table)),
                None => {
                    let help = "write { url = \"http://10.0.0.2:3000\", weight = 3 }";
                    check.error(Code::Missing, item.span, "the server has no `url`", help);
                    return None;
                }
            },
            _ => (item, None),
        };
        let upstream = upstream(check, written, http2)?;
        let weight = typed::integer(table, "weight").unwrap_or(WeightedUpstream::WEIGHT);
        if all.iter().any(|other| other.upstream == upstream) {
            let help = "remove it";
            check.error(Code::Conflict, item.span, format!("{upstream} is named twice"), help);
            return None;
        }
        let [drains, is_backup] = ["drain", "backup"].map(|key| typed::boolean(table, key).unwrap_or(false));
        let role = match (drains, is_backup) {
            (false, false) => UpstreamRole::Active,
            (true, false) => UpstreamRole::Drain,
            (false, true) => UpstreamRole::Backup,
            (true, true) => {
                let help = "remove `backup`: a draining server receives no new clients";
                check.error(
                    Code::Conflict,
                    item.span,
                    "a server cannot have both `drain` and `backup`",
                    help,
                );
                return None;
            }
        };
        all.push(WeightedUpstream { upstream, weight, role });
    }
    if all.iter().all(|server| server.role != UpstreamRole::Active) {
        let help = "name at least one server without `drain` and `backup`";
        check.error(
            Code::Conflict,
            node.span,
            "every server has `drain` or `backup`, so no server is active",
            help,
        );
        return None;
    }
    Some(all)
}

/// Reads one server: a URL, or `unix:` and a path; `None` after an error. A value of another type was reported before.
/// `http2`: as in [`upstreams`].
pub(super) fn upstream(check: &mut Check<'_>, node: &Node, http2: bool) -> Option<Upstream> {
    let written = node.written()?;
    upstream_of_text(check, &written.value, written, node, http2)
}

/// Reads a server from `text`, which is a part of the string `written` of a node.
pub(crate) fn upstream_of_text(
    check: &mut Check<'_>,
    text: &str,
    written: &Text,
    node: &Node,
    http2: bool,
) -> Option<Upstream> {
    if let Some(path) = text.strip_prefix("unix:") {
        let host = unix(check, path, node)?;
        return Some(Upstream {
            http2,
            ..Upstream::at(host)
        });
    }
    let help = match text.split_once("://") {
        Some(("http", rest)) if http2 => format!("write \"h2c://{}\" for HTTP/2 without TLS", short(rest)),
        Some((scheme @ ("http" | "https" | "h2c"), rest)) => match host(scheme, rest) {
            Ok(host) => {
                return Some(Upstream {
                    is_secure: scheme == "https",
                    http2: http2 || scheme == "h2c",
                    ..Upstream::at(host)
                });
            }
            Err(help) => help,
        },
        Some(("ws", rest)) => format!(
            "write \"http://{}\": WebSocket connections begin as HTTP requests",
            short(rest)
        ),
        Some(("wss", rest)) => format!(
            "write \"https://{}\": WebSocket connections begin as HTTP requests",
            short(rest)
        ),
        Some(("grpc", rest)) => format!("write \"h2c://{}\"", short(rest)),
        Some(_) => EXAMPLE.to_owned(),
        None if host("http", text).is_ok() => {
            let scheme = if http2 { "h2c" } else { "http" };
            format!("write \"{scheme}://{}\"", short(text))
        }
        None => EXAMPLE.to_owned(),
    };
    let message = format!(
        "the address of a server cannot be \"{}\"",
        short(typed::as_written(node))
    );
    check.bad_text(written, node.span, message, help);
    None
}

fn unix(check: &mut Check<'_>, path: &str, node: &Node) -> Option<Host> {
    let help = Help {
        example: EXAMPLE,
        shorter: "let the server listen on a shorter path",
    };
    Some(Host::Unix(socket::path(check, "unix:", path, node.span, help)?))
}

/// Parses the part of a URL after its scheme. The error is the help of the finding.
fn host(scheme: &str, text: &str) -> Result<Host, String> {
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.contains('@') {
        return Err("remove user and password, which are not sent to servers".to_owned());
    }
    if let Some((authority, _)) = text.split_once(['/', '?', '#']) {
        return Err(format!(
            "write \"{scheme}://{}\": requests keep their path",
            short(authority)
        ));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => match port.parse() {
            // `parse` accepts a plus sign, which no URL has.
            Ok(number) if number != 0 && !port.starts_with('+') => (host, number),
            _ => return Err(format!("\"{}\" is not a port", short(port))),
        },
        _ if scheme == "https" => (text, 443),
        _ => (text, 80),
    };
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        let address = address.parse::<Ipv6Addr>();
        return address
            .map(|ip| Host::Address(ip.into(), port))
            .map_err(|_| EXAMPLE.to_owned());
    }
    if let Ok(ip) = host.parse() {
        return Ok(Host::Address(IpAddr::V4(ip), port));
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    // Resolvers parse a name whose last label is a number as an IPv4 address, and valid addresses were handled above.
    // An empty label counts as a number, so that an empty host is refused.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    if host.len() <= MAX_HOST_BYTES && host.bytes().all(is_name) && !is_number {
        return Ok(Host::Name(host.to_ascii_lowercase(), port));
    }
    Err(EXAMPLE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_parsed() {
        for (text, expected) in [
            ("127.0.0.1:3000", Some("http://127.0.0.1:3000")),
            ("127.0.0.1:3000/", Some("http://127.0.0.1:3000")),
            ("App.internal", Some("http://app.internal:80")),
            ("my_app:8080", Some("http://my_app:8080")),
            ("[::1]:8080", Some("http://[::1]:8080")),
            ("[::1]", Some("http://[::1]:80")),
            ("::1:8080", None),
            ("app:0", None),
            ("app:70000", None),
            ("app:", None),
            ("app:+80", None),
            ("", None),
            (":80", None),
            ("app/path", None),
            ("app?x", None),
            ("user:secret@app", None),
            ("256.0.0.1", None),
            ("a b", None),
            ("[::g]", None),
        ] {
            let found = host("http", text).ok().map(|host| Upstream::at(host).to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
