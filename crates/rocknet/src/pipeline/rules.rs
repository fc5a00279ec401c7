//! Responses of rules with the action `respond`.

use bytes::Bytes;
use rocknet_proto::status::Status;

use crate::fixed;
use crate::response::{Body, Response};

/// Status by which nginx logs requests without a response. No client receives it.
const NO_RESPONSE: u16 = 444;

/// Returns the response of a rule with a status and an optional text. Without a text, a status of an error gets the
/// error page, and any other status an empty body. 500 replaces a number that is not a valid status. With 444 the
/// client gets no response.
pub(super) fn response(status: u16, body: Option<Box<str>>) -> Response {
    let closes = status == NO_RESPONSE;
    let status = Status::new(status).unwrap_or(Status::INTERNAL_SERVER_ERROR);
    if closes {
        return Response::new(status).body(Body::Abort);
    }
    match body {
        Some(text) => Response::new(status)
            .with("Content-Type", "text/plain; charset=utf-8")
            .with("X-Content-Type-Options", "nosniff")
            .body(Bytes::from(text.into_string())),
        None if status.is_error() => fixed::error(status),
        None => Response::new(status),
    }
}
