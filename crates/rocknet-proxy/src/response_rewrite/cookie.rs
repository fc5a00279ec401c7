//! Rewrites the path and domain of a cookie.

use rocknet_config::model::AddressRewrites;

use super::origin::{Origin, is_below};

/// Prefix of the names of cookies that browsers accept only with the path `/` and without a domain.
const HOST_PREFIX: &str = "__Host-";

/// Returns the new value of `Set-Cookie`; `None` if it stays.
pub fn rewritten(
    value: &str,
    paths: &AddressRewrites,
    domains: &AddressRewrites,
    origin: &Origin<'_>,
) -> Option<String> {
    let mut parts = value.split(';');
    let pair = parts.next()?;
    if pair
        .trim_start()
        .get(..HOST_PREFIX.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(HOST_PREFIX))
    {
        return None;
    }
    let mut is_changed = false;
    let mut out = String::with_capacity(value.len() + 32);
    out.push_str(pair);
    for attribute in parts {
        let (name, setting) = attribute.split_once('=').unwrap_or((attribute, ""));
        let (name, setting) = (name.trim(), setting.trim());
        let change = if name.eq_ignore_ascii_case("path") {
            path(setting, paths, origin).map(Some)
        } else if name.eq_ignore_ascii_case("domain") {
            domain(setting, domains, origin)
        } else {
            None
        };
        is_changed |= change.is_some();
        match change {
            None => {
                out.push(';');
                out.push_str(attribute);
            }
            Some(None) => {}
            Some(Some(new)) => {
                out.push_str("; ");
                out.push_str(name);
                out.push('=');
                out.push_str(&new);
            }
        }
    }
    is_changed.then_some(out)
}

/// Returns the new path; `None` if it stays.
fn path(path: &str, rewrites: &AddressRewrites, origin: &Origin<'_>) -> Option<String> {
    // A path that is not absolute counts as missing (RFC 6265 §5.2.4).
    if !path.starts_with('/') {
        return None;
    }
    // Paths of pairs are stored without a slash at the end, so `/` is empty in them.
    let mut pairs = rewrites.pairs.iter();
    if let Some((from, to)) = pairs.find(|(from, _)| is_below(path, from)) {
        // With a pair such as `/` = `/api`, an application may know the public path and write `/api/x` itself.
        if is_below(to, from) && is_below(path, to) {
            return None;
        }
        return Some(match &path[from.len()..] {
            "" | "/" if to.is_empty() => "/".to_owned(),
            // `/app` needs no slash at the end, because a cookie with this path is also sent for everything below.
            "" | "/" => to.clone(),
            rest => format!("{to}{rest}"),
        });
    }
    // `/` covers the prefix already. Other parts of the site may need the cookie, so it is not narrowed.
    (rewrites.is_automatic && path != "/").then(|| origin.with_prefix(path))?
}

/// Returns the new domain, where `Some(None)` removes it; `None` if it stays.
fn domain(domain: &str, rewrites: &AddressRewrites, origin: &Origin<'_>) -> Option<Option<String>> {
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    let mut pairs = rewrites.pairs.iter();
    if let Some((_, to)) = pairs.find(|(from, _)| from.eq_ignore_ascii_case(domain)) {
        return Some(Some(to.clone()).filter(|to| !to.is_empty()));
    }
    (rewrites.is_automatic && origin.is_own_domain(domain)).then_some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_domains_of_cookies_are_rewritten() {
        let origin = Origin {
            upstream: Some("app.internal:3000"),
            configured_host: None,
            public_hosts: [b"www.example.com", b""],
            is_secure: true,
            target: (b"/", None),
            prefix: Some("/api"),
            announced_prefix: "/api",
        };
        let rewrites = |pairs: &[(&str, &str)]| AddressRewrites {
            pairs: pairs
                .iter()
                .map(|&(from, to)| (from.to_owned(), to.to_owned()))
                .collect(),
            is_automatic: true,
        };
        let none = rewrites(&[]);
        let root = rewrites(&[("", "/api")]);
        let inner = rewrites(&[("/inner", "")]);
        let both = rewrites(&[("/kept", "/kept"), ("/one", "/two"), ("/two", "/three")]);
        let named = rewrites(&[("other.test", "example.com"), ("gone.test", "")]);
        for (value, paths, domains, expected) in [
            (
                "a=1; Path=/admin; Secure",
                &none,
                &none,
                Some("a=1; Path=/api/admin; Secure"),
            ),
            ("a=1;path = /admin", &none, &none, Some("a=1; path=/api/admin")),
            ("a=1; Path=/", &none, &none, None),
            ("a=1; Path=/api/x", &none, &none, None),
            ("a=1; Path", &none, &none, None),
            ("a=Path=/x; HttpOnly", &none, &none, None),
            (
                "a=1; Path=/; Domain=.App.Internal; HttpOnly",
                &none,
                &none,
                Some("a=1; Path=/; HttpOnly"),
            ),
            ("a=1; Domain=example.com", &none, &none, None),
            ("a=1; Path=/", &root, &none, Some("a=1; Path=/api")),
            ("a=1; Path=/x", &root, &none, Some("a=1; Path=/api/x")),
            // The application knows the public path.
            ("a=1; Path=/api", &root, &none, None),
            ("a=1; Path=/api/x", &root, &none, None),
            ("a=1; Path=/apis", &root, &none, Some("a=1; Path=/api/apis")),
            ("a=1; Path", &root, &none, None),
            ("a=1; Path=", &root, &none, None),
            ("__Host-a=1; Path=/; Secure", &root, &none, None),
            ("a=1; Path=/inner", &inner, &none, Some("a=1; Path=/")),
            ("a=1; Path=/inner/x", &inner, &none, Some("a=1; Path=/x")),
            // One pair decides: neither another pair nor the prefix follows.
            ("a=1; Path=/one/x", &both, &none, Some("a=1; Path=/two/x")),
            ("a=1; Path=/two/x", &both, &none, Some("a=1; Path=/three/x")),
            ("a=1; Path=/kept", &both, &none, None),
            ("a=1; Path=/inner2", &inner, &none, Some("a=1; Path=/api/inner2")),
            ("a=1; Domain=other.test", &none, &named, Some("a=1; Domain=example.com")),
            ("a=1; Domain=gone.test; Path=/", &none, &named, Some("a=1; Path=/")),
            ("a=1; Path=/x", &AddressRewrites::OFF, &AddressRewrites::OFF, None),
        ] {
            assert_eq!(
                rewritten(value, paths, domains, &origin).as_deref(),
                expected,
                "{value}"
            );
        }
    }
}
