//! HTTP/2 client for upstreams, with flow control, trailers, and many streams on one connection, as gRPC requires.
//!
//! The `h2` crate handles the frames. Connections use the same transports as HTTP/1.1, and each is driven by one
//! task. A request passes through these files. Its response goes the opposite way, from transport.rs to exchange.rs:
//!
//! ```text
//! head.rs ─▶ exchange.rs ─▶ pool.rs ─▶ io.rs ─▶ transport.rs
//!                │
//!            upload.rs      sends the request body while the response is received
//! ```

mod exchange;
mod head;
mod io;
mod pool;
mod upload;

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use http::Request;
use rocknet_io::wheel::Deadline;

use self::exchange::{H2Exchange, H2Response};
use self::head::H2RequestHead;
use self::upload::Upload;
use super::Timeouts;
use super::error::{self, ProxyError};
use super::proxy::{MAX_H2_ATTEMPTS, Proxy};
use super::request::UpstreamRequest;
use super::upstream::Upstream;
use rocknet_handler::exchange::RequestBody;
use rocknet_handler::interim::InterimSender;
use rocknet_handler::services::Services;

/// Sends a request and waits for the head of its response. `sent` is the request as it is sent to the upstream.
///
/// If no part of the request body was consumed, it stays in `request_body`, so that it can be sent to another
/// upstream.
pub async fn send(
    services: &Rc<Services>,
    upstream: &Arc<Upstream>,
    proxy: &Proxy,
    sent: &UpstreamRequest<'_>,
    request_body: &mut Option<RequestBody>,
    interim: &mut InterimSender,
    deadline: &Deadline,
) -> Result<H2Response, ProxyError> {
    let times = Timeouts::of(services, proxy);
    let tick_ms = u64::try_from(services.wheel.tick_length().as_millis()).unwrap_or(u64::MAX);
    let idle_ms = tick_ms.saturating_mul(times.idle.into());
    let mut attempts = 0;
    loop {
        attempts += 1;
        let permit = pool::H2Pool::acquire(services, upstream, proxy, deadline, idle_ms).await?;
        let mut head = H2RequestHead {
            is_secure: upstream.tls.is_some(),
            wants_trailers: sent.wants_trailers(),
            request: Request::new(()),
        };
        sent.write(upstream, &mut head).map_err(ProxyError::Encode)?;
        let mut sender = permit.sender();
        let sent_request = match poll_fn(|context| sender.poll_ready(context)).await {
            Ok(()) => sender.send_request(head.request, !sent.has_body()),
            Err(error) => Err(error),
        };
        let error = match sent_request {
            Err(error) => {
                // No byte of the request was sent, so it may be retried on another connection. With `true`, the end of
                // a new connection is reported like that of a reused one.
                permit.retire();
                match error::from_h2(error, true) {
                    ProxyError::ReusedConnectionClosed => ProxyError::Refused,
                    error => error,
                }
            }
            Ok((response, stream)) => {
                let mut upload = None;
                if sent.has_body()
                    && let Some(request_body) = request_body.take()
                {
                    // The client of a gRPC call may pause between two messages.
                    if sent.is_grpc_call() {
                        request_body.allow_pauses();
                    }
                    upload = Some(Upload::new(stream, request_body, sent.proxy_headers()));
                }
                let exchange = H2Exchange::new(services, permit, times, response, upload);
                match exchange.wait_for_head(interim, deadline).await {
                    Ok(response) => return Ok(response),
                    Err((error, upload)) => {
                        if sent.has_body() {
                            *request_body = upload.and_then(Upload::into_untouched);
                        }
                        error
                    }
                }
            }
        };
        let may_repeat = match error {
            ProxyError::Refused => true,
            ProxyError::ReusedConnectionClosed => sent.is_idempotent(),
            _ => false,
        };
        // `request_body` is `None` if a part of the body was consumed.
        if !may_repeat || request_body.is_none() || attempts == MAX_H2_ATTEMPTS {
            return Err(error);
        }
    }
}
