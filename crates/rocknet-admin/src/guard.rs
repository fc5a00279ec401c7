//! Checks that a request was not made by a web page.
//!
//! A browser can be made to send requests to any address of this machine: by a form of another origin, or by a name
//! that is changed to a local address after the page was loaded (DNS rebinding). Such requests have the origin or the
//! host of that page.

use rocknet_control::api::{ApiError, JSON};
use rocknet_proto::request::Request;

/// Hosts that clients on this machine use.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Rejects requests of web pages, and bodies of another media type than JSON.
///
/// # Errors
///
/// Status 403 or 415.
pub fn check(request: &Request<'_>, has_body: bool) -> Result<(), ApiError> {
    if !is_local_host(request.authority) {
        return Err(ApiError::new(403, "the host of the request is not this machine"));
    }
    let fields = &request.fields;
    let site = fields.by_name(b"sec-fetch-site").next();
    if fields.by_name(b"origin").next().is_some() || site.is_some_and(|site| site != b"none" && site != b"same-origin")
    {
        return Err(ApiError::new(403, "requests of other origins are not accepted"));
    }
    // A form cannot send JSON, and a script of another origin only after a preflight request, which gets 405.
    if has_body && !fields.by_name(b"content-type").any(is_json) {
        return Err(ApiError::new(415, format!("the body must be {JSON}")));
    }
    Ok(())
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
        check(&index.view(bytes.as_bytes()), has_body).map_or_else(|error| error.status, |()| 200)
    }

    #[test]
    fn only_this_machine_is_accepted_as_host() {
        for host in [
            "localhost",
            "localhost:7625",
            "127.0.0.1:7625",
            "[::1]:7625",
            "127.0.0.1",
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
        ] {
            assert_eq!(status(host, "", false), 403, "{host}");
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
