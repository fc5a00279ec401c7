//! Translates the directive `forward_auth` to the key `auth`.
//!
//! `forward_auth` names an authorization service: a server that is queried for each request, and decides about it.
//! `copy_headers A>B` copies the field `A` of its response to the field `B` of the request. RockNet copies a field only
//! under its own name, so the translation copies `A`, and sets `B` from `A` by `headers` of `proxy`. Only upstreams get
//! this `B`. PHP, or another directive that reads `B`, would get a field that the client has sent. In that case, the
//! directive is not translated.

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::note::Note;
use crate::placeholder;
use crate::value::Value;

use super::options::networks;
use super::place::SiteOptions;
use super::proxy;

/// Message about a `forward_auth` without a counterpart.
pub(super) const NOT_TRANSLATED: &str = "the authorization service is not translated, so `deny = \"all\"` denies \
    every client here; write auth = { forward = \"http://127.0.0.1:9091/verify\" } in its place: docs/forward-auth.md";

/// Message about a renamed field that is not only for upstreams.
const RENAMED: &str = "`copy_headers` renames a field that PHP or another directive uses, so `deny = \"all\"` denies every \
    client here: use the name before `>` there, and write auth = { forward = \"http://127.0.0.1:9091/verify\", headers = \
    [\"X-User\"] }: docs/forward-auth.md";

/// A translated authorization service.
pub(super) struct ForwardAuthDraft {
    /// Value of `auth`.
    pub value: Value,
    /// Request fields that proxies set because `copy_headers` renames them, each with its value: `B` with
    /// `{request.header.A}`.
    pub renamed: Vec<(String, String)>,
    pub notes: Vec<Note>,
}

/// Translates a `forward_auth`.
///
/// # Errors
///
/// Fails with a message if a part of the directive has no counterpart. Also fails if the site has passwords or another
/// authorization service, which would have to apply together. The caller then denies every client of the place.
pub(super) fn translate(
    directive: &Directive,
    upstreams: &[&str],
    site: &Site,
    options: &SiteOptions,
) -> Result<ForwardAuthDraft, &'static str> {
    let [upstream] = upstreams else {
        return Err(NOT_TRANSLATED);
    };
    let service = proxy::server(upstream).filter(|_| !has_auth(site));
    let service = service.ok_or(NOT_TRANSLATED)?;
    let mut path = None;
    let mut fields = Vec::new();
    let mut sign_in = None;
    let (mut renamed, mut notes) = (Vec::new(), Vec::new());
    for inner in directive.children() {
        match (inner.name.as_str(), &inner.words()[..]) {
            ("uri", [target]) if target.starts_with('/') && !target.contains('{') => path = Some((*target).to_owned()),
            ("copy_headers", _) => {
                for (from, to) in copied(inner) {
                    if !is_name(from) || !is_name(to) {
                        return Err(NOT_TRANSLATED);
                    }
                    fields.push(Value::text(from));
                    if from.eq_ignore_ascii_case(to) {
                        continue;
                    }
                    if !options.proxy_fields.iter().any(|name| name.eq_ignore_ascii_case(to)) {
                        return Err(RENAMED);
                    }
                    renamed.push((to.to_owned(), format!("{{request.header.{from}}}")));
                    let message = format!("upstreams also get the field `{to}` under its name `{from}`");
                    notes.differs(inner, &message);
                }
            }
            ("trusted_proxies", ranges) => {
                let are_known = networks(ranges)
                    .iter()
                    .all(|network| options.trusted_proxies.contains(network));
                match are_known {
                    true => notes.unneeded(inner, "`trusted_proxies` in [server] has these proxies"),
                    false => notes.skip_restriction(
                        inner,
                        "without `trusted_proxies` in [server], the authorization service gets the address of the proxy \
                         in front of this server as that of every client: write trusted_proxies = [\"192.0.2.1\"] there",
                    ),
                }
            }
            // RockNet sends these fields itself.
            ("header_up", ["X-Real-IP" | "X-Real-Ip", "{remote_host}" | "{client_ip}"]) => {}
            ("header_up", ["X-Forwarded-Uri", "{uri}"]) | ("header_up", ["X-Forwarded-Method", "{method}"]) => {}
            (name, ["status", "401"]) if name.starts_with('@') => {}
            ("handle_response", [name]) if is_unauthorized(directive, name) => {
                sign_in = Some(page(inner).ok_or(NOT_TRANSLATED)?);
            }
            _ => return Err(NOT_TRANSLATED),
        }
    }
    let separator = if service.starts_with("unix:") { ":" } else { "" };
    let path = path.ok_or(NOT_TRANSLATED)?;
    let mut auth = vec![
        ("forward".to_owned(), Value::Text(format!("{service}{separator}{path}"))),
        ("headers".to_owned(), Value::List(fields)),
    ];
    auth.extend(sign_in.map(|page| ("sign_in".to_owned(), Value::Text(page))));
    Ok(ForwardAuthDraft {
        value: Value::Table(auth),
        renamed,
        notes,
    })
}

/// Returns the fields of `copy_headers`, each with its name in the response of the authorization service and in
/// requests. `A>B` renames a field.
fn copied(directive: &Directive) -> impl Iterator<Item = (&str, &str)> {
    let inner = directive.children().iter();
    let inner = inner.flat_map(|line| std::iter::once(line.name.as_str()).chain(line.words()));
    let names = directive.words().into_iter().chain(inner);
    names.map(|name| name.split_once('>').unwrap_or((name, name)))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Returns true for a `forward_auth` that renames fields.
pub(super) fn renames(directive: &Directive) -> bool {
    let mut lists = directive.children().iter().filter(|inner| inner.is("copy_headers"));
    lists.any(|list| copied(list).any(|(from, to)| from != to))
}

/// Returns the names that `copy_headers` gives to renamed fields, in lower case, except those that another directive of
/// the site contains. With PHP, returns none.
pub(super) fn proxy_fields(site: &[Directive]) -> Vec<String> {
    let mut names = Vec::new();
    let mut words = Vec::new();
    collect(site, &mut names, &mut words);
    let has_scripts = words.iter().any(|word| word.starts_with("php"));
    names.retain(|name| {
        let placeholder = format!("header.{name}}}");
        let is_used =
            |word: &String| word.trim_start_matches(['+', '-', '?', '!', '>']) == name || word.contains(&placeholder);
        !has_scripts && !words.iter().any(is_used)
    });
    names
}

/// Collects the names that `copy_headers` gives to renamed fields in `names`, and the words of all other directives in
/// `words`, all in lower case. [`proxy_fields`] leaves out a name that is also a word.
fn collect(block: &[Directive], names: &mut Vec<String>, words: &mut Vec<String>) {
    for directive in block {
        if directive.is("copy_headers") {
            let renamed = copied(directive).filter(|(from, to)| from != to);
            names.extend(renamed.map(|(_, to)| to.to_ascii_lowercase()));
            continue;
        }
        words.push(directive.name.to_ascii_lowercase());
        words.extend(directive.lowercase_words());
        let passes_all = |inner: &Directive| inner.is("reverse_proxy") && !inner.argument(0).starts_with(['@', '/']);
        // `route /app/* { forward_auth … }` may have no `reverse_proxy` for all its requests. A proxy outside of the
        // block then gets them. It does not set the renamed field, so it would pass on the field of the client. With
        // the name in `words`, `proxy_fields` leaves it out.
        if !directive.children().iter().any(passes_all) {
            let queries = directive.children().iter().filter(|inner| inner.is("forward_auth"));
            let lists = queries
                .flat_map(|query| query.children())
                .filter(|inner| inner.is("copy_headers"));
            let renamed = lists.flat_map(copied).filter(|(from, to)| from != to);
            words.extend(renamed.map(|(_, to)| to.to_ascii_lowercase()));
        }
        collect(directive.children(), names, words);
    }
}

/// Returns true if a matcher of the directive stands for responses with 401: `@denied status 401`.
fn is_unauthorized(directive: &Directive, matcher: &str) -> bool {
    let is_matcher = |inner: &&Directive| inner.name == matcher;
    let mut found = directive.children().iter().filter(is_matcher);
    found.next().is_some_and(|inner| inner.words() == ["status", "401"])
}

/// Returns the page to which a `handle_response` redirects clients; `None` if it does something else.
fn page(block: &Directive) -> Option<String> {
    let [redirect] = block.children() else { return None };
    let target = match redirect.words()[..] {
        ["*", target] | ["*", target, "302" | "temporary"] | [target] | [target, "302" | "temporary"] => target,
        _ => return None,
    };
    let target = placeholder::from_caddy(target, Scope::Request)?;
    redirect.is("redir").then_some(target)
}

/// Returns true if a place of the site has a password or an authorization service.
pub(super) fn has_auth(site: &Site) -> bool {
    let mut all = std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings));
    all.any(|settings| matches!(settings.get("auth"), Some(Value::Table(_))))
}

/// Returns true if a place of the site has an authorization service.
pub(super) fn has_service(site: &Site) -> bool {
    let is_service = |value: &Value| match value {
        Value::Table(entries) => entries.iter().any(|(key, _)| key == "forward"),
        _ => false,
    };
    let mut all = std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings));
    all.any(|settings| settings.get("auth").is_some_and(is_service))
}
