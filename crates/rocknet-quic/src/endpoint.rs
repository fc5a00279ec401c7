//! QUIC endpoint of one worker: receives the datagrams of all its connections and accepts new connections.
//!
//! ```text
//! socket ──datagrams──▶ QuicEndpoint ──events──▶ Connection (one task each) ──datagrams──▶ socket
//!                        │ timers ──wake───────────▲
//!                        └ datagrams of other workers ──▶ their inboxes
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::BytesMut;
use quinn_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, Incoming, ServerConfig};
use rocknet_io::udp::{MAX_TRANSMIT_BYTES, RecvBuffers, RecvMeta, UdpSocket};

use crate::config::{self, SharedKeys};
use crate::connection::Connection;
use crate::connection_id::{MisroutedOwner, Owner};
use crate::forwarding::{ForwardedDatagram, WorkerInbox};
use crate::relay::{Relays, destination_id, has_long_header};
use crate::shared::{Core, Shared, to_transmit};
use crate::timers::Timers;
use crate::tls::{SelectConfig, SelectingConfig};
use crate::trace::{ConnectionTrace, OpenTrace};

/// Maximum number of receive calls in one poll, before other tasks run. One call receives up to 8 batches of up to 64
/// datagrams.
const RECEIVES_PER_POLL: u32 = 2;
/// Number of handshakes in progress at one endpoint from which on a new client first has to prove that it receives
/// datagrams at its address (Retry, RFC 9000 §8.1.2): a quarter of [`MAX_HANDSHAKES`]. The proof costs a round trip, so
/// it is not required of every client.
pub const RETRY_THRESHOLD: usize = 256;
/// Maximum number of handshakes in progress at one endpoint. Further connections are refused, because a handshake
/// occupies up to 64 KiB.
pub const MAX_HANDSHAKES: usize = 1024;

/// QUIC endpoint of one worker.
pub struct QuicEndpoint {
    shared: Rc<Shared>,
    /// Buffers for received datagrams.
    buffers: RecvBuffers,
    /// Buffer for a datagram that the endpoint sends itself, such as Retry or Version Negotiation.
    response_buffer: Vec<u8>,
    /// Worker that owns the connection of the datagram handled last, if it is not this worker.
    misrouted: Arc<MisroutedOwner>,
    /// Datagrams that other workers, or another process, pass to this worker.
    inbox: WorkerInbox,
    /// This worker, as the connection IDs of its connections name it.
    owner: Owner,
    keys: SharedKeys,
    /// TLS of new connections.
    tls: Arc<SelectingConfig>,
    /// Settings of new connections.
    server_config: Arc<ServerConfig>,
    /// `None` if connections are not traced.
    traces: Option<Arc<dyn OpenTrace>>,
    /// New connections that [`poll_accept`](Self::poll_accept) has not returned yet.
    accepted: VecDeque<Connection>,
    /// True once this worker accepts no new connections.
    is_stopped: bool,
    /// False while another process reads the socket.
    receives: bool,
    /// Older processes whose connections still receive datagrams at this socket.
    relays: Relays,
}

impl QuicEndpoint {
    /// Creates the endpoint of a worker. `generation` is the number of this process in its connection IDs. `selector`
    /// chooses the TLS configuration of each connection.
    ///
    /// # Errors
    ///
    /// Fails if no descriptor is free, or if the cryptographic library lacks the cipher of Initial packets.
    pub fn new(
        socket: UdpSocket,
        generation: u16,
        keys: &SharedKeys,
        inbox: WorkerInbox,
        selector: Arc<dyn SelectConfig>,
    ) -> io::Result<QuicEndpoint> {
        let owner = Owner {
            generation,
            worker: inbox.number(),
        };
        let tls = Arc::new(SelectingConfig::new(selector)?);
        let server_config = Arc::new(config::server_config(keys, &tls));
        let misrouted = Arc::<MisroutedOwner>::default();
        // The last arguments permit path MTU discovery, and take random values from the system instead of a seed.
        let endpoint = quinn_proto::Endpoint::new(
            Arc::new(config::endpoint_config(keys, owner, inbox.forwarding(), &misrouted)),
            Some(Arc::clone(&server_config)),
            true,
            None,
        );
        Ok(QuicEndpoint {
            shared: Rc::new(Shared {
                socket: RefCell::new(socket),
                core: RefCell::new(Core {
                    endpoint,
                    timers: Timers::new()?,
                    connections: Vec::new(),
                }),
                transmit: RefCell::new(Vec::with_capacity(MAX_TRANSMIT_BYTES)),
                blocked: RefCell::default(),
                endpoint_waker: RefCell::default(),
                handshakes: Cell::new(0),
            }),
            buffers: RecvBuffers::default(),
            response_buffer: Vec::new(),
            misrouted,
            inbox,
            owner,
            keys: keys.clone(),
            tls,
            server_config,
            traces: None,
            accepted: VecDeque::new(),
            is_stopped: false,
            receives: true,
            relays: Relays::default(),
        })
    }

    /// Returns the bound address.
    ///
    /// # Errors
    ///
    /// Fails if the system call fails.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.shared.socket.borrow().local_address()
    }

    /// Replaces the selector of TLS configurations for new connections.
    ///
    /// # Errors
    ///
    /// Fails if the cryptographic library lacks the cipher of Initial packets.
    pub fn set_selector(&mut self, selector: Arc<dyn SelectConfig>) -> io::Result<()> {
        self.tls = Arc::new(SelectingConfig::new(selector)?);
        self.server_config = Arc::new(config::server_config(&self.keys, &self.tls));
        let core = &mut self.shared.core.borrow_mut();
        core.endpoint.set_server_config(Some(Arc::clone(&self.server_config)));
        Ok(())
    }

    /// Traces new connections with `traces`; `None` turns tracing off.
    pub fn set_traces(&mut self, traces: Option<Arc<dyn OpenTrace>>) {
        self.traces = traces;
    }

    /// Stops accepting connections. Open connections continue. A new connection is passed to a worker that accepts
    /// connections at its address, or refused if there is no such worker. Other datagrams of unknown connections get no
    /// response.
    pub fn stop(&mut self) {
        self.inbox.stop_accepting();
        self.is_stopped = true;
    }

    /// Sets the older processes to which the datagrams of their connections are passed from now on.
    pub fn set_relays(&mut self, relays: Relays) {
        self.relays = relays;
    }

    /// Returns true if this endpoint receives datagrams of older processes that have not ended.
    pub fn serves_relays(&mut self) -> bool {
        self.relays.retain_running();
        self.receives && !self.relays.is_empty()
    }

    /// Switches to another socket at the same port. The caller must poll the endpoint afterwards, so that it waits for
    /// the new socket.
    pub fn replace_socket(&mut self, socket: UdpSocket) {
        *self.shared.socket.borrow_mut() = socket;
        self.shared.blocked.borrow_mut().drain(..).for_each(Waker::wake);
    }

    /// Reads the socket from now on if `receives` is true; otherwise leaves its datagrams to another process. Datagrams
    /// that the other process passes on are received in both cases. The caller has to poll afterwards.
    pub fn set_receiving(&mut self, receives: bool) {
        self.receives = receives;
    }

    /// Receives datagrams and passes them to their connections. Ready when there is a new connection, which needs a
    /// task that polls it. `decide` decides about a new connection.
    ///
    /// # Errors
    ///
    /// Fails if the socket fails.
    pub fn poll_accept(
        &mut self,
        context: &mut Context<'_>,
        decide: impl Fn(SocketAddr) -> NewConnection,
    ) -> Poll<io::Result<Connection>> {
        self.poll_timers(context);
        self.poll_blocked(context)?;
        self.receive_forwarded(context, &decide);
        if !self.receives {
            let accepted = self.accepted.pop_front();
            return accepted.map_or(Poll::Pending, |it| Poll::Ready(Ok(it)));
        }
        for _ in 0..RECEIVES_PER_POLL {
            if let Some(connection) = self.accepted.pop_front() {
                // The caller polls again until nothing is ready.
                return Poll::Ready(Ok(connection));
            }
            let mut buffers = mem::take(&mut self.buffers);
            let received = self.shared.socket.borrow().poll_receive(context, &mut buffers);
            if let Poll::Ready(Ok(())) = received {
                self.receive(context.waker(), &buffers, &decide);
            }
            self.buffers = buffers;
            match received {
                Poll::Pending => {
                    return self
                        .accepted
                        .pop_front()
                        .map_or(Poll::Pending, |it| Poll::Ready(Ok(it)));
                }
                Poll::Ready(received) => received?,
            }
        }
        if let Some(connection) = self.accepted.pop_front() {
            return Poll::Ready(Ok(connection));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Wakes the connections whose timers have passed.
    fn poll_timers(&mut self, context: &mut Context<'_>) {
        let Core {
            timers, connections, ..
        } = &mut *self.shared.core.borrow_mut();
        timers.poll(context, |slot| {
            if let Some(Some(mailbox)) = connections.get(slot) {
                mailbox.armed.set(None);
                mailbox.wake();
            }
        });
    }

    /// Wakes the connections that wait for the socket as soon as the socket accepts datagrams again.
    fn poll_blocked(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut waker = self.shared.endpoint_waker.borrow_mut();
        if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        if !self.shared.blocked.borrow().is_empty()
            && let Poll::Ready(ready) = self.shared.socket.borrow().poll_writable(context)
        {
            ready?;
            self.shared.blocked.borrow_mut().drain(..).for_each(Waker::wake);
        }
        Ok(())
    }

    /// Handles the datagrams that other workers, or another process, have passed to this worker.
    fn receive_forwarded(&mut self, context: &Context<'_>, decide: &impl Fn(SocketAddr) -> NewConnection) {
        let waiting = self.inbox.take(context.waker());
        if waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        for ForwardedDatagram {
            source,
            destination,
            ecn,
            bytes,
        } in waiting
        {
            let meta = RecvMeta {
                source,
                destination,
                ecn,
                length: bytes.len(),
                segment: bytes.len(),
            };
            let acceptor = self.handle(context.waker(), now, &meta, BytesMut::from(&bytes[..]), decide);
            // This worker has stopped since the datagram was passed to it, and another worker accepts the connection.
            if let Some(worker) = acceptor {
                self.forward(worker, &meta, &bytes);
            }
            // A datagram of an open connection is not forwarded again, because it could circulate between workers.
            self.misrouted.take();
        }
    }

    /// Handles received datagrams, and passes those of other workers or older processes on.
    fn receive(&mut self, waker: &Waker, buffers: &RecvBuffers, decide: &impl Fn(SocketAddr) -> NewConnection) {
        let now = Instant::now();
        self.relays.retain_open();
        for (meta, datagrams) in buffers.batches() {
            // One allocation for all datagrams of a batch.
            let mut copy = BytesMut::with_capacity(meta.length);
            for datagram in datagrams {
                // Any datagram may belong to an older process, and a handshake that belongs to another worker would
                // look like a new connection. `misrouted` finds the other datagrams of other workers.
                let may_be_foreign = !self.relays.is_empty() || has_long_header(datagram);
                if may_be_foreign && self.pass_on(meta, datagram) {
                    continue;
                }
                copy.extend_from_slice(datagram);
                let acceptor = self.handle(waker, now, meta, copy.split(), decide);
                if let Some(worker) = acceptor.or_else(|| Some(self.misrouted.take()?.worker)) {
                    self.forward(worker, meta, datagram);
                }
            }
        }
    }

    /// Passes a datagram to the older process, or to the other worker of this process, that owns its connection.
    /// Returns false if this worker has to handle the datagram.
    fn pass_on(&mut self, meta: &RecvMeta, datagram: &[u8]) -> bool {
        let owner = destination_id(datagram).and_then(|id| self.keys.connection_id.owner(id));
        match owner {
            Some(owner) if owner.generation != self.owner.generation => self.relays.send(owner, meta, datagram),
            Some(owner) if owner.worker != self.owner.worker => self.forward(owner.worker, meta, datagram),
            _ => false,
        }
    }

    /// Passes a datagram to another worker of this process. Returns false if the worker has ended.
    fn forward(&self, worker: u16, meta: &RecvMeta, datagram: &[u8]) -> bool {
        self.inbox.forwarding().send(
            worker,
            ForwardedDatagram {
                source: meta.source,
                destination: meta.destination,
                ecn: meta.ecn,
                bytes: datagram.to_vec(),
            },
        )
    }

    /// Handles one datagram: passes it to its connection, decides on a new connection, or sends a response. If the
    /// datagram begins a connection and this worker is stopping, returns the number of the worker that must handle it
    /// instead.
    fn handle(
        &mut self,
        waker: &Waker,
        now: Instant,
        meta: &RecvMeta,
        datagram: BytesMut,
        decide: &impl Fn(SocketAddr) -> NewConnection,
    ) -> Option<u16> {
        self.response_buffer.clear();
        let core = &mut *self.shared.core.borrow_mut();
        let ecn = EcnCodepoint::from_bits(meta.ecn as u8);
        let handled = core.endpoint.handle(
            now,
            meta.source,
            meta.destination,
            ecn,
            datagram,
            &mut self.response_buffer,
        );
        let response = match handled {
            None => return None,
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(Some(mailbox)) = core.connections.get(handle.0) {
                    mailbox.events.borrow_mut().push_back(event);
                    mailbox.wake();
                }
                return None;
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.is_stopped
                    && let Some(worker) = self.inbox.acceptor(meta.destination, meta.source)
                {
                    core.endpoint.ignore(incoming);
                    return Some(worker);
                }
                let handshakes = self.shared.handshakes.get();
                let decision = decide(meta.source);
                if decision == NewConnection::Ignore {
                    core.endpoint.ignore(incoming);
                    return None;
                }
                let is_full = handshakes >= MAX_HANDSHAKES || decision == NewConnection::Refuse;
                let admission = if self.is_stopped || is_full {
                    Admission::Refuse
                } else if handshakes >= RETRY_THRESHOLD && incoming.may_retry() && !incoming.remote_address_validated()
                {
                    Admission::Retry
                } else {
                    Admission::Accept
                };
                let mut config = ServerConfig::clone(&self.server_config);
                config.crypto = Arc::new(self.tls.at(incoming.local_ip()));
                let trace = match (admission, &self.traces) {
                    (Admission::Accept, Some(traces)) => {
                        let (trace, stream) = ConnectionTrace::new();
                        config.transport_config(Arc::new(config::transport_config(stream)));
                        Some((trace, traces, *incoming.orig_dst_cid()))
                    }
                    _ => None,
                };
                let is_validated = incoming.remote_address_validated();
                match admit(
                    core,
                    admission,
                    incoming,
                    Arc::new(config),
                    now,
                    &mut self.response_buffer,
                ) {
                    Admitted::Connection(handle, inner) => {
                        if let Some((trace, traces, id)) = trace {
                            trace.accept(&**traces, id);
                        }
                        let mailbox = core.insert(handle);
                        let shared = Rc::clone(&self.shared);
                        self.accepted
                            .push_back(Connection::new(shared, mailbox, handle, inner, is_validated));
                        return None;
                    }
                    Admitted::Response(response) => response,
                    Admitted::Nothing => return None,
                }
            }
            // A client whose connection was just closed could receive a stateless reset together with the close frame,
            // and report the reset in place of the reason.
            Some(DatagramEvent::Response(_)) if self.is_stopped => return None,
            Some(DatagramEvent::Response(response)) => response,
        };
        // The response is not sent again: if the socket does not accept it, the client repeats its packet.
        let mut transmit = to_transmit(&response, &self.response_buffer);
        self.shared.send(waker, &mut transmit);
        None
    }
}

/// Decision of the caller on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewConnection {
    /// The connection may be accepted.
    Accept,
    /// The connection is refused, because there is no room.
    Refuse,
    /// The client gets no response.
    Ignore,
}

/// Final decision on a new connection, after the decision of the caller and the limits on handshakes.
#[derive(Clone, Copy)]
enum Admission {
    Accept,
    /// The client has to prove its address first.
    Retry,
    Refuse,
}

/// Result of [`admit`]: a connection, a datagram to send to the client, or nothing to send.
enum Admitted {
    Connection(ConnectionHandle, Box<quinn_proto::Connection>),
    Response(quinn_proto::Transmit),
    Nothing,
}

/// Carries out the decision on a new connection. A response is written to `out`.
fn admit(
    core: &mut Core,
    admission: Admission,
    incoming: Incoming,
    config: Arc<ServerConfig>,
    now: Instant,
    out: &mut Vec<u8>,
) -> Admitted {
    match admission {
        Admission::Accept => match core.endpoint.accept(incoming, now, out, Some(config)) {
            Ok((handle, connection)) => Admitted::Connection(handle, Box::new(connection)),
            Err(error) => {
                tracing::debug!("a connection was not accepted: {}", error.cause);
                error.response.map_or(Admitted::Nothing, Admitted::Response)
            }
        },
        Admission::Retry => match core.endpoint.retry(incoming, out) {
            Ok(response) => Admitted::Response(response),
            Err(error) => {
                core.endpoint.ignore(error.into_incoming());
                Admitted::Nothing
            }
        },
        Admission::Refuse => Admitted::Response(core.endpoint.refuse(incoming, out)),
    }
}
