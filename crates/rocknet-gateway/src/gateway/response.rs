//! From what an application answers to a response: its head read and cleared of what is the connection's, its content passed on.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_proto::cgi::{CgiHead, StatusLine};
use rocknet_proto::fields::{Field, is_framing};
use rocknet_proto::method::Method;

use super::error::BackendError;
use super::exchange::BackendExchange;
use rocknet_handler::response::{Body, Response, Stream};

/// What applications say to nginx about its buffers and caches. The name of a file to send is heeded behind this.
fn is_for_nginx(name: &[u8]) -> bool {
    let starts = name
        .get(..ACCEL.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(ACCEL));
    starts && !name.eq_ignore_ascii_case(b"x-accel-redirect")
}

const ACCEL: &[u8] = b"x-accel-";

/// The response to a request whose head has come.
pub fn build_response(
    mut backend_exchange: BackendExchange,
    method: Method,
    line: StatusLine,
) -> Result<Response, BackendError> {
    let end = backend_exchange.head();
    let received = std::mem::take(backend_exchange.received());
    let head = CgiHead::parse(&received[..end], line).map_err(BackendError::Head)?;
    let mut response = Response::new(head.status);
    response.upstream = backend_exchange.timing();
    let length = head.length;
    for (name, value) in head.fields {
        // The length is told anew where it is known, and the date is the server's.
        if !is_framing(name) && !name.eq_ignore_ascii_case(b"date") && !is_for_nginx(name) {
            response.fields.add_field(Field::new(name, value));
        }
    }
    let mut body = received;
    body.drain(..end);
    // All of it is here, and the end of the connection would say nothing new.
    let is_all = backend_exchange.ends_by_closing() && length.is_some_and(|length| body.len() as u64 >= length);
    if !backend_exchange.is_over() && !is_all {
        *backend_exchange.received() = body;
        let left = length;
        response.body = Body::Stream(Box::new(ResponseBody {
            backend_exchange,
            length,
            left,
        }));
        return Ok(response);
    }
    if backend_exchange.ends_by_closing()
        && method != Method::Head
        && let Some(length) = length
    {
        // HeadBody else tells an received that was cut from one that is whole.
        if (body.len() as u64) < length && !matches!(response.status.code(), 204 | 304) {
            return Err(BackendError::Truncated);
        }
        body.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    }
    backend_exchange.finish();
    response.body = match (method, body.is_empty()) {
        // An application says nothing to HEAD, or what it would say to GET.
        (Method::Head, true) => Body::Stream(Box::new(HeadBody(length))),
        _ => Body::Bytes(body.into()),
    };
    Ok(response)
}

/// The rest of an received: read when there is room for it.
struct ResponseBody {
    backend_exchange: BackendExchange,
    /// As the application told it: clients are told the same, so it is so long or cut.
    length: Option<u64>,
    /// Of that what is still to come.
    left: Option<u64>,
}

impl ResponseBody {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let mut received = std::mem::take(self.backend_exchange.received());
            if let Some(left) = &mut self.left {
                received.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= received.len() as u64;
            }
            if !received.is_empty() {
                return Poll::Ready(Some(Ok(received.into())));
            }
            let is_over = self.backend_exchange.is_over();
            if is_over && self.left.is_some_and(|left| left > 0) {
                return Poll::Ready(Some(Err(BackendError::Truncated.into())));
            }
            // What the application does behind the last byte is nothing to wait for.
            if is_over || self.left == Some(0) && self.backend_exchange.poll_receive(context).is_pending() {
                self.backend_exchange.finish();
                return Poll::Ready(None);
            }
            if self.left == Some(0) {
                if !self.backend_exchange.is_over() {
                    return Poll::Ready(None);
                }
                continue;
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

/// ResponseBody that is never sent, and how long it would be where that is known.
struct HeadBody(Option<u64>);

impl Stream for HeadBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(None))
    }

    fn length(&self) -> Option<u64> {
        self.0
    }
}
