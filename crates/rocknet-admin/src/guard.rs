//! Checks that a request was not made by a web page.
//!
//! A browser can be made to send requests to any address of this machine: by a form of another origin, or by a name
//! that is changed to a local address after the page was loaded (DNS rebinding). Such requests have the origin or the
//! host of that page.

use rocknet_control::api::{ApiError, JSON};
use rocknet_proto::request::Request;

/// Host of the dashboard in the links that the server creates. Cookies do not distinguish ports, so sites on
/// `localhost` and `127.0.0.1` get the cookie of a dashboard there. No site has this host.
pub const DASHBOARD_HOST: &str = "rocknet.localhost";

/// Hosts that clients on this machine use. Browsers resolve names below `localhost` to this machine themselves
/// (RFC 6761 §6.3), so that no DNS server can change them.
const LOCAL_HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", DASHBOARD_HOST];

/// Evidence about the page that has made a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The browser says that a page of this origin has made the request.
    Own,
    /// The client says nothing, or a user has typed the address.
    Unknown,
}

/// Rejects requests of pages of other origins, and bodies of another media type than JSON.
///
/// # Errors
///
/// Status 403 or 415.
pub fn check(request: &Request<'_>, has_body: bool) -> Result<Origin, ApiError> {
    if !is_local_host(request.authority) {
        return Err(ApiError::new(403, "the host of the request is not this machine"));
    }
    let fields = &request.fields;
    let mut own = Origin::Unknown;
    for origin in fields.by_name(b"origin") {
        if origin.strip_prefix(b"http://") != Some(request.authority) {
            return Err(other_origin());
        }
        own = Origin::Own;
    }
    for site in fields.by_name(b"sec-fetch-site") {
        match site {
            b"same-origin" => own = Origin::Own,
            b"none" => {}
            _ => return Err(other_origin()),
        }
    }
    // A form cannot send JSON, and a script of another origin only after a preflight request, which gets 405.
    if has_body && !fields.by_name(b"content-type").any(is_json) {
        return Err(ApiError::new(415, format!("the body must be {JSON}")));
    }
    Ok(own)
}

fn other_origin() -> ApiError {
    ApiError::new(403, "requests of other origins are not accepted")
}

fn is_local_host(authority: &[u8]) -> bool {
    LOCAL_HOSTS.iter().any(|host| {
        let port = authority.strip_prefix(host.as_bytes());
        port.is_some_and(|port| port.is_empty() || port.starts_with(b":"))
    })
}

/// Returns true for the media type of JSON, with or without parameters.
fn is_json(value: &[u8]) -> bool {
    let media_type = value.split(|&byte| byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(JSON.as_bytes())
}

#[cfg(test)]
mod tests {
    use rocknet_proto::Limits;
    use rocknet_proto::h1::{ServerConnection, ServerEvent};
    use rocknet_proto::request::RequestIndex;

    use super::*;

    /// Returns the status of a request with this host and these fields; 200 if it is accepted.
    fn status(host: &str, fields: &str, has_body: bool) -> u16 {
        let bytes = format!("GET /api/status HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        let mut index = RequestIndex::default();
        let (mut connection, limits) = (ServerConnection::new(), Limits::default());
        match connection.receive(&limits, bytes.as_bytes(), &mut index) {
            Ok(ServerEvent::Request { .. }) => {}
            other => panic!("{bytes}: {other:?}"),
        }
        check(&index.view(bytes.as_bytes()), has_body).map_or_else(|error| error.status, |_| 200)
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
    fn pages_of_the_own_origin_are_recognized() {
        let origin = |fields: &str| {
            let bytes = format!("GET / HTTP/1.1\r\nHost: localhost:7625\r\n{fields}\r\n");
            let mut index = RequestIndex::default();
            let received = ServerConnection::new().receive(&Limits::default(), bytes.as_bytes(), &mut index);
            assert!(matches!(received, Ok(ServerEvent::Request { .. })), "{received:?}");
            check(&index.view(bytes.as_bytes()), false).map_err(|error| error.status)
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
}
