//! Checks that a response fits a request to switch protocols, so that no client mistakes a page for a tunnel or a
//! tunnel for a page.

use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use crate::fixed;
use crate::response::{Body, Response};

/// Replaces `response` with an error page if it does not fit `request`.
///
/// A tunnel in response to a request without an upgrade becomes 500, and so does status 101 without a tunnel. Status
/// 2xx without a tunnel in response to CONNECT becomes 501.
pub fn enforce(request: &Request<'_>, response: &mut Response) {
    let is_tunnel = matches!(response.body, Body::Tunnel(_));
    let status = if is_tunnel && request.upgrade.is_some() {
        return;
    } else if is_tunnel || response.status == Status::SWITCHING_PROTOCOLS {
        tracing::error!(
            "a handler switched protocols without a tunnel, or for a request without an upgrade; the client gets 500"
        );
        Status::INTERNAL_SERVER_ERROR
    } else if request.method == Method::Connect && response.status.is_success() {
        // A 2xx status tells the client that its tunnel is open (RFC 8441 §4), but this handler has opened none.
        Status::NOT_IMPLEMENTED
    } else {
        return;
    };
    *response = fixed::error(status);
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::task::{Context, Poll};

    use rocknet_io::link::Link;
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;
    use crate::tunnel::{Scratch, Tunnel};

    struct EmptyTunnel;

    impl Tunnel for EmptyTunnel {
        fn poll(&mut self, _: &mut Context<'_>, _: &mut dyn Link, _: Scratch<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_response_that_does_not_fit_the_upgrade_is_replaced() {
        let tunnel = || Response::tunnel("echo", EmptyTunnel);
        let plain = |code| Response::new(Status::new(code).unwrap());
        // Method, whether the request has an upgrade, response of the handler, and status that is sent.
        for (method, upgrade, response, expected) in [
            (Method::Get, true, tunnel(), 101),
            (Method::Get, true, plain(200), 200),
            (Method::Get, false, tunnel(), 500),
            (Method::Get, false, plain(101), 500),
            (Method::Get, true, plain(101), 500),
            (Method::Connect, true, tunnel(), 101),
            (Method::Connect, true, plain(200), 501),
            (Method::Connect, true, plain(204), 501),
            (Method::Connect, true, plain(403), 403),
        ] {
            let (owned, mut response) = (OwnedRequest::synthetic_get(Version::Http2, b"h", b"/", &[]), response);
            let request = Request {
                method,
                upgrade: upgrade.then_some(&b"echo"[..]),
                ..owned.view()
            };
            enforce(&request, &mut response);
            assert_eq!(response.status.code(), expected, "{method:?} {upgrade}");
            assert_eq!(matches!(response.body, Body::Tunnel(_)), expected == 101);
        }
    }
}
