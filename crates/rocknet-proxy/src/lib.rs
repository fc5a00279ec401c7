//! Reverse proxy: forwards requests to upstreams and streams their responses back.
//!
//! A request is rebuilt from its parsed parts. Therefore an upstream never receives bytes that it could parse
//! differently than RockNet did.
//!
//! ```text
//! Exchange ─▶ proxy.rs             selects an upstream; concurrency_limit.rs grants a permit,
//!                │                 upstream_queue.rs queues requests that wait for a permit
//!           request.rs             writes the head; forwarded.rs names the client, header_spoofing.rs finds forgeries
//!                │
//!           h1_exchange.rs ⇄ h1_connection.rs ─▶ transport.rs      socket or TLS; pool.rs keeps idle connections,
//!                │                                                 connect.rs and happy_eyeballs.rs open new ones
//!           response_reader.rs
//!                │
//!           response_rewrite.rs    replaces addresses of the upstream in redirects and cookies by public ones
//!                │
//!           response.rs ─▶ Response      buffering.rs receives ahead of a slow client; upgrade.rs: tunnel after 101
//! ```
//!
//! `http2` replaces h1_exchange.rs and h1_connection.rs for upstreams that speak HTTP/2, and grpc.rs maps errors for
//! gRPC clients. All workers share an upstream (upstream.rs). Its breaker counts failures, and background.rs resolves
//! its name and runs health_check.rs. Copies of requests go to another upstream (mirror.rs). Further, tls_config.rs
//! selects the trusted certificates, and tls_error.rs explains failed handshakes.

pub mod accept_any_certificate;
mod background;
mod buffering;
mod concurrency_limit;
mod connect;
mod error;
mod forwarded;
mod grpc;
mod h1_connection;
mod h1_exchange;
mod handler;
mod happy_eyeballs;
mod head;
mod header_spoofing;
mod health_check;
mod health_state;
mod http2;
mod mirror;
mod mirror_queue;
mod permit;
mod pool;
mod proxy;
mod proxy_protocol;
mod request;
mod response;
mod response_reader;
mod response_rewrite;
mod rewrite;
mod sticky;
mod target;
mod tls_config;
mod tls_error;
mod trailers;
mod transport;
mod ttl;
mod upgrade;
mod upgrade_request;
mod upstream;
mod upstream_queue;
mod upstreams;
mod write_timeout;

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rocknet_config::model::{Balance, RequestBuffering};
use rocknet_proto::request::Request;

use crate::error::ProxyError;
use crate::h1_exchange::H1Exchange;
use crate::proxy::{MAX_TRIES, Selection};
use rocknet_handler::exchange::{Client, Exchange, RequestBody};
use rocknet_handler::response::{Response, UpstreamTiming};
use rocknet_handler::route::Route;
use rocknet_handler::services::Services;
use rocknet_handler::spool::SpoolWriter;

pub use crate::handler::ProxyHandler;
pub use crate::pool::ConnectionPool;
pub use crate::proxy::Proxy;
use crate::target::hides_dots;
pub use crate::target::write as write_without_dots;
pub use crate::transport::Dialer;
use crate::upgrade_request::UpgradeRequest;
pub use crate::upstream::Upstream;
pub use crate::upstreams::Upstreams;

/// Response to forward, or an error response of the proxy itself.
enum ForwardResult {
    Forwarded(Response),
    Error(Response),
}

/// Error of a request that got no response, with the upstream that was tried last.
struct ForwardError {
    error: ProxyError,
    /// `None` if the error occurred before the first try.
    upstream: Option<Arc<Upstream>>,
}

impl ForwardError {
    /// Logs the failure and returns the response for the client.
    fn respond(&self, request: &Request<'_>, route: &Route) -> ForwardResult {
        let mut response = self.error.log_and_respond(self.upstream.as_deref(), &route.label);
        response.upstream = self.upstream.as_ref().map(|upstream| UpstreamTiming {
            address: Arc::clone(&upstream.name),
            head: None,
            status: None,
        });
        match grpc::is_call(request) {
            // A gRPC client reads the error only from gRPC fields, so an error page or HTTP status would be useless.
            true => ForwardResult::Forwarded(grpc::refusal(response.status)),
            false => ForwardResult::Error(response),
        }
    }
}

/// Forwards `request`, which is the request of `exchange`, and returns the response of an upstream.
async fn forward(
    services: &Rc<Services>,
    proxy: &Proxy,
    request: &Request<'_>,
    exchange: &mut Exchange,
    route: &Route,
) -> Result<Response, ForwardError> {
    let mut last_upstream: Option<Arc<Upstream>> = None;
    let pool = services.local::<ConnectionPool>();
    let mut sent = request::UpstreamRequest::new(&proxy.rewrite, request, exchange, &route.server.server);
    let mut buffer = [0; 16];
    let selection = Selection {
        key: balance_key(proxy.balance(), request, exchange.client, &mut buffer),
        sticky: proxy
            .sticky
            .as_deref()
            .and_then(|cookie| sticky::from_cookies(request.fields, cookie)),
        priority: exchange.route.priority,
    };
    let Exchange {
        client,
        body,
        interim,
        tls,
        ..
    } = exchange;
    if let Some(mirror) = &proxy.mirror {
        mirror.copy(&sent, body, services.random());
    }
    if sent.has_body() {
        // Boxed, because buffering is rare and its future would enlarge the future of every request.
        let buffered = match proxy.request_buffering {
            RequestBuffering::None => Ok(()),
            RequestBuffering::First(most) => Box::pin(body.buffer(most)).await,
            // In a streaming call of gRPC, the response may begin before the request has ended.
            RequestBuffering::Whole if grpc::is_call(request) => Ok(()),
            RequestBuffering::Whole => {
                let bounds = route.server.spool.clone();
                let spool = SpoolWriter::new(&services.spool, bounds, route.body_memory, route.priority);
                let received = Box::pin(body.spool(spool)).await;
                received.map(|length| sent.set_length(length, body.has_trailers()))
            }
        };
        buffered.map_err(|error| ForwardError {
            error: ProxyError::RequestBody(error),
            upstream: None,
        })?;
    }
    let mut request_body = Some(std::mem::replace(body, RequestBody::empty()));
    // Copy of the request body for another try. It exists only if the body was received completely.
    let replay = request_body.as_ref().and_then(RequestBody::again);
    let deadline = services.wheel.deadline();
    let mut tries = 1u8;
    let times = Timeouts::of(services, proxy);
    loop {
        let excluded = last_upstream.as_ref().map(|upstream| upstream.id);
        let draw = || services.random();
        let now_ms = services.clock.uptime_ms();
        let permit = proxy
            .acquire(&selection, excluded, now_ms, draw, &deadline, &services.wheel)
            .await;
        let permit = match permit {
            Ok(permit) => permit,
            Err(error) => {
                return Err(ForwardError {
                    error,
                    upstream: last_upstream,
                });
            }
        };
        let upstream = Arc::clone(&permit.upstream);
        let started = Instant::now();
        // A request that is not idempotent is not repeated after a lost connection, so it may use only a connection
        // with a short idle time.
        let mut pooled = pool.take(&upstream, sent.is_idempotent(), services.clock.uptime_ms());
        let result = loop {
            if upstream.http2 {
                // Boxed, because otherwise this future would enlarge the future of every HTTP/1.1 request.
                let sending = http2::send(services, &upstream, proxy, &sent, &mut request_body, interim, &deadline);
                let result = Box::pin(sending).await;
                break result.and_then(|response| response.into_response(sent.method(), permit));
            }
            let connection = match pooled.take() {
                Some(connection) => connection,
                // Boxed, because connecting is rare and its future would enlarge the future of every request.
                None => match Box::pin(connect::connect(services, &upstream, proxy, *client, &deadline)).await {
                    Ok(connection) => connection,
                    Err(error) => break Err(error),
                },
            };
            let mut exchange = H1Exchange::new(services, connection, times);
            if let Err(error) = exchange.start(&upstream, &sent, &mut request_body, &deadline) {
                break Err(error);
            }
            let result = poll_fn(|context| exchange.poll_head(context, &mut request_body, interim, &deadline)).await;
            match result {
                Ok(()) => {
                    exchange.hold_permit(match exchange.is_tunnel() {
                        true => proxy.tunnel_permit(permit),
                        false => permit,
                    });
                    break response::from_exchange(exchange, sent.method(), proxy.response_buffer);
                }
                // The other idle connections to this upstream may have been closed as well, so the next iteration opens
                // a new one.
                Err(ProxyError::ReusedConnectionClosed)
                    if sent.is_idempotent() && restore_body(&mut request_body, &replay) =>
                {
                    pool.forget(&upstream);
                }
                Err(error) => break Err(error),
            }
        };
        let error = match result {
            Ok(mut response) => {
                proxy.succeeded(&upstream, services.clock.uptime_ms());
                proxy
                    .response_rewrite
                    .apply(&mut response.fields, || sent.origin(&upstream));
                if let Some(cookie) = &proxy.sticky
                    && selection.sticky != Some(upstream.name_hash)
                {
                    let cookie = sticky::set_cookie(cookie, upstream.name_hash, tls.is_some());
                    response.fields.add("Set-Cookie", cookie);
                }
                response.upstream = Some(UpstreamTiming {
                    address: Arc::clone(&upstream.name),
                    head: Some(started.elapsed()),
                    status: Some(response.status),
                });
                return Ok(response);
            }
            Err(error) => error,
        };
        if error.counts_against_upstream() {
            proxy.failed(&upstream, services.clock.uptime_ms());
        }
        // A server that shuts down closes connections that it has not accepted, and resets connections with unread
        // data. If a connection is lost, an idempotent request may therefore be sent again.
        let is_lost = matches!(error, ProxyError::NoResponse | ProxyError::ConnectionLost(_)) && sent.is_idempotent();
        let may_retry = error.is_unprocessed() || is_lost;
        let will_retry =
            may_retry && proxy.has_others(upstream.id) && tries < MAX_TRIES && restore_body(&mut request_body, &replay);
        if !will_retry {
            let upstream = Some(upstream);
            return Err(ForwardError { error, upstream });
        }
        tries += 1;
        error.log(Some(&upstream), &route.label);
        last_upstream = Some(upstream);
    }
}

/// Restores the request body for another try. Returns false if a part of the body was consumed and there is no copy.
fn restore_body(request_body: &mut Option<RequestBody>, replay: &Option<RequestBody>) -> bool {
    if request_body.is_none() {
        *request_body = replay.as_ref().and_then(RequestBody::again);
    }
    request_body.is_some()
}

/// Returns the key for a balance that selects by key; `None` for other balances and for requests without the key.
/// `buffer` stores the key if it is an address.
fn balance_key<'a>(
    balance: &Balance,
    view: &Request<'a>,
    client: Client,
    buffer: &'a mut [u8; 16],
) -> Option<&'a [u8]> {
    match balance {
        Balance::Uri => Some(view.path),
        Balance::Header(name) => view.fields.by_name(name.as_bytes()).next(),
        Balance::IpHash => match client {
            Client::Ip { address, .. } => {
                *buffer = match address.to_canonical() {
                    std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    std::net::IpAddr::V6(ip) => ip.octets(),
                };
                Some(buffer)
            }
            Client::Local => None,
        },
        Balance::RandomTwo | Balance::RoundRobin | Balance::LeastConn => None,
    }
}

/// Timeouts of the proxy, in ticks of the worker's timer wheel; see the fields of [`Proxy`].
#[derive(Clone, Copy)]
struct Timeouts {
    first_byte: u32,
    idle: u32,
    send_stall: u32,
}

impl Timeouts {
    fn of(services: &Services, proxy: &Proxy) -> Timeouts {
        Timeouts {
            first_byte: services.wheel.ticks(proxy.first_byte),
            idle: services.wheel.ticks(proxy.idle),
            send_stall: services.wheel.ticks(proxy.send_stall),
        }
    }
}
