//! Connections to servers that speak HTTP/2, kept by each worker for itself: many requests share one, up to what the server
//! takes at once.

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

/// Requests on one connection at once, where the server takes more: what RFC 9113 §6.5.2 has servers take at least, and few
/// take fewer.
const MAX_STREAMS: usize = 100;
/// Connections of one worker to one server: 1,600 requests at once. More of them wait nowhere, and are answered with 503.
const MAX_SESSIONS: usize = 16;
/// Content of one answer that a server may send ahead of its reader.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Content of all of them: so much that one client that does not read keeps no other waiting.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;
/// Content of one request that is framed and has not left.
const SEND_BUFFER: usize = 128 * 1024;
/// Head of an answer: as much as one in HTTP/1.1 may have.
const HEAD_SIZE: u32 = 32 * 1024;

#[derive(Default)]
pub struct H2Pool {
    shelves: RefCell<HashMap<u32, UpstreamConnections, foldhash::fast::FixedState>>,
}

struct UpstreamConnections {
    upstream: Weak<Upstream>,
    sessions: Vec<Rc<H2Connection>>,
    /// Somebody makes a connection, and these wait for it.
    opening: Option<Rc<PendingConnection>>,
    idle_ms: u64,
}

/// One connection.
pub struct H2Connection {
    sender: SendRequest<Bytes>,
    active: Cell<usize>,
    /// Requests so far.
    begun: Cell<u64>,
    /// Nothing more is asked over it.
    is_over: Rc<Cell<bool>>,
    malformed: Rc<MalformedStreams>,
    rests_since_ms: Cell<u64>,
}

/// One request's place on a connection.
pub struct StreamPermit {
    session: Rc<H2Connection>,
    services: Rc<Services>,
}

/// A connection in the making.
#[derive(Default)]
struct PendingConnection {
    waiting: RefCell<Vec<Waker>>,
    /// `None`: not yet, or given up by whoever made it.
    failed: RefCell<Option<(io::ErrorKind, String)>>,
    is_over: Cell<bool>,
}

impl StreamPermit {
    fn new(services: &Rc<Services>, session: &Rc<H2Connection>) -> StreamPermit {
        session.active.set(session.active.get() + 1);
        session.begun.set(session.begun.get() + 1);
        StreamPermit {
            session: Rc::clone(session),
            services: Rc::clone(services),
        }
    }

    pub fn sender(&self) -> SendRequest<Bytes> {
        self.session.sender.clone()
    }

    /// Whether nothing was asked over this connection before.
    pub fn is_first(&self) -> bool {
        self.session.begun.get() == 1
    }

    /// Whether the answer on this stream breaks rules of HTTP/2 that the library does not look after.
    pub fn is_malformed(&self, stream: StreamId) -> bool {
        self.session.malformed.contains(stream)
    }

    /// Has nothing more asked over this connection; what is under way goes on.
    pub fn retire(&self) {
        self.session.is_over.set(true);
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.session.active.set(self.session.active.get() - 1);
        self.session.rests_since_ms.set(self.services.clock.uptime_ms());
    }
}

impl PendingConnection {
    /// Ready when it is over. `place`: of the one who waits, who has one, however often he looks: a connection in HTTP/2 looks
    /// for all its streams whenever anything comes.
    fn poll_over(&self, context: &mut Context<'_>, place: &mut Option<usize>) -> Poll<()> {
        if self.is_over.get() {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        match place.and_then(|place| waiting.get_mut(place)) {
            Some(waker) => waker.clone_from(context.waker()),
            None => {
                *place = Some(waiting.len());
                waiting.push(context.waker().clone());
            }
        }
        Poll::Pending
    }
}

impl H2Connection {
    fn has_room(&self) -> bool {
        let most = self.sender.current_max_send_streams().min(MAX_STREAMS);
        !self.is_over.get() && self.active.get() < most
    }
}

impl H2Pool {
    /// A place on a connection, which is made if there is none with room. Who comes while one is made waits for it.
    pub async fn lease(
        services: &Rc<Services>,
        upstream: &Arc<Upstream>,
        proxy: &Proxy,
        deadline: &Deadline,
        idle_ms: u64,
    ) -> Result<StreamPermit, ProxyError> {
        let all = services.local::<H2Pool>();
        let all = &*all;
        loop {
            let opening = {
                let mut shelves = all.shelves.borrow_mut();
                let shelf = shelves.entry(upstream.id).or_insert_with(|| UpstreamConnections {
                    upstream: Arc::downgrade(upstream),
                    sessions: Vec::new(),
                    opening: None,
                    idle_ms,
                });
                shelf.idle_ms = idle_ms;
                shelf.sessions.retain(|session| !session.is_over.get());
                if let Some(session) = shelf.sessions.iter().find(|session| session.has_room()) {
                    return Ok(StreamPermit::new(services, session));
                }
                if shelf.sessions.len() >= MAX_SESSIONS {
                    return Err(ProxyError::NoCapacity);
                }
                match &shelf.opening {
                    Some(opening) => Err(Rc::clone(opening)),
                    None => Ok(Rc::clone(shelf.opening.insert(Rc::default()))),
                }
            };
            match opening {
                Ok(opening) => {
                    let maker = ConnectGuard {
                        all,
                        id: upstream.id,
                        opening,
                    };
                    // Connections that many share name no client.
                    let made = match connect::wire(services, upstream, proxy, Client::Local, deadline).await {
                        Ok(wire) => open(wire, upstream).await,
                        Err(trouble) => Err(trouble),
                    };
                    match made {
                        Ok(session) => {
                            let lease = StreamPermit::new(services, &session);
                            if let Some(shelf) = all.shelves.borrow_mut().get_mut(&upstream.id) {
                                shelf.sessions.push(session);
                            }
                            return Ok(lease);
                        }
                        Err(trouble) => {
                            *maker.opening.failed.borrow_mut() = Some((error::kind(&trouble), trouble.to_string()));
                            return Err(trouble);
                        }
                    }
                }
                Err(opening) => {
                    deadline.set(services.wheel.ticks(proxy.connect));
                    let mut place = None;
                    let over = poll_fn(|context| opening.poll_over(context, &mut place));
                    if deadline.within(over).await.is_none() {
                        return Err(ProxyError::Connect(io::ErrorKind::TimedOut.into()));
                    }
                    if let Some((kind, text)) = &*opening.failed.borrow() {
                        return Err(ProxyError::Connect(io::Error::new(*kind, text.clone())));
                    }
                }
            }
        }
    }
}

impl WorkerLocal for H2Pool {
    /// Closes what has rested too long, and what no configuration names any more.
    fn tick(&self, now_ms: u64) {
        if self.shelves.borrow().is_empty() {
            return;
        }
        self.shelves.borrow_mut().retain(|_, shelf| {
            let (idle_ms, is_used) = (shelf.idle_ms, shelf.upstream.strong_count() > 0);
            shelf.sessions.retain(|session| {
                let rests_ms = now_ms.saturating_sub(session.rests_since_ms.get());
                let is_idle = session.active.get() == 0 && rests_ms >= idle_ms;
                is_used && !is_idle && !session.is_over.get()
            });
            !shelf.sessions.is_empty() || shelf.opening.is_some()
        });
    }

    /// Closes all that nothing is asked over.
    fn release(&self) {
        self.shelves.borrow_mut().clear();
    }
}

/// Whoever makes a connection; when that is over, for whatever reason, those who wait hear of it.
struct ConnectGuard<'s> {
    all: &'s H2Pool,
    id: u32,
    opening: Rc<PendingConnection>,
}

impl Drop for ConnectGuard<'_> {
    fn drop(&mut self) {
        if let Some(shelf) = self.all.shelves.borrow_mut().get_mut(&self.id) {
            shelf.opening = None;
        }
        self.opening.is_over.set(true);
        self.opening.waiting.take().into_iter().for_each(Waker::wake);
    }
}

async fn open(wire: Transport, upstream: &Arc<Upstream>) -> Result<Rc<H2Connection>, ProxyError> {
    let malformed = Rc::<MalformedStreams>::default();
    let made = Builder::new()
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_max_send_streams(MAX_STREAMS)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(HEAD_SIZE)
        .handshake::<_, Bytes>(H2Io::new(wire, Rc::clone(&malformed)))
        .await;
    let (sender, connection) = made.map_err(|error| error::of_http2(error, false))?;
    let is_over = Rc::new(Cell::new(false));
    let (over, upstream) = (Rc::clone(&is_over), Arc::clone(upstream));
    spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(upstream = %upstream.name, "a connection ended: {error}");
        }
        over.set(true);
    });
    Ok(Rc::new(H2Connection {
        sender,
        active: Cell::new(0),
        begun: Cell::new(0),
        is_over,
        malformed,
        rests_since_ms: Cell::new(0),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_often_waits_once() {
        let opening = PendingConnection::default();
        let mut context = Context::from_waker(Waker::noop());
        let (mut one, mut other) = (None, None);
        for _ in 0..100 {
            assert!(opening.poll_over(&mut context, &mut one).is_pending());
            assert!(opening.poll_over(&mut context, &mut other).is_pending());
        }
        assert_eq!(opening.waiting.borrow().len(), 2);
        opening.is_over.set(true);
        assert!(opening.poll_over(&mut context, &mut one).is_ready());
    }
}
