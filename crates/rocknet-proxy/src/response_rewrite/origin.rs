//! Converts addresses that an upstream has written to the addresses that the client uses.

/// Addresses of a request: those that the upstream saw, and those that the client used.
pub struct Origin<'a> {
    /// Host and port of the upstream; `None` for a Unix socket.
    pub upstream: Option<&'a str>,
    /// `Host` that the configuration sets; `None` if the upstream got the client's.
    pub configured_host: Option<&'a str>,
    /// Host and optional port of the client's request, and the same as a trusted proxy reports it. May be empty.
    pub public_hosts: [&'a [u8]; 2],
    /// True if the client uses `https`, as far as this server and trusted proxies know.
    pub is_secure: bool,
    /// Path and query of the client's request.
    pub target: (&'a [u8], Option<&'a [u8]>),
    /// Prefix that was removed from the path of this request, without a slash at its end; `None` if none was removed.
    pub prefix: Option<&'a str>,
    /// `X-Forwarded-Prefix` that the upstream got: the removed prefix, after the prefix that a trusted proxy has
    /// removed before. Empty if the field was not sent.
    pub announced_prefix: &'a str,
}

impl Origin<'_> {
    /// Returns the public form of an address that the upstream sent. Returns `None` if the address is public already,
    /// or leads to another host.
    pub fn public_address(&self, address: &str) -> Option<String> {
        let (scheme, authority, path) = match split(address) {
            Some(parts) => parts,
            // A relative address is resolved by the client, against the address that it knows.
            None if !address.starts_with('/') => return None,
            None => return self.with_prefix(address),
        };
        let is_public = self
            .public_hosts
            .iter()
            .any(|host| !host.is_empty() && is_same_authority(authority.as_bytes(), host));
        // If the upstream has the same name as the site, its redirect to `https` may be intended. But if the client
        // uses `https` already, an upstream that writes `http` does not know the scheme.
        let is_own = match is_public {
            true => self.is_own(authority, scheme) && self.is_secure && scheme == Some("http"),
            false => self.is_own(authority, scheme),
        };
        if is_own {
            let path = match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("/{path}"),
            };
            let path = as_path_of_site(self.with_prefix(&path).unwrap_or(path));
            // A redirect from `http` to `https` at the same path stays. Reduced to a path, it would lead to itself.
            let is_loop = !self.is_secure && scheme == Some("https") && self.is_request(&path);
            return (!is_loop).then_some(path);
        }
        if !is_public {
            return None;
        }
        // The upstream got the client's `Host`, but not the prefix.
        let before = &address[..address.len() - path.len()];
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        Some(format!("{before}{}", self.with_prefix(&path)?))
    }

    /// Returns an absolute path with the removed prefix in front: `/api/x` for the path `/x` and the prefix `/api`.
    /// Returns `None` if no prefix was removed, or if the path is public already: it begins with the removed prefix, or
    /// with the prefix that a trusted proxy has removed before.
    pub fn with_prefix(&self, path: &str) -> Option<String> {
        let prefix = self.prefix?;
        let outer = self.announced_prefix.strip_suffix(prefix);
        let outer = outer.unwrap_or(self.announced_prefix);
        let is_public = is_below(path, prefix) || !outer.is_empty() && is_below(path, outer);
        (!is_public).then(|| format!("{prefix}{path}"))
    }

    /// Returns true if a path with its query is that of the client's request.
    fn is_request(&self, path: &str) -> bool {
        let path = path.split('#').next().unwrap_or_default();
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (path, None),
        };
        self.target == (path.as_bytes(), query)
    }

    /// Returns true if an address has the host and port of the upstream, or the `Host` that the configuration sets.
    pub fn is_own_address(&self, address: &str) -> bool {
        split(address).is_some_and(|(scheme, authority, _)| self.is_own(authority, scheme))
    }

    /// Returns true if the domain of a cookie names the upstream, and no host of the client.
    pub fn is_own_domain(&self, domain: &str) -> bool {
        let names = self
            .upstream
            .into_iter()
            .chain(self.configured_host)
            .map(|host| split_port(host).0);
        let is_below = |host: &[u8]| {
            let Ok(host) = std::str::from_utf8(host) else {
                return false;
            };
            let host = split_port(host).0.to_ascii_lowercase();
            let rest = host.strip_suffix(&domain.to_ascii_lowercase());
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        names.into_iter().any(|name| name.eq_ignore_ascii_case(domain))
            && !self.public_hosts.iter().any(|host| is_below(host))
    }

    /// Returns true if an authority is that of the upstream itself, or the `Host` that the configuration sets.
    fn is_own(&self, authority: &str, scheme: Option<&str>) -> bool {
        let (host, port) = split_port(authority);
        let (own_host, own_port) = self.upstream.map_or(("", None), split_port);
        let is_default = |port: &str| match scheme {
            Some("https") => port == "443",
            Some(_) => port == "80",
            None => matches!(port, "80" | "443"),
        };
        if !own_host.is_empty() && host.eq_ignore_ascii_case(own_host) {
            // An upstream behind a proxy with TLS writes `https`, whatever it speaks itself. Therefore a missing port
            // stands for both default ports.
            let is_own_port = match port {
                Some(port) => own_port == Some(port),
                None => own_port.is_some_and(|own| matches!(own, "80" | "443")),
            };
            if is_own_port {
                return true;
            }
        }
        // nginx and others write the host that the client requested, with the port that they listen on.
        let mut public_names = self.public_hosts.iter().map(|host| host_of(host));
        if port.is_some() && port == own_port && public_names.any(|name| name.eq_ignore_ascii_case(host.as_bytes())) {
            return true;
        }
        let Some(configured) = self.configured_host else {
            return false;
        };
        let (name, configured_port) = split_port(configured);
        let is_own_port = port == configured_port
            || port.is_some_and(|port| is_default(port) && configured_port.is_none() || Some(port) == own_port)
            || port.is_none() && configured_port.is_some_and(is_default);
        host.eq_ignore_ascii_case(name) && is_own_port
    }
}

/// Returns true if an address is `start`, or continues it after the end of a path segment.
pub fn is_below(address: &str, start: &str) -> bool {
    let rest = address.strip_prefix(start);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

/// Returns a path that cannot be read as the name of another host. An address that begins with two slashes names a
/// host, and browsers read a backslash as a slash and ignore tabs. A URL is returned unchanged.
pub fn as_path_of_site(address: String) -> String {
    match address.as_bytes() {
        [b'/', b'/' | b'\\' | b'\t', ..] => format!("/.{address}"),
        _ => address,
    }
}

/// Splits an address with a host into its scheme, its authority and the rest. The scheme is `None` after `//`. Returns
/// `None` for an address without a host, or with another scheme.
fn split(address: &str) -> Option<(Option<&'static str>, &str, &str)> {
    let after = |scheme: &str| {
        let head = address.get(..scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then(|| &address[scheme.len()..])
    };
    let (scheme, rest) = [(Some("http"), "http://"), (Some("https"), "https://"), (None, "//")]
        .into_iter()
        .find_map(|(scheme, start)| Some((scheme, after(start)?)))?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // `http://app@evil.example/` leads to the second name.
    (!authority.contains('@')).then_some((scheme, authority, path))
}

/// Splits host and port. The port is `None` if it is missing; the brackets of an IPv6 address stay.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Returns the host of an authority, which is empty if the authority is no text.
fn host_of(authority: &[u8]) -> &[u8] {
    std::str::from_utf8(authority).map_or(b"", |authority| split_port(authority).0.as_bytes())
}

/// Compares two authorities without regard to case and default ports.
fn is_same_authority(one: &[u8], other: &[u8]) -> bool {
    fn plain(authority: &[u8]) -> &[u8] {
        let port = [b":80".as_slice(), b":443"];
        port.iter()
            .find_map(|port| authority.strip_suffix(*port))
            .unwrap_or(authority)
    }
    plain(one).eq_ignore_ascii_case(plain(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin<'a>(upstream: &'a str, configured: Option<&'a str>, prefix: Option<&'a str>) -> Origin<'a> {
        Origin {
            upstream: Some(upstream).filter(|upstream| !upstream.is_empty()),
            configured_host: configured,
            public_hosts: [b"www.example.com", b""],
            is_secure: true,
            target: (b"/", None),
            prefix,
            announced_prefix: prefix.unwrap_or_default(),
        }
    }

    #[test]
    fn addresses_of_the_upstream_become_paths() {
        let plain = origin("10.0.0.2:3000", None, None);
        for (address, expected) in [
            ("http://10.0.0.2:3000/login?x#y", Some("/login?x#y")),
            ("https://10.0.0.2:3000/login", Some("/login")),
            ("//10.0.0.2:3000/login", Some("/login")),
            ("http://10.0.0.2:3000", Some("/")),
            ("http://10.0.0.2:3000?x", Some("/?x")),
            ("http://10.0.0.2:3000//evil.test/", Some("/.//evil.test/")),
            ("http://10.0.0.2:3000/\\evil.test/", Some("/./\\evil.test/")),
            ("http://10.0.0.2:3000\\evil.test/", Some("/./\\evil.test/")),
            ("http://10.0.0.2:3001/", None),
            ("http://10.0.0.2/", None),
            ("http://10.0.0.2:3000@evil.test/", None),
            // The host of the client, with the port of the upstream.
            ("http://www.example.com:3000/login", Some("/login")),
            ("http://www.example.com:3001/login", None),
            ("http://example.com:3000/login", None),
            ("http://www.example.com/login", None),
            ("http://other.test/", None),
            ("/login", None),
            ("login", None),
            ("", None),
            ("ftp://10.0.0.2:3000/", None),
        ] {
            assert_eq!(plain.public_address(address).as_deref(), expected, "{address}");
        }
        let default_port = origin("app:80", None, None);
        assert_eq!(default_port.public_address("http://APP/x").as_deref(), Some("/x"));
        assert_eq!(default_port.public_address("http://app:80/x").as_deref(), Some("/x"));
        assert_eq!(default_port.public_address("http://app:81/x"), None);
        let ipv6 = origin("[::1]:3000", None, None);
        assert_eq!(ipv6.public_address("http://[::1]:3000/x").as_deref(), Some("/x"));
        let socket = origin("", None, None);
        assert_eq!(socket.public_address("http://localhost/x"), None);
    }

    #[test]
    fn a_configured_host_is_the_upstream() {
        let named = origin("10.0.0.2:3000", Some("app.internal"), None);
        for (address, expected) in [
            ("http://app.internal/x", Some("/x")),
            ("http://App.Internal:80/x", Some("/x")),
            ("https://app.internal:443/x", Some("/x")),
            ("http://app.internal:3000/x", Some("/x")),
            ("http://app.internal:4000/x", None),
            ("http://my.app.internal/x", None),
        ] {
            assert_eq!(named.public_address(address).as_deref(), expected, "{address}");
        }
        let public = origin("10.0.0.2:3000", Some("www.example.com"), None);
        assert_eq!(public.public_address("https://www.example.com/x"), None);
        // The upstream does not know that its client uses `https`.
        assert_eq!(public.public_address("http://www.example.com/x").as_deref(), Some("/x"));
    }

    #[test]
    fn a_redirect_to_https_does_not_lead_to_itself() {
        let plain = |upstream, configured, prefix| Origin {
            is_secure: false,
            target: (b"/api/x", Some(b"y")),
            ..origin(upstream, configured, prefix)
        };
        let internal = plain("10.0.0.2:80", Some("app.internal"), Some("/api"));
        for (address, expected) in [
            ("https://app.internal/x?y", None),
            ("https://app.internal/api/x?y#z", None),
            ("https://app.internal/x", Some("/api/x")),
            ("https://app.internal/x?z", Some("/api/x?z")),
            ("http://app.internal/x?y", Some("/api/x?y")),
        ] {
            assert_eq!(internal.public_address(address).as_deref(), expected, "{address}");
        }
        // The upstream has the name of the site.
        for (is_secure, address, expected) in [
            (false, "https://www.example.com/x", None),
            (false, "https://www.example.com/other", None),
            (false, "http://www.example.com/x", None),
            (true, "https://www.example.com/x", None),
            (true, "http://www.example.com/x", Some("/x")),
            (true, "//www.example.com/x", None),
        ] {
            let same = Origin {
                is_secure,
                ..plain("www.example.com:80", None, None)
            };
            assert_eq!(
                same.public_address(address).as_deref(),
                expected,
                "{is_secure} {address}"
            );
        }
        let other_port = plain("www.example.com:3000", None, None);
        assert_eq!(
            other_port.public_address("http://www.example.com:3000/x").as_deref(),
            Some("/x")
        );
    }

    #[test]
    fn the_prefix_of_an_outer_proxy_is_public() {
        let behind = Origin {
            announced_prefix: "/outer/api",
            ..origin("10.0.0.2:3000", None, Some("/api"))
        };
        for (address, expected) in [
            ("/outer/api/login", None),
            ("/outer", None),
            ("/outer?x", None),
            ("/outerwear", Some("/api/outerwear")),
            ("/api/login", None),
            ("/login", Some("/api/login")),
            ("http://10.0.0.2:3000/outer/api/login", Some("/outer/api/login")),
            ("https://www.example.com/outer/api/login", None),
        ] {
            assert_eq!(behind.public_address(address).as_deref(), expected, "{address}");
        }
        // A value of the operator that does not end with the removed prefix.
        let own = Origin {
            announced_prefix: "/shop",
            ..origin("10.0.0.2:3000", None, Some("/api"))
        };
        assert_eq!(own.public_address("/shop/x"), None);
        assert_eq!(own.public_address("/x").as_deref(), Some("/api/x"));
        let silent = Origin {
            announced_prefix: "",
            ..origin("10.0.0.2:3000", None, Some("/api"))
        };
        assert_eq!(silent.public_address("/x").as_deref(), Some("/api/x"));
    }

    #[test]
    fn a_removed_prefix_is_added_again() {
        let stripped = origin("10.0.0.2:3000", None, Some("/api"));
        for (address, expected) in [
            ("/login", Some("/api/login")),
            ("/", Some("/api/")),
            ("/apis", Some("/api/apis")),
            ("/api", None),
            ("/api/login", None),
            ("/api?x", None),
            ("login", None),
            ("http://10.0.0.2:3000/login", Some("/api/login")),
            ("http://10.0.0.2:3000/api/login", Some("/api/login")),
            ("http://10.0.0.2:3000//evil.test", Some("/api//evil.test")),
            (
                "https://www.example.com/login",
                Some("https://www.example.com/api/login"),
            ),
            ("https://www.example.com:443", Some("https://www.example.com:443/api/")),
            ("https://www.example.com?x", Some("https://www.example.com/api/?x")),
            // The upstream knows its public address.
            ("https://www.example.com/api/x", None),
            ("http://www.example.com/api", None),
            ("https://other.test/login", None),
            ("//evil.test/x", None),
        ] {
            assert_eq!(stripped.public_address(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn domains_of_the_upstream_are_recognized() {
        let named = origin("app.internal:3000", Some("example.com"), None);
        for (domain, expected) in [
            ("app.internal", true),
            ("APP.internal", true),
            ("internal", false),
            // The client's host is below this domain, so the cookie is valid.
            ("example.com", false),
            ("other.test", false),
        ] {
            assert_eq!(named.is_own_domain(domain), expected, "{domain}");
        }
    }
}
