//! Pool of HTTP/2 connections to upstreams; each worker has its own. Many requests share a connection, up to the number
//! of streams that the upstream allows.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::StreamId;
use h2::client::{Builder, SendRequest};
use hashbrown::HashMap;
use rocknet_io::runtime::spawn;
use rocknet_io::wheel::Deadline;

use super::io::{H2Io, MalformedStreams};
use crate::error::ProxyError;
use crate::proxy::Proxy;
use crate::transport::Transport;
use crate::upstream::Upstream;
use crate::{connect, error};
use rocknet_handler::exchange::Client;
use rocknet_handler::services::{Services, WorkerLocal};

/// Maximum number of concurrent streams on one connection, even if the upstream allows more. RFC 9113 §6.5.2 recommends
/// that servers allow at least 100, and few servers allow fewer.
const MAX_STREAMS: usize = 100;
/// Maximum number of connections of one worker to one upstream. With [`MAX_STREAMS`] they carry 1,600 concurrent
/// requests. Further requests get status 503.
const MAX_CONNECTIONS: usize = 16;
/// Flow-control window of a stream: bytes of a response body that the upstream may send ahead of the client. At a
/// round-trip time of 1 ms, this permits 260 MB/s.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Flow-control window of a connection. It is the sum of the windows of all streams, so that a client that does not
/// read cannot block other clients.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;
/// Maximum number of bytes of a request body that are framed but not sent yet.
const SEND_BUFFER: usize = 128 * 1024;
/// Maximum size of a response head in bytes, equal to the limit for HTTP/1.1 upstreams.
const MAX_HEAD_SIZE: u32 = 32 * 1024;

/// HTTP/2 connections of one worker, by upstream.
#[derive(Default)]
pub struct H2Pool {
    by_upstream: RefCell<HashMap<u32, UpstreamConnections, foldhash::fast::FixedState>>,
}

struct UpstreamConnections {
    upstream: Weak<Upstream>,
    connections: Vec<Rc<H2Connection>>,
    /// Connection that is being opened, with the requests that wait for it; `None` if no connection is being opened.
    pending: Option<Rc<PendingConnection>>,
    /// Idle timeout in milliseconds. Proxies that share the upstream may have different ones; the last use sets it.
    idle_ms: u64,
}

/// HTTP/2 connection to an upstream.
pub struct H2Connection {
    sender: SendRequest<Bytes>,
    /// Number of open streams.
    active: Cell<usize>,
    /// Number of requests so far.
    requests: Cell<u64>,
    /// True if no further request may be sent on this connection. Open streams continue.
    is_closed: Rc<Cell<bool>>,
    malformed: Rc<MalformedStreams>,
    /// Time at which the last stream ended, in milliseconds of uptime.
    idle_since_ms: Cell<u64>,
}

/// Permit for one stream of a connection.
pub struct StreamPermit {
    connection: Rc<H2Connection>,
    services: Rc<Services>,
}

/// Connection that is being opened.
#[derive(Default)]
struct PendingConnection {
    /// Wakers of the requests that wait for the connection.
    waiting: RefCell<Vec<Waker>>,
    /// Error of the attempt. `None` while the attempt is pending, if it succeeded, or if its task was dropped.
    failed: RefCell<Option<(io::ErrorKind, String)>>,
    /// True once the attempt is over.
    is_over: Cell<bool>,
}

impl StreamPermit {
    fn new(services: &Rc<Services>, connection: &Rc<H2Connection>) -> StreamPermit {
        connection.active.set(connection.active.get() + 1);
        connection.requests.set(connection.requests.get() + 1);
        StreamPermit {
            connection: Rc::clone(connection),
            services: Rc::clone(services),
        }
    }

    /// Returns the handle that sends a request on the connection.
    pub fn sender(&self) -> SendRequest<Bytes> {
        self.connection.sender.clone()
    }

    /// Returns true if no other request has used the connection so far.
    pub fn is_first(&self) -> bool {
        self.connection.requests.get() == 1
    }

    /// Returns true if the response on this stream breaks rules of HTTP/2 that the library does not enforce.
    pub fn is_malformed(&self, stream: StreamId) -> bool {
        self.connection.malformed.contains(stream)
    }

    /// Excludes the connection from further requests. Open streams continue.
    pub fn retire(&self) {
        self.connection.is_closed.set(true);
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.connection.active.set(self.connection.active.get() - 1);
        self.connection.idle_since_ms.set(self.services.clock.uptime_ms());
    }
}

impl PendingConnection {
    /// Returns ready when the attempt is over.
    ///
    /// `position` is the index of the caller's waker in `waiting`; the caller passes the same variable in each call.
    /// Therefore a caller has only one entry, however often it is polled. An HTTP/2 connection of a client polls all
    /// its streams whenever data arrives.
    fn poll_finished(&self, context: &mut Context<'_>, position: &mut Option<usize>) -> Poll<()> {
        if self.is_over.get() {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        match position.and_then(|position| waiting.get_mut(position)) {
            Some(waker) => waker.clone_from(context.waker()),
            None => {
                *position = Some(waiting.len());
                waiting.push(context.waker().clone());
            }
        }
        Poll::Pending
    }
}

impl H2Connection {
    /// Returns true if another request may be sent on the connection now.
    fn has_room(&self) -> bool {
        let max_streams = self.sender.current_max_send_streams().min(MAX_STREAMS);
        !self.is_closed.get() && self.active.get() < max_streams
    }
}

impl H2Pool {
    /// Returns a permit for a stream. Opens a connection if no connection has a free stream. Requests that arrive in
    /// the meantime wait for that connection. `idle_ms`: idle timeout of connections in milliseconds.
    ///
    /// # Errors
    ///
    /// Returns [`ProxyError::NoCapacity`] if there are [`MAX_CONNECTIONS`] connections without a free stream, or the
    /// error of connecting.
    pub async fn acquire(
        services: &Rc<Services>,
        upstream: &Arc<Upstream>,
        proxy: &Proxy,
        deadline: &Deadline,
        idle_ms: u64,
    ) -> Result<StreamPermit, ProxyError> {
        let pool = services.local::<H2Pool>();
        let pool = &*pool;
        loop {
            let pending = {
                let mut by_upstream = pool.by_upstream.borrow_mut();
                let entry = by_upstream.entry(upstream.id).or_insert_with(|| UpstreamConnections {
                    upstream: Arc::downgrade(upstream),
                    connections: Vec::new(),
                    pending: None,
                    idle_ms,
                });
                entry.idle_ms = idle_ms;
                entry.connections.retain(|connection| !connection.is_closed.get());
                if let Some(connection) = entry.connections.iter().find(|connection| connection.has_room()) {
                    return Ok(StreamPermit::new(services, connection));
                }
                if entry.connections.len() >= MAX_CONNECTIONS {
                    return Err(ProxyError::NoCapacity);
                }
                // `Ok`: this request opens the connection. `Err`: another request is opening it.
                match &entry.pending {
                    Some(pending) => Err(Rc::clone(pending)),
                    None => Ok(Rc::clone(entry.pending.insert(Rc::default()))),
                }
            };
            match pending {
                Ok(pending) => {
                    let guard = ConnectGuard {
                        pool,
                        id: upstream.id,
                        pending,
                    };
                    // Many clients share the connection, so it belongs to no client. The configuration rejects the
                    // PROXY protocol with HTTP/2 for this reason.
                    let result = match connect::open_transport(services, upstream, proxy, Client::Local, deadline).await
                    {
                        Ok(transport) => handshake(transport, upstream).await,
                        Err(error) => Err(error),
                    };
                    match result {
                        Ok(connection) => {
                            let permit = StreamPermit::new(services, &connection);
                            if let Some(entry) = pool.by_upstream.borrow_mut().get_mut(&upstream.id) {
                                entry.connections.push(connection);
                            }
                            return Ok(permit);
                        }
                        Err(error) => {
                            *guard.pending.failed.borrow_mut() = Some((error::io_kind(&error), error.to_string()));
                            return Err(error);
                        }
                    }
                }
                Err(pending) => {
                    deadline.set(services.wheel.ticks(proxy.connect));
                    let mut position = None;
                    let finished = poll_fn(|context| pending.poll_finished(context, &mut position));
                    if deadline.within(finished).await.is_none() {
                        return Err(ProxyError::Connect(io::ErrorKind::TimedOut.into()));
                    }
                    if let Some((kind, text)) = &*pending.failed.borrow() {
                        return Err(ProxyError::Connect(io::Error::new(*kind, text.clone())));
                    }
                }
            }
        }
    }
}

impl WorkerLocal for H2Pool {
    /// Closes connections that were idle too long, and connections to upstreams that no configuration uses any more.
    fn tick(&self, now_ms: u64) {
        if self.by_upstream.borrow().is_empty() {
            return;
        }
        self.by_upstream.borrow_mut().retain(|_, entry| {
            let (idle_ms, is_used) = (entry.idle_ms, entry.upstream.strong_count() > 0);
            entry.connections.retain(|connection| {
                let idle_for_ms = now_ms.saturating_sub(connection.idle_since_ms.get());
                let is_idle = connection.active.get() == 0 && idle_for_ms >= idle_ms;
                is_used && !is_idle && !connection.is_closed.get()
            });
            !entry.connections.is_empty() || entry.pending.is_some()
        });
    }

    /// Removes all connections from the pool. Connections close when they have no open streams.
    fn release(&self) {
        self.by_upstream.borrow_mut().clear();
    }
}

/// Wakes the waiting requests when an attempt to connect ends for any reason, including a dropped task.
struct ConnectGuard<'s> {
    pool: &'s H2Pool,
    id: u32,
    pending: Rc<PendingConnection>,
}

impl Drop for ConnectGuard<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.pool.by_upstream.borrow_mut().get_mut(&self.id) {
            entry.pending = None;
        }
        self.pending.is_over.set(true);
        self.pending.waiting.take().into_iter().for_each(Waker::wake);
    }
}

/// Opens an HTTP/2 connection over a transport, and starts the task that drives it.
async fn handshake(transport: Transport, upstream: &Arc<Upstream>) -> Result<Rc<H2Connection>, ProxyError> {
    let malformed = Rc::<MalformedStreams>::default();
    let result = Builder::new()
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_max_send_streams(MAX_STREAMS)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(MAX_HEAD_SIZE)
        .handshake::<_, Bytes>(H2Io::new(transport, Rc::clone(&malformed)))
        .await;
    // `false`: the connection is new.
    let (sender, driver) = result.map_err(|error| error::from_h2(error, false))?;
    let is_closed = Rc::new(Cell::new(false));
    let (closed, upstream) = (Rc::clone(&is_closed), Arc::clone(upstream));
    spawn(async move {
        if let Err(error) = driver.await {
            tracing::debug!(upstream = %upstream.name, "an HTTP/2 connection to the upstream ended: {error}");
        }
        closed.set(true);
    });
    Ok(Rc::new(H2Connection {
        sender,
        active: Cell::new(0),
        requests: Cell::new(0),
        is_closed,
        malformed,
        idle_since_ms: Cell::new(0),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_polled_often_is_registered_once() {
        let pending = PendingConnection::default();
        let mut context = Context::from_waker(Waker::noop());
        let (mut one, mut other) = (None, None);
        for _ in 0..100 {
            assert!(pending.poll_finished(&mut context, &mut one).is_pending());
            assert!(pending.poll_finished(&mut context, &mut other).is_pending());
        }
        assert_eq!(pending.waiting.borrow().len(), 2);
        pending.is_over.set(true);
        assert!(pending.poll_finished(&mut context, &mut one).is_ready());
    }
}
