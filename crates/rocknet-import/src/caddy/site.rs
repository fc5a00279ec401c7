//! Translates a site block of Caddy: its addresses, and its content.

use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::hosts::{HostDraft, HostListener, HttpsRedirect};
use crate::value::Value;

use super::block::{self, CaddyBlock};
use super::matcher::{self, NamedMatchers, PathMatcher};
use super::options::CaddyOptions;
use super::{proxy, tls};

/// Translates a site. The result has further hosts for `handle` blocks that match a host name.
pub(super) fn translate(site: &Directive, options: &CaddyOptions, document: &mut Document) -> Vec<HostDraft> {
    let mut host = HostDraft {
        directive: site.text(),
        tls_word: Some(if options.uses_local_certificates {
            "local"
        } else {
            "auto"
        }),
        ..HostDraft::default()
    };
    host.site.line = site.line;
    let has_tls = site.children().iter().any(|directive| directive.is("tls"));
    let binds: Vec<&str> = site
        .children()
        .iter()
        .filter(|d| d.is("bind"))
        .flat_map(Directive::words)
        .collect();
    let words = std::iter::once(site.name.as_str()).chain(site.arguments.iter().map(String::as_str));
    let addresses = words.flat_map(|word| word.split(',')).filter(|word| !word.is_empty());
    for address in addresses {
        add(
            address,
            site,
            has_tls && !options.has_no_https,
            options,
            &binds,
            &mut host,
        );
    }
    // `add` has set `needs_name` if it has skipped an address. A site that has lost all its addresses is left out,
    // because it would serve every name. If another address was translated, the site is kept even without a name,
    // because an address such as `:80` serves every name on purpose.
    host.needs_name &= host.listeners.is_empty();
    let is_clear_too = host.listeners.iter().any(|listener| !listener.tls);
    if options.has_no_redirects && is_clear_too {
        host.tls.push(("redirect".to_owned(), Value::Flag(false)));
    }
    let mut others = Vec::new();
    let is_tls = host.is_tls();
    // With `redirect = false`, the site also serves requests without TLS.
    let has_both = is_tls && host.tls.iter().any(|(key, _)| key == "redirect");
    let scheme = match (is_tls, has_both) {
        (_, true) => None,
        (true, _) => Some("https"),
        (false, _) => Some("http"),
    };
    let mut block = CaddyBlock {
        directives: Vec::new(),
        hosts: host.names.clone(),
        scheme,
        options,
    };
    let named = matcher::named(site.children());
    // The directive that redirects every path to HTTPS, if there is one.
    let mut redirecting = None;
    for (at, directive) in site.children().iter().enumerate() {
        match directive.name.as_str() {
            "tls" => tls::translate(directive, &mut host, document),
            "bind" => {}
            "redir" if !is_tls && https_redirect(directive).is_some() => {
                // Caddy applies the first one.
                let first = redirecting.get_or_insert(directive);
                host.https_redirect = https_redirect(first);
            }
            "handle" if matcher::split(directive, &named).0.is_host() => {
                let names = host_names(&matcher::split(directive, &named).0);
                let mut other = HostDraft {
                    directive: directive.text(),
                    names,
                    listeners: host.listeners.clone(),
                    tls_word: host.tls_word,
                    ..HostDraft::default()
                };
                other.site.line = directive.line;
                let mut directives: Vec<&Directive> = site.children().iter().filter(|d| is_inherited(d)).collect();
                let before = handled_before(site.children(), at, &other.names, &named);
                // If other blocks come first, this one stays a `handle` beside them, because they do not inherit from
                // each other.
                let mut own = Directive::new("handle", Vec::new(), directive.line);
                if before.is_empty() {
                    directives.extend(directive.children());
                } else {
                    own.block.clone_from(&directive.block);
                    directives.extend(before);
                    directives.push(&own);
                }
                let inner = CaddyBlock {
                    directives,
                    hosts: other.names.clone(),
                    scheme,
                    options,
                };
                inner.translate(&mut other.site);
                others.push(other);
            }
            _ => block.directives.push(directive),
        }
    }
    if let Some(redirecting) = redirecting {
        // Caddy applies `redir` first, wherever it stands. One with a matcher precedes the redirect of every path.
        let is_other = |d: &&Directive| !std::ptr::eq(*d, redirecting) && !d.is("tls") && !d.is("bind");
        for directive in site.children().iter().filter(is_other) {
            match directive.is("redir") && https_redirect(directive).is_none() {
                true => host.site.differs(
                    directive,
                    "requests without TLS are redirected to HTTPS first; write the redirect into the site with TLS",
                ),
                false => host.site.unneeded(directive, "every request is redirected to https://"),
            }
        }
        return vec![host];
    }
    // If `tls` requires client certificates but names no authority, the sites of all names deny every client.
    let is_closed = host.site.settings.is_locked();
    block.translate(&mut host.site);
    for other in &mut others {
        other.tls.clone_from(&host.tls);
        if is_closed {
            other.site.settings.close(site.line);
        }
    }
    let is_wildcard = host.names.iter().any(|name| name.starts_with("*."));
    let has_files = host.tls.iter().any(|(key, _)| key == "cert");
    if is_wildcard && host.is_tls() && !has_files && host.tls_word == Some("auto") {
        let message =
            "a wildcard certificate needs `dns` in [tls], or `ask` for a certificate of each name: docs/https.md";
        host.site.skip(site, message);
    }
    let mut all = vec![host];
    all.append(&mut others);
    all
}

fn host_names(matcher: &PathMatcher) -> Vec<String> {
    matcher.hosts.iter().map(|host| host.to_ascii_lowercase()).collect()
}

/// Returns the `handle` blocks that take precedence over block `at` for its host names. Caddy evaluates blocks
/// without a matcher last, so they are not included. Old versions of Caddy evaluate blocks with paths first. So that no
/// restriction is lost, a later block with paths is included if it restricts access.
fn handled_before<'d>(site: &'d [Directive], at: usize, names: &[String], named: &NamedMatchers) -> Vec<&'d Directive> {
    let is_before = |(other, directive): &(usize, &Directive)| {
        let matcher = matcher::split(directive, named).0;
        let hosts = host_names(&matcher);
        let has_name = hosts.is_empty() || hosts.iter().any(|host| host.contains('*') || names.contains(host));
        let is_first = *other < at || !matcher.patterns.is_empty() && block::restricts(directive);
        has_name && is_first && !matcher.is_host() && matcher != PathMatcher::default()
    };
    let handles = site.iter().enumerate().filter(|(_, directive)| directive.is("handle"));
    handles.filter(is_before).map(|(_, directive)| directive).collect()
}

/// Returns true for directives that apply before `handle` blocks, so that a block for a host name inherits them.
fn is_inherited(directive: &Directive) -> bool {
    const OTHERS: [&str; 12] = [
        "handle",
        "handle_path",
        "handle_errors",
        "route",
        "tls",
        "bind",
        "reverse_proxy",
        "php_fastcgi",
        "file_server",
        "respond",
        "error",
        "abort",
    ];
    !OTHERS.contains(&directive.name.as_str())
}

/// Returns a redirect of every path to HTTPS; `None` for other redirects.
fn https_redirect(directive: &Directive) -> Option<HttpsRedirect> {
    let rest = directive.argument(0).strip_prefix("https://")?;
    let host = ["{uri}", "{http.request.uri}"]
        .iter()
        .find_map(|end| rest.strip_suffix(end))?;
    let host = match host {
        "{host}" | "{http.request.host}" | "{hostport}" => "",
        host => Some(host).filter(|host| !host.contains(['{', '/', ':']))?,
    };
    let status = match directive.argument(1) {
        "" | "temporary" => 302,
        "permanent" => 301,
        status => status.parse().ok().filter(|status| (300..400).contains(status))?,
    };
    Some(HttpsRedirect {
        host: host.to_owned(),
        status,
    })
}

/// Adds an address: `example.com`, `http://example.com`, `:8080`, `localhost:8080`, `*.example.com`. `has_tls`: true if
/// the directive `tls` of the site applies. `binds`: arguments of `bind`; empty for all interfaces.
fn add(address: &str, site: &Directive, has_tls: bool, options: &CaddyOptions, binds: &[&str], host: &mut HostDraft) {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, address),
    };
    let (rest, path) = rest.split_once('/').map_or((rest, ""), |(rest, path)| (rest, path));
    if !path.is_empty() || address.contains('{') {
        host.needs_name = true;
        return host
            .site
            .skip(site, &format!("the address {address} has a path or a placeholder"));
    }
    let (name, port) = match rest.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (rest, None),
    };
    let port = match port.map(str::parse::<u16>) {
        None => None,
        Some(Ok(port)) if port != 0 => Some(port),
        Some(_) => {
            host.needs_name = true;
            return host.site.skip(site, &format!("the port of {address} is not a number"));
        }
    };
    let name = name.to_ascii_lowercase();
    let is_clear = scheme == Some("http") || port == Some(80) || options.has_no_https && scheme != Some("https");
    let uses_tls = !is_clear && (!name.is_empty() || has_tls || scheme == Some("https") || port == Some(443));
    let listeners = match (port, uses_tls) {
        (None, true) => vec![(80, false), (443, true)],
        (None, false) => vec![(80, false)],
        (Some(port), tls) => vec![(port, tls)],
    };
    for (port, tls) in listeners {
        let addresses = if binds.is_empty() { &[""][..] } else { binds };
        for address in addresses {
            host.listeners.insert(match proxy::unix(address) {
                Some(socket) => HostListener {
                    address: socket["unix:".len()..].to_owned(),
                    port: 0,
                    tls,
                },
                None => HostListener {
                    address: if address.contains(':') {
                        format!("[{address}]")
                    } else {
                        (*address).to_owned()
                    },
                    port,
                    tls,
                },
            });
        }
    }
    if !name.is_empty() && !host.names.contains(&name) {
        host.names.push(name);
    }
}
