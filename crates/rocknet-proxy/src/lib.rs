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
    trouble: ProxyError,
    last: Option<Arc<Upstream>>,
}

impl ForwardError {
    /// What the client is told.
    fn tell(&self, asked: &Request<'_>, route: &Route) -> ForwardResult {
        let mut response = self.trouble.tell(self.last.as_deref(), &route.label);
        response.upstream = self.last.as_ref().map(|last| UpstreamTiming {
            address: Arc::clone(&last.name),
            head: None,
        });
        match grpc::is_call(asked) {
            // What a client of gRPC reads is neither a page nor a status of HTTP.
            true => ForwardResult::Forwarded(grpc::refusal(response.status)),
            false => ForwardResult::Error(response),
        }
    }
}

/// Passes a request on and its answer back. `request`: the one of the exchange.
async fn answer(
    services: &Rc<Services>,
    proxy: &Proxy,
    request: &Request<'_>,
    exchange: &mut Exchange,
    route: &Route,
) -> Result<Response, ForwardError> {
    let mut last: Option<Arc<Upstream>> = None;
    let pool = services.local::<ConnectionPool>();
    let mut sent = request::UpstreamRequest::new(&proxy.rewrite, request, exchange, &route.server.server);
    let mut buffer = [0; 16];
    let asked = Selection {
        key: key(proxy.balance(), request, exchange.client, &mut buffer),
        sticky: proxy
            .sticky
            .as_deref()
            .and_then(|cookie| sticky::asked(request.fields, cookie)),
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
    if sent.has_content() {
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
                received.map(|length| sent.received(length, body.has_trailers()))
            }
        };
        buffered.map_err(|error| ForwardError {
            trouble: ProxyError::RequestBody(error),
            last: None,
        })?;
    }
    let mut content = Some(std::mem::replace(body, RequestBody::empty()));
    // A body that was received whole can be sent once more.
    let spare = content.as_ref().and_then(RequestBody::again);
    let deadline = services.wheel.deadline();
    let mut tries = 1u8;
    let times = Timeouts::of(services, proxy);
    loop {
        let but = last.as_ref().map(|upstream| upstream.id);
        let draw = || services.random();
        let now_ms = services.clock.uptime_ms();
        let place = proxy.place(&asked, but, now_ms, draw, &deadline, &services.wheel).await;
        let place = match place {
            Ok(place) => place,
            Err(trouble) => return Err(ForwardError { trouble, last }),
        };
        let upstream = Arc::clone(&place.upstream);
        let asked_at = Instant::now();
        // What may have been heard and lost is not said twice, so it takes only a connection that surely stands.
        let mut kept = pool.take(&upstream, sent.is_repeatable(), services.clock.uptime_ms());
        let answered = loop {
            if upstream.http2 {
                // In a box, as the next one: it would make every request's future larger.
                let asked = http2::ask(services, &upstream, proxy, &sent, &mut content, interim, &deadline);
                let begun = Box::pin(asked).await;
                break begun.and_then(|begun| begun.response(sent.method(), place));
            }
            let connection = match kept.take() {
                Some(connection) => connection,
                // In a box of its own: it is rare, and would make every request's future larger.
                None => match Box::pin(connect::connect(services, &upstream, proxy, *client, &deadline)).await {
                    Ok(connection) => connection,
                    Err(trouble) => break Err(trouble),
                },
            };
            let mut conversation = H1Exchange::new(services, connection, times);
            if let Err(trouble) = conversation.begin(&upstream, &sent, &mut content, &deadline) {
                break Err(trouble);
            }
            let begun = poll_fn(|context| conversation.poll_begun(context, &mut content, interim, &deadline)).await;
            match begun {
                Ok(()) => {
                    conversation.hold_place(match conversation.is_tunnel() {
                        true => proxy.tunnel_place(place),
                        false => place,
                    });
                    break response::response(conversation, sent.method(), proxy.ahead);
                }
                // Whatever is at rest there may be closed as well.
                Err(ProxyError::ReusedConnectionClosed) if sent.is_repeatable() && restore(&mut content, &spare) => {
                    pool.forget(&upstream);
                }
                Err(trouble) => break Err(trouble),
            }
        };
        let trouble = match answered {
            Ok(mut response) => {
                proxy.succeeded(&upstream, services.clock.uptime_ms());
                if let Some(cookie) = &proxy.sticky
                    && asked.sticky != Some(upstream.hash)
                {
                    let cookie = sticky::set(cookie, upstream.hash, tls.is_some());
                    response.fields.add("Set-Cookie", cookie);
                }
                response.upstream = Some(UpstreamTiming {
                    address: Arc::clone(&upstream.name),
                    head: Some(asked_at.elapsed()),
                });
                return Ok(response);
            }
            Err(trouble) => trouble,
        };
        if trouble.is_upstreams() {
            proxy.failed(&upstream, services.clock.uptime_ms());
        }
        // A server that is being ended has connections that it has not looked at yet. They are closed, or reset where
        // something lies in them.
        let is_lost = matches!(trouble, ProxyError::NoResponse | ProxyError::ConnectionLost(_)) && sent.is_repeatable();
        let may_go_on = trouble.is_before_all() || is_lost;
        let again = may_go_on && proxy.has_others(upstream.id) && tries < MAX_TRIES && restore(&mut content, &spare);
        if !again {
            let last = Some(upstream);
            return Err(ForwardError { trouble, last });
        }
        tries += 1;
        trouble.log(Some(&upstream), &route.label);
        last = Some(upstream);
    }
}

/// Returns whether the next server can be sent the request body: if nothing of it was taken, or if it was received whole.
fn restore(content: &mut Option<RequestBody>, spare: &Option<RequestBody>) -> bool {
    if content.is_none() {
        *content = spare.as_ref().and_then(RequestBody::again);
    }
    content.is_some()
}

/// What a balance by key goes by.
fn key<'a>(balance: &Balance, view: &Request<'a>, client: Client, buffer: &'a mut [u8; 16]) -> Option<&'a [u8]> {
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
