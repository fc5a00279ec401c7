//! Parses `proxy`: the upstreams, and how requests are forwarded to them.

pub(crate) mod headers;
mod health;
mod mirror;
mod rewrites;
pub(crate) mod upstreams;

use self::upstreams::{EXAMPLE, upstreams};
use crate::binding::{self, Section};
use crate::choice::Choice;
use crate::context::Check;
use crate::file::{Node, Table, Value};
use crate::finding::Code;
use crate::message::{alternatives, quoted, short};
use crate::model::{Balance, Forwarded, Proxy, ProxyProtocol, RequestBuffering};
use crate::value::field::is_token;
use crate::value::{path, typed, upstream_tls};

/// Reads `proxy`; `None` if it is off or invalid.
pub(crate) fn build(check: &mut Check<'_>, node: &Node) -> Option<Proxy> {
    let (servers, table) = match &node.value {
        Value::Boolean(true) => {
            let message = "`proxy = true` names no server";
            check.error(Code::BadValue, node.span, message, EXAMPLE);
            return None;
        }
        Value::Text(_) | Value::List(_) => (node, None),
        Value::Table(table) => match table.node("to") {
            Some(servers) => (servers, Some(table)),
            None => {
                let help = "write to = \"http://127.0.0.1:3000\" in it";
                check.error(Code::Missing, node.span, "`proxy` has no `to`", help);
                return None;
            }
        },
        _ => return None,
    };
    let http2 = typed::boolean(table, "http2").unwrap_or(false);
    let mut to = upstreams(check, servers, http2)?;
    let proxy_protocol = typed::choice::<ProxyProtocol>(table, "proxy_protocol");
    if proxy_protocol.is_some() && to.iter().any(|to| to.upstream.http2) {
        let message = "`proxy_protocol` names one client, but HTTP/2 connections are shared by many";
        check.error(
            Code::Conflict,
            node.span,
            message,
            "remove `proxy_protocol`, or use HTTP/1.1",
        );
    }
    to.iter_mut().for_each(|to| to.upstream.proxy_protocol = proxy_protocol);
    let base = Proxy::to(to);
    let headers = table
        .map(|table| headers::build(check, table, true))
        .unwrap_or_default();
    let mut proxy = Proxy {
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
            .and_then(|node| path::site_path(check, "strip", node))
            .map(|path| path.trim_end_matches('/').to_owned())
            .filter(|path| !path.is_empty()),
        redirects: rewrites::redirects(check, table),
        cookie_paths: rewrites::cookie_paths(check, table),
        cookie_domains: rewrites::cookie_domains(check, table),
        forwarded: table
            .and_then(|table| table.node("forwarded"))
            .and_then(|node| forwarded(check, node))
            .unwrap_or(base.forwarded),
        buffering: buffering(table),
        request_buffering: request_buffering(table),
        mirror: table
            .and_then(|table| table.node("mirror"))
            .and_then(|node| mirror::build(check, node)),
        tls: table
            .map(|table| upstream_tls::build(check, table, &base.to))
            .unwrap_or_default(),
        ..base
    };
    binding::read(check, Section::Proxy, table, &mut proxy);
    Some(proxy)
}

/// Reads `balance`: a word, or the name of a header field.
fn balance(check: &mut Check<'_>, node: &Node) -> Option<Balance> {
    let written = node.written()?;
    if let Some(balance) = Balance::of(&written.value) {
        return Some(balance);
    }
    match written.value.strip_prefix(Balance::HEADER).map(str::trim) {
        Some(name) if is_token(name) => Some(Balance::Header(name.to_owned())),
        _ => {
            let message = format!("`balance` cannot be \"{}\"", short(typed::as_written(node)));
            let field = format!("{}NAME", Balance::HEADER);
            let words = Balance::WORDS.iter().map(|word| word.text).chain([&*field]);
            let help = format!("write {}", alternatives(words.map(quoted)));
            check.bad_text(written, node.span, message, help);
            None
        }
    }
}

/// Reads `forwarded`; `None` after an error.
fn forwarded(check: &mut Check<'_>, node: &Node) -> Option<Forwarded> {
    match &node.value {
        Value::Boolean(false) => Some(Forwarded::Off),
        Value::Boolean(true) => {
            let help = format!(
                "write {}",
                alternatives(Forwarded::WORDS.iter().map(|word| quoted(word.text)))
            );
            check.error(
                Code::BadValue,
                node.span,
                "`forwarded = true` names no header fields",
                help,
            );
            None
        }
        _ => Forwarded::of(node.as_text()?),
    }
}

/// Reads `buffering`. Returns the number of bytes; 0 if buffering is off.
fn buffering(table: Option<&Table>) -> usize {
    /// Number of bytes for `buffering = true`.
    const USUAL: usize = 64 * 1024;
    match typed::boolean(table, "buffering") {
        Some(true) => USUAL,
        Some(false) => 0,
        None => typed::size(table, "buffering")
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(0),
    }
}

/// Reads `request_buffering`: a switch or a size.
fn request_buffering(table: Option<&Table>) -> RequestBuffering {
    match typed::boolean(table, "request_buffering") {
        Some(true) => RequestBuffering::Whole,
        Some(false) => RequestBuffering::None,
        None => match typed::size(table, "request_buffering").and_then(|size| usize::try_from(size).ok()) {
            None | Some(0) => RequestBuffering::None,
            Some(size) => RequestBuffering::First(size),
        },
    }
}

/// Reads `sticky`, the name of the cookie; `None` if it is off or invalid.
fn sticky(check: &mut Check<'_>, node: &Node) -> Option<String> {
    match &node.value {
        Value::Boolean(true) => Some("rocknet_server".to_owned()),
        Value::Text(written) if is_token(&written.value) => Some(written.value.clone()),
        Value::Text(written) => {
            let message = format!("\"{}\" is not a valid cookie name", short(written.as_written()));
            check.bad_text(written, node.span, message, "use letters, digits, `-` and `_`");
            None
        }
        _ => None,
    }
}
