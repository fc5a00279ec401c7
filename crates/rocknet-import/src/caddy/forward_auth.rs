//! Translates `forward_auth` to forward authentication.

use crate::directive::Directive;
use crate::document::Site;
use crate::value::Value;

use super::proxy;

/// Returns the value of `auth`; `None` if a part of the directive has no counterpart, or if the site has passwords or
/// another authority, which would have to apply together.
pub(super) fn value(directive: &Directive, upstreams: &[&str], site: &Site) -> Option<Value> {
    let [upstream] = upstreams else { return None };
    let authority = proxy::server(upstream).filter(|_| !has_auth(site))?;
    let mut path = None;
    let mut fields = Vec::new();
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
            _ => return None,
        }
    }
    let separator = if authority.starts_with("unix:") { ":" } else { "" };
    let forward = Value::Text(format!("{authority}{separator}{}", path?));
    Some(Value::Table(vec![
        ("forward".to_owned(), forward),
        ("headers".to_owned(), Value::List(fields)),
    ]))
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
