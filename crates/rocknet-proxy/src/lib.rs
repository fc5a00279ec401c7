//! The reverse proxy: a request goes to another server, written anew, and what that answers comes back, both bit by bit.
//!
//! ```text
//! Exchange ─▶ group.rs: which server, by balance.rs; slots.rs: whether it has room; waiting.rs where none has
//!               │
//!          request.rs ─▶ conversation.rs ⇄ connection.rs     kept by pool.rs for each worker, or made by connect.rs, race.rs
//!               │              │                 │
//!         forwarded.rs     incoming.rs      upstream.rs      one for all workers; breaker.rs hears how its answers go,
//!                              │                 │           watcher.rs looks up its name and has check.rs try it
//!                          answer.rs         watcher.rs
//!                              │
//!                           Response                          or, behind 101, a tunnel: switch.rs
//! ```
//! Servers that speak HTTP/2 have a folder of their own, http2, in place of conversation.rs and connection.rs; grpc.rs has
//! words for its clients. A connection goes over a wire.rs: a socket, or TLS with what secure.rs says of trust; mistrust.rs tells what was wrong.

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
use crate::upstream::Upstream;
use rocknet_handler::exchange::{Client, Exchange, RequestBody};
use rocknet_handler::response::{Response, UpstreamTiming};
use rocknet_handler::route::Route;
use rocknet_handler::services::Services;
use rocknet_handler::spool::SpoolWriter;

pub use crate::handler::ProxyHandler;
pub use crate::pool::ConnectionPool;
pub use crate::proxy::Proxy;
use crate::target::hides_dots;
pub use crate::transport::Dialer;
use crate::upgrade_request::UpgradeRequest;
pub use crate::upstreams::Upstreams;

/// An answer, or the error that stands for one.
enum ForwardResult {
    Forwarded(Response),
    Error(Response),
}

/// No answer: why, and of which server that was tried.
struct ForwardError {
    error: ProxyError,
    upstream: Option<Arc<Upstream>>,
}

impl ForwardError {
    /// What the client is told.
    fn respond(&self, request: &Request<'_>, route: &Route) -> ForwardResult {
        let mut response = self.error.log_and_respond(self.upstream.as_deref(), &route.label);
        response.upstream = self.upstream.as_ref().map(|upstream| UpstreamTiming {
            address: Arc::clone(&upstream.name),
            head: None,
        });
        match grpc::is_call(request) {
            // What a client of gRPC reads is neither a page nor a status of HTTP.
            true => ForwardResult::Forwarded(grpc::refusal(response.status)),
            false => ForwardResult::Error(response),
        }
    }
}

/// Passes a request on and its answer back. `request`: the one of the exchange.
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
        // In a box, as all that is rare: it would make every request's future larger.
        let buffered = match proxy.request_buffering {
            RequestBuffering::None => Ok(()),
            RequestBuffering::First(most) => Box::pin(body.buffer(most)).await,
            // A streaming call takes turns, so its request never ends before its response begins.
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
    let mut content = Some(std::mem::replace(body, RequestBody::empty()));
    // A body that was received whole can be sent once more.
    let replay = content.as_ref().and_then(RequestBody::again);
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
        // What may have been heard and lost is not said twice, so it takes only a connection that surely stands.
        let mut pooled = pool.take(&upstream, sent.is_idempotent(), services.clock.uptime_ms());
        let result = loop {
            if upstream.http2 {
                // In a box, as the next one: it would make every request's future larger.
                let sending = http2::send(services, &upstream, proxy, &sent, &mut content, interim, &deadline);
                let result = Box::pin(sending).await;
                break result.and_then(|response| response.into_response(sent.method(), permit));
            }
            let connection = match pooled.take() {
                Some(connection) => connection,
                // In a box of its own: it is rare, and would make every request's future larger.
                None => match Box::pin(connect::connect(services, &upstream, proxy, *client, &deadline)).await {
                    Ok(connection) => connection,
                    Err(error) => break Err(error),
                },
            };
            let mut exchange = H1Exchange::new(services, connection, times);
            if let Err(error) = exchange.start(&upstream, &sent, &mut content, &deadline) {
                break Err(error);
            }
            let result = poll_fn(|context| exchange.poll_head(context, &mut content, interim, &deadline)).await;
            match result {
                Ok(()) => {
                    exchange.hold_permit(match exchange.is_tunnel() {
                        true => proxy.tunnel_permit(permit),
                        false => permit,
                    });
                    break response::from_exchange(exchange, sent.method(), proxy.response_buffer);
                }
                // Whatever is at rest there may be closed as well.
                Err(ProxyError::ReusedConnectionClosed)
                    if sent.is_idempotent() && restore_body(&mut content, &replay) =>
                {
                    pool.forget(&upstream);
                }
                Err(error) => break Err(error),
            }
        };
        let error = match result {
            Ok(mut response) => {
                proxy.succeeded(&upstream, services.clock.uptime_ms());
                if let Some(cookie) = &proxy.sticky
                    && selection.sticky != Some(upstream.name_hash)
                {
                    let cookie = sticky::set_cookie(cookie, upstream.name_hash, tls.is_some());
                    response.fields.add("Set-Cookie", cookie);
                }
                response.upstream = Some(UpstreamTiming {
                    address: Arc::clone(&upstream.name),
                    head: Some(started.elapsed()),
                });
                return Ok(response);
            }
            Err(error) => error,
        };
        if error.counts_against_upstream() {
            proxy.failed(&upstream, services.clock.uptime_ms());
        }
        // A server that is being ended has connections that it has not looked at yet. They are closed, or reset where
        // something lies in them.
        let is_lost = matches!(error, ProxyError::NoResponse | ProxyError::ConnectionLost(_)) && sent.is_idempotent();
        let may_retry = error.is_before_request() || is_lost;
        let will_retry =
            may_retry && proxy.has_others(upstream.id) && tries < MAX_TRIES && restore_body(&mut content, &replay);
        if !will_retry {
            let upstream = Some(upstream);
            return Err(ForwardError { error, upstream });
        }
        tries += 1;
        error.log(Some(&upstream), &route.label);
        last_upstream = Some(upstream);
    }
}

/// Returns whether the next server can be sent the request body: if nothing of it was taken, or if it was received whole.
fn restore_body(content: &mut Option<RequestBody>, replay: &Option<RequestBody>) -> bool {
    if content.is_none() {
        *content = replay.as_ref().and_then(RequestBody::again);
    }
    content.is_some()
}

/// What a balance by key goes by.
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

/// How long a server may take, in ticks of the worker's wheel.
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
