//! `proxy`: the servers that requests are passed on to. `trusted_proxies`: those that pass requests on to this one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use crate::check::settings::OWN_FIELDS;
use crate::check::socket::{self, Help};
use crate::check::words::short;
use crate::check::{Check, path, upstream_tls, value};
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::model::{
    Balance, Forwarded, Health, Host, Mirror, Network, Proxy, ProxyProtocol, Resolve, Upstream, Weighted,
};

/// Most servers of one place: who has more has a balancer of its own before them.
const MAX_UPSTREAMS: usize = 256;

/// Longest name of the DNS.
const MAX_NAME: usize = 253;

/// `None`: requests are answered here, or what is written cannot be meant.
pub(super) fn build(check: &mut Check<'_>, node: &Node) -> Option<Proxy> {
    let (servers, table) = match &node.value {
        Value::Boolean(true) => {
            let message = "`proxy = true` does not say where requests go";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(_) | Value::List(_) => (node, None),
        Value::Table(table) => match table.node("to") {
            Some(servers) => (servers, Some(table)),
            None => {
                let help = "write to = \"http://127.0.0.1:3000\" in it";
                check.error(
                    Code::Missing,
                    node.span,
                    "`proxy` has no server to pass requests on to",
                    help,
                );
                return None;
            }
        },
        _ => return None,
    };
    let http2 = value::boolean(table, "http2").unwrap_or(false);
    let mut to = upstreams(check, servers, http2)?;
    let announce = match value::text(table, "proxy_protocol") {
        Some("v1") => Some(ProxyProtocol::V1),
        Some("v2") => Some(ProxyProtocol::V2),
        _ => None,
    };
    if announce.is_some() && to.iter().any(|to| to.upstream.http2) {
        let message = "`proxy_protocol` names one client, and connections in HTTP/2 are shared by many";
        check.error(Code::Conflict, node.span, message, "remove one of the two");
    }
    to.iter_mut().for_each(|to| to.upstream.announce = announce);
    let base = Proxy::to(to);
    let time = |key, default| value::duration(table, key).unwrap_or(default);
    Some(Proxy {
        balance: table
            .and_then(|table| table.node("balance"))
            .and_then(|node| balance(check, node))
            .unwrap_or_default(),
        sticky: table
            .and_then(|table| table.node("sticky"))
            .and_then(|node| sticky(check, node)),
        health: table
            .and_then(|table| table.node("health"))
            .and_then(|node| health(check, node)),
        headers: table.map(|table| headers(check, table)).unwrap_or_default(),
        strip: table
            .and_then(|table| table.node("strip"))
            .and_then(|node| path::below_site(check, "strip", node))
            .map(|path| path.trim_end_matches('/').to_owned())
            .filter(|path| !path.is_empty()),
        forwarded: table
            .and_then(|table| table.node("forwarded"))
            .and_then(|node| forwarded(check, node))
            .unwrap_or(base.forwarded),
        send_files: value::boolean(table, "send_files").unwrap_or(base.send_files),
        intercept: value::boolean(table, "intercept").unwrap_or(base.intercept),
        buffering: buffering(table, "buffering"),
        request_buffering: buffering(table, "request_buffering"),
        mirror: table
            .and_then(|table| table.node("mirror"))
            .and_then(|node| mirror(check, node)),
        resolve: match value::text(table, "resolve") {
            Some("ttl") | None => base.resolve,
            Some(_) => value::duration(table, "resolve").map_or(base.resolve, Resolve::Every),
        },
        fails: value::integer(table, "fails").unwrap_or(base.fails),
        fail_time: time("fail_time", base.fail_time),
        connections: value::integer(table, "connections"),
        queue: time("queue", base.queue),
        slow_start: time("slow_start", base.slow_start),
        connect: time("connect", base.connect),
        first_byte: time("first_byte", base.first_byte),
        idle: time("idle", base.idle),
        tls: table
            .map(|table| upstream_tls::build(check, table, &base.to))
            .unwrap_or_default(),
        to: base.to,
    })
}

const EXAMPLE: &str = "write where the other server listens: \"http://127.0.0.1:3000\" or \"unix:/run/app.sock\"";

/// `http2`: also those whose URL does not say so are asked in HTTP/2.
fn upstreams(check: &mut Check<'_>, node: &Node, http2: bool) -> Option<Vec<Weighted>> {
    let items = value::several(node);
    if items.is_empty() {
        check.error(Code::BadValue, node.span, "`proxy` names no server", EXAMPLE);
        return None;
    }
    if items.len() > MAX_UPSTREAMS {
        let message = format!("more than {MAX_UPSTREAMS} servers for one place");
        check.error(
            Code::BadValue,
            node.span,
            message,
            "name a balancer that stands before them",
        );
        return None;
    }
    let mut all: Vec<Weighted> = Vec::with_capacity(items.len());
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
        let weight = value::integer(table, "weight").unwrap_or(1);
        if all.iter().any(|other| other.upstream == upstream) {
            let help = "remove it";
            check.error(Code::Conflict, item.span, format!("{upstream} is named twice"), help);
            return None;
        }
        all.push(Weighted { upstream, weight });
    }
    Some(all)
}

fn upstream(check: &mut Check<'_>, node: &Node, http2: bool) -> Option<Upstream> {
    let written = node.written()?;
    let text = written.value.as_str();
    if let Some(path) = text.strip_prefix("unix:") {
        let host = unix(check, path, node)?;
        return Some(Upstream {
            http2,
            ..Upstream::at(host)
        });
    }
    let fault = match text.split_once("://") {
        Some(("http", rest)) if http2 => format!("write \"h2c://{}\": that is HTTP/2 in the clear", short(rest)),
        Some((scheme @ ("http" | "https" | "h2c"), rest)) => match host(scheme, rest) {
            Ok(host) => {
                return Some(Upstream {
                    is_secure: scheme == "https",
                    http2: http2 || scheme == "h2c",
                    ..Upstream::at(host)
                });
            }
            Err(fault) => fault,
        },
        Some(("ws", rest)) => format!("write \"http://{}\": WebSocket begins with HTTP", short(rest)),
        Some(("wss", rest)) => format!("write \"https://{}\": WebSocket begins with HTTP", short(rest)),
        Some(("grpc", rest)) => format!("write \"h2c://{}\"", short(rest)),
        Some(_) => EXAMPLE.to_owned(),
        None if host("http", text).is_ok() => format!("write \"http://{}\"", short(text)),
        None => EXAMPLE.to_owned(),
    };
    let message = format!("`proxy` cannot be \"{}\"", short(value::shown(node)));
    check.bad_text(written, node.span, message, fault);
    None
}

/// What stands behind `balance`; the words of the table of keys, or a field.
fn balance(check: &mut Check<'_>, node: &Node) -> Option<Balance> {
    let written = node.written()?;
    Some(match written.value.as_str() {
        "random_two" => Balance::RandomTwo,
        "round_robin" => Balance::RoundRobin,
        "least_conn" => Balance::LeastConn,
        "ip_hash" => Balance::IpHash,
        "uri" => Balance::Uri,
        text => match text.strip_prefix("header:").map(str::trim) {
            Some(name) if is_token(name) => Balance::Header(name.to_owned()),
            _ => {
                let message = format!("`balance` cannot be \"{}\"", short(value::shown(node)));
                let help =
                    "write \"random_two\", \"round_robin\", \"least_conn\", \"ip_hash\", \"uri\" or \"header:NAME\"";
                check.bad_text(written, node.span, message, help);
                return None;
            }
        },
    })
}

/// Fields of requests; those that frame a message are never the operator's.
fn headers(check: &mut Check<'_>, table: &Table) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for (name, entry) in table.table("headers").map(Table::in_order).unwrap_or_default() {
        let Some(written) = entry.node.written() else { continue };
        let (fault, help) = if !is_token(name) {
            ("is no field name", "names hold letters, digits and `-`: \"X-Api-Key\"")
        } else if OWN_FIELDS.contains(&name.to_ascii_lowercase().as_str()) {
            ("belongs to the server, which frames its messages with it", "remove it")
        } else if all.keys().any(|other| other.eq_ignore_ascii_case(name)) {
            ("is written twice; case makes no difference", "keep one of the two")
        } else {
            let is_value = |text: &str| text.chars().all(|c| (' '..='~').contains(&c) || c == '\t');
            let is_host = |text: &str| !text.is_empty() && !text.contains([' ', '/', '@', ',', '\t']);
            match written.value.trim() {
                text if is_value(text) && (!name.eq_ignore_ascii_case("host") || is_host(text)) => {
                    all.insert(name.to_owned(), text.to_owned());
                }
                _ => {
                    let message = format!("the value of `{}` cannot stand there", short(name));
                    check.bad_text(
                        written,
                        entry.node.span,
                        message,
                        "one line of ASCII; for `Host`, a name and a port",
                    );
                }
            }
            continue;
        };
        check.error(Code::BadValue, entry.key, format!("\"{}\" {fault}", short(name)), help);
    }
    all
}

fn forwarded(check: &mut Check<'_>, node: &Node) -> Option<Forwarded> {
    match &node.value {
        Value::Boolean(false) => Some(Forwarded::Nothing),
        Value::Boolean(true) => {
            let help = "write \"x-forwarded\", \"forwarded\" or \"both\"";
            check.error(
                Code::BadValue,
                node.span,
                "`forwarded = true` does not say which fields",
                help,
            );
            None
        }
        _ => match node.as_text()? {
            "x-forwarded" => Some(Forwarded::XForwarded),
            "forwarded" => Some(Forwarded::Standard),
            "both" => Some(Forwarded::Both),
            _ => None,
        },
    }
}

/// Bytes that are held, where anything is.
fn buffering(table: Option<&Table>, key: &str) -> usize {
    const USUAL: usize = 64 * 1024;
    match value::boolean(table, key) {
        Some(true) => USUAL,
        Some(false) => 0,
        None => value::size(table, key)
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(0),
    }
}

fn mirror(check: &mut Check<'_>, node: &Node) -> Option<Mirror> {
    let (to, table) = match &node.value {
        Value::Table(table) => match table.node("to") {
            Some(to) => (to, Some(table)),
            None => {
                let help = "write to = \"http://127.0.0.1:3001\" in it";
                check.error(
                    Code::Missing,
                    node.span,
                    "`mirror` has no server to copy requests to",
                    help,
                );
                return None;
            }
        },
        _ => (node, None),
    };
    let written = to.written()?;
    if let Some((scheme, _)) = written.value.split_once("://")
        && scheme != "http"
    {
        let message = format!("copies of requests cannot go to \"{}\"", short(value::shown(to)));
        check.bad_text(
            written,
            to.span,
            message,
            "they go by \"http://host:port\" or \"unix:/path\" alone",
        );
        return None;
    }
    let upstream = upstream(check, to, false)?;
    if upstream.is_secure || upstream.http2 {
        let message = "copies of requests are sent in HTTP/1.1 and in the clear";
        check.error(Code::BadValue, to.span, message, EXAMPLE);
        return None;
    }
    let base = Mirror::to(upstream);
    Some(Mirror {
        share: table
            .and_then(|table| table.node("share"))
            .and_then(|node| share(check, node))
            .unwrap_or(base.share),
        content: value::size(table, "content")
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(base.content),
        to: base.to,
    })
}

/// `"10%"`, `"0.5%"`: of ten thousand.
fn share(check: &mut Check<'_>, node: &Node) -> Option<u32> {
    let written = node.written()?;
    let share = percent(&written.value);
    if share.is_none() {
        let message = format!("`share` cannot be \"{}\"", short(written.shown()));
        check.bad_text(
            written,
            node.span,
            message,
            "write a part of all requests: \"10%\", or \"0.5%\"",
        );
    }
    share
}

fn percent(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?.trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |text: &str| !text.is_empty() && text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 2 {
        return None;
    }
    let hundredths = format!("{part:0<2}").parse::<u32>().ok()?;
    let share = whole.parse::<u32>().ok()? * 100 + hundredths;
    (1..=Mirror::ALL).contains(&share).then_some(share)
}

/// The name of the cookie, if there is to be one.
fn sticky(check: &mut Check<'_>, node: &Node) -> Option<String> {
    match &node.value {
        Value::Boolean(true) => Some("rocknet_server".to_owned()),
        Value::Text(written) if is_token(&written.value) => Some(written.value.clone()),
        Value::Text(written) => {
            let message = format!("\"{}\" is no name for a cookie", short(written.shown()));
            check.bad_text(written, node.span, message, "names hold letters, digits, `-` and `_`");
            None
        }
        _ => None,
    }
}

/// RFC 9110 §5.6.2, which cookies keep to as well.
fn is_token(text: &str) -> bool {
    let is_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= 128 && text.bytes().all(is_byte)
}

fn health(check: &mut Check<'_>, node: &Node) -> Option<Health> {
    let (path, table) = match &node.value {
        Value::Table(table) => match table.node("path") {
            Some(path) => (path, Some(table)),
            None => {
                let help = "write path = \"/healthz\" in it";
                check.error(Code::Missing, node.span, "`health` has no path to ask for", help);
                return None;
            }
        },
        _ => (node, None),
    };
    let written = path.written()?;
    let text = &written.value;
    if !text.starts_with('/') || !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        let message = format!("`health`: \"{}\" is no path of a URL", short(written.shown()));
        check.bad_text(written, path.span, message, "write \"/healthz\"");
        return None;
    }
    let base = Health::of(text.clone());
    Some(Health {
        status: value::integer(table, "status"),
        interval: value::duration(table, "interval").unwrap_or(base.interval),
        timeout: value::duration(table, "timeout").unwrap_or(base.timeout),
        rise: value::integer(table, "rise").unwrap_or(base.rise),
        fall: value::integer(table, "fall").unwrap_or(base.fall),
        path: base.path,
    })
}

fn unix(check: &mut Check<'_>, path: &str, node: &Node) -> Option<Host> {
    let help = Help {
        example: EXAMPLE,
        shorter: "have the server listen at a shorter one",
    };
    Some(Host::Unix(socket::path(check, "unix:", path, node.span, help)?))
}

/// What stands behind `http://` or another scheme, or what to write instead.
fn host(scheme: &str, text: &str) -> Result<Host, String> {
    let text = text.strip_suffix('/').unwrap_or(text);
    if text.contains('@') {
        return Err("leave out user and password: nobody is told them".to_owned());
    }
    if let Some((place, _)) = text.split_once(['/', '?', '#']) {
        return Err(format!(
            "write \"{scheme}://{}\": requests keep their own path",
            short(place)
        ));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => match port.parse() {
            Ok(port) if port != 0 => (host, port),
            _ => return Err(format!("\"{}\" is no port", short(port))),
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
    // What ends in a number would be an address, and is none.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    if host.len() <= MAX_NAME && host.bytes().all(is_name) && !is_number {
        return Ok(Host::Name(host.to_ascii_lowercase(), port));
    }
    Err(EXAMPLE.to_owned())
}

/// Addresses and networks that are trusted.
pub(super) fn networks(check: &mut Check<'_>, node: &Node) -> Vec<Network> {
    let mut all = Vec::new();
    for (written, span) in value::texts(node) {
        match network(&written.value) {
            Some(network) => all.push(network),
            None => {
                let message = format!("\"{}\" is no address or network", short(written.shown()));
                let help = "write \"192.0.2.7\", \"10.0.0.0/8\", \"2001:db8::/32\" or \"unix\"";
                check.bad_text(written, span, message, help);
            }
        }
    }
    all
}

fn network(text: &str) -> Option<Network> {
    if text == "unix" {
        return Some(Network::Unix);
    }
    let (ip, length) = match text.split_once('/') {
        Some((ip, length)) => (ip.parse::<IpAddr>().ok()?, Some(length.parse::<u8>().ok()?)),
        None => (text.parse::<IpAddr>().ok()?, None),
    };
    let bits = if ip.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(bits);
    (length <= bits).then_some(Network::Ip { ip, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_what_is_none() {
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

    #[test]
    fn shares_are_read() {
        for (text, expected) in [
            ("10%", Some(1000)),
            ("100%", Some(10_000)),
            ("0.5%", Some(50)),
            ("0.01%", Some(1)),
            ("12.5 %", Some(1250)),
            ("0%", None),
            ("100.1%", None),
            ("0.001%", None),
            ("10", None),
            (".5%", None),
            ("-1%", None),
            ("%", None),
        ] {
            assert_eq!(percent(text), expected, "{text}");
        }
    }

    #[test]
    fn networks_are_read() {
        for (text, good) in [
            ("10.0.0.0/8", true),
            ("10.0.0.1", true),
            ("::1", true),
            ("2001:db8::/32", true),
            ("unix", true),
            ("10.0.0.0/33", false),
            ("::/129", false),
            ("10.0.0.0/", false),
            ("10.0.0", false),
            ("localhost", false),
        ] {
            assert_eq!(network(text).is_some(), good, "{text}");
        }
    }
}
