//! Website that a line of a log is about: the server names it in messages, and requests have a host.

use std::collections::BTreeMap;

use rocknet_control::SiteSummary;
use rocknet_control::logs::{LogEvent, LogKind};

use super::request_line::RequestLine;

/// Origin of a log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOrigin {
    /// Website that a message names.
    Site(String),
    /// Host of a request, in lower case.
    Host(String),
    /// A message about the server, or a request in a format without the host.
    Unknown,
}

impl LogOrigin {
    /// Reads the origin of a line. `request`: the same line parsed, if the line belongs to the access log in JSON.
    pub fn of(event: &LogEvent, request: Option<&RequestLine>) -> LogOrigin {
        match event.kind {
            LogKind::Error => site_field(&event.line).map_or(LogOrigin::Unknown, LogOrigin::Site),
            LogKind::Access => match request {
                Some(request) if !request.host.is_empty() => LogOrigin::Host(request.host.clone()),
                _ => LogOrigin::Unknown,
            },
        }
    }
}

/// Returns the value of the field `site` of a message.
fn site_field(line: &str) -> Option<String> {
    let (_, value) = line.split_once(" site=")?;
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split(' ').next()?,
    };
    Some(value.to_owned())
}

/// Websites by the hosts that requests to them have.
#[derive(Debug, Default)]
pub struct HostIndex {
    exact: BTreeMap<String, String>,
    /// Parent domain of a wildcard with its port, and the website.
    wildcards: Vec<(String, String)>,
    /// Websites without a name, by port: they get the requests that no other website takes.
    ports: BTreeMap<String, String>,
}

impl HostIndex {
    /// Creates the index of the enabled websites.
    pub fn new<'s>(sites: impl Iterator<Item = &'s SiteSummary>) -> HostIndex {
        let mut index = HostIndex::default();
        for site in sites {
            let is_unnamed =
                site.name.starts_with(':') || site.name == "default" || site.name.parse::<std::net::IpAddr>().is_ok();
            for authority in site.urls.iter().filter_map(|url| authority(url)) {
                let name = site.name.clone();
                if is_unnamed {
                    index.ports.insert(port(&authority).to_owned(), name.clone());
                }
                match authority.strip_prefix("*.") {
                    Some(parent) => index.wildcards.push((format!(".{parent}"), name)),
                    None => drop(index.exact.insert(authority, name)),
                }
            }
        }
        index
    }

    /// Returns the website of a line; `None` if it is not known.
    pub fn site_of<'s>(&'s self, origin: &'s LogOrigin) -> Option<&'s str> {
        let host = match origin {
            LogOrigin::Site(name) => return Some(name),
            LogOrigin::Host(host) => host,
            LogOrigin::Unknown => return None,
        };
        let host = plain(host);
        let exact = self.exact.get(host);
        let wildcard = || {
            let mut found = self
                .wildcards
                .iter()
                .filter(|(parent, _)| host.ends_with(parent.as_str()));
            found.next().map(|(_, name)| name)
        };
        let unnamed = || self.ports.get(port(host));
        exact.or_else(wildcard).or_else(unnamed).map(String::as_str)
    }
}

/// Returns host and port of a URL in lower case, without the default port.
fn authority(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?.to_lowercase();
    Some(plain(&authority).to_owned())
}

/// Returns a host without a default port, which some clients send and others omit.
fn plain(host: &str) -> &str {
    let without = |port| host.strip_suffix(port).filter(|host| !host.is_empty());
    without(":80").or_else(|| without(":443")).unwrap_or(host)
}

/// Returns the port of a host; empty for a default port.
fn port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((_, port)) if !port.contains(']') => port,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(kind: LogKind, line: &str) -> LogOrigin {
        let event = LogEvent {
            kind,
            line: line.to_owned(),
            lost: 0,
        };
        LogOrigin::of(&event, RequestLine::parse(line).as_ref())
    }

    #[test]
    fn lines_name_their_website() {
        for (kind, line, expected) in [
            (
                LogKind::Error,
                "t WARN x site=a.test path=/",
                LogOrigin::Site("a.test".into()),
            ),
            (
                LogKind::Error,
                "t WARN x site=\":8080 b\" path=/",
                LogOrigin::Site(":8080 b".into()),
            ),
            (LogKind::Error, "t INFO ready", LogOrigin::Unknown),
            (
                LogKind::Access,
                r#"{"host":"A.test:81","status":200}"#,
                LogOrigin::Host("a.test:81".into()),
            ),
            (LogKind::Access, r#"{"host":"","status":400}"#, LogOrigin::Unknown),
            (LogKind::Access, "127.0.0.1 - - [x] \"GET /\" 200 -", LogOrigin::Unknown),
        ] {
            assert_eq!(origin(kind, line), expected, "{line}");
        }
    }

    #[test]
    fn hosts_lead_to_websites() {
        let site = |name: &str, urls: &[&str]| SiteSummary {
            name: name.to_owned(),
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            ..SiteSummary::default()
        };
        let sites = [
            site("a.test", &["http://a.test/", "https://a.test:8443/"]),
            site("*.b.test", &["https://*.b.test/"]),
            site(":8080", &["http://localhost:8080/"]),
            site("s", &["unix:/run/s"]),
        ];
        let index = HostIndex::new(sites.iter());
        for (host, expected) in [
            ("a.test", Some("a.test")),
            ("a.test:80", Some("a.test")),
            ("a.test:8443", Some("a.test")),
            ("a.test:8444", None),
            ("x.b.test", Some("*.b.test")),
            ("b.test", None),
            ("127.0.0.1:8080", Some(":8080")),
            ("[::1]:8080", Some(":8080")),
            ("[::1]", None),
        ] {
            let origin = LogOrigin::Host(host.to_owned());
            assert_eq!(index.site_of(&origin), expected, "{host}");
        }
        assert_eq!(index.site_of(&LogOrigin::Site("z".into())), Some("z"));
        assert_eq!(index.site_of(&LogOrigin::Unknown), None);
    }
}
