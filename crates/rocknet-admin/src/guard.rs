//! Checks that a request was not made by a web page of another origin.
//!
//! A browser can be made to send requests to any address of this machine: by a form of another origin, or by a name
//! that is changed to a local address after the page was loaded (DNS rebinding). Such requests have the origin or the
//! host of that page.

use std::net::IpAddr;

use rocknet_control::api::{ApiError, JSON};
use rocknet_proto::Method;
use rocknet_proto::request::Request;
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};

/// Host of the dashboard in the links that the server creates. Cookies do not distinguish ports, so sites on
/// `localhost` and `127.0.0.1` get the cookie of a dashboard there. No site has this host.
pub const DASHBOARD_HOST: &str = "rocknet.localhost";

/// Hosts that clients on this machine use. Browsers resolve names below `localhost` to this machine themselves
/// (RFC 6761 §6.3), so that no DNS server can change them.
const LOCAL_HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", DASHBOARD_HOST];

/// Origin of a request, according to its fields `Origin` and `Sec-Fetch-Site`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A page of this server's dashboard has sent the request.
    Own,
    /// The client sent neither field, a user typed the address (`Sec-Fetch-Site: none`), or the user followed a link on
    /// another site, which only [`check_page`] accepts.
    Unknown,
}

/// Hosts by which clients may address the server, and the scheme of its URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    /// Names in lower case, in addition to the names of this machine (`LOCAL_HOSTS`).
    pub names: Vec<String>,
    /// Accepts every IP address, for a server that other machines can reach. DNS rebinding works only with a name as
    /// host.
    pub any_address: bool,
    /// True if the server uses TLS.
    pub is_secure: bool,
}

impl AllowedHosts {
    /// Returns true if the host of `authority` is allowed. The port is ignored.
    fn contain(&self, authority: &[u8]) -> bool {
        let mut buffer = [0; HOST_BUFFER];
        let Some(parsed) = Authority::parse(authority) else {
            return false;
        };
        let host = parsed.lower_host(&mut buffer);
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        LOCAL_HOSTS.contains(&host) || self.names.iter().any(|name| name == host) || self.any_address && address.is_ok()
    }
}

/// Body of a request, with the media types that the guard accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentContent {
    /// No body.
    Empty,
    /// A body that must be JSON.
    Json,
    /// A body that must be JSON, or the fields of a form that a page of the dashboard has sent.
    Form,
}

impl SentContent {
    /// Returns the kind of a request body. `takes_form`: true if the requested page accepts forms.
    pub fn new(has_body: bool, takes_form: bool) -> SentContent {
        match (has_body, takes_form) {
            (false, _) => SentContent::Empty,
            (true, false) => SentContent::Json,
            (true, true) => SentContent::Form,
        }
    }
}

/// Rejects a request if its host is not allowed, a page of another origin sent it, or its body has an unexpected
/// media type. Returns the origin of the request.
///
/// # Errors
///
/// Fails with status 403 because of the host or the page, or 415 because of the media type.
pub fn check(request: &Request<'_>, content: SentContent, hosts: &AllowedHosts) -> Result<Origin, ApiError> {
    // `false`: no other site may link to the address.
    check_site(request, content, hosts, false)
}

/// Checks a request for a page like [`check`], but accepts a link on another site. Opening a page changes nothing,
/// and the browser shows the page only to the user.
///
/// # Errors
///
/// Fails with status 403 or 415.
pub fn check_page(request: &Request<'_>, content: SentContent, hosts: &AllowedHosts) -> Result<Origin, ApiError> {
    check_site(
        request,
        content,
        hosts,
        content == SentContent::Empty && is_link(request),
    )
}

/// Returns true for a navigation of a whole browser tab that changes nothing. Frames, scripts and images have another
/// destination, and forms that change something have another method.
fn is_link(request: &Request<'_>) -> bool {
    let is_only = |name: &[u8], wanted: &[u8]| {
        let mut values = request.fields.by_name(name);
        values.next() == Some(wanted) && values.next().is_none()
    };
    matches!(request.method, Method::Get | Method::Head)
        && is_only(b"sec-fetch-mode", b"navigate")
        && is_only(b"sec-fetch-dest", b"document")
}

/// Returns true if the browser reports that a page of another site, or of another origin of this site, caused this
/// request.
pub fn is_from_other_site(request: &Request<'_>) -> bool {
    let mut sites = request.fields.by_name(b"sec-fetch-site");
    sites.any(|site| site == b"cross-site" || site == b"same-site")
}

/// Checks a request. `takes_links`: true if a page of another site may link to the address.
fn check_site(
    request: &Request<'_>,
    content: SentContent,
    hosts: &AllowedHosts,
    takes_links: bool,
) -> Result<Origin, ApiError> {
    if !hosts.contain(request.authority) {
        let message = "the host of the request is not a name of this server; to permit it, add it to `hosts` below \
                       [admin] and start the server again";
        return Err(ApiError::new(403, message));
    }
    let scheme: &[u8] = if hosts.is_secure { b"https://" } else { b"http://" };
    let fields = &request.fields;
    let mut found = Origin::Unknown;
    for origin in fields.by_name(b"origin") {
        if origin.strip_prefix(scheme) != Some(request.authority) {
            return Err(other_origin());
        }
        found = Origin::Own;
    }
    for site in fields.by_name(b"sec-fetch-site") {
        match site {
            b"same-origin" => found = Origin::Own,
            b"none" => {}
            b"cross-site" | b"same-site" if takes_links => {}
            _ => return Err(other_origin()),
        }
    }
    let has_type = |media_type| fields.by_name(b"content-type").any(|value| is_type(value, media_type));
    match content {
        SentContent::Empty => Ok(found),
        // A form cannot send JSON. A script of another origin can send JSON only after a preflight request, which is
        // rejected.
        _ if has_type(JSON) => Ok(found),
        // Every browser sends one of the two fields with a form. A form without them may come from any page.
        SentContent::Form if has_type(FORM) && found == Origin::Own => Ok(found),
        SentContent::Form if has_type(FORM) => Err(other_origin()),
        SentContent::Json | SentContent::Form => Err(ApiError::new(415, format!("the body must be {JSON}"))),
    }
}

/// Media type of a form without files.
const FORM: &str = "application/x-www-form-urlencoded";

fn other_origin() -> ApiError {
    ApiError::new(403, "requests of other origins are not accepted")
}

/// Returns true if the value of Content-Type is a media type, with or without parameters.
fn is_type(value: &[u8], media_type: &str) -> bool {
    let found = value.split(|&byte| byte == b';').next().unwrap_or_default();
    found.trim_ascii().eq_ignore_ascii_case(media_type.as_bytes())
}

#[cfg(test)]
mod tests {
    use rocknet_proto::Limits;
    use rocknet_proto::h1::{ServerConnection, ServerEvent};
    use rocknet_proto::request::RequestIndex;

    use super::*;

    /// Returns the status of a request with this host and these fields; 200 if the request is accepted. `has_body`:
    /// true if the request has a body, which must be JSON.
    fn status(host: &str, fields: &str, has_body: bool) -> u16 {
        let bytes = format!("GET /api/status HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        let mut index = RequestIndex::default();
        let (mut connection, limits) = (ServerConnection::new(), Limits::default());
        match connection.receive(&limits, bytes.as_bytes(), &mut index) {
            Ok(ServerEvent::Request { .. }) => {}
            other => panic!("{bytes}: {other:?}"),
        }
        let content = SentContent::new(has_body, false);
        check(&index.view(bytes.as_bytes()), content, &AllowedHosts::default())
            .map_or_else(|error| error.status, |_| 200)
    }

    #[test]
    fn only_this_machine_is_accepted_as_host() {
        for host in [
            "localhost",
            "localhost:7625",
            "127.0.0.1:7625",
            "[::1]:7625",
            "127.0.0.1",
            "rocknet.localhost:7625",
        ] {
            assert_eq!(status(host, "", false), 200, "{host}");
        }
        for host in [
            "a.test",
            "a.test:7625",
            "localhost.a.test",
            "127.0.0.1.a.test",
            "127.0.0.11",
            "localhosts",
            "a.localhost",
            "a.rocknet.localhost",
        ] {
            assert_eq!(status(host, "", false), 403, "{host}");
        }
    }

    #[test]
    fn a_server_for_other_machines_has_further_hosts() {
        let hosts = AllowedHosts {
            names: vec!["admin.example.com".into()],
            any_address: true,
            is_secure: true,
        };
        for (host, expected) in [
            ("admin.example.com:7625", true),
            ("Admin.Example.com", true),
            ("10.0.0.1:7625", true),
            ("[2001:db8::1]:7625", true),
            ("localhost", true),
            ("example.com", false),
            ("10.0.0.1.example.com", false),
            ("", false),
        ] {
            assert_eq!(hosts.contain(host.as_bytes()), expected, "{host}");
        }
        assert!(!AllowedHosts::default().contain(b"10.0.0.1"));
    }

    #[test]
    fn pages_of_the_own_origin_are_recognized() {
        let origin = |fields: &str| {
            let bytes = format!("GET / HTTP/1.1\r\nHost: localhost:7625\r\n{fields}\r\n");
            let mut index = RequestIndex::default();
            let received = ServerConnection::new().receive(&Limits::default(), bytes.as_bytes(), &mut index);
            assert!(matches!(received, Ok(ServerEvent::Request { .. })), "{received:?}");
            let (view, hosts) = (index.view(bytes.as_bytes()), AllowedHosts::default());
            check(&view, SentContent::Empty, &hosts).map_err(|error| error.status)
        };
        for (fields, expected) in [
            ("", Ok(Origin::Unknown)),
            ("Sec-Fetch-Site: none\r\n", Ok(Origin::Unknown)),
            ("Sec-Fetch-Site: same-origin\r\n", Ok(Origin::Own)),
            ("Origin: http://localhost:7625\r\n", Ok(Origin::Own)),
            ("Origin: http://localhost:7626\r\n", Err(403)),
            ("Origin: http://localhost\r\n", Err(403)),
            ("Origin: https://localhost:7625\r\n", Err(403)),
            (
                "Origin: http://localhost:7625\r\nSec-Fetch-Site: same-site\r\n",
                Err(403),
            ),
            ("Origin: http://localhost:7625\r\nOrigin: http://a.test\r\n", Err(403)),
        ] {
            assert_eq!(origin(fields), expected, "{fields}");
        }
    }

    #[test]
    fn requests_of_web_pages_are_rejected() {
        for fields in [
            "Origin: http://a.test\r\n",
            "Origin: null\r\n",
            "Sec-Fetch-Site: cross-site\r\n",
            "Sec-Fetch-Site: same-site\r\n",
        ] {
            assert_eq!(status("localhost", fields, false), 403, "{fields}");
        }
        assert_eq!(status("localhost", "Sec-Fetch-Site: none\r\n", false), 200);
    }

    #[test]
    fn bodies_are_json() {
        for fields in [
            "",
            "Content-Type: text/plain\r\n",
            "Content-Type: application/x-www-form-urlencoded\r\n",
        ] {
            assert_eq!(status("localhost", fields, true), 415, "{fields}");
            assert_eq!(status("localhost", fields, false), 200, "{fields}");
        }
        for fields in [
            "Content-Type: application/json\r\n",
            "Content-Type: Application/JSON; charset=utf-8\r\n",
        ] {
            assert_eq!(status("localhost", fields, true), 200, "{fields}");
        }
    }

    #[test]
    fn forms_need_the_own_origin() {
        let status = |fields: &str, takes_form: bool| {
            let bytes = format!("POST / HTTP/1.1\r\nHost: localhost:7625\r\n{fields}\r\n");
            let mut index = RequestIndex::default();
            let received = ServerConnection::new().receive(&Limits::default(), bytes.as_bytes(), &mut index);
            assert!(matches!(received, Ok(ServerEvent::Request { .. })), "{received:?}");
            let content = SentContent::new(true, takes_form);
            let checked = check(&index.view(bytes.as_bytes()), content, &AllowedHosts::default());
            checked.map_or_else(|error| error.status, |_| 200)
        };
        let form = "Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n";
        let own = "Origin: http://localhost:7625\r\n";
        for (fields, takes_form, expected) in [
            (format!("{form}{own}"), true, 200),
            (format!("{form}Sec-Fetch-Site: same-origin\r\n"), true, 200),
            (form.to_owned(), true, 403),
            (format!("{form}Sec-Fetch-Site: none\r\n"), true, 403),
            (format!("{form}Origin: http://localhost:1\r\n"), true, 403),
            (format!("{form}{own}"), false, 415),
            (format!("Content-Type: text/plain\r\n{own}"), true, 415),
            (own.to_owned(), true, 415),
        ] {
            assert_eq!(status(&fields, takes_form), expected, "{fields}");
        }
    }
}
