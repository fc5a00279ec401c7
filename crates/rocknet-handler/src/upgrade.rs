//! Whether an answer fits a request for another protocol: nobody may take a page for a tunnel, or the other way round.

use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use crate::fixed;
use crate::response::{Body, Response};

/// Makes an answer out of one that does not fit.
pub fn enforce(request: &Request<'_>, response: &mut Response) {
    let is_tunnel = matches!(response.body, Body::Tunnel(_));
    let status = if is_tunnel && request.upgrade.is_some() {
        return;
    } else if is_tunnel || response.status == Status::SWITCHING_PROTOCOLS {
        tracing::error!("a handler has switched protocols though it was not asked to, or could not");
        Status::INTERNAL_SERVER_ERROR
    } else if request.method == Method::Connect && response.status.is_success() {
        // Success would tell the client that its tunnel stands (RFC 8441 §4). This handler does not know of any.
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

    struct Nothing;

    impl Tunnel for Nothing {
        fn poll(&mut self, _: &mut Context<'_>, _: &mut dyn Link, _: Scratch<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn an_answer_fits_its_request_or_is_replaced() {
        let tunnel = || Response::tunnel("echo", Nothing);
        let plain = |code| Response::new(Status::new(code).unwrap());
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
