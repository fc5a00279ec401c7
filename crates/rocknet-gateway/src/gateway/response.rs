//! Turns the output of an application into a response: parses its head, removes connection fields and streams the body.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_proto::cgi::{CgiHead, StatusLine};
use rocknet_proto::fields::{Field, is_framing};
use rocknet_proto::method::Method;
use rocknet_proto::semantics::date;

use super::error::BackendError;
use super::exchange::BackendExchange;
use rocknet_handler::response::{Body, Response, Stream};

/// Returns whether the field controls the buffers and caches of nginx. `X-Accel-Redirect` is excluded, because the
/// server itself evaluates that field later.
fn is_for_nginx(name: &[u8]) -> bool {
    let has_prefix = name
        .get(..ACCEL.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(ACCEL));
    has_prefix && !name.eq_ignore_ascii_case(b"x-accel-redirect")
}

const ACCEL: &[u8] = b"x-accel-";

/// Builds the response once its head has been received. `line`: policy for a status line at the beginning of the head.
///
/// # Errors
///
/// Returns an error if the head cannot be parsed. Returns [`BackendError::Truncated`] if a response that ends with its
/// connection, as over CGI, SCGI and uwsgi, has ended before the last byte of its `Content-Length`.
pub fn build_response(
    mut backend_exchange: BackendExchange,
    method: Method,
    line: StatusLine,
) -> Result<Response, BackendError> {
    let end = backend_exchange.head_length();
    let received = std::mem::take(backend_exchange.received());
    let head = CgiHead::parse(&received[..end], line).map_err(BackendError::Head)?;
    let mut response = Response::new(head.status);
    response.upstream = backend_exchange.timing(head.status);
    let length = head.length;
    for (name, value) in head.fields {
        // The server sets `Content-Length` from the parsed length, and `Date` itself.
        if name.eq_ignore_ascii_case(b"date") {
            response.date = date::parse(value);
        } else if !is_framing(name) && !is_for_nginx(name) {
            response.fields.add_field(Field::new(name, value));
        }
    }
    let mut body = received;
    body.drain(..end);
    // With a `Content-Length`, the body can be complete before the connection ends.
    let is_complete = backend_exchange.ends_by_closing() && length.is_some_and(|length| body.len() as u64 >= length);
    if !backend_exchange.is_over() && !is_complete {
        *backend_exchange.received() = body;
        let remaining = length;
        // The exchange then waits for the rest of the `Content-Length`, even after the end of a CGI program, because a
        // process that the program has started may send it. A response to HEAD may have no body to wait for.
        if length.is_some() && method != Method::Head {
            backend_exchange.expect_more();
        }
        response.body = Body::Stream(Box::new(ResponseBody {
            backend_exchange,
            length,
            remaining,
        }));
        return Ok(response);
    }
    if backend_exchange.ends_by_closing()
        && method != Method::Head
        && let Some(length) = length
    {
        // Only the length distinguishes a truncated response from a complete one.
        if (body.len() as u64) < length && !matches!(response.status.code(), 204 | 304) {
            return Err(BackendError::Truncated);
        }
        body.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    }
    backend_exchange.finish();
    response.body = match (method, body.is_empty()) {
        // In response to HEAD, an application sends either no body or the body of GET.
        (Method::Head, true) => Body::Stream(Box::new(HeadBody(length))),
        _ => Body::Bytes(body.into()),
    };
    Ok(response)
}

/// The part of a response body that was not received with its head. It is read only as the client accepts data.
struct ResponseBody {
    backend_exchange: BackendExchange,
    /// `Content-Length` of the application in bytes, if it sent the field. The client gets the same value, so a shorter
    /// body is an error.
    length: Option<u64>,
    /// Bytes of `length` still to be received; `None` if the length is unknown.
    remaining: Option<u64>,
}

impl ResponseBody {
    /// Receives once after the last byte of the body. Returns true if this fails, for example because a program exceeds
    /// the maximum length of its output.
    fn has_failed(&mut self, context: &mut Context<'_>) -> bool {
        matches!(self.backend_exchange.poll_receive(context), Poll::Ready(Err(_)))
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let mut received = std::mem::take(self.backend_exchange.received());
            if let Some(remaining) = &mut self.remaining {
                received.truncate(usize::try_from(*remaining).unwrap_or(usize::MAX));
                *remaining -= received.len() as u64;
            }
            if !received.is_empty() {
                return Poll::Ready(Some(Ok(received.into())));
            }
            let is_over = self.backend_exchange.is_over();
            if is_over && self.remaining.is_some_and(|remaining| remaining > 0) {
                return Poll::Ready(Some(Err(BackendError::Truncated.into())));
            }
            // The application may run on after the last byte of the body; the response does not wait for its end. The
            // connection is reused only if that end has been received by now.
            if is_over || self.remaining == Some(0) && !self.has_failed(context) {
                self.backend_exchange.finish();
                return Poll::Ready(None);
            }
            if self.remaining == Some(0) {
                // `has_failed` has returned true. The body is complete, so the response ends without an error. The
                // connection is not passed to `finish`: when it is dropped, it is closed, and a program is killed.
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(self.backend_exchange.poll_receive(context)) {
                return Poll::Ready(Some(Err(error.into())));
            }
        }
    }
}

impl Stream for ResponseBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(poll_fn(|context| self.poll_next(context)))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

/// Body of a response to HEAD: never sent. It contains the value of `Content-Length` in bytes, if there is one.
struct HeadBody(Option<u64>);

impl Stream for HeadBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(None))
    }

    fn length(&self) -> Option<u64> {
        self.0
    }
}
