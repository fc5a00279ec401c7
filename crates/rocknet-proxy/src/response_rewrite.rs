//! Rewrites addresses in the response fields of an upstream that does not know its public address: `Location`,
//! `Content-Location`, `Refresh`, and the path and domain of cookies.
//!
//! An address at the upstream itself becomes a path, so that it is correct for any scheme, host and port that the
//! client used, and behind further proxies. A response without such fields costs one bit test for each of the
//! four names.

mod cookie;
mod origin;

use rocknet_config::model::{self, AddressRewrites};
use rocknet_proto::fields::KnownField;

use rocknet_handler::response::FieldList;

pub use self::origin::Origin;

/// Configured rewriting of one proxy.
///
/// Each field has pairs of an old and a new beginning of addresses or paths, such as
/// `redirects = { "http://app.internal/two/" = "/two/" }`, or pairs of whole domains. The check of the
/// configuration has removed the final slash of each beginning that is not a scheme (`http://`). This pair is therefore
/// `http://app.internal/two` and `/two` here, and the path `/` is an empty text.
///
/// The first pair that matches is applied. If `is_automatic` is true, a value without such a pair is rewritten by the
/// addresses in [`Origin`].
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
        // A pair that replaces only the scheme does not apply to an address of the upstream itself, because the result
        // would still name the upstream.
        let is_own = self.redirects.is_automatic && origin.is_own_address(address);
        let mut pairs = self.redirects.pairs.iter();
        match pairs.find(|(from, _)| begins_with(address, from) && !(is_own && is_scheme(from))) {
            Some((from, to)) => replaced(address, from, to),
            None if self.redirects.is_automatic => origin.public_address(address),
            None => None,
        }
    }
}

/// Returns true if an address begins with `start`. A beginning ends at a segment, so that `http://app` is not the
/// beginning of `http://app.evil.example`. A scheme (`http://`) is a beginning of every address that continues after
/// its slashes. An empty `start` is a beginning of every absolute path.
fn begins_with(address: &str, start: &str) -> bool {
    if start.is_empty() {
        // An address with two slashes has a host. One without a slash is relative to the path of the request.
        return address.starts_with('/') && !address.starts_with("//");
    }
    // Schemes and hosts do not distinguish case. Paths do, but here, paths that differ only in case count as equal.
    let rest = address
        .get(..start.len())
        .filter(|head| head.eq_ignore_ascii_case(start))
        .map(|_| &address[start.len()..]);
    rest.is_some_and(|rest| is_scheme(start) || rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

fn is_scheme(start: &str) -> bool {
    start.ends_with("://")
}

/// Returns an address that begins with `from`, with `to` in place of it. Returns `None` if `to` continues `from` and
/// the address begins with `to` already, because the upstream then knows its public address. For example,
/// `/app/x` stays if `from` is empty (`/` in the configuration) and `to` is `/app`.
fn replaced(address: &str, from: &str, to: &str) -> Option<String> {
    if begins_with(to, from) && begins_with(address, to) {
        return None;
    }
    let rest = &address[from.len()..];
    let slash = match to.is_empty() && !rest.starts_with('/') {
        // The replacement is the root of the site.
        true => "/",
        false => "",
    };
    Some(origin::as_path_of_site([to, slash, rest].concat()))
}

/// Returns the start and the end of the address in `Refresh`, such as `5; url=/next`; `None` without an address.
/// Follows the HTML standard ("shared declarative refresh steps"), where `url=` may be missing.
fn refresh_target(value: &str) -> Option<(usize, usize)> {
    let skip = |from: usize| from + value[from..].len() - value[from..].trim_start().len();
    let time = skip(0);
    let separator = skip(time + value[time..].find([';', ',', ' ', '\t'])?);
    let name = skip(separator + usize::from(value[separator..].starts_with([';', ','])));
    let has_name = value
        .get(name..name + 3)
        .is_some_and(|name| name.eq_ignore_ascii_case("url"));
    let equals = if has_name { skip(name + 3) } else { name };
    let start = match has_name && value[equals..].starts_with('=') {
        true => skip(equals + 1),
        false => name,
    };
    if start == value.len() && !has_name {
        return None;
    }
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
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(pairs: &[(&str, &str)]) -> ResponseRewrite {
        ResponseRewrite {
            redirects: AddressRewrites {
                pairs: pairs
                    .iter()
                    .map(|&(from, to)| (from.to_owned(), to.to_owned()))
                    .collect(),
                is_automatic: true,
            },
            cookie_paths: AddressRewrites::default(),
            cookie_domains: AddressRewrites::default(),
        }
    }

    fn origin(prefix: Option<&str>) -> Origin<'_> {
        Origin {
            upstream: Some("10.0.0.2:3000"),
            configured_host: None,
            public_hosts: [b"www.example.com", b""],
            is_secure: true,
            target: (b"/", None),
            prefix,
            announced_prefix: prefix.unwrap_or_default(),
        }
    }

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
            // The pair of all paths.
            ("/x", "", "/two", Some("/two/x")),
            ("/", "", "/two", Some("/two/")),
            ("", "", "/two", None),
            ("?page=2", "", "/two", None),
            ("x", "", "/two", None),
            ("//other.test/x", "", "/two", None),
            // The upstream knows its public address.
            ("/two/x", "", "/two", None),
            ("/two", "", "/two", None),
            ("/twofold", "", "/two", Some("/two/twofold")),
            ("http://app/two/x", "http://app", "http://app/two", None),
            ("http://app/x", "http://app", "http://app/two", Some("http://app/two/x")),
        ] {
            let found = rewrite(&[(from, to)]).address(address, &origin(None));
            assert_eq!(found.as_deref(), expected, "{address}, {from}");
        }
    }

    #[test]
    fn one_pair_decides() {
        let pairs = rewrite(&[
            ("http://app", "/two"),
            ("http://", "https://"),
            ("/kept", "/kept"),
            ("/two", "/three"),
        ]);
        for (address, expected) in [
            ("http://app/x", Some("/two/x")),
            ("/two/x", Some("/three/x")),
            ("/kept/x", None),
            ("/x", Some("/api/x")),
            ("http://other.test/x", Some("https://other.test/x")),
            // The scheme of the upstream's own address is not the only thing to replace.
            ("http://10.0.0.2:3000/x", Some("/api/x")),
        ] {
            let found = pairs.address(address, &origin(Some("/api")));
            assert_eq!(found.as_deref(), expected, "{address}");
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
            ("5; u", Some("u")),
            ("5; url", Some("url")),
            ("5; url=", Some("")),
            ("5;é", Some("é")),
            ("5; /next", Some("/next")),
            ("5 url=/next", Some("/next")),
            (" 5 ;\turl=/next", Some("/next")),
            ("5 '/next'", Some("/next")),
            ("5;", None),
            ("5; ", None),
            ("", None),
        ] {
            let found = refresh_target(value).map(|(start, end)| &value[start..end]);
            assert_eq!(found, expected, "{value}");
        }
    }
}
