//! Builds the response to the client from an HTTP/1.1 exchange whose response head has arrived.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use rocknet_io::wheel::Deadline;
use rocknet_proto::method::Method;

use crate::buffering::BufferedBody;
use crate::error::ProxyError;
use crate::h1_exchange::H1Exchange;
use crate::head::{OmittedBody, ResponseHead};
use crate::upgrade::UpgradedTunnel;
use rocknet_handler::response::{Body, ErrorPage, FieldList, Response, Stream};

/// Returns the response of an exchange. `buffer_size`: maximum number of body bytes received ahead of the client; 0
/// disables buffering.
pub fn from_exchange(mut exchange: H1Exchange, method: Method, buffer_size: usize) -> Result<Response, ProxyError> {
    let ResponseHead {
        status,
        fields,
        length,
        date,
    } = exchange.take_head().ok_or(ProxyError::NoResponse)?;
    if let Some(protocol) = exchange.take_upgraded_protocol() {
        let protocol = String::from_utf8_lossy(&protocol).into_owned();
        let tunnel = UpgradedTunnel::new(exchange).ok_or(ProxyError::NoResponse)?;
        return Ok(Response {
            fields,
            ..Response::tunnel(protocol, tunnel)
        });
    }
    let body = if method == Method::Head {
        exchange.finish();
        Body::Stream(Box::new(OmittedBody(length)))
    } else if exchange.is_complete() && !exchange.has_trailers() {
        let body_bytes = exchange.take_pending();
        exchange.finish();
        if body_bytes.is_empty() {
            Body::Empty
        } else {
            Body::Bytes(body_bytes.into())
        }
    } else if buffer_size > 0 {
        let deadline = exchange.deadline();
        Body::Stream(Box::new(BufferedBody::new(exchange, deadline, length, buffer_size)))
    } else {
        Body::Stream(Box::new(H1Body {
            deadline: exchange.deadline(),
            exchange,
            length,
        }))
    };
    Ok(Response {
        status,
        fields,
        body,
        error_page: ErrorPage::Never,
        is_negotiated: false,
        upstream: None,
        cache_status: "",
        stored: None,
        is_no_offence: false,
        date,
    })
}

/// Response body that is received only as fast as the client accepts it.
struct H1Body {
    exchange: H1Exchange,
    deadline: Deadline,
    /// Length in bytes, if it is known.
    length: Option<u64>,
}

impl Stream for H1Body {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        let H1Body { exchange, deadline, .. } = self;
        deadline.set(exchange.idle_ticks());
        Box::pin(poll_fn(move |context| {
            loop {
                let pending = exchange.take_pending();
                if !pending.is_empty() {
                    return Poll::Ready(Some(Ok(pending.into())));
                }
                if exchange.is_complete() {
                    exchange.finish();
                    return Poll::Ready(None);
                }
                if let Err(error) = ready!(exchange.poll_progress(context, deadline)) {
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
        }))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&mut self) -> Option<FieldList> {
        self.exchange.take_trailers()
    }
}
