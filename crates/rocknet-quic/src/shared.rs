//! State that an endpoint shares with its connections: the socket, the protocol state, and a mailbox for each
//! connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;
use std::time::Instant;

use quinn_proto::{ConnectionEvent, ConnectionHandle, EcnCodepoint, EndpointEvent};
use rocknet_io::udp::{Ecn, Transmit, UdpSocket};

use crate::timers::Timers;

/// State that the endpoint and its connections share.
pub(crate) struct Shared {
    pub socket: RefCell<UdpSocket>,
    pub core: RefCell<Core>,
    /// Buffer for the datagrams of one send.
    pub transmit: RefCell<Vec<u8>>,
    /// Tasks that wait until the socket takes datagrams.
    pub blocked: RefCell<Vec<Waker>>,
    /// Waker of the task of the endpoint, which waits for the socket on behalf of all connections.
    pub endpoint_waker: RefCell<Option<Waker>>,
    /// Number of connections whose handshake is in progress.
    pub handshakes: Cell<usize>,
}

/// Protocol state of the endpoint, and the table of its connections.
pub(crate) struct Core {
    pub endpoint: quinn_proto::Endpoint,
    pub timers: Timers,
    /// Mailboxes by connection handle; `None` if no connection has the handle.
    pub connections: Vec<Option<Rc<Mailbox>>>,
}

/// Queue of events from the endpoint for one connection, with the waker of its task.
#[derive(Default)]
pub(crate) struct Mailbox {
    pub events: RefCell<VecDeque<ConnectionEvent>>,
    /// Waker of the task of the connection; `None` before its first poll.
    pub waker: RefCell<Option<Waker>>,
    /// Moment at which the timers wake the connection; `None` if the timers have no moment for it.
    pub armed: Cell<Option<Instant>>,
}

impl Mailbox {
    /// Wakes the task of the connection.
    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl Shared {
    /// Sends datagrams. Returns true if the socket has accepted them all; otherwise `waker` is woken when the socket
    /// may accept more. Datagrams that cannot be sent because of an error count as accepted, as if the network had lost
    /// them.
    pub fn send(&self, waker: &Waker, transmit: &mut Transmit<'_>) -> bool {
        match self.socket.borrow().try_send(transmit) {
            Ok(true) => true,
            Ok(false) => {
                self.blocked.borrow_mut().push(waker.clone());
                // The task of the endpoint begins to wait for the socket.
                if let Some(endpoint_waker) = &*self.endpoint_waker.borrow() {
                    endpoint_waker.wake_by_ref();
                }
                false
            }
            Err(error) => {
                tracing::debug!(client = %transmit.destination, "datagrams were not sent: {error}");
                true
            }
        }
    }

    /// Passes an event of a connection to the endpoint, and returns the event in reply, if any.
    pub fn handle_event(&self, handle: ConnectionHandle, event: EndpointEvent) -> Option<ConnectionEvent> {
        let core = &mut *self.core.borrow_mut();
        // The draining period of the connection is over (RFC 9000 §10.2.2), or its handle was dropped. In both cases it
        // needs no further datagrams.
        if event.is_drained()
            && let Some(mailbox) = core.connections.get_mut(handle.0).and_then(Option::take)
        {
            core.timers.remove(handle.0, mailbox.armed.take());
        }
        core.endpoint.handle_event(handle, event)
    }
}

impl Core {
    /// Adds a connection to the table.
    pub fn insert(&mut self, handle: ConnectionHandle) -> Rc<Mailbox> {
        let mailbox = Rc::<Mailbox>::default();
        if handle.0 >= self.connections.len() {
            self.connections.resize_with(handle.0 + 1, || None);
        }
        self.connections[handle.0] = Some(Rc::clone(&mailbox));
        mailbox
    }
}

/// Converts a transmit of quinn-proto, whose datagrams are at the start of `bytes`.
pub(crate) fn to_transmit<'b>(transmit: &quinn_proto::Transmit, bytes: &'b [u8]) -> Transmit<'b> {
    let bytes = &bytes[..transmit.size];
    Transmit {
        destination: transmit.destination,
        source: transmit.src_ip,
        ecn: match transmit.ecn {
            None => Ecn::None,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Congested,
        },
        bytes,
        segment: transmit.segment_size.unwrap_or(bytes.len()).max(1),
    }
}
