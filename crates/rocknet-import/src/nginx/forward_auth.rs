//! Translates `auth_request` to forward authentication, with the directives that belong to it: the location of the
//! authority, `auth_request_set`, and `error_page 401`.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use rocknet_config::model::SignIn;
use rocknet_config::template;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::placeholder;

use super::includes::is_covered;
use super::place::{CaseMode, LocationMatch, compiled, matched};
use super::test::field_name;
use super::upstream::{self, Upstreams};

/// Fields of the authority that are not part of an identity.
const NO_IDENTITY: [&str; 3] = ["set_cookie", "location", "www_authenticate"];

/// Adds arguments to each `auth_request` of a server and of its locations that has a counterpart: URL of the authority,
/// page for signing in, field of the user, and fields of the identity. Removes or replaces the directives that belong
/// to it, and returns notes about them. An `auth_request` without a counterpart stays as it is. `inherited`: `proxy_…`
/// directives of `http`.
pub(super) fn resolve(server: &mut Directive, inherited: &[&Directive], upstreams: &Upstreams) -> Vec<Note> {
    let mut notes = Vec::new();
    let has_request = |block: &Directive| block.children().iter().any(is_query);
    if !has_request(server) && !server.children().iter().any(|d| d.is("location") && has_request(d)) {
        return notes;
    }
    let variables = Variables::collect(server);
    let mut original = server.clone();
    let is_own = |d: &Directive| server.children().iter().any(|own| own.name == d.name);
    let inherited = inherited.iter().filter(|d| !is_own(d)).map(|d| (*d).clone());
    original.block.get_or_insert_default().extend(inherited);
    let mut authorities = Authorities::default();
    let blocks = server.block.as_deref_mut().unwrap_or_default();
    for location in blocks.iter_mut().filter(|d| d.is("location")) {
        let outer = match location.children().iter().any(|d| d.is("error_page")) {
            true => None,
            false => Some(&original),
        };
        complete(
            location,
            outer,
            &original,
            &variables,
            upstreams,
            &mut authorities,
            &mut notes,
        );
    }
    complete(
        server,
        None,
        &original,
        &variables,
        upstreams,
        &mut authorities,
        &mut notes,
    );
    if !authorities.locations.is_empty() {
        clean(server, &variables, &authorities, &mut notes);
        for location in server.block.as_deref_mut().unwrap_or_default() {
            if location.is("location") {
                reduce(location, &authorities, &original);
                clean(location, &variables, &authorities, &mut notes);
            }
        }
    }
    notes
}

/// Returns true for an `auth_request` that names a location.
fn is_query(directive: &Directive) -> bool {
    directive.is("auth_request") && directive.arguments.len() == 1 && directive.argument(0) != "off"
}

/// Authorities that have a counterpart.
#[derive(Default)]
struct Authorities {
    /// Arguments of their locations.
    locations: BTreeSet<Vec<String>>,
    /// Their addresses as they are written.
    addresses: BTreeSet<String>,
}

/// Variables that a server sets.
struct Variables {
    /// Texts of `set`, by variable with its `$`.
    texts: HashMap<String, String>,
    /// Fields of the authority's response as in `$upstream_http_…`, by variable with its `$`.
    fields: HashMap<String, String>,
    /// Variables of other values of the authority's response.
    others: BTreeSet<String>,
}

impl Variables {
    /// Collects the variables of a server. A variable with several values is left out.
    fn collect(server: &Directive) -> Variables {
        let mut all: HashMap<(bool, String), Option<String>> = HashMap::new();
        let mut directives = Vec::new();
        flatten(server, &mut directives);
        for directive in directives {
            let is_field = directive.is("auth_request_set");
            if !is_field && !directive.is("set") && !directive.is("set_escape_uri") {
                continue;
            }
            let value = directive.argument(1);
            let known = all.entry((is_field, directive.argument(0).to_owned()));
            let known = known.or_insert_with(|| Some(value.to_owned()));
            if known.as_deref() != Some(value) {
                *known = None;
            }
        }
        let mut variables = Variables {
            texts: HashMap::new(),
            fields: HashMap::new(),
            others: BTreeSet::new(),
        };
        for ((is_field, name), value) in all {
            match value {
                Some(value) if !is_field => drop(variables.texts.insert(name, value)),
                Some(value) => match value.strip_prefix("$upstream_http_") {
                    Some(field) => drop(variables.fields.insert(name, field.to_owned())),
                    None => drop(variables.others.insert(name)),
                },
                None if is_field => drop(variables.others.insert(name)),
                None => {}
            }
        }
        variables
    }

    /// Replaces the variables of a text that `set` gives a text.
    fn expand(&self, text: &str) -> String {
        replace(text, |name| self.texts.get(name).cloned())
    }

    /// Returns the fields of the identity, as in variables, in alphabetical order.
    fn identity(&self) -> BTreeSet<&str> {
        let all = self.fields.values().map(String::as_str);
        all.filter(|field| !NO_IDENTITY.contains(field)).collect()
    }
}

/// Adds the directives of a block, with those of all blocks in it.
fn flatten<'d>(block: &'d Directive, all: &mut Vec<&'d Directive>) {
    for directive in block.children() {
        all.push(directive);
        flatten(directive, all);
    }
}

/// Replaces variables of a text. `value`: returns the text in place of a variable, whose name has its `$`.
fn replace(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let (name, length) = match after.strip_prefix("${").and_then(|braced| braced.split_once('}')) {
            Some((name, _)) => (format!("${name}"), name.len() + 3),
            None => {
                let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                let end = after[1..].find(is_end).map_or(after.len(), |end| end + 1);
                (after[..end].to_owned(), end)
            }
        };
        out.push_str(&value(&name).unwrap_or_else(|| after[..length].to_owned()));
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

/// Returns true if a text contains a variable, whose name has its `$`.
fn has_variable(text: &str, variable: &str) -> bool {
    let is_found = Cell::new(false);
    replace(text, |name| {
        is_found.set(is_found.get() || name == variable);
        None
    });
    is_found.get()
}

/// Completes the `auth_request` of a block. `outer`: the server, if the block inherits its `error_page`. Adds its
/// authority to `authorities`.
fn complete(
    block: &mut Directive,
    outer: Option<&Directive>,
    server: &Directive,
    variables: &Variables,
    upstreams: &Upstreams,
    authorities: &mut Authorities,
    notes: &mut Vec<Note>,
) {
    let Some(query) = block.children().iter().find(|d| is_query(d)).cloned() else {
        return;
    };
    let Some((url, location)) = authority(query.argument(0), server, variables, upstreams) else {
        return;
    };
    authorities.locations.insert(location.arguments.clone());
    let passes = location.children().iter().filter(|d| d.is("proxy_pass"));
    authorities
        .addresses
        .extend(passes.map(|pass| pass.argument(0).to_owned()));
    note_fields(location, &url, server, notes);
    let mut all = block
        .children()
        .iter()
        .chain(outer.map(Directive::children).unwrap_or_default());
    let page = all.find(|d| is_for_unauthorized(d)).cloned();
    let found = page.as_ref().and_then(|page| sign_in(page, server, variables));
    match (&page, &found) {
        (Some(page), Some((_, true))) => notes.differs(page, "clients are redirected to the page (302)"),
        // The other pages are those of `errors`.
        (Some(page), None) if page.arguments.iter().any(|word| word.starts_with(['=', '@', '$'])) => {
            notes.differs(
                page,
                "clients get the 401 response of the authority: write `auth.sign_in`",
            );
        }
        _ => {}
    }
    let identity = variables.identity();
    let is_user = |name: &&&str| name.ends_with("user") || name.ends_with("username");
    let user = identity.iter().find(is_user).map(|name| field_name(name));
    for directive in block.block.as_deref_mut().unwrap_or_default() {
        if is_query(directive) {
            directive.arguments.extend([
                url.clone(),
                found.as_ref().map(|(page, _)| page.clone()).unwrap_or_default(),
                user.clone().unwrap_or_default(),
            ]);
            directive.arguments.extend(identity.iter().map(|name| field_name(name)));
        }
        if found.is_some() && is_for_unauthorized(directive) {
            directive.arguments.retain(|word| word != "401");
        }
    }
}

/// Returns the URL of queries at a location of the server, and the location; `None` if it has no counterpart.
fn authority<'s>(
    path: &str,
    server: &'s Directive,
    variables: &Variables,
    upstreams: &Upstreams,
) -> Option<(String, &'s Directive)> {
    let location = location_of(path, server).filter(|_| path.starts_with('/') && !path.contains(['$', '?']))?;
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
    let [authority] = &target.proxy.servers[..] else {
        return None;
    };
    let query = match (&target.path, matched(location)) {
        (None, _) => path.to_owned(),
        (Some(target), LocationMatch::Prefix { path: prefix, .. }) if !written.contains('$') => {
            format!("{target}{}", path.strip_prefix(&prefix)?)
        }
        (Some(target), _) => target.clone(),
    };
    let separator = if authority.url.starts_with("unix:") { ":" } else { "" };
    Some((format!("{}{separator}{query}", authority.url), location))
}

/// Returns the location that nginx selects for a path; `None` if it is not known.
fn location_of<'s>(path: &str, server: &'s Directive) -> Option<&'s Directive> {
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

/// Notes fields that the location of an authority sets, and that RockNet does not send with these values. A client can
/// send such a field itself.
fn note_fields(location: &Directive, url: &str, server: &Directive, notes: &mut Vec<Note>) {
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
                    "the authority does not get this value, and a client can send the field: docs/forward-auth.md",
                ),
                false if directive.argument(0) == "on" => {}
                false => found.weakens(directive, "the authority gets the fields of the client"),
            }
        }
    }
    for directive in location.children() {
        if directive.is("proxy_pass") && url.starts_with("https://") {
            found.differs(directive, "RockNet verifies the certificate of the authority");
        }
    }
    for note in found {
        // Several places may have the same authority.
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// Returns true if the authority gets a field with a value that corresponds to the value of nginx.
fn is_sent(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has_one = |parts: &[&str]| parts.iter().any(|part| value.contains(part));
    match name.as_str() {
        // The fields of a body or an upgrade are never sent.
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

/// Returns true for an `error_page` for clients that have to sign in.
fn is_for_unauthorized(directive: &Directive) -> bool {
    directive.is("error_page") && directive.arguments.iter().rev().skip(1).any(|word| word == "401")
}

/// Returns the value of `sign_in` for the page of status 401, and true if nginx sends the page without a redirect.
/// Returns `None` if there is no counterpart, or if the page is one of `errors`.
fn sign_in(page: &Directive, server: &Directive, variables: &Variables) -> Option<(String, bool)> {
    let (target, words) = page.arguments.split_last()?;
    if let Some(field) = variables.fields.get(target) {
        return (field == "location").then(|| (SignIn::LOCATION.to_owned(), false));
    }
    let is_redirect = |status: &str| matches!(status, "301" | "302" | "303" | "307" | "308");
    if target.starts_with('@') {
        let is_named = |d: &&Directive| d.is("location") && d.argument(0) == target;
        let location = server.children().iter().find(is_named)?;
        let is_known = |d: &Directive| matches!(d.name.as_str(), "internal" | "add_header" | "return" | "auth_request");
        let mut returns = location.children().iter().filter(|d| d.is("return"));
        let returned = returns.next().filter(|_| location.children().iter().all(is_known))?;
        let url = match returned.words()[..] {
            [status, url] if is_redirect(status) => url,
            [url] => url,
            _ => return None,
        };
        return Some((translated(url, variables)?, false));
    }
    let response = words.iter().find_map(|word| word.strip_prefix('='));
    match response {
        Some(status) if is_redirect(status) => Some((translated(target, variables)?, false)),
        None if target.contains("://") => Some((translated(target, variables)?, false)),
        None => None,
        Some(_) => {
            let page = translated(target, variables)?;
            let location = location_of(target, server);
            let is_origin = |d: &Directive| {
                d.is("proxy_set_header") && d.argument(0).eq_ignore_ascii_case("X-Auth-Request-Redirect")
            };
            let has_origin = location.is_some_and(|location| location.children().iter().any(is_origin));
            match has_origin && !page.contains('?') {
                true => Some((format!("{page}?rd={{target}}"), true)),
                false => Some((page, true)),
            }
        }
    }
}

/// Returns a URL with placeholders in place of variables. A URL of this site becomes a path. Returns `None` for a text
/// that is neither a path nor a URL, and if a variable has no placeholder.
fn translated(url: &str, variables: &Variables) -> Option<String> {
    let url = variables.expand(url);
    let is_url = url.starts_with('/') || url.starts_with("http://") || url.starts_with("https://");
    let url = url.replace("$server_name", "$host");
    let is_own = url.starts_with("$scheme://$host/") || url.starts_with("$scheme://$http_host/");
    let url = match is_own {
        true => url
            .split_once("://")?
            .1
            .split_once('/')
            .map(|(_, path)| format!("/{path}"))?,
        false => url,
    };
    placeholder::from_nginx(&url, template::Scope::Request).filter(|_| is_url || is_own)
}

/// Removes all directives but `internal` from the location of an authority that clients cannot request.
fn reduce(location: &mut Directive, authorities: &Authorities, server: &Directive) {
    let is_internal = location.children().iter().any(|d| d.is("internal"));
    if !is_internal || !authorities.locations.contains(&location.arguments) {
        return;
    }
    // The prefix also matches longer names that begin with the path, which only an expression can express. The
    // expression would precede other locations there, so it is written only if no other path begins with this one.
    if let LocationMatch::Prefix { path, .. } = matched(location)
        && !path.ends_with('/')
        && !server.children().iter().any(|other| is_below(other, &path))
    {
        location.arguments = vec!["~".to_owned(), format!("^{}", escaped(&path))];
    }
    if let Some(block) = &mut location.block {
        block.retain(|d| d.is("internal"));
    }
}

/// Returns true for a location of a longer path that begins with a path.
fn is_below(location: &Directive, path: &str) -> bool {
    location.is("location")
        && match matched(location) {
            LocationMatch::Exact(own) | LocationMatch::Prefix { path: own, .. } => {
                own.len() > path.len() && own.starts_with(path)
            }
            _ => false,
        }
}

/// Returns an expression that matches a text.
fn escaped(text: &str) -> String {
    let mut expression = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !"/-_".contains(c) {
            expression.push('\\');
        }
        expression.push(c);
    }
    expression
}

/// Removes directives of a block that RockNet does not need, and replaces variables with fields of the authority by the
/// fields of the request that get their values.
fn clean(block: &mut Directive, variables: &Variables, authorities: &Authorities, notes: &mut Vec<Note>) {
    let cookies = "cookies of the authority are added to the response";
    let is_cookie = |word: &String| {
        let word = word.trim_matches(['(', ')']);
        let of_field = variables.fields.get(word).is_some_and(|field| field == "set_cookie");
        of_field || variables.others.contains(word)
    };
    let sets_cookie = |d: &Directive| d.is("add_header") && d.argument(0).eq_ignore_ascii_case("Set-Cookie");
    for directive in block.block.as_deref_mut().unwrap_or_default() {
        let Some((name, values)) = directive.arguments.split_first_mut() else {
            continue;
        };
        let is_field = matches!(
            directive.name.as_str(),
            "proxy_set_header" | "add_header" | "fastcgi_param"
        );
        if !is_field {
            continue;
        }
        for value in values {
            let own = variables.fields.get(value);
            if own.is_some_and(|field| {
                !NO_IDENTITY.contains(&&**field) && name.replace('-', "_").eq_ignore_ascii_case(field)
            }) {
                // The field of the identity has this name already. The empty name marks the directive for removal.
                directive.name = String::new();
                break;
            }
            *value = replace(value, |variable| {
                let field = variables.fields.get(variable)?;
                (!NO_IDENTITY.contains(&&**field)).then(|| format!("$http_{field}"))
            });
        }
    }
    if let Some(block) = &mut block.block {
        block.retain(|d| match d.name.as_str() {
            "" | "auth_request_set" => false,
            // The variable is part of an address.
            "set" => !authorities
                .addresses
                .iter()
                .any(|address| has_variable(address, d.argument(0))),
            "add_header" if sets_cookie(d) && d.arguments.iter().any(is_cookie) => {
                notes.unneeded(d, cookies);
                false
            }
            // oauth2-proxy documents such blocks for cookies that are split.
            "if" if d.arguments.iter().any(is_cookie)
                && d.children().iter().all(|inner| inner.is("set") || sets_cookie(inner)) =>
            {
                notes.unneeded(d, cookies);
                false
            }
            "error_page" => d.arguments.iter().rev().skip(1).any(|word| !word.starts_with('=')),
            _ => true,
        });
    }
}
