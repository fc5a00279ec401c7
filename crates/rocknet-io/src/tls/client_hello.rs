//! The greeting: what a peer says first. It tells TLS from plain text, and for which name a configuration is wanted.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use rustls::server::{Accepted, AcceptedAlert, Acceptor, ClientHello};
use rustls::{Error, ServerConfig};

use super::{Tls, TlsBuffers, session};
use crate::link::{Link, Received};
use crate::queue::SendQueue;

/// The content type of a handshake record: the first byte of all who speak TLS.
const HANDSHAKE: u8 = 22;
/// Where the first message of a record says its kind, and where a ClientHello says its version (RFC 5246 §7.4).
const MESSAGE_TYPE: usize = 5;
const CLIENT_HELLO: u8 = 1;
const CLIENT_VERSION: std::ops::Range<usize> = 9..11;
const TLS_1_2: [u8; 2] = [3, 3];
/// RFC 5246 §7.2: a version that nobody speaks any more.
const PROTOCOL_VERSION: u8 = 70;
/// RFC 8446 §6.2: a message or record that cannot be decoded, or is longer than allowed.
const DECODE_ERROR: u8 = 50;
/// RFC 8446 §6.2: a message that is valid elsewhere, but not in a ClientHello's place.
const UNEXPECTED_MESSAGE: u8 = 10;
/// RFC 8446 §6.1: the handshake is given up for a reason that is no fault of the protocol; close_notify follows it.
const USER_CANCELED: u8 = 90;
const CLOSE_NOTIFY: u8 = 0;
/// Levels of alerts.
const WARNING: u8 = 1;
const FATAL: u8 = 2;
/// Maximum size of a ClientHello with its record headers: as much as rustls's `Acceptor` buffers. Browsers send about 2 KiB,
/// but a ticket that holds a long client chain, or post-quantum key shares, make more of it.
pub(super) const MAX_CLIENT_HELLO: usize = 0xffff;
/// Bytes received at once.
const RECEIVE_BUFFER: usize = 16 * 1024;

pub struct ClientHelloAcceptor<L> {
    link: L,
    buffers: Rc<TlsBuffers>,
    acceptor: Acceptor,
    accepted: Option<Accepted>,
    /// All that has come.
    bytes: Vec<u8>,
}

/// What it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstBytes {
    /// A whole ClientHello.
    ClientHello,
    /// Something else.
    NotTls,
}

impl<L: Link> ClientHelloAcceptor<L> {
    pub fn new(link: L, buffers: &Rc<TlsBuffers>) -> ClientHelloAcceptor<L> {
        ClientHelloAcceptor {
            link,
            buffers: Rc::clone(buffers),
            acceptor: Acceptor::default(),
            accepted: None,
            bytes: Vec::new(),
        }
    }

    /// Whether the peer has said anything.
    pub fn has_received_nothing(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether what came begins as a request in the clear does: a method in capitals, and a space.
    pub fn looks_like_http(&self, max_method: usize) -> bool {
        let start = &self.bytes[..self.bytes.len().min(max_method)];
        let method = start.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        method > 0 && start.get(method).is_none_or(|byte| *byte == b' ')
    }

    /// Receives until it is known what the peer wants. An error ends the connection; the alert for it has been sent.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<FirstBytes>> {
        if self.accepted.is_some() {
            return Poll::Ready(Ok(FirstBytes::ClientHello));
        }
        loop {
            let buffers = Rc::clone(&self.buffers);
            let incoming = &mut buffers.incoming.borrow_mut()[..];
            let received = ready!(self.link.poll_recv(context, &mut incoming[..RECEIVE_BUFFER]))?;
            let got: &[u8] = match &received {
                Received::Lent(bytes) => bytes,
                Received::Held(bytes) => bytes,
            };
            let Some(&first) = self.bytes.first().or(got.first()) else {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            };
            if got.is_empty() {
                drop(received);
                self.cancel();
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            self.bytes.extend_from_slice(got);
            if first != HANDSHAKE {
                return Poll::Ready(Ok(FirstBytes::NotTls));
            }
            let mut rest = got;
            while !rest.is_empty() {
                // Takes at most 4 KiB at once, and nothing more when its buffer is full.
                if self.acceptor.read_tls(&mut rest).is_err() {
                    self.send_fatal_alert(DECODE_ERROR);
                    return Poll::Ready(Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("the ClientHello is larger than {MAX_CLIENT_HELLO} bytes"),
                    )));
                }
                match self.acceptor.accept() {
                    Ok(None) => {}
                    Ok(Some(accepted)) => {
                        // What follows it is handed on with all other bytes.
                        self.accepted = Some(accepted);
                        return Poll::Ready(Ok(FirstBytes::ClientHello));
                    }
                    Err((error, alert)) => {
                        self.send_alert_for(&error, alert);
                        return Poll::Ready(Err(session::to_io_error(error)));
                    }
                }
            }
        }
    }

    /// Sends the alert for a ClientHello that rustls did not accept. For some faults it makes none.
    fn send_alert_for(&mut self, error: &Error, mut alert: AcceptedAlert) {
        let mut records = SendQueue::default();
        let made = alert.write_all(records.buffer());
        if self.is_before_tls_1_2() {
            self.send_fatal_alert(PROTOCOL_VERSION);
        } else if made.is_err() || records.is_empty() {
            self.send_fatal_alert(match error {
                Error::PeerMisbehaved(_) => UNEXPECTED_MESSAGE,
                _ => DECODE_ERROR,
            });
        } else {
            self.send(&mut records);
        }
    }

    /// Whether the newest version of a client is TLS 1.1 or older: what else is amiss with its hello comes of that, and it
    /// is to hear which of the two it was (RFC 5246 §E.1).
    fn is_before_tls_1_2(&self) -> bool {
        let version = self.bytes.get(CLIENT_VERSION);
        self.bytes.get(MESSAGE_TYPE) == Some(&CLIENT_HELLO) && version.is_some_and(|version| version < &TLS_1_2[..])
    }

    /// What the client asks for.
    pub fn client_hello(&self) -> Option<ClientHello<'_>> {
        self.accepted.as_ref().map(Accepted::client_hello)
    }

    /// Refuses with a fatal alert in the clear, before any key is agreed on.
    pub fn send_fatal_alert(&mut self, alert: u8) {
        self.send_alerts(&[[FATAL, alert]]);
    }

    /// Gives the handshake up in the clear, because the client has used up its time or has ended its side.
    pub fn cancel(&mut self) {
        self.send_alerts(&[[WARNING, USER_CANCELED], [WARNING, CLOSE_NOTIFY]]);
    }

    fn send_alerts(&mut self, alerts: &[[u8; 2]]) {
        /// Alert, as TLS 1.2 or an older record version; two bytes.
        const HEADER: [u8; 5] = [21, 3, 3, 0, 2];
        let mut records = SendQueue::default();
        for alert in alerts {
            records.buffer().extend_from_slice(&HEADER);
            records.buffer().extend_from_slice(alert);
        }
        self.send(&mut records);
    }

    /// Goes on with the configuration that was chosen.
    pub fn accept(self, config: Arc<ServerConfig>) -> io::Result<Tls<L>> {
        Tls::accept(self.link, config, self.buffers, self.bytes)
    }

    /// The inner link and what it has said.
    pub fn into_parts(self) -> (L, Vec<u8>) {
        (self.link, self.bytes)
    }

    /// Sends a few bytes as far as that can be done without waiting: to a peer that has sent a few itself it can.
    fn send(&mut self, records: &mut SendQueue) {
        let _ = self.link.poll_send(&mut Context::from_waker(Waker::noop()), records);
        let _ = self.link.shut_down();
    }
}
