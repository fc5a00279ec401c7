//! Translates `upstream` blocks, the URL of `proxy_pass` and `grpc_pass`, and the `proxy_…` directives.

use std::collections::HashMap;

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::Notes;
use crate::placeholder;
use crate::proxy::{ProxyServer, ProxySettings};
use crate::units;
use crate::value::Value;

use super::rewriting;

/// Groups of upstreams by name.
pub(super) type Upstreams = HashMap<String, ProxySettings>;

/// Translates an `upstream` block. The URLs of its servers have no scheme yet.
pub(super) fn group(block: &Directive, notes: &mut dyn Notes) -> ProxySettings {
    let mut group = ProxySettings::default();
    for directive in block.children() {
        let words = directive.words();
        match (directive.name.as_str(), &words[..]) {
            ("server", [address, parameters @ ..]) => {
                let server = server(address, parameters, directive, &mut group, notes);
                group.servers.push(server);
            }
            ("least_conn", []) => group.set("balance", Value::text("least_conn")),
            ("ip_hash", []) => group.set("balance", Value::text("ip_hash")),
            ("random", _) => group.set("balance", Value::text("random_two")),
            ("hash", ["$request_uri" | "$uri", ..]) => {
                group.set("balance", Value::text("uri"));
                notes.differs(directive, "`balance = \"uri\"` hashes the path without the query");
            }
            ("hash", ["$remote_addr" | "$binary_remote_addr", ..]) => group.set("balance", Value::text("ip_hash")),
            ("hash", [variable, ..]) if variable.starts_with("$http_") => {
                let field = variable["$http_".len()..].replace('_', "-");
                group.set("balance", Value::Text(format!("header:{field}")));
            }
            ("keepalive" | "keepalive_timeout" | "keepalive_requests" | "keepalive_time" | "zone" | "resolver", _) => {
                notes.unneeded(
                    directive,
                    "RockNet keeps connections to upstreams open and resolves names again",
                );
            }
            _ => notes.skip(
                directive,
                "write it as a setting of `proxy`, if there is one: docs/proxy.md",
            ),
        }
    }
    // nginx's default is written, because RockNet has another one.
    if group.servers.len() > 1 && !group.keys.iter().any(|(key, _)| *key == "balance") {
        group.set("balance", Value::text("round_robin"));
    }
    group
}

/// Message for a group whose servers are all `down`.
pub(super) const ALL_DOWN: &str =
    "every server of the group is `down`: nginx responds with 502, but RockNet sends requests to them";

/// Translates a `server` of an `upstream` block. A limit on a single server becomes a setting of the whole group.
fn server(
    address: &str,
    parameters: &[&str],
    directive: &Directive,
    group: &mut ProxySettings,
    notes: &mut dyn Notes,
) -> ProxyServer {
    let mut server = ProxyServer::new(address);
    for parameter in parameters {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        // Where a guard has already parsed a value, `unwrap_or` never uses its fallback.
        match name {
            "weight" => server.weight = value.parse().unwrap_or(1),
            "backup" => server.backup = true,
            "down" => {
                server.drain = true;
                notes.differs(
                    directive,
                    "`drain` still serves clients that a cookie of `sticky` keeps there",
                );
            }
            "max_fails" if value.parse::<u64>().is_ok() => {
                group.set("fails", Value::Number(value.parse().unwrap_or(3)));
            }
            "fail_timeout" if units::seconds(value).is_some() => {
                group.set("fail_time", Value::Text(units::duration_of(value).unwrap_or_default()));
            }
            "max_conns" if value.parse::<u64>().is_ok_and(|max| max > 0) => {
                group.set("connections", Value::Number(value.parse().unwrap_or(1)));
            }
            "resolve" => {}
            _ => notes.skip(directive, &format!("the parameter `{parameter}` has no counterpart")),
        }
    }
    server
}

/// Returns the address of a server, with this port if it has none. A Unix socket (`unix:/…`) needs no port.
pub(super) fn with_port(address: &str, port: u16) -> String {
    // The colons of an IPv6 address stand in brackets: `[::1]`.
    match address.rsplit(']').next().is_some_and(|end| end.contains(':')) {
        true => address.to_owned(),
        false => format!("{address}:{port}"),
    }
}

/// Servers of a `proxy_pass` or `grpc_pass`, with the path and host of its URL.
pub(super) struct Target {
    pub proxy: ProxySettings,
    /// Path of the URL, which replaces the path of the location; `None` if the URL has no path.
    pub path: Option<String>,
    /// `Host` that nginx sends unless `proxy_set_header` sets another value.
    pub host: String,
    /// True if the URL names an `upstream` block.
    pub is_group: bool,
}

/// Returns the target of `proxy_pass` or `grpc_pass`; `None` if its URL has variables, or a scheme other than `http`
/// and `https`. The caller has replaced `grpc` by `http`, and `grpcs` by `https`.
pub(super) fn target(url: &str, upstreams: &Upstreams) -> Option<Target> {
    let (scheme, rest) = url.split_once("://")?;
    if url.contains('$') || !matches!(scheme, "http" | "https") {
        return None;
    }
    if let Some(socket) = rest.strip_prefix("unix:") {
        let (socket, path) = socket
            .split_once(':')
            .map_or((socket, None), |(socket, path)| (socket, Some(path)));
        let mut proxy = ProxySettings::default();
        proxy.servers.push(ProxyServer::new(format!("unix:{socket}")));
        return Some(Target {
            proxy,
            path: path.filter(|path| !path.is_empty()).map(str::to_owned),
            host: "localhost".to_owned(),
            is_group: false,
        });
    }
    let (host, path) = match rest.find('/') {
        Some(at) => (&rest[..at], Some(rest[at..].to_owned())),
        None => (rest, None),
    };
    let mut proxy = upstreams.get(host).cloned().unwrap_or_default();
    let is_group = !proxy.servers.is_empty();
    if !is_group {
        proxy.servers.push(ProxyServer::new(host));
    }
    for server in &mut proxy.servers {
        if !server.url.starts_with("unix:") {
            server.url = format!("{scheme}://{}", server.url);
        }
    }
    Some(Target {
        proxy,
        path,
        host: host.to_owned(),
        is_group,
    })
}

/// Translates the `proxy_…` directives into settings of the proxy. `pass` is the `proxy_pass` or `grpc_pass` that
/// they apply to.
pub(super) fn settings(directives: &[&Directive], target: &mut Target, pass: &Directive, notes: &mut dyn Notes) {
    let proxy = &mut target.proxy;
    let mut has_host = false;
    // The directives of outer levels come first.
    let is_last = |directive: &Directive| directives.iter().rfind(|d| d.name == directive.name) == Some(&directive);
    for directive in directives {
        let words = directive.words();
        match (directive.name.as_str(), &words[..]) {
            ("proxy_set_header", [name, value]) => has_host |= header(directive, name, value, proxy, notes),
            ("proxy_read_timeout", [time]) if units::seconds(time).is_some() => {
                let time = Value::Text(units::duration_of(time).unwrap_or_default());
                proxy.set("first_byte", time.clone());
                proxy.set("idle", time);
            }
            ("proxy_connect_timeout", [time]) if units::seconds(time).is_some() => {
                // RockNet accepts 0.1 to 60 seconds for `connect`; only whole seconds are written here.
                let time = units::seconds(time).unwrap_or(1).clamp(1, 60);
                proxy.set("connect", Value::Text(units::duration(time)));
            }
            ("proxy_intercept_errors", ["on"]) => proxy.set("intercept", Value::Flag(true)),
            ("proxy_ssl_name", [name]) if !name.contains('$') => proxy.set("server_name", Value::text(*name)),
            ("proxy_ssl_trusted_certificate", [file]) => proxy.set("ca", Value::text(*file)),
            ("proxy_ssl_certificate", [file]) => proxy.set("cert", Value::text(*file)),
            ("proxy_ssl_certificate_key", [file]) => proxy.set("key", Value::text(*file)),
            ("proxy_request_buffering", ["on"]) => proxy.set("request_buffering", Value::Flag(true)),
            ("proxy_buffering", ["on"]) => proxy.set("buffering", Value::Flag(true)),
            ("proxy_redirect" | "proxy_cookie_path" | "proxy_cookie_domain", words) => {
                rewriting::translate(directive, words, proxy, notes);
            }
            ("proxy_pass_request_headers", ["off"]) if is_last(directive) => {
                let message =
                    "the upstream gets the fields of the client: an empty value in `proxy.headers` removes a field";
                notes.skip_restriction(directive, message);
            }
            ("proxy_pass_request_body", ["off"]) if is_last(directive) => {
                notes.skip(directive, "the upstream gets the body of the request");
            }
            (
                "proxy_http_version"
                | "proxy_buffering"
                | "proxy_request_buffering"
                | "proxy_buffers"
                | "proxy_buffer_size"
                | "proxy_busy_buffers_size"
                | "proxy_send_timeout"
                | "proxy_next_upstream"
                | "proxy_ssl_server_name"
                | "proxy_ssl_session_reuse"
                | "proxy_ssl_protocols"
                | "proxy_socket_keepalive"
                | "proxy_pass_request_headers"
                | "proxy_pass_request_body"
                | "proxy_intercept_errors"
                | "proxy_temp_path"
                | "proxy_temp_file_write_size"
                | "proxy_max_temp_file_size"
                | "proxy_next_upstream_tries"
                | "proxy_next_upstream_timeout"
                | "proxy_headers_hash_max_size"
                | "proxy_headers_hash_bucket_size",
                [_, ..],
            ) => {
                notes.unneeded(directive, "RockNet selects this itself");
            }
            // `mirror::resolve` has replaced the path of a location by the URL of its `proxy_pass`.
            ("mirror", [url]) if url.contains("://") || url.starts_with("unix:") => {
                proxy.set("mirror", Value::text(*url));
            }
            ("mirror", _) => {
                let message = "the location that it names needs both `internal` and a constant `proxy_pass`: write \
                               `proxy.mirror`";
                notes.skip(directive, message);
            }
            ("proxy_ssl_verify", ["on"]) => {}
            ("proxy_ssl_verify", ["off"]) => proxy.set("verify", Value::Flag(false)),
            _ => notes.skip(directive, "see docs/proxy.md for the settings of `proxy`"),
        }
    }
    let is_tls = proxy.servers.iter().any(|server| server.url.starts_with("https://"));
    if is_tls && !directives.iter().any(|d| d.is("proxy_ssl_verify")) {
        let message = "RockNet verifies the certificate of the upstream; `ca` or `verify = false` change that";
        notes.differs(pass, message);
    }
    if !has_host {
        let name = target
            .host
            .rsplit_once(':')
            .map_or(target.host.as_str(), |(name, _)| name);
        // nginx sends the host of the URL. The upstream may select a site by a domain name, so only a domain name is
        // kept, not an address or the name of a group.
        let is_name = !target.is_group && name.contains('.') && name.contains(|c: char| c.is_ascii_alphabetic());
        if is_name {
            proxy.headers.insert("Host".to_owned(), target.host.clone());
        } else {
            let message = format!("RockNet forwards the client's `Host`; nginx sent \"{}\"", target.host);
            notes.differs(pass, &message);
        }
    }
}

/// Translates `proxy_set_header`. Returns true if it sets `Host`.
fn header(directive: &Directive, name: &str, value: &str, proxy: &mut ProxySettings, notes: &mut dyn Notes) -> bool {
    let lower = name.to_ascii_lowercase();
    match (lower.as_str(), value) {
        // RockNet forwards `Host` without a setting.
        ("host", "$host" | "$http_host" | "$host:$server_port") => {}
        ("x-forwarded-for", "$proxy_add_x_forwarded_for" | "$remote_addr")
        | ("x-forwarded-proto", "$scheme")
        | ("x-forwarded-host", "$host" | "$http_host") => {
            notes.unneeded(directive, "RockNet sends X-Forwarded-For, -Proto and -Host");
        }
        ("upgrade" | "connection", _) => {
            notes.unneeded(directive, "RockNet forwards WebSocket and keeps connections open");
        }
        ("content-length" | "transfer-encoding", "") => {
            notes.unneeded(directive, "RockNet sets the fields of the body itself");
        }
        _ => match placeholder::from_nginx(value, Scope::Request) {
            Some(value) => drop(proxy.headers.insert(name.to_owned(), value)),
            None => {
                let message = "a variable has no placeholder: docs/placeholders.md lists those that have";
                notes.skip(directive, message);
            }
        },
    }
    lower == "host"
}
