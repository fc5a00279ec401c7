//! Requests of pages from other origins (CORS, Fetch standard §3.2).

use std::time::Duration;

use super::with_defaults::with_defaults;

with_defaults! {
    /// Permission for pages of other origins to read responses.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Cors {
        /// Origins that are permitted.
        pub origins: Origins = Origins::All,
        /// Permits requests with cookies, client certificates and passwords.
        pub credentials: bool = false,
        /// Methods that are permitted besides those that need no permission; empty: every method.
        pub methods: Vec<String> = Vec::new(),
        /// Names of header fields that requests may have; empty: every field.
        pub headers: Vec<String> = Vec::new(),
        /// Names of header fields of responses that scripts can read besides those that are always readable.
        pub expose: Vec<String> = Cors::EXPOSED.iter().map(|name| (*name).to_owned()).collect(),
        /// Time for which browsers remember the response to a preflight request.
        pub max_age: Duration = Duration::from_secs(600),
    }
}

impl Cors {
    /// Fields that scripts can read by default. None of them reveals more than the body does.
    const EXPOSED: [&str; 8] = [
        "Content-Length",
        "Content-Range",
        "Date",
        "ETag",
        "Link",
        "Location",
        "Retry-After",
        "X-Request-Id",
    ];

    /// Returns true if pages of this origin may read responses.
    pub fn permits(&self, origin: &str) -> bool {
        match &self.origins {
            Origins::All => true,
            Origins::Listed(listed) => listed.iter().any(|listed| listed.matches(origin)),
        }
    }
}

/// Set of origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Every origin.
    All,
    /// Origins that match one of the patterns.
    Listed(Vec<OriginPattern>),
}

/// Origin (RFC 6454), or all subdomains of a name, such as `https://*.example.com`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPattern {
    /// The pattern as browsers write origins: in lower case, and without the default port.
    text: String,
}

impl OriginPattern {
    /// Parses a pattern. Upper-case letters and the default port are accepted but not stored, because browsers do not
    /// send them.
    ///
    /// # Errors
    ///
    /// Returns the reason if the text is not an origin.
    pub fn parse(text: &str) -> Result<OriginPattern, &'static str> {
        let lower = text.to_ascii_lowercase();
        let (scheme, host) = lower.split_once("://").ok_or("has no scheme")?;
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.bytes().all(is_scheme) {
            return Err("has an invalid scheme");
        }
        if host.contains(['/', '?', '#']) {
            return Err("has a path");
        }
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let name = host.strip_prefix("*.").unwrap_or(host);
        if name.is_empty() || !name.bytes().all(is_host) {
            return Err("has an invalid host");
        }
        // A `]` at the end belongs to an IPv6 address without a port.
        if let Some((_, port)) = name.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'))
            && port.parse::<u16>().map_or(true, |port| port == 0)
        {
            return Err("has an invalid port");
        }
        let default_port = match scheme {
            "https" | "wss" => ":443",
            "http" | "ws" => ":80",
            _ => "",
        };
        let host = match default_port {
            "" => host,
            port => host.strip_suffix(port).unwrap_or(host),
        };
        Ok(OriginPattern {
            text: format!("{scheme}://{host}"),
        })
    }

    /// Returns the pattern as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true for an origin of the pattern. `origin`: value of the field `Origin`.
    fn matches(&self, origin: &str) -> bool {
        let Some((scheme, name)) = self.text.split_once("*.") else {
            return origin == self.text;
        };
        let of_host = origin.strip_prefix(scheme).and_then(|host| host.strip_suffix(name));
        // At least one label and its dot precede the name.
        of_host
            .and_then(|label| label.strip_suffix('.'))
            .is_some_and(|labels| !labels.is_empty() && !labels.contains(['/', '@', ':']))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_the_origins_that_browsers_send() {
        // A pattern, an origin, and whether it is permitted.
        let rows = [
            ("https://app.test", "https://app.test", true),
            ("HTTPS://App.Test:443", "https://app.test", true),
            ("http://app.test:80", "http://app.test", true),
            ("https://app.test", "http://app.test", false),
            ("https://app.test", "https://app.test:8443", false),
            ("https://app.test", "https://app.test.evil.test", false),
            ("http://localhost:5173", "http://localhost:5173", true),
            ("http://[::1]:3000", "http://[::1]:3000", true),
            ("https://*.app.test", "https://a.app.test", true),
            ("https://*.app.test", "https://a.b.app.test", true),
            ("https://*.app.test", "https://app.test", false),
            ("https://*.app.test", "https://.app.test", false),
            ("https://*.app.test", "https://evilapp.test", false),
            ("https://*.app.test", "https://evil.test/.app.test", false),
            ("https://*.app.test:8443", "https://a.app.test:8443", true),
            ("https://*.app.test:8443", "https://a.app.test", false),
            ("https://app.test", "null", false),
            ("capacitor://localhost", "capacitor://localhost", true),
        ];
        for (pattern, origin, expected) in rows {
            let parsed = OriginPattern::parse(pattern).unwrap();
            assert_eq!(parsed.matches(origin), expected, "{pattern}: {origin}");
        }
    }

    #[test]
    fn texts_that_are_no_origins_are_refused() {
        for text in [
            "",
            "*",
            "null",
            "app.test",
            "https://",
            "https://app.test/",
            "https://app.test/path",
            "https://a b",
            "https://*",
            "https://a.*.test",
            "https://app.test:0",
            "https://app.test:99999",
            "1://a",
        ] {
            assert!(OriginPattern::parse(text).is_err(), "{text}");
        }
    }
}
