//! Rewrites addresses in the response fields of an upstream that does not know its public address: `Location`,
//! `Content-Location`, `Refresh`, and the path and domain of cookies.
//!
//! An address at the upstream itself becomes a path, so that it is correct for any scheme, host and port that the
//! client used, and behind further proxies. A response without such fields costs one bit test each.

mod cookie;
mod origin;

use rocknet_config::model::{self, AddressRewrites};
use rocknet_proto::fields::KnownField;

use rocknet_handler::response::FieldList;

pub use self::origin::Origin;

/// Configured rewriting of one proxy.
pub struct ResponseRewrite {
    redirects: AddressRewrites,
    cookie_paths: AddressRewrites,
    cookie_domains: AddressRewrites,
}

impl ResponseRewrite {
    /// Returns the rewriting that a proxy configures.
    pub fn new(model: &model::Proxy) -> ResponseRewrite {
        ResponseRewrite {
            redirects: model.redirects.clone(),
            cookie_paths: model.cookie_paths.clone(),
            cookie_domains: model.cookie_domains.clone(),
        }
    }

    /// Rewrites the fields of a response. `origin` is called only if a field may need it.
    pub fn apply<'a>(&self, fields: &mut FieldList, origin: impl FnOnce() -> Origin<'a>) {
        const ADDRESSES: [KnownField; 4] = [
            KnownField::Location,
            KnownField::ContentLocation,
            KnownField::Refresh,
            KnownField::SetCookie,
        ];
        if !ADDRESSES.into_iter().any(|name| fields.contains(name)) {
            return;
        }
        let origin = origin();
        let changed: Vec<(usize, String)> = fields
            .iter()
            .enumerate()
            .filter_map(|(index, (name, value))| Some((index, self.rewritten(name, value, &origin)?)))
            .collect();
        if changed.is_empty() {
            return;
        }
        let mut changed = changed.into_iter().peekable();
        let before = std::mem::take(fields);
        for (index, (name, value)) in before.iter().enumerate() {
            match changed.next_if(|(changed, _)| *changed == index) {
                Some((_, value)) => fields.add(name, value),
                None => fields.add(name, value),
            }
        }
    }

    /// Returns the new value of a field; `None` if the field stays.
    fn rewritten(&self, name: &str, value: &str, origin: &Origin<'_>) -> Option<String> {
        match KnownField::from_name(name.as_bytes())? {
            KnownField::Location | KnownField::ContentLocation => self.address(value, origin),
            KnownField::Refresh => {
                let (start, end) = refresh_target(value)?;
                let target = self.address(&value[start..end], origin)?;
                Some([&value[..start], &target, &value[end..]].concat())
            }
            KnownField::SetCookie => cookie::rewritten(value, &self.cookie_paths, &self.cookie_domains, origin),
            _ => None,
        }
    }

    /// Returns the new form of an address in a redirect; `None` if it stays.
    fn address(&self, address: &str, origin: &Origin<'_>) -> Option<String> {
        let by_pair = self
            .redirects
            .pairs
            .iter()
            .find_map(|(from, to)| replaced(address, from, to));
        match by_pair {
            Some(address) => Some(address),
            None if self.redirects.is_automatic => origin.public_address(address),
            None => None,
        }
    }
}

/// Returns the address with `to` in place of `from` at its beginning; `None` if it begins with something else. A
/// beginning ends at a segment, so that `http://app` is not the beginning of `http://app.evil.example`. A beginning
/// that is a scheme (`http://`) ends after its slashes.
fn replaced(address: &str, from: &str, to: &str) -> Option<String> {
    // Schemes and hosts do not distinguish case. Paths do, but two paths that differ only in case are one mistake.
    let head = address
        .get(..from.len())
        .filter(|head| head.eq_ignore_ascii_case(from))?;
    let rest = &address[head.len()..];
    let is_scheme = from.ends_with("://");
    if !is_scheme && !rest.is_empty() && !rest.starts_with(['/', '?', '#']) {
        return None;
    }
    let rest = match rest {
        _ if is_scheme || rest.starts_with('/') => rest.to_owned(),
        // The replacement is the root of the site.
        _ if to.is_empty() => format!("/{rest}"),
        _ => rest.to_owned(),
    };
    Some(origin::as_path_of_site(format!("{to}{rest}")))
}

/// Returns the start and the end of the address in `Refresh`, such as `5; url=/next`; `None` without an address.
fn refresh_target(value: &str) -> Option<(usize, usize)> {
    let separator = value.find([';', ','])?;
    let skip = |from: usize| from + value[from..].len() - value[from..].trim_start().len();
    let name = skip(separator + 1);
    value
        .get(name..name + 3)
        .filter(|name| name.eq_ignore_ascii_case("url"))?;
    let equals = skip(name + 3);
    let start = skip(equals + value[equals..].starts_with('=').then_some(1)?);
    let quote = value[start..]
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '\''));
    Some(match quote {
        Some(quote) => {
            let inside = start + 1;
            (
                inside,
                inside + value[inside..].find(quote).unwrap_or(value.len() - inside),
            )
        }
        None => (start, start + value[start..].trim_end().len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_ends_at_a_segment() {
        for (address, from, to, expected) in [
            ("http://app/x", "http://app", "", Some("/x")),
            ("http://app", "http://app", "", Some("/")),
            ("http://app?q", "http://app", "", Some("/?q")),
            ("HTTP://App/x?q#f", "http://app", "/two", Some("/two/x?q#f")),
            ("http://app", "http://app", "/two", Some("/two")),
            ("http://app.evil.test/", "http://app", "", None),
            ("http://app@evil.test/", "http://app", "", None),
            ("http://app:81/", "http://app", "", None),
            ("/inner/x", "/inner", "/outer", Some("/outer/x")),
            ("/inner2", "/inner", "/outer", None),
            ("http://any/x", "http://", "https://", Some("https://any/x")),
            ("/x", "http://", "https://", None),
            // A path that begins with two slashes would name another host.
            ("http://app//evil.test/", "http://app", "", Some("/.//evil.test/")),
        ] {
            assert_eq!(replaced(address, from, to).as_deref(), expected, "{address}, {from}");
        }
    }

    #[test]
    fn the_address_of_refresh_is_found() {
        for (value, expected) in [
            ("5; url=/next", Some("/next")),
            ("5;URL = '/a b' ", Some("/a b")),
            ("0, url=\"http://app/\"", Some("http://app/")),
            ("5; url='open", Some("open")),
            ("5", None),
            ("5; u", None),
            ("5; url", None),
            ("5; url=", Some("")),
            ("5;é", None),
        ] {
            let found = refresh_target(value).map(|(start, end)| &value[start..end]);
            assert_eq!(found, expected, "{value}");
        }
    }
}
