//! Translates a `server` block to a host: a site with its names and listeners, which `hosts` joins with other hosts of
//! the same names.

mod returned;

use crate::directive::Directive;
use crate::document::{Document, Notes};
use crate::hosts::{HostDraft, HostListener};
use crate::regex;
use crate::value::Value;

use self::returned::{
    answers_all, https_by_certbot, redirect_all, redirect_of_root, return_from_server, whole_redirect,
};
use super::action::{self, IfAction};
use super::place::{LocationMatch, Locations};
use super::scope::{ConfigLevel, Scope, inherit};
use super::tls::TlsDraft;
use super::try_files;
use super::upstream::Upstreams;
use super::{cache, conditional, forward_auth, location, mirror, nested, param_users};

/// Translates a `server` block. `shared`: settings of `http`. `http_tls`: the directives `ssl_…` of `http`.
pub(super) fn translate(
    block: &Directive,
    shared: &Scope<'_>,
    http_tls: &[&Directive],
    upstreams: &Upstreams,
    document: &mut Document,
) -> HostDraft {
    let mut flat = nested::flatten(block);
    let mut notes = mirror::resolve(&mut flat, upstreams);
    notes.extend(forward_auth::resolve(&mut flat, &shared.proxy, upstreams));
    let block = &flat;
    let mut host = HostDraft {
        directive: block.text(),
        ..HostDraft::default()
    };
    host.site.line = block.line;
    host.site.notes.append(&mut notes);
    let mut scope = Scope::new(ConfigLevel::Server);
    scope.proxy.clone_from(&shared.proxy);
    scope.hsts.clone_from(&shared.hsts);
    scope.outer_params = shared.inherited_params();
    let locations = Locations::collect(block);
    let mut tls = TlsDraft::default();
    // The directives `return` and `ssl_reject_handshake`, and the redirects of certbot, are translated at the end.
    let mut returned: Option<&Directive> = None;
    let mut rejects = None;
    let mut certbot = Vec::new();
    // Alternative sets of conditions under which nginx reaches the next `rewrite`, `if` or `return`: at first one set
    // without conditions, which always holds. A `break` in an `if` adds conditions.
    let mut guard = vec![Vec::new()];
    // A `rewrite` that redirects every path to HTTPS.
    let mut https_rewrite = None;
    // All directives of the server, after the directives `ssl_…` that it inherits from `http`.
    for directive in TlsDraft::collect(block, http_tls) {
        let words = directive.words();
        match (directive.name.as_str(), &words[..]) {
            ("location", _) => {}
            ("listen", [address, parameters @ ..]) => listen(directive, address, parameters, &mut host),
            ("server_name", names) => {
                names.iter().for_each(|name| server_name(directive, name, &mut host));
                host.needs_name = !names.iter().any(|name| matches!(*name, "_" | ""));
            }
            ("ssl", ["on"]) => tls.all = true,
            ("http3", ["off"]) => host.site.settings.set("http3", Value::Flag(false), directive.line),
            ("ssl_reject_handshake", ["on"]) => rejects = Some(directive),
            // nginx evaluates these in the order of the file, and responds by the first `return`.
            ("return" | "rewrite" | "if", _) if returned.is_some() => {
                scope
                    .notes
                    .unneeded(directive, "an earlier `return` responds to every request");
            }
            ("return", _) => returned = Some(directive),
            ("rewrite", _) if whole_redirect(directive).is_some() => {
                https_rewrite = whole_redirect(directive).map(|target| (directive, target));
            }
            ("rewrite", _) => action::rewrite(directive, &mut host.site, None, &guard),
            ("if", _) => match action::condition(directive) {
                Some(IfAction::Https(Some(name), status)) => certbot.push((directive, name, status)),
                Some(IfAction::Https(None, _)) => {
                    tls.redirects = true;
                    scope
                        .notes
                        .unneeded(directive, "sites with TLS redirect from http:// by themselves (308)");
                }
                Some(action) => if_action(directive, action, &mut host, &mut scope),
                None => conditional::translate(directive, &mut host.site, None, &mut guard),
            },
            ("try_files", _) => {
                // Locations do not inherit `try_files`, so it applies to all paths only if there are no locations.
                let is_alone = locations
                    .places
                    .iter()
                    .all(|place| matches!(place, LocationMatch::Named));
                try_files::translate(directive, &mut scope, &locations, upstreams, is_alone);
            }
            (name, _) if name.starts_with("ssl_") && tls.read(directive) => {}
            _ => scope.read(directive, upstreams),
        }
    }
    if let Some(directive) = block.children().iter().find(|directive| is_default(directive)) {
        host.needs_name = false;
        if !host.names.is_empty() {
            host.site
                .differs(directive, "only [site.default] serves names that no other site has");
        }
    }
    param_users::note(&scope.params, None, &locations.all, upstreams, &mut scope.notes);
    scope.finish(Some(shared));
    cache::translate(&shared.caches, &scope.caches, &mut scope.settings, &mut scope.notes);
    // Locations inherit the cache directives of the server, and those of `http` that it does not replace.
    let own = std::mem::take(&mut scope.caches);
    let outer = shared
        .caches
        .iter()
        .filter(|d| !own.iter().any(|other| other.name == d.name));
    scope.caches = outer.copied().chain(own.iter().copied()).collect();
    scope.inherit_limits(&shared.settings, block.line);
    inherit(&mut scope, shared);
    scope.remove_hidden(shared);
    move_error_log(document, &mut scope);
    scope.move_globals(document);
    tls.hsts(&scope, &mut host);
    if tls.all {
        host.listeners = host
            .listeners
            .iter()
            .cloned()
            .map(|l| HostListener { tls: true, ..l })
            .collect();
    }
    host.site.settings.merge(std::mem::take(&mut scope.settings));
    host.site.notes.append(&mut scope.notes);
    tls.verify_clients(&mut host);
    host.tls = tls.keys();
    if let Some((directive, target)) = https_rewrite {
        match (host.is_tls(), target.host.is_empty()) {
            (false, _) => host.https_redirect = Some(target),
            (true, true) => host
                .site
                .unneeded(directive, "the site has TLS, and redirects to it by itself"),
            (true, false) => redirect_all(directive, &target, &mut host),
        }
    }
    // nginx evaluates a `return` of the server before it selects a location.
    let is_answered = certbot.is_empty() && returned.is_some_and(|returned| answers_all(returned, block, &host));
    let root_redirect = redirect_of_root(&locations).filter(|_| returned.is_none() && !host.is_tls());
    if is_answered {
        for location in &locations.all {
            host.site
                .unneeded(location, "the `return` of the server responds to every request");
        }
    } else if root_redirect.is_some() {
        returned = root_redirect;
        // All locations but `/` are for challenges of certificate authorities, as `redirect_of_root` has checked.
        let message = "RockNet serves challenges of certificate authorities itself";
        locations
            .all
            .iter()
            .filter(|d| !d.arguments.iter().any(|word| word == "/"))
            .for_each(|location| {
                host.site.unneeded(location, message);
            });
    } else {
        location::translate(&locations, &mut host.site, &scope, upstreams);
    }
    host.site.order_rules();
    if !certbot.is_empty() {
        https_by_certbot(&certbot, returned, &mut host);
    } else if let Some(directive) = returned {
        return_from_server(directive, &guard, &mut host);
    }
    if let Some(directive) = rejects {
        if host.names.is_empty() {
            host.is_needless = true;
            host.site
                .unneeded(directive, "handshakes for names without a site are refused");
        } else {
            host.site.settings.close(directive.line);
            host.site
                .differs(directive, "the handshake succeeds, and clients get 403");
        }
    }
    host
}

/// Returns true for a `listen` that makes its server the default one, which serves names that no other server has.
fn is_default(directive: &Directive) -> bool {
    let is_default = |word: &String| matches!(word.as_str(), "default_server" | "default");
    directive.is("listen") && directive.arguments.iter().any(is_default)
}

/// Translates an `if` in one of the common forms.
fn if_action<'a>(directive: &'a Directive, action: IfAction<'a>, host: &mut HostDraft, scope: &mut Scope<'a>) {
    match action {
        // `translate` has handled redirects to HTTPS.
        IfAction::Https(..) => {}
        IfAction::RedirectHost {
            host: name,
            target,
            status,
        } => {
            let keys = vec![
                ("host", Value::text(name)),
                ("redirect", Value::Text(target)),
                ("status", Value::Number(status)),
            ];
            host.site.rule(directive, keys);
        }
        IfAction::Front(rewrite) => {
            scope.settings.set("fallback", Value::text("/index.php"), rewrite.line);
            let message = "`fallback` keeps the query of the request; the script reads the path from REQUEST_URI";
            scope.notes.differs(rewrite, message);
        }
    }
}

/// Moves the error log of a server to the global table, because RockNet has one error log.
fn move_error_log(document: &mut Document, scope: &mut Scope<'_>) {
    let (file, level) = (scope.settings.remove("error_log"), scope.settings.remove("error_level"));
    let (Some(file), Some(level)) = (file, level) else {
        return;
    };
    let log = document.table("log");
    let directive = Directive::new("error_log", Vec::new(), file.line);
    if log.has("errors") {
        scope
            .notes
            .skip(&directive, "the whole server has one error log: `log.errors`");
    } else {
        log.set("errors", file.value, file.line);
        log.set("level", level.value, level.line);
        scope
            .notes
            .differs(&directive, "the error log is that of the whole server");
    }
}

/// Adds a name to a host, unless RockNet cannot express it. `_` means no name.
fn server_name(directive: &Directive, name: &str, host: &mut HostDraft) {
    match name {
        "_" | "" => {}
        name if name.strip_prefix('~').and_then(regex::host_names).is_some() => {
            let names = name.strip_prefix('~').and_then(regex::host_names).unwrap_or_default();
            names.iter().for_each(|name| server_name(directive, name, host));
        }
        name if name.starts_with('~') || name.contains('$') || name.ends_with(".*") => {
            host.site
                .skip(directive, "names are exact, or begin with `*.`: list them in `aliases`");
        }
        name => {
            let lower = name.to_ascii_lowercase();
            let names = match lower.strip_prefix('.') {
                Some(base) => vec![base.to_owned(), format!("*.{base}")],
                None => vec![lower],
            };
            for name in names {
                if !host.names.contains(&name) {
                    host.names.push(name);
                }
            }
        }
    }
}

/// Adds the listener of a `listen` directive to a host.
fn listen(directive: &Directive, address: &str, parameters: &[&str], host: &mut HostDraft) {
    let tls = parameters.contains(&"ssl");
    for parameter in parameters {
        match *parameter {
            "ssl" | "default_server" | "default" | "http2" | "quic" | "reuseport" | "deferred" => {}
            "proxy_protocol" => host.site.skip(
                directive,
                "write `proxy_protocol` with the addresses of the proxies in [server]",
            ),
            other if other.starts_with("ipv6only=") || other.starts_with("backlog=") => {}
            other => host
                .site
                .skip(directive, &format!("the parameter `{other}` has no counterpart")),
        }
    }
    if let Some(path) = address.strip_prefix("unix:") {
        // Port 0 marks a Unix socket.
        host.listeners.insert(HostListener {
            address: path.to_owned(),
            port: 0,
            tls,
        });
        return;
    }
    let (address, port) = match address.rsplit_once(':') {
        Some((address, port)) if !port.contains(']') => (address, port),
        _ if address.bytes().all(|b| b.is_ascii_digit()) => ("", address),
        _ => (address, "80"),
    };
    let Ok(port) = port.parse::<u16>() else {
        return host.site.skip(directive, "the port is not a number");
    };
    let address = match address {
        "*" | "0.0.0.0" | "[::]" => "",
        "localhost" => "127.0.0.1",
        address => address,
    };
    // In nginx, QUIC has its own `listen`. RockNet opens the UDP port of each port with TLS.
    let tls = tls || parameters.contains(&"quic");
    host.listeners.insert(HostListener {
        address: address.to_owned(),
        port,
        tls,
    });
}
