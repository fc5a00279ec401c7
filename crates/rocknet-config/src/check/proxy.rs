//! `proxy`: the servers that requests are passed on to, and how.

mod headers;
mod health;
mod mirror;
mod upstreams;

use self::upstreams::{EXAMPLE, upstreams};
use crate::check::field::is_token;
use crate::check::words::short;
use crate::check::{Check, path, upstream_tls, value};
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::model::{Balance, Forwarded, Proxy, ProxyProtocol, RequestBuffering, Resolve};

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
    let headers = table.map(|table| headers::build(check, table)).unwrap_or_default();
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
            .and_then(|node| health::build(check, node, &headers)),
        headers,
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
        buffering: buffering(table),
        request_buffering: request_buffering(table),
        mirror: table
            .and_then(|table| table.node("mirror"))
            .and_then(|node| mirror::build(check, node)),
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
fn buffering(table: Option<&Table>) -> usize {
    const USUAL: usize = 64 * 1024;
    match value::boolean(table, "buffering") {
        Some(true) => USUAL,
        Some(false) => 0,
        None => value::size(table, "buffering")
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(0),
    }
}

fn request_buffering(table: Option<&Table>) -> RequestBuffering {
    match value::boolean(table, "request_buffering") {
        Some(true) => RequestBuffering::Whole,
        Some(false) => RequestBuffering::None,
        None => match value::size(table, "request_buffering").and_then(|size| usize::try_from(size).ok()) {
            None | Some(0) => RequestBuffering::None,
            Some(size) => RequestBuffering::First(size),
        },
    }
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
