//! A URL as typed on the command line.

use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
pub struct Url<'a> {
    /// The URL as typed.
    pub written: &'a str,
    /// Host in lower case; empty if the URL has no host.
    pub host: String,
    /// True for `https`, or for port 443 if no scheme is typed.
    pub is_https: bool,
    /// Port, by default the port of the scheme; `None` if the URL has neither port nor scheme.
    pub port: Option<u16>,
    pub path: &'a str,
    pub query: Option<&'a str>,
}

impl<'a> Url<'a> {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// The error is a message for the user about the invalid part.
    pub fn parse(written: &'a str) -> Result<Url<'a>, &'static str> {
        let (scheme_port, rest) = match written.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Some(80), rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Some(443), rest),
            Some(_) => return Err("only http:// and https:// are served"),
            None => (None, written),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        if authority.is_empty() {
            return match scheme_port {
                Some(_) => Err("the host is missing"),
                None if written.starts_with('/') => Ok(Url {
                    written,
                    host: String::new(),
                    is_https: false,
                    port: None,
                    path,
                    query,
                }),
                None => Err("write a URL such as http://example.com/path"),
            };
        }
        // `rocknet` prints wildcard names as patterns, so a pattern is accepted too. It is replaced by a name that it
        // matches.
        let named = authority.strip_prefix("*.").unwrap_or(authority);
        let parsed = Authority::parse(named.as_bytes()).ok_or("the host is not valid")?;
        let mut buffer = [0; HOST_BUFFER];
        let host = parsed.lower_host(&mut buffer);
        let host = if named.len() < authority.len() {
            format!("any.{host}")
        } else {
            host.to_owned()
        };
        Ok(Url {
            written,
            host,
            is_https: scheme_port.or(parsed.port) == Some(443),
            port: parsed.port.or(scheme_port),
            path,
            query,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_as_people_type_them() {
        // `expected`: host, port, path and query; `None` for a text that is not a URL.
        fn check(written: &str, expected: Option<(&str, Option<u16>, &str, Option<&str>)>) {
            let got = Url::parse(written).ok();
            let got = got
                .as_ref()
                .map(|url| (url.host.as_str(), url.port, url.path, url.query));
            assert_eq!(got, expected, "{written:?}");
        }
        check("http://Example.com", Some(("example.com", Some(80), "/", None)));
        check(
            "https://example.com/a?b?c#d",
            Some(("example.com", Some(443), "/a", Some("b?c"))),
        );
        check("HTTP://[::1]:8080/x", Some(("[::1]", Some(8080), "/x", None)));
        check("example.com:81?x", Some(("example.com", Some(81), "/", Some("x"))));
        check(
            "http://*.example.com/x",
            Some(("any.example.com", Some(80), "/x", None)),
        );
        let is_https = |written| Url::parse(written).unwrap().is_https;
        assert!(is_https("https://a:8443/") && is_https("https://a") && is_https("a:443/x"));
        assert!(!is_https("http://a:443/") && !is_https("a:8443") && !is_https("/x"));
        check("/a/b?c", Some(("", None, "/a/b", Some("c"))));
        for bad in [
            "",
            "ftp://a/",
            "http://",
            "http:///x",
            "?x",
            "http://a b/",
            "http://a:99999/",
            "#",
        ] {
            check(bad, None);
        }
    }
}
