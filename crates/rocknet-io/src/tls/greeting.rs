//! The greeting: what a peer says first. It tells TLS from plain text, and for which name a configuration is wanted.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use rustls::ServerConfig;
use rustls::server::{Accepted, Acceptor, ClientHello};

use super::{Buffers, Tls, session};
use crate::link::{Link, Received};
use crate::queue::SendQueue;

/// The content type of a handshake record: the first byte of all who speak TLS.
const HANDSHAKE: u8 = 22;
/// Where the first message of a record says its kind, and where a ClientHello says its version (RFC 5246 §7.4).
const MESSAGE: usize = 5;
const CLIENT_HELLO: u8 = 1;
const CLIENT_VERSION: std::ops::Range<usize> = 9..11;
const TLS_1_2: [u8; 2] = [3, 3];
/// RFC 5246 §7.2: a version that nobody speaks any more.
const PROTOCOL_VERSION: u8 = 70;
/// Largest ClientHello taken, with its record headers. Browsers send about 2 KiB; a hybrid key share is 1.2 KiB.
const HELLO_BOUND: usize = 16 * 1024;

pub struct Greeting<L> {
    link: L,
    buffers: Rc<Buffers>,
    acceptor: Acceptor,
    accepted: Option<Accepted>,
    /// All that has come.
    bytes: Vec<u8>,
}

/// What it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greeted {
    /// A whole ClientHello.
    Tls,
    /// Something else.
    Plain,
}

impl<L: Link> Greeting<L> {
    pub fn new(link: L, buffers: &Rc<Buffers>) -> Greeting<L> {
        Greeting {
            link,
            buffers: Rc::clone(buffers),
            acceptor: Acceptor::default(),
            accepted: None,
            bytes: Vec::new(),
        }
    }

    /// Whether the peer has said anything.
    pub fn is_silent(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether what came begins as a request in the clear does: a method in capitals, and a space.
    pub fn looks_like_text(&self, longest: usize) -> bool {
        let start = &self.bytes[..self.bytes.len().min(longest)];
        let method = start.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        method > 0 && start.get(method).is_none_or(|byte| *byte == b' ')
    }

    /// Receives until it is known what the peer wants. An error ends the connection; the alert for it has been sent.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Greeted>> {
        if self.accepted.is_some() {
            return Poll::Ready(Ok(Greeted::Tls));
        }
        loop {
            let buffers = Rc::clone(&self.buffers);
            let incoming = &mut buffers.incoming.borrow_mut()[..];
            let received = ready!(self.link.poll_recv(context, &mut incoming[..HELLO_BOUND]))?;
            let got: &[u8] = match &received {
                Received::Lent(bytes) => bytes,
                Received::Held(bytes) => bytes,
            };
            let Some(&first) = self.bytes.first().or(got.first()) else {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            };
            if got.is_empty() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            self.bytes.extend_from_slice(got);
            if first != HANDSHAKE {
                return Poll::Ready(Ok(Greeted::Plain));
            }
            if self.bytes.len() > HELLO_BOUND {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            self.acceptor.read_tls(&mut &*got)?;
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    self.accepted = Some(accepted);
                    return Poll::Ready(Ok(Greeted::Tls));
                }
                Err((error, mut alert)) => {
                    if self.is_outdated() {
                        self.refuse(PROTOCOL_VERSION);
                    } else {
                        let mut records = SendQueue::default();
                        alert.write_all(records.buffer())?;
                        self.send(&mut records);
                    }
                    return Poll::Ready(Err(session::broken(error)));
                }
            }
        }
    }

    /// Whether the newest version of a client is TLS 1.1 or older: what else is amiss with its hello comes of that, and it
    /// is to hear which of the two it was (RFC 5246 §E.1).
    fn is_outdated(&self) -> bool {
        let version = self.bytes.get(CLIENT_VERSION);
        self.bytes.get(MESSAGE) == Some(&CLIENT_HELLO) && version.is_some_and(|version| version < &TLS_1_2[..])
    }

    /// What the client asks for.
    pub fn hello(&self) -> Option<ClientHello<'_>> {
        self.accepted.as_ref().map(Accepted::client_hello)
    }

    /// Refuses with a fatal alert in the clear, before any key is agreed on.
    pub fn refuse(&mut self, alert: u8) {
        /// Alert, as TLS 1.2 or an older record version; two bytes; fatal.
        const FATAL: [u8; 6] = [21, 3, 3, 0, 2, 2];
        let mut records = SendQueue::default();
        records.buffer().extend_from_slice(&FATAL);
        records.buffer().push(alert);
        self.send(&mut records);
    }

    /// Goes on with the configuration that was chosen.
    pub fn accept(self, config: Arc<ServerConfig>) -> io::Result<Tls<L>> {
        Tls::accept(self.link, config, self.buffers, self.bytes)
    }

    /// The inner link and what it has said.
    pub fn into_plain(self) -> (L, Vec<u8>) {
        (self.link, self.bytes)
    }

    /// Sends a few bytes as far as that can be done without waiting: to a peer that has sent a few itself it can.
    fn send(&mut self, records: &mut SendQueue) {
        let _ = self.link.poll_send(&mut Context::from_waker(Waker::noop()), records);
        let _ = self.link.shut_down();
    }
}
