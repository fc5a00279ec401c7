//! ClientHello acceptor: receives the first bytes of a connection, distinguishes TLS from plaintext, and reads the
//! ClientHello so that the server can choose a configuration.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use rustls::server::{Accepted, AcceptedAlert, Acceptor, ClientHello};
use rustls::{Error, ServerConfig};

use super::{Tls, TlsBuffers, session};
use crate::link::{Link, Received};
use crate::queue::SendQueue;

/// Content type of a handshake record, which is the first byte of every TLS connection.
const HANDSHAKE: u8 = 22;
/// Offset of the type of the first handshake message (RFC 5246 §7.4), counted from the record header.
const MESSAGE_TYPE: usize = 5;
/// Type of a ClientHello (RFC 5246 §7.4).
const CLIENT_HELLO: u8 = 1;
/// Offsets of the two bytes of the version in a ClientHello (RFC 5246 §7.4.1.2), counted from the record header.
const CLIENT_VERSION: std::ops::Range<usize> = 9..11;
/// Version number of TLS 1.2 (RFC 5246 §A.1).
const TLS_1_2: [u8; 2] = [3, 3];
/// Alert for an offered version that is not supported (RFC 5246 §7.2).
const PROTOCOL_VERSION: u8 = 70;
/// Alert for a message or record that cannot be decoded, or is too long (RFC 8446 §6.2).
const DECODE_ERROR: u8 = 50;
/// Alert for a message that is not permitted at this point (RFC 8446 §6.2).
const UNEXPECTED_MESSAGE: u8 = 10;
/// Alert for a handshake that is cancelled without a protocol error (RFC 8446 §6.1). The alert close_notify follows.
const USER_CANCELED: u8 = 90;
/// Alert for the end of the sender's data (RFC 8446 §6.1).
const CLOSE_NOTIFY: u8 = 0;
// Alert levels (RFC 8446 §6).
const WARNING: u8 = 1;
const FATAL: u8 = 2;
/// Maximum size of a ClientHello with its record headers: the limit of rustls's `Acceptor`. Browsers send about 2 KiB.
/// A ticket with a long client certificate chain, or post-quantum key shares, make the message larger.
pub(super) const MAX_CLIENT_HELLO: usize = 0xffff;
/// Size of one receive in bytes.
const RECEIVE_BUFFER: usize = 16 * 1024;

/// Receives the ClientHello of a connection.
pub struct ClientHelloAcceptor<L> {
    link: L,
    buffers: Rc<TlsBuffers>,
    acceptor: Acceptor,
    /// The ClientHello, once it is complete.
    accepted: Option<Accepted>,
    /// All bytes received.
    bytes: Vec<u8>,
}

/// Kind of the first bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstBytes {
    /// A complete ClientHello.
    ClientHello,
    /// Anything else; the connection does not use TLS.
    NotTls,
}

impl<L: Link> ClientHelloAcceptor<L> {
    /// Creates an acceptor for a link from which nothing has been received.
    pub fn new(link: L, buffers: &Rc<TlsBuffers>) -> ClientHelloAcceptor<L> {
        ClientHelloAcceptor {
            link,
            buffers: Rc::clone(buffers),
            acceptor: Acceptor::default(),
            accepted: None,
            bytes: Vec::new(),
        }
    }

    /// Returns whether no byte has been received.
    pub fn has_received_nothing(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns whether the bytes received look like the start of an HTTP request: at least one uppercase letter, and
    /// only uppercase letters up to the first space. Only the first `max_method` bytes are examined; a space is not
    /// required.
    pub fn looks_like_http(&self, max_method: usize) -> bool {
        let start = &self.bytes[..self.bytes.len().min(max_method)];
        let method = start.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        method > 0 && start.get(method).is_none_or(|byte| *byte == b' ')
    }

    /// Receives until the kind of the connection is known.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the client closes the connection without sending anything; `ConnectionAborted` if it closes
    /// the connection within the ClientHello; `InvalidData` if the ClientHello is invalid or too large. In the last two
    /// cases an alert has been sent. Otherwise the error of the link.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<FirstBytes>> {
        if self.accepted.is_some() {
            return Poll::Ready(Ok(FirstBytes::ClientHello));
        }
        loop {
            let buffers = Rc::clone(&self.buffers);
            let incoming = &mut buffers.incoming.borrow_mut()[..];
            let received = ready!(self.link.poll_recv(context, &mut incoming[..RECEIVE_BUFFER]))?;
            let got: &[u8] = match &received {
                Received::Borrowed(bytes) => bytes,
                Received::Owned(bytes) => bytes,
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
                // `read_tls` reads at most 4 KiB per call, and fails once its buffer is full.
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
                        // `bytes` also contains data received after the ClientHello. `ClientHelloAcceptor::accept`
                        // passes all of it to the session.
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

    /// Sends the alert for a ClientHello that rustls rejected. For some errors rustls creates no alert, so this
    /// function chooses one.
    fn send_alert_for(&mut self, error: &Error, mut alert: AcceptedAlert) {
        let mut records = SendQueue::default();
        let written = alert.write_all(records.buffer());
        if self.is_before_tls_1_2() {
            self.send_fatal_alert(PROTOCOL_VERSION);
        } else if written.is_err() || records.is_empty() {
            self.send_fatal_alert(match error {
                Error::PeerMisbehaved(_) => UNEXPECTED_MESSAGE,
                _ => DECODE_ERROR,
            });
        } else {
            self.send(&mut records);
        }
    }

    /// Returns whether the newest version that the client supports is TLS 1.1 or older. Other errors in such a
    /// ClientHello result from its version, so the alert has to be protocol_version (RFC 5246 §E.1).
    fn is_before_tls_1_2(&self) -> bool {
        let version = self.bytes.get(CLIENT_VERSION);
        self.bytes.get(MESSAGE_TYPE) == Some(&CLIENT_HELLO) && version.is_some_and(|version| version < &TLS_1_2[..])
    }

    /// Returns the ClientHello once it has been received.
    pub fn client_hello(&self) -> Option<ClientHello<'_>> {
        self.accepted.as_ref().map(Accepted::client_hello)
    }

    /// Sends a fatal unencrypted alert with this description (RFC 8446 §6), and closes the sending direction.
    pub fn send_fatal_alert(&mut self, alert: u8) {
        self.send_alerts(&[[FATAL, alert]]);
    }

    /// Cancels the handshake with the unencrypted alerts user_canceled and close_notify, and closes the sending
    /// direction. Called after a timeout, or when the client has closed its side.
    pub fn cancel(&mut self) {
        self.send_alerts(&[[WARNING, USER_CANCELED], [WARNING, CLOSE_NOTIFY]]);
    }

    /// Sends unencrypted alerts, each with its level and description, and closes the sending direction.
    fn send_alerts(&mut self, alerts: &[[u8; 2]]) {
        /// Header of a record with one alert: content type 21, the record version of TLS 1.2, and the length 2 of
        /// an alert.
        const HEADER: [u8; 5] = [21, 3, 3, 0, 2];
        let mut records = SendQueue::default();
        for alert in alerts {
            records.buffer().extend_from_slice(&HEADER);
            records.buffer().extend_from_slice(alert);
        }
        self.send(&mut records);
    }

    /// Continues the handshake with the chosen configuration.
    ///
    /// # Errors
    ///
    /// Fails if rustls rejects the configuration.
    pub fn accept(self, config: Arc<ServerConfig>) -> io::Result<Tls<L>> {
        Tls::accept(self.link, config, self.buffers, self.bytes)
    }

    /// Returns the inner link and the bytes received.
    pub fn into_parts(self) -> (L, Vec<u8>) {
        (self.link, self.bytes)
    }

    /// Sends a few bytes without waiting, and closes the sending direction. The socket accepts the bytes, because
    /// nothing has been sent on it before.
    fn send(&mut self, records: &mut SendQueue) {
        let _ = self.link.poll_send(&mut Context::from_waker(Waker::noop()), records);
        let _ = self.link.shut_down();
    }
}
