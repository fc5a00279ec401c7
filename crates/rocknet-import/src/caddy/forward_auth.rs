//! Translates `forward_auth` to forward authentication.

use rocknet_config::template::Scope;

use crate::directive::Directive;
use crate::document::Site;
use crate::placeholder;
use crate::value::Value;

use super::proxy;

/// Returns the value of `auth`; `None` if a part of the directive has no counterpart, or if the site has passwords or
/// another authority, which would have to apply together.
pub(super) fn value(directive: &Directive, upstreams: &[&str], site: &Site) -> Option<Value> {
    let [upstream] = upstreams else { return None };
    let authority = proxy::server(upstream).filter(|_| !has_auth(site))?;
    let mut path = None;
    let mut fields = Vec::new();
    let mut sign_in = None;
    for inner in directive.children() {
        match (inner.name.as_str(), &inner.words()[..]) {
            ("uri", [target]) if target.starts_with('/') && !target.contains('{') => path = Some((*target).to_owned()),
            ("copy_headers", names) => {
                let lines = inner.children().iter().map(|line| line.name.as_str());
                let lines: Vec<&str> = names.iter().copied().chain(lines).collect();
                // `A>B` renames a field.
                let is_renamed = inner.children().iter().any(|line| !line.arguments.is_empty());
                if is_renamed || lines.iter().any(|name| name.contains('>')) {
                    return None;
                }
                fields.extend(lines.into_iter().map(Value::text));
            }
            // RockNet sends these fields itself.
            ("header_up", ["X-Real-IP" | "X-Real-Ip", "{remote_host}" | "{client_ip}"]) => {}
            ("header_up", ["X-Forwarded-Uri", "{uri}"]) | ("header_up", ["X-Forwarded-Method", "{method}"]) => {}
            (name, ["status", "401"]) if name.starts_with('@') => {}
            ("handle_response", [name]) if is_unauthorized(directive, name) => sign_in = Some(page(inner)?),
            _ => return None,
        }
    }
    let separator = if authority.starts_with("unix:") { ":" } else { "" };
    let forward = Value::Text(format!("{authority}{separator}{}", path?));
    let mut auth = vec![
        ("forward".to_owned(), forward),
        ("headers".to_owned(), Value::List(fields)),
    ];
    auth.extend(sign_in.map(|page| ("sign_in".to_owned(), Value::Text(page))));
    Some(Value::Table(auth))
}

/// Returns true if a matcher of the directive stands for responses with 401.
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

/// Returns true if a place of the site has a password or an authority.
pub(super) fn has_auth(site: &Site) -> bool {
    let mut all = std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings));
    all.any(|settings| matches!(settings.get("auth"), Some(Value::Table(_))))
}

/// Returns true if a place of the site has an authority.
pub(super) fn has_authority(site: &Site) -> bool {
    let is_authority = |value: &Value| match value {
        Value::Table(entries) => entries.iter().any(|(key, _)| key == "forward"),
        _ => false,
    };
    let mut all = std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings));
    all.any(|settings| settings.get("auth").is_some_and(is_authority))
}
