//! Translates `auth_request` to forward authentication, with the directives that belong to it:
//!
//! ```text
//! location /app/ {
//!     auth_request /auth;
//!     auth_request_set $user $upstream_http_x_user;
//!     proxy_set_header X-User $user;
//!     error_page 401 = @sign_in;
//! }
//! location = /auth { internal; proxy_pass http://127.0.0.1:4180; }
//! ```
//!
//! `auth_request` names the location of the authorization service, the server that decides about each request. `X-User`
//! is a field of the identity: RockNet adds it from the response of the service to the request to the application.

mod service;
mod sign_in;
mod variables;

use std::collections::BTreeSet;

use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;

use self::service::{note_fields, service};
use self::sign_in::{is_for_unauthorized, sign_in};
use self::variables::{NO_IDENTITY, Variables, has_variable, replace};
use super::place::{LocationMatch, matched};
use super::test::field_name;
use super::upstream::Upstreams;

/// Adds arguments to each `auth_request` of a server and of its locations that has a counterpart. These are the URL of
/// the authorization service, the page for signing in, the field of the user, and the fields of the identity. The page
/// and the user are empty if nothing names them. `scope` translates the arguments to `auth`. Removes or replaces the
/// directives that belong to `auth_request`, and returns notes about them. An `auth_request` without a counterpart
/// stays as it is. `inherited`: `proxy_…` directives of `http`.
pub(super) fn resolve(server: &mut Directive, inherited: &[&Directive], upstreams: &Upstreams) -> Vec<Note> {
    let mut notes = Vec::new();
    let has_request = |block: &Directive| block.children().iter().any(is_query);
    if !has_request(server) && !server.children().iter().any(|d| d.is("location") && has_request(d)) {
        return notes;
    }
    let variables = Variables::collect(server);
    // The server as it is written, with the directives that it inherits. The blocks of `server` are changed below.
    let mut original = server.clone();
    let is_own = |d: &Directive| server.children().iter().any(|own| own.name == d.name);
    let inherited = inherited.iter().filter(|d| !is_own(d)).map(|d| (*d).clone());
    original.block.get_or_insert_default().extend(inherited);
    let mut services = AuthServices::default();
    let mut is_page_of_server_used = false;
    let blocks = server.block.as_deref_mut().unwrap_or_default();
    for location in blocks.iter_mut().filter(|d| d.is("location")) {
        // nginx inherits `error_page` only if the location has none.
        let outer = match location.children().iter().any(|d| d.is("error_page")) {
            true => None,
            false => Some(&original),
        };
        let has_page = complete(
            location,
            outer,
            &original,
            &variables,
            upstreams,
            &mut services,
            &mut notes,
        );
        is_page_of_server_used |= has_page && outer.is_some();
    }
    complete(
        server,
        None,
        &original,
        &variables,
        upstreams,
        &mut services,
        &mut notes,
    );
    // Wrong passwords also lead to the page, so it stays if there are passwords.
    let has_password = |block: &Directive| block.children().iter().any(|d| d.is("auth_basic_user_file"));
    if is_page_of_server_used && !has_password(&original) && !original.children().iter().any(has_password) {
        remove_page(server);
    }
    if !services.locations.is_empty() {
        clean(server, &variables, &services, &mut notes);
        for location in server.block.as_deref_mut().unwrap_or_default() {
            if location.is("location") {
                reduce(location, &services, &original);
                clean(location, &variables, &services, &mut notes);
            }
        }
    }
    notes
}

/// Returns true for an `auth_request` that names a location.
fn is_query(directive: &Directive) -> bool {
    directive.is("auth_request") && directive.arguments.len() == 1 && directive.argument(0) != "off"
}

/// Authorization services that have a counterpart.
#[derive(Default)]
struct AuthServices {
    /// Arguments of their locations, such as `=` and `/auth`.
    locations: BTreeSet<Vec<String>>,
    /// Their addresses as `proxy_pass` has them, with variables.
    addresses: BTreeSet<String>,
}

/// Adds arguments to the `auth_request` of a block if there is one with a counterpart, and its authorization service to
/// `services`. `outer`: the server, if the block inherits its `error_page`. Returns true if the page for status 401
/// became the page for signing in.
fn complete(
    block: &mut Directive,
    outer: Option<&Directive>,
    server: &Directive,
    variables: &Variables,
    upstreams: &Upstreams,
    services: &mut AuthServices,
    notes: &mut Vec<Note>,
) -> bool {
    let Some(query) = block.children().iter().find(|d| is_query(d)).cloned() else {
        return false;
    };
    let Some((url, location)) = service(query.argument(0), server, variables, upstreams) else {
        return false;
    };
    services.locations.insert(location.arguments.clone());
    let passes = location.children().iter().filter(|d| d.is("proxy_pass"));
    services
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
        // `true`: nginx sends the page without a redirect. With `false`, nginx redirects as RockNet does.
        (Some(page), Some((_, true))) => notes.differs(page, "clients are redirected to the page (302)"),
        // The page has no counterpart. A page without these characters, such as `error_page 401 /login.html`, needs no
        // note here: it is translated to `errors` instead.
        (Some(page), None) if page.arguments.iter().any(|word| word.starts_with(['=', '@', '$'])) => {
            notes.differs(
                page,
                "clients get the 401 response of the authorization service: write `auth.sign_in`",
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
    }
    if found.is_some() {
        remove_page(block);
    }
    found.is_some()
}

/// Removes status 401 from each `error_page` of a block. [`clean`] removes pages without a status.
fn remove_page(block: &mut Directive) {
    for directive in block.block.as_deref_mut().unwrap_or_default() {
        if is_for_unauthorized(directive) {
            directive.arguments.retain(|word| word != "401");
        }
    }
}

/// Removes all directives but `internal` from a location if it is that of an authorization service, and clients cannot
/// request it. RockNet queries the service itself, so the route of the location only has to refuse clients.
fn reduce(location: &mut Directive, services: &AuthServices, server: &Directive) {
    let is_internal = location.children().iter().any(|d| d.is("internal"));
    if !is_internal || !services.locations.contains(&location.arguments) {
        return;
    }
    // In nginx, `location /auth` also applies to `/authx`. A route of RockNet does so only with an expression
    // (`^/auth`). Expressions take precedence over paths, so this one would also refuse requests to another location
    // such as `/authors`. It is therefore used only if no other location has a path that begins with `/auth`.
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

/// Removes directives of a block that RockNet does not need. Replaces the variables of the identity in the values of
/// fields, such as `$user` in the example at the top by `$http_x_user`. RockNet adds the field `X-User` to the request,
/// so both variables have the same value.
fn clean(block: &mut Directive, variables: &Variables, services: &AuthServices, notes: &mut Vec<Note>) {
    let cookies = "cookies of the authorization service are added to the response";
    let is_cookie = |word: &String| {
        let word = word.trim_matches(['(', ')']);
        // `others` contains the variables for parts of a split cookie, such as `$part` of
        // `auth_request_set $part $upstream_cookie_session_1`.
        let of_field = variables.fields.get(word).is_some_and(|field| field == "set_cookie");
        of_field || variables.others.contains(word)
    };
    let sets_cookie = |d: &Directive| d.is("add_header") && d.argument(0).eq_ignore_ascii_case("Set-Cookie");
    // Fields such as `Set-Cookie` are for clients, and not part of the identity.
    let is_of_identity = |field: &String| !NO_IDENTITY.contains(&&**field);
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
            if own.is_some_and(|field| is_of_identity(field) && name.replace('-', "_").eq_ignore_ascii_case(field)) {
                // The field of the identity has this name already. The empty name marks the directive for removal.
                directive.name = String::new();
                break;
            }
            *value = replace(value, |variable| {
                let field = variables.fields.get(variable)?;
                is_of_identity(field).then(|| format!("$http_{field}"))
            });
        }
    }
    if let Some(block) = &mut block.block {
        block.retain(|d| match d.name.as_str() {
            "" | "auth_request_set" => false,
            // The variable is part of an address, which the URL of the service already contains.
            "set" => !services
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
            // `complete` may have removed 401, the only status of the page.
            "error_page" => d.arguments.iter().rev().skip(1).any(|word| !word.starts_with('=')),
            _ => true,
        });
    }
}
