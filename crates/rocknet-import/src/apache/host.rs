//! Translates a virtual host, or the directives of a file without virtual hosts.

use crate::directive::Directive;
use crate::document::Notes;
use crate::hosts::{HostDraft, HostListener};
use crate::units;
use crate::value::Value;

use super::context::ServerContext;
use super::path::prefix;
use super::php;
use super::proxy::ProxyDirectives;
use super::rewrite::{self, RewriteBlock};
use super::section;
use super::setting::ApacheScope;

/// Translates the directives of a host. `block`: its section; `None` for a file without hosts.
pub(super) fn translate(directives: &[&Directive], block: Option<&Directive>, context: &ServerContext) -> HostDraft {
    let mut host = HostDraft {
        directive: block.map_or_else(String::new, Directive::text),
        ..HostDraft::default()
    };
    host.site.line = block.map_or(1, |block| block.line);
    let mut proxies = ProxyDirectives::default();
    let mut rewrites = RewriteBlock::default();
    let mut tls = ApacheTls::default();
    let mut scope = ApacheScope::new(context);
    // Sections name folders below the root, wherever it stands.
    for directive in directives.iter().filter(|directive| directive.is("DocumentRoot")) {
        if let Some(folder) = context.expand(directive.argument(0)) {
            host.site.settings.set("root", Value::Text(folder), directive.line);
        }
    }
    for directive in directives {
        if directive.block.is_some() {
            section::translate(directive, &mut host.site, &mut proxies, &mut rewrites, context);
        } else if !(tls.read(directive, &mut host, context)
            || names(directive, &mut host)
            || redirect(directive, &mut host)
            || rewrites.read(directive)
            || proxies.read(directive)
            || php::handler(directive, &mut host.site))
        {
            scope.read(directive);
        }
    }
    let (settings, mut notes) = scope.finish();
    host.site.settings.merge(settings);
    host.site.notes.append(&mut notes);
    listeners(block, &tls, &mut host);
    rewrite::translate(&rewrites, &mut host);
    proxies.finish(&mut host.site, context);
    php::finish(&mut host.site);
    host.tls = tls.keys();
    host
}

fn names(directive: &Directive, host: &mut HostDraft) -> bool {
    if !directive.is("ServerName") && !directive.is("ServerAlias") {
        return false;
    }
    let is_main = directive.is("ServerName");
    for (at, argument) in directive.arguments.iter().enumerate() {
        let name = argument.rsplit_once("://").map_or(argument.as_str(), |(_, name)| name);
        let name = name
            .rsplit_once(':')
            .map_or(name, |(name, _)| name)
            .to_ascii_lowercase();
        if name.contains(['?', '$']) || name.trim_start_matches("*.").contains('*') {
            host.has_only_unknown_names = true;
            host.site
                .skip(directive, "names are exact, or begin with `*.`: list them in `aliases`");
        } else if !host.names.contains(&name) {
            let place = if is_main && at == 0 { 0 } else { host.names.len() };
            host.names.insert(place, name);
        }
    }
    true
}

/// Translates `Redirect`, `RedirectMatch` and similar directives.
fn redirect(directive: &Directive, host: &mut HostDraft) -> bool {
    let status = |word: &str| match word {
        "permanent" => Some(301),
        "temp" => Some(302),
        "seeother" => Some(303),
        "gone" => Some(410),
        word => word.parse::<u64>().ok(),
    };
    let words = directive.words();
    let (code, from, to) = match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
        ("redirect" | "redirectmatch", [code, from, rest @ ..]) if status(code).is_some() && rest.len() < 2 => (
            status(code).unwrap_or(302),
            *from,
            rest.first().copied().unwrap_or_default(),
        ),
        ("redirect" | "redirectmatch" | "redirecttemp", [from, to]) => (302, *from, *to),
        ("redirectpermanent", [from, to]) => (301, *from, *to),
        _ => return false,
    };
    let is_match = directive.is("RedirectMatch");
    let site = &mut host.site;
    if (400..600).contains(&code) {
        let patterns = match is_match {
            true => crate::regex::patterns(from)
                .filter(|f| f.difference.is_none())
                .map(|found| found.patterns),
            false => Some(prefix(from)),
        };
        match patterns {
            Some(patterns) => {
                let keys = vec![("path", Value::texts(patterns)), ("respond", Value::Number(code))];
                site.rule(directive, keys);
            }
            None => site.skip(
                directive,
                "patterns cannot express the expression: write a rule with `respond`",
            ),
        }
        return true;
    }
    if is_match {
        match crate::regex::rewrite(from, to) {
            Some((patterns, target)) => {
                for pattern in patterns {
                    site.redirect(&pattern, &target, code, directive.line);
                }
            }
            None => site.skip(directive, "patterns cannot express the expression: write `redirects`"),
        }
        return true;
    }
    // The rest of the path is added to the target.
    if let ("/", Some(name)) = (from, to.strip_prefix("https://"))
        && let Some(name) = name.strip_suffix('/').or(Some(name).filter(|name| !name.contains('/')))
        && !name.contains(['/', '%', '$'])
    {
        host.https_redirect = Some(name.to_owned());
        site.redirect("/*", &format!("https://{name}/{{*}}"), code, directive.line);
        return true;
    }
    let base = to.strip_suffix('/').unwrap_or(to);
    match from.strip_suffix('/') {
        Some(prefix) => site.redirect(&format!("{prefix}/*"), &format!("{base}/{{*}}"), code, directive.line),
        None => {
            site.redirect(from, to, code, directive.line);
            site.redirect(&format!("{from}/*"), &format!("{base}/{{*}}"), code, directive.line);
        }
    }
    true
}

fn listeners(block: Option<&Directive>, tls: &ApacheTls, host: &mut HostDraft) {
    let Some(block) = block else { return };
    for argument in &block.arguments {
        let (address, port) = match argument.rsplit_once(':') {
            Some((address, port)) if !port.contains(']') => (address, port),
            _ => (argument.as_str(), "80"),
        };
        let port = match port {
            "*" if tls.on => Some(443),
            "*" => Some(80),
            port => port.parse::<u16>().ok().filter(|port| *port != 0),
        };
        let Some(port) = port else {
            host.site.skip(block, "the port is not a number");
            continue;
        };
        let is_address = address.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
        let address = match address {
            "*" | "_default_" | "0.0.0.0" | "[::]" => "",
            address if is_address => address,
            _ => {
                host.site.differs(
                    block,
                    "listeners have addresses, not names: the site listens on every address",
                );
                ""
            }
        };
        host.listeners.insert(HostListener {
            address: address.to_owned(),
            port,
            tls: tls.on,
        });
    }
}

/// Directives `SSL…` of a host.
#[derive(Default)]
struct ApacheTls {
    on: bool,
    certificates: Vec<String>,
    keys: Vec<String>,
    rest: Vec<(String, Value)>,
}

impl ApacheTls {
    /// Reads a directive. Returns false if it does not concern TLS.
    fn read(&mut self, directive: &Directive, host: &mut HostDraft, context: &ServerContext) -> bool {
        let words: Vec<String> = directive
            .arguments
            .iter()
            .filter_map(|word| context.expand(word))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
            ("sslengine", [on]) => self.on = on.eq_ignore_ascii_case("on"),
            ("sslcertificatefile", [file]) => self.certificates.push((*file).to_owned()),
            ("sslcertificatekeyfile", [file]) => self.keys.push((*file).to_owned()),
            ("sslcertificatechainfile", [_]) => {
                host.site.skip(
                    directive,
                    "`cert` contains the chain: append this file to it, or name fullchain.pem",
                );
            }
            ("sslcacertificatefile", [file]) => self.rest.push(("client_ca".to_owned(), Value::text(*file))),
            ("sslverifyclient", ["require"]) => {}
            ("sslverifyclient", ["optional"]) => self.rest.push(("client".to_owned(), Value::text("optional"))),
            ("sslprotocol", words)
                if words
                    .last()
                    .is_some_and(|word| *word == "TLSv1.3" || *word == "+TLSv1.3") =>
            {
                if words.iter().all(|word| word.ends_with("TLSv1.3") || *word == "-all") {
                    self.rest.push(("min".to_owned(), Value::text("1.3")));
                }
            }
            ("header", ["always", "set", name, value] | ["set", name, value])
                if name.eq_ignore_ascii_case("Strict-Transport-Security") =>
            {
                match units::hsts(value) {
                    Some((age, has_more)) => {
                        if has_more {
                            let message = "only `max-age` is sent, without includeSubDomains and preload";
                            host.site.differs(directive, message);
                        }
                        self.rest.retain(|(key, _)| key != "hsts");
                        self.rest.push(("hsts".to_owned(), Value::Text(units::duration(age))));
                    }
                    None => host.site.skip(directive, "write `tls.hsts`"),
                }
            }
            (name, _) if name.starts_with("ssl") => {
                host.site
                    .unneeded(directive, "RockNet selects versions, ciphers and sessions itself");
            }
            _ => return false,
        }
        true
    }

    fn keys(self) -> Vec<(String, Value)> {
        let mut keys = Vec::new();
        if !self.certificates.is_empty() {
            keys.push(("cert".to_owned(), Value::texts(self.certificates)));
            if !self.keys.is_empty() {
                keys.push(("key".to_owned(), Value::texts(self.keys)));
            }
        }
        let has_hsts = self.rest.iter().any(|(key, _)| key == "hsts");
        keys.extend(self.rest);
        if !has_hsts {
            // RockNet sends the field by default, and browsers would remember it.
            keys.push(("hsts".to_owned(), Value::text("0s")));
        }
        keys.push(("redirect".to_owned(), Value::Flag(false)));
        keys
    }
}
