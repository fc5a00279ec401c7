//! Translates the global options of a Caddyfile.

use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::units;
use crate::value::Value;

/// Global options that sites depend on.
#[derive(Default)]
pub(super) struct CaddyOptions {
    /// True for `auto_https off`.
    pub has_no_https: bool,
    /// True for `auto_https disable_redirects`.
    pub has_no_redirects: bool,
    /// True for `local_certs`.
    pub uses_local_certificates: bool,
    /// Networks of `trusted_proxies`.
    pub trusted_proxies: Vec<String>,
    /// Options of `cache`, which apply to the caches of all sites.
    pub cache: Vec<Directive>,
}

impl CaddyOptions {
    /// Translates the block of the global options.
    pub fn read(&mut self, block: &Directive, document: &mut Document) {
        for directive in block.children() {
            let line = directive.line;
            match (directive.name.as_str(), &directive.words()[..]) {
                ("email", [email]) if !email.contains('{') => {
                    document.table("tls").set("email", Value::text(*email), line);
                }
                ("acme_ca", [url]) => document.table("tls").set("ca", Value::text(*url), line),
                ("acme_ca_root", [file]) => document.table("tls").set("ca_root", Value::text(*file), line),
                ("local_certs", []) => self.uses_local_certificates = true,
                ("auto_https", ["off"]) => self.has_no_https = true,
                ("auto_https", ["disable_redirects"]) => self.has_no_redirects = true,
                ("debug", []) => document.table("log").set("level", Value::text("debug"), line),
                ("admin", ["off"]) => {
                    document.unneeded(
                        directive,
                        "the control API is a Unix socket; admin.socket = \"off\" turns it off",
                    );
                }
                ("grace_period", [time]) => match units::duration_of(time) {
                    Some(time) => document.table("limits").set("shutdown", Value::Text(time), line),
                    None => document.skip(directive, "write `limits.shutdown`"),
                },
                ("servers", _) => self.servers(directive, document),
                ("cache", []) => {
                    self.cache.extend(directive.children().iter().cloned());
                    document.unneeded(directive, "its options apply to each `cache` of the sites");
                }
                ("order" | "persist_config" | "skip_install_trust", _) => {
                    document.unneeded(directive, "it has no meaning in RockNet");
                }
                ("on_demand_tls", _) => {
                    let ask = directive.children().iter().find(|inner| inner.is("ask"));
                    match ask {
                        Some(ask) => document.table("tls").set("ask", Value::text(ask.argument(0)), ask.line),
                        None => document.skip(directive, "write `ask` in [tls]"),
                    }
                }
                _ => document.skip(directive, "see docs/configuration.md for the global tables"),
            }
        }
    }

    /// Translates the options of servers.
    fn servers(&mut self, block: &Directive, document: &mut Document) {
        for directive in block.children() {
            let line = directive.line;
            match (directive.name.as_str(), &directive.words()[..]) {
                ("protocols", protocols) => {
                    if !protocols.contains(&"h3") {
                        document.table("server").set("http3", Value::Flag(false), line);
                    }
                    if protocols.contains(&"h2c") {
                        document.table("server").set("h2c", Value::Flag(true), line);
                    }
                }
                ("trusted_proxies", ["static", ranges @ ..]) if !ranges.is_empty() => {
                    let networks = networks(ranges);
                    let values = networks.iter().map(Value::text).collect();
                    document
                        .table("server")
                        .set("trusted_proxies", Value::List(values), line);
                    self.trusted_proxies = networks;
                }
                ("max_header_size", [size]) if units::size(size).is_some() => {
                    let size = Value::Text(units::size(size).unwrap_or_default());
                    document.table("limits").set("header_size", size, line);
                }
                ("timeouts", []) => timeouts(directive, document),
                ("metrics" | "strict_sni_host", _) => {
                    document.unneeded(
                        directive,
                        "the server has metrics, and compares the names of TLS and HTTP",
                    );
                }
                _ => document.skip(directive, "see docs/configuration.md for the global tables"),
            }
        }
    }
}

/// Returns the networks that Caddy trusts by these words. `private_ranges` becomes a list, because RockNet's
/// `trusted_proxies` has no such word.
pub(super) fn networks(ranges: &[&str]) -> Vec<String> {
    const PRIVATE: [&str; 6] = [
        "10.0.0.0/8",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1",
        "fd00::/8",
    ];
    let ranges = ranges.iter().flat_map(|range| match *range {
        "private_ranges" => PRIVATE.to_vec(),
        range => vec![range],
    });
    ranges.map(str::to_owned).collect()
}

fn timeouts(block: &Directive, document: &mut Document) {
    for directive in block.children() {
        let key = match directive.name.as_str() {
            "read_header" => "header_timeout",
            "read_body" => "body_idle",
            "write" => "send_stall",
            "idle" => "keep_alive",
            _ => "",
        };
        match units::duration_of(directive.argument(0)).filter(|_| !key.is_empty()) {
            Some(time) => document.table("limits").set(key, Value::Text(time), directive.line),
            None => document.skip(directive, "see docs/limits.md for the timeouts"),
        }
    }
}
