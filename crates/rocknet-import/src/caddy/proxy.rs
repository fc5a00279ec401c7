//! Translates the directive `reverse_proxy` of Caddy.

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::placeholder;
use crate::proxy::{ProxyServer, ProxySettings};
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

/// Translates `reverse_proxy`; `None` if no upstream has a constant address. Header fields of responses are added to
/// `settings`.
pub(super) fn translate(
    directive: &Directive,
    upstreams: &[&str],
    settings: &mut Settings,
    notes: &mut Vec<Note>,
) -> Option<ProxySettings> {
    let mut proxy = ProxySettings::default();
    let mut uses_tls = false;
    // True for the policy `first`, with which the servers after the first one are backups.
    let mut is_first = false;
    let to = directive.children().iter().filter(|inner| inner.is("to"));
    let all = upstreams.iter().copied().chain(to.flat_map(Directive::words));
    for upstream in all {
        match server(upstream) {
            Some(url) => proxy.servers.push(ProxyServer::new(url)),
            None => notes.skip(
                directive,
                &format!("the upstream {upstream} has no constant address with one port"),
            ),
        }
    }
    if proxy.servers.is_empty() {
        return None;
    }
    for inner in directive.children() {
        let words = inner.words();
        match (inner.name.as_str(), &words[..]) {
            ("to", _) => {}
            ("lb_policy", words) => is_first |= policy(inner, words, &mut proxy, notes),
            ("health_uri", [path]) => proxy.health.insert(0, ("path", Value::text(*path))),
            ("health_interval" | "health_timeout", [time]) if units::seconds(time).is_some() => {
                let key = if inner.is("health_interval") {
                    "interval"
                } else {
                    "timeout"
                };
                proxy
                    .health
                    .push((key, Value::Text(units::duration_of(time).unwrap_or_default())));
            }
            ("health_status", [status]) if status.parse::<u64>().is_ok() => {
                proxy
                    .health
                    .push(("status", Value::Number(status.parse().unwrap_or(200))));
            }
            ("health_passes" | "health_fails", [count]) if count.parse::<u64>().is_ok() => {
                let key = if inner.is("health_passes") { "rise" } else { "fall" };
                proxy.health.push((key, Value::Number(count.parse().unwrap_or(2))));
            }
            ("max_fails", [count]) if count.parse::<u64>().is_ok() => {
                proxy.set("fails", Value::Number(count.parse().unwrap_or(3)));
            }
            ("fail_duration", [time]) if units::seconds(time).is_some() => {
                proxy.set("fail_time", Value::Text(units::duration_of(time).unwrap_or_default()));
            }
            ("unhealthy_request_count", [count]) if count.parse::<u64>().is_ok() => {
                proxy.set("connections", Value::Number(count.parse().unwrap_or(1)));
                notes.differs(inner, "at the limit, requests wait for at most `proxy.queue`");
            }
            ("header_up", words) => header_up(inner, words, &mut proxy, notes),
            // `+` adds a value, `?` sets a default, and `>` sets the field after the upstream has responded, as RockNet
            // always does.
            ("header_down", [name, value])
                if !name.starts_with(['+', '?'])
                    && let Some(value) = placeholder::from_caddy(value, Scope::Response) =>
            {
                settings.set_entry("headers", name.trim_start_matches('>'), Value::Text(value), inner.line);
            }
            ("header_down", [name]) if name.starts_with('-') => {
                settings.set_entry("headers", &name[1..], Value::text(""), inner.line);
            }
            ("transport", ["http"]) => uses_tls |= transport(inner, &mut proxy, notes),
            ("flush_interval" | "lb_try_duration" | "lb_try_interval" | "lb_retries", _) => {
                notes.unneeded(
                    inner,
                    "responses are sent as they arrive, and failed requests are retried",
                );
            }
            ("trusted_proxies", _) => {
                notes.skip(
                    inner,
                    "write `trusted_proxies` in [server] for the proxies in front of this server",
                );
            }
            _ => notes.skip(inner, "see docs/proxy.md for the settings of `proxy`"),
        }
    }
    if !proxy.health.is_empty() && !proxy.health.iter().any(|(key, _)| *key == "path") {
        proxy.health.clear();
        notes.skip(directive, "health checks need `health_uri`");
    }
    for (at, server) in proxy.servers.iter_mut().enumerate() {
        server.backup = is_first && at > 0;
        if uses_tls {
            server.url = server.url.replacen("http://", "https://", 1);
        }
    }
    Some(proxy)
}

/// Translates `lb_policy`. Returns true for `first`.
fn policy(directive: &Directive, words: &[&str], proxy: &mut ProxySettings, notes: &mut Vec<Note>) -> bool {
    let balance = match words {
        ["round_robin"] => "round_robin".to_owned(),
        ["least_conn"] => "least_conn".to_owned(),
        ["ip_hash" | "client_ip_hash"] => "ip_hash".to_owned(),
        ["uri_hash"] => "uri".to_owned(),
        ["header", name] => format!("header:{name}"),
        ["random_choose", ..] => "random_two".to_owned(),
        ["random"] => {
            notes.differs(directive, "`random_two` picks the less loaded of two random servers");
            "random_two".to_owned()
        }
        ["cookie", rest @ ..] => {
            let sticky = rest.first().map_or(Value::Flag(true), |name| Value::text(*name));
            proxy.set("sticky", sticky);
            if rest.len() > 1 {
                notes.differs(directive, "the cookie is not computed with this secret");
            }
            return false;
        }
        ["first"] => return true,
        ["weighted_round_robin", weights @ ..] => {
            for (server, weight) in proxy.servers.iter_mut().zip(weights) {
                server.weight = weight.parse().unwrap_or(1);
            }
            "round_robin".to_owned()
        }
        _ => {
            notes.skip(directive, "write `balance`: docs/proxy.md");
            return false;
        }
    };
    proxy.set("balance", Value::Text(balance));
    false
}

fn header_up(directive: &Directive, words: &[&str], proxy: &mut ProxySettings, notes: &mut Vec<Note>) {
    match words {
        [name, "{upstream_hostport}" | "{http.reverse_proxy.upstream.hostport}"]
            if name.eq_ignore_ascii_case("host") =>
        {
            let host = match &proxy.servers[..] {
                [server] => server.url.split_once("://").map(|(_, host)| host.to_owned()),
                _ => None,
            };
            match host {
                Some(host) => drop(proxy.headers.insert("Host".to_owned(), host)),
                None => notes.skip(
                    directive,
                    "`Host` has one value for all upstreams: write `proxy.headers`",
                ),
            }
        }
        // RockNet forwards `Host` unchanged by default.
        [name, "{host}" | "{http.request.host}"] if name.eq_ignore_ascii_case("host") => {}
        [name, _] if name.to_ascii_lowercase().starts_with("x-forwarded-") => {
            notes.unneeded(directive, "RockNet sends X-Forwarded-For, -Proto and -Host");
        }
        [name] if name.starts_with('-') => {
            proxy.headers.insert(name[1..].to_owned(), String::new());
        }
        [name, value]
            if !name.starts_with(['+', '?', '-'])
                && let Some(value) = placeholder::from_caddy(value, Scope::Request) =>
        {
            proxy.headers.insert((*name).to_owned(), value);
        }
        _ => notes.skip(
            directive,
            "`proxy.headers` set whole values, and take the placeholders of docs/placeholders.md",
        ),
    }
}

/// Translates `transport http`. Returns true if it uses TLS.
fn transport(block: &Directive, proxy: &mut ProxySettings, notes: &mut Vec<Note>) -> bool {
    let mut uses_tls = false;
    for inner in block.children() {
        let words = inner.words();
        let time = words.first().and_then(|time| units::duration_of(time)).map(Value::Text);
        match (inner.name.as_str(), &words[..], time) {
            ("tls", [], _) => uses_tls = true,
            ("tls_insecure_skip_verify", [], _) => {
                uses_tls = true;
                proxy.set("verify", Value::Flag(false));
            }
            ("tls_server_name", [name], _) if !name.contains('{') => proxy.set("server_name", Value::text(*name)),
            ("tls_trusted_ca_certs", files, _) => proxy.set("ca", Value::texts(files.iter().copied())),
            ("dial_timeout", _, Some(time)) => proxy.set("connect", time),
            ("response_header_timeout", _, Some(time)) => proxy.set("first_byte", time),
            ("read_timeout", _, Some(time)) => proxy.set("idle", time),
            ("versions", ["h2c", ..], _) => {
                for server in &mut proxy.servers {
                    server.url = server.url.replacen("http://", "h2c://", 1);
                }
            }
            ("versions", ["2", ..], _) => proxy.set("http2", Value::Flag(true)),
            ("keepalive" | "keepalive_idle_conns" | "write_timeout" | "versions" | "compression", _, _) => {
                notes.unneeded(inner, "RockNet selects this itself");
            }
            _ => notes.skip(inner, "see docs/proxy.md for the settings of `proxy`"),
        }
    }
    uses_tls
}

/// Returns the URL of an upstream; `None` if it has placeholders, a range of ports, or a path.
pub(super) fn server(address: &str) -> Option<String> {
    if address.contains(['{', '*']) {
        return None;
    }
    if let Some(socket) = unix(address) {
        return Some(socket);
    }
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    if !matches!(scheme, "http" | "https" | "h2c") || rest.contains('/') || rest.is_empty() {
        return None;
    }
    let rest = match rest.strip_prefix(':') {
        Some(port) => format!("localhost:{port}"),
        None => rest.to_owned(),
    };
    let is_range = rest.rsplit_once(':').is_some_and(|(_, port)| port.contains('-'));
    (!is_range).then(|| format!("{scheme}://{rest}"))
}

/// Returns the address of a Unix socket, such as `unix//run/app.sock`, in RockNet's form; `None` for other addresses.
pub(super) fn unix(address: &str) -> Option<String> {
    let path = address.strip_prefix("unix/")?;
    // `|` begins the mode of the socket file.
    let path = path.split('|').next()?;
    path.starts_with('/').then(|| format!("unix:{path}"))
}
