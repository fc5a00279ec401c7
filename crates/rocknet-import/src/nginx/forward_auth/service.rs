//! The location of an authorization service, such as `/auth` for `auth_request /auth`: its URL, and the fields that it
//! sets.

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;

use super::super::includes::is_covered;
use super::super::place::{CaseMode, LocationMatch, compiled, matched};
use super::super::upstream::{self, Upstreams};
use super::variables::Variables;

/// Returns the URL at which RockNet queries an authorization service, and the location of the service; `None` if it has
/// no counterpart. `path`: path of the location, as in `auth_request`.
pub(super) fn service<'s>(
    path: &str,
    server: &'s Directive,
    variables: &Variables,
    upstreams: &Upstreams,
) -> Option<(String, &'s Directive)> {
    let location = location_of(path, server).filter(|_| path.starts_with('/') && !path.contains(['$', '?']))?;
    // nginx applies no access control to the subrequest of `auth_request`, so `allow` or `auth_basic` has no effect.
    let is_known = |d: &Directive| match d.name.as_str() {
        "include" => is_covered(d.argument(0)),
        "internal"
        | "auth_request"
        | "auth_request_set"
        | "add_header"
        | "access_log"
        | "log_not_found"
        | "set"
        | "resolver"
        | "client_body_buffer_size"
        | "send_timeout"
        | "allow"
        | "deny"
        | "satisfy"
        | "auth_basic"
        | "client_max_body_size" => true,
        "proxy_set_body" | "proxy_method" => false,
        name => name.starts_with("proxy_"),
    };
    let mut passes = location.children().iter().filter(|d| d.is("proxy_pass"));
    let (Some(pass), None) = (passes.next(), passes.next()) else {
        return None;
    };
    if !location.children().iter().all(is_known) {
        return None;
    }
    let written = pass.argument(0);
    let target = upstream::target(&variables.expand(written), upstreams)?;
    let [service] = &target.proxy.servers[..] else {
        return None;
    };
    // nginx replaces the prefix of the location with the path of the URL, unless the URL has variables.
    let query = match (&target.path, matched(location)) {
        (None, _) => path.to_owned(),
        (Some(target), LocationMatch::Prefix { path: prefix, .. }) if !written.contains('$') => {
            format!("{target}{}", path.strip_prefix(&prefix)?)
        }
        (Some(target), _) => target.clone(),
    };
    let separator = if service.url.starts_with("unix:") { ":" } else { "" };
    Some((format!("{}{separator}{query}", service.url), location))
}

/// Returns the location that nginx selects for a path; `None` if there is no such location, or if an expression may
/// precede it.
pub(super) fn location_of<'s>(path: &str, server: &'s Directive) -> Option<&'s Directive> {
    let mut longest: Option<(usize, bool, &Directive)> = None;
    let mut has_expression = false;
    for location in server.children().iter().filter(|d| d.is("location")) {
        match matched(location) {
            LocationMatch::Exact(own) if own == path => return Some(location),
            LocationMatch::Prefix { path: own, is_final }
                if path.starts_with(&own) && longest.is_none_or(|(length, ..)| own.len() > length) =>
            {
                longest = Some((own.len(), is_final, location));
            }
            LocationMatch::Expression(expression, case) => has_expression |= may_match(&expression, case, path),
            _ => {}
        }
    }
    let (_, is_final, location) = longest?;
    (is_final || !has_expression).then_some(location)
}

/// Returns true if an expression matches a path, or if RockNet cannot compile it.
fn may_match(expression: &str, case: CaseMode, path: &str) -> bool {
    compiled(expression, case).is_none_or(|regex| regex.matches(path.as_bytes()))
}

/// Notes fields that the location of an authorization service sets, and that RockNet does not send with these values.
/// The service then gets the value of the client, if the client sends such a field.
pub(super) fn note_fields(location: &Directive, url: &str, server: &Directive, notes: &mut Vec<Note>) {
    let mut found = Vec::new();
    // A location without such a directive inherits those of the server.
    for name in ["proxy_set_header", "proxy_pass_request_headers"] {
        let has_own = location.children().iter().any(|d| d.is(name));
        let block = if has_own { location } else { server };
        for directive in block.children().iter().filter(|d| d.is(name)) {
            match directive.is("proxy_set_header") {
                true if is_sent(directive.argument(0), directive.argument(1)) => {}
                true => found.weakens(
                    directive,
                    "the authorization service does not get this value, and a client can send the field: \
                     docs/forward-auth.md",
                ),
                false if directive.argument(0) == "on" => {}
                false => found.weakens(directive, "the authorization service gets the fields of the client"),
            }
        }
    }
    for directive in location.children() {
        if directive.is("proxy_pass") && url.starts_with("https://") {
            found.differs(
                directive,
                "RockNet verifies the certificate of the authorization service",
            );
        }
    }
    for note in found {
        // Several locations may have the same service, so the note may exist already.
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// Returns true if the authorization service gets a field with a value that corresponds to the value of nginx.
fn is_sent(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has_one = |parts: &[&str]| parts.iter().any(|part| value.contains(part));
    match name.as_str() {
        // The fields of a body or an upgrade are never sent, and `Host` is that of the URL.
        "content-length" | "connection" | "upgrade" | "host" => true,
        "x-real-ip" => has_one(&["$remote_addr", "$realip_remote_addr"]),
        "x-forwarded-for" => has_one(&["$remote_addr", "$realip_remote_addr", "$proxy_add_x_forwarded_for"]),
        "x-forwarded-host" => has_one(&["$host", "$http_host", "$server_name"]),
        "x-forwarded-method" | "x-original-method" => value == "$request_method",
        "x-forwarded-port" => has_one(&["port"]),
        "x-forwarded-proto" | "x-scheme" => has_one(&["scheme", "proto"]),
        "x-forwarded-uri" | "x-original-uri" => value == "$request_uri",
        "x-original-url" | "x-auth-request-redirect" => value.ends_with("$request_uri"),
        name => value == format!("$http_{}", name.replace('-', "_")),
    }
}
