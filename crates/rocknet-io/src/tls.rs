//! TLS as a Link over any Link: plain text goes in and comes out, records go over the inner link.
//!
//! ```text
//! ClientHelloAcceptor ──whole ClientHello──▶ (the server chooses a configuration) ──▶ Tls: handshake ──▶ Tls: a Link
//!     └──first byte is no TLS──▶ Plain: the inner link and what it said
//! Tls::connect ──our own ClientHello──▶ Tls: handshake ──▶ Tls: a Link
//! ```
//! An idle connection keeps the keys and nothing else: records are read, opened and written in the worker's
//! [`TlsBuffers`]. Only the part of a record that has not come whole, and records that the socket did not take, are its own.

mod buffers;
mod client_hello;
mod record_size;
mod session;
mod side;

#[cfg(test)]
mod tests;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, ServerConfig};

use crate::link::{Link, Received};
use crate::queue::SendQueue;

pub use buffers::TlsBuffers;
pub use client_hello::{ClientHelloAcceptor, FirstBytes};
pub use record_size::MAX_RECORD_PLAINTEXT;
pub use session::Negotiated;

use buffers::{BATCH, MAX_PARTIAL_HANDSHAKE};
use record_size::RecordSize;
use session::Session;
use side::Side;

/// The side of whoever accepted the connection.
pub type ServerSide = UnbufferedServerConnection;
/// The side of whoever opened it.
pub type ClientSide = UnbufferedClientConnection;

/// Most plain text of a file sent before other connections get their turn.
const FILE_BYTES_PER_POLL: u64 = 512 << 10;
/// What a peer may leave incomplete after the handshake: a record (18 KiB under TLS 1.2), or a handshake message over several.
const MAX_PARTIAL: usize = 40 * 1024;
/// How an end that was not told is told.
const TRUNCATED: &str = "the connection closed without close_notify";

pub struct Tls<L, S = ServerSide> {
    link: L,
    session: Session<S>,
    buffers: Rc<TlsBuffers>,
    /// Records that have not come whole; empty for an idle connection.
    partial: Vec<u8>,
    /// Plain text that found no room in the buffer that was offered.
    unread: Vec<u8>,
    /// Records that the inner link did not take.
    backlog: Option<Box<SendQueue>>,
    record_size: RecordSize,
    /// Records made before they are handed on: records that the inner link does not take can no longer be overtaken.
    batch: usize,
    /// Nothing more may be sent: the end was told, or something went wrong.
    closed: bool,
    /// The inner link takes nothing more.
    is_shut_down: bool,
}

impl<L: Link> Tls<L> {
    fn accept(link: L, config: Arc<ServerConfig>, buffers: Rc<TlsBuffers>, partial: Vec<u8>) -> io::Result<Tls<L>> {
        let connection = UnbufferedServerConnection::new(config).map_err(session::to_io_error)?;
        Ok(Tls::new(link, connection, buffers, partial))
    }
}

impl<L: Link> Tls<L, ClientSide> {
    /// Opens a session with a server of that name, over a link on which nothing was said. The handshake is still to be
    /// driven; its first words leave with the first poll.
    pub fn connect(
        link: L,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        buffers: &Rc<TlsBuffers>,
    ) -> io::Result<Tls<L, ClientSide>> {
        let connection = UnbufferedClientConnection::new(config, name).map_err(session::to_io_error)?;
        let mut tls = Tls::new(link, connection, Rc::clone(buffers), Vec::new());
        let mut hello = SendQueue::default();
        tls.session
            .decrypt(&mut [], hello.buffer(), |_| ())
            .map_err(session::to_io_error)?;
        tls.backlog = Some(Box::new(hello));
        Ok(tls)
    }
}

impl<L: Link, S: Side> Tls<L, S> {
    fn new(link: L, connection: S, buffers: Rc<TlsBuffers>, partial: Vec<u8>) -> Tls<L, S> {
        Tls {
            link,
            session: Session::new(connection),
            buffers,
            partial,
            unread: Vec::new(),
            backlog: None,
            record_size: RecordSize::default(),
            batch: BATCH,
            closed: false,
            is_shut_down: false,
        }
    }

    /// Drives the handshake to its end. A peer that has done something wrong is sent the alert that says so.
    pub fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            // What lies there may be the whole hello, or the rest of the handshake behind it.
            if !self.partial.is_empty() {
                let buffers = Rc::clone(&self.buffers);
                let filled = std::mem::take(&mut self.partial);
                let incoming = &mut buffers.incoming.borrow_mut()[..];
                incoming[..filled.len()].copy_from_slice(&filled);
                self.decrypt(context, incoming, filled.len(), &mut [])?;
            }
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if self.backlog.is_some() {
                ready!(self.send_backlog(context))?;
            }
            if self.session.peer_has_closed() || ready!(self.receive(context, &mut []))?.is_none() {
                self.abort_handshake();
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Gives a handshake up, for instance because its time is over: sends a fatal alert as far as that can be done without
    /// waiting. Does nothing where an alert was sent already, or the link has failed.
    pub fn abort_handshake(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let buffers = Rc::clone(&self.buffers);
        let outgoing = &mut *buffers.outgoing.borrow_mut();
        outgoing.clear();
        let room = &mut buffers.incoming.borrow_mut()[..self.partial.len() + buffers::SPARE];
        if self.session.write_fatal_alert(room, outgoing.buffer()).is_ok() {
            // Whether the peer hears of it or not, this was all.
            let _ = self.send_records(&mut Context::from_waker(Waker::noop()), outgoing);
        }
    }

    /// Returns the inner link once the handshake has failed, to end it in the clear: nothing can be said under TLS any more.
    pub fn into_link(self) -> L {
        self.link
    }

    /// What the handshake has settled; of meaning once it is over.
    pub fn negotiated(&self) -> Negotiated<'_> {
        self.session.negotiated()
    }

    /// Receives once and opens what came. `None`: the inner link has ended. Else the bytes put into `plain`; what found
    /// no room there is `unread`.
    fn receive(&mut self, context: &mut Context<'_>, plain: &mut [u8]) -> Poll<io::Result<Option<usize>>> {
        let buffers = Rc::clone(&self.buffers);
        let incoming = &mut buffers.incoming.borrow_mut()[..];
        let at = self.partial.len();
        let end = incoming.len() - buffers::SPARE;
        let got = match ready!(self.link.poll_recv(context, &mut incoming[at..end]))? {
            Received::Lent(bytes) => bytes.len(),
            Received::Held(bytes) => {
                let room = end - at;
                if bytes.len() > room {
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                incoming[at..at + bytes.len()].copy_from_slice(&bytes);
                bytes.len()
            }
        };
        if got == 0 {
            return Poll::Ready(Ok(None));
        }
        incoming[..at].copy_from_slice(&self.partial);
        self.partial = Vec::new();
        Poll::Ready(self.decrypt(context, incoming, at + got, plain).map(Some))
    }

    /// Opens the records in `incoming[..filled]`, keeps what is not whole, and sends what they call for.
    fn decrypt(
        &mut self,
        context: &mut Context<'_>,
        incoming: &mut [u8],
        filled: usize,
        plain: &mut [u8],
    ) -> io::Result<usize> {
        let buffers = Rc::clone(&self.buffers);
        let outgoing = &mut *buffers.outgoing.borrow_mut();
        outgoing.clear();
        let (mut put, unread) = (0, &mut self.unread);
        let decrypted = self
            .session
            .decrypt(&mut incoming[..filled], outgoing.buffer(), |bytes| {
                let room = bytes.len().min(plain.len() - put);
                plain[put..put + room].copy_from_slice(&bytes[..room]);
                put += room;
                unread.extend_from_slice(&bytes[room..]);
            });
        let bound = if self.session.is_handshaking() {
            MAX_PARTIAL_HANDSHAKE
        } else {
            MAX_PARTIAL
        };
        let decrypted = decrypted.and_then(|used| {
            if filled - used > bound {
                return Err(rustls::Error::General(format!(
                    "a message is longer than {bound} bytes"
                )));
            }
            Ok(used)
        });
        // A peer that has given up itself is not answered (RFC 8446 §6.2). For some faults rustls makes no alert of its own.
        if let Err(error) = &decrypted
            && !matches!(error, rustls::Error::AlertReceived(_))
            && !self.closed
        {
            let room = &mut incoming[..filled + buffers::SPARE];
            // What was made before this failed leaves all the same.
            let _ = self.session.write_fatal_alert(room, outgoing.buffer());
        }
        let sent = self.send_records(context, outgoing);
        let used = decrypted
            .inspect_err(|_| self.closed = true)
            .map_err(session::to_io_error)?;
        sent?;
        self.partial = incoming[used..filled].to_vec();
        Ok(put)
    }

    fn send_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(backlog) = &mut self.backlog {
            let sent = ready!(self.link.poll_send(context, backlog));
            self.closed |= sent.is_err();
            sent?;
            self.backlog = None;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends records that have been made, behind those that wait already. True if all have left.
    fn send_records(&mut self, context: &mut Context<'_>, records: &mut SendQueue) -> io::Result<bool> {
        if self.is_shut_down {
            // Such as the answer to a change of keys, while the peer's last bytes are read.
            records.clear();
        }
        if records.is_empty() {
            return Ok(self.backlog.is_none());
        }
        if let Some(backlog) = &mut self.backlog {
            backlog.append_written(records);
            return Ok(false);
        }
        match self.link.poll_send(context, records) {
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(error)) => {
                records.clear();
                self.closed = true;
                Err(error)
            }
            Poll::Pending => {
                self.backlog = Some(Box::new(records.take_rest()));
                Ok(false)
            }
        }
    }

    /// Tells the peer that nothing more will come, as far as that can be done without waiting.
    fn send_close_notify(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.closed, true) || self.session.is_handshaking() {
            return Ok(());
        }
        let mut records = SendQueue::default();
        self.session
            .close(&mut self.partial, records.buffer())
            .map_err(session::to_io_error)?;
        self.send_records(&mut Context::from_waker(Waker::noop()), &mut records)?;
        Ok(())
    }
}

impl<L: Link, S: Side> Link for Tls<L, S> {
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        if !self.unread.is_empty() {
            let room = self.unread.len().min(buffer.len());
            buffer[..room].copy_from_slice(&self.unread[..room]);
            if room == self.unread.len() {
                self.unread = Vec::new();
            } else {
                self.unread.drain(..room);
            }
            return Poll::Ready(Ok(Received::Lent(&buffer[..room])));
        }
        // Tickets, or the answer to a change of keys: nothing else may come along to take them out.
        if self.backlog.is_some()
            && let Poll::Ready(Err(error)) = self.send_backlog(context)
        {
            return Poll::Ready(Err(error));
        }
        loop {
            if self.session.peer_has_closed() {
                return Poll::Ready(Ok(Received::Lent(&buffer[..0])));
            }
            let Some(got) = ready!(self.receive(context, buffer))? else {
                return Poll::Ready(if S::NEEDS_CLOSE_NOTIFY {
                    Err(io::Error::new(io::ErrorKind::UnexpectedEof, TRUNCATED))
                } else {
                    Ok(Received::Lent(&buffer[..0]))
                });
            };
            if got > 0 {
                return Poll::Ready(Ok(Received::Lent(&buffer[..got])));
            }
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        ready!(self.send_backlog(context))?;
        if self.closed && !queue.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let buffers = Rc::clone(&self.buffers);
        let mut file_budget = FILE_BYTES_PER_POLL;
        while !queue.is_empty() {
            if file_budget == 0 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let outgoing = &mut *buffers.outgoing.borrow_mut();
            let scratch = &mut buffers.scratch.borrow_mut()[..];
            outgoing.clear();
            self.record_size.begin(buffers.now());
            while !queue.is_empty() && outgoing.buffer().len() < self.batch && file_budget > 0 {
                let size = self.record_size.next(queue.len());
                let whole = size.min(usize::try_from(queue.len()).unwrap_or(size));
                // Sealed where it lies, if a whole record's worth lies together.
                let encrypted = match queue.front().filter(|front| front.len() >= whole) {
                    Some(front) => {
                        let encrypted = self
                            .session
                            .encrypt(&mut self.partial, &front[..whole], outgoing.buffer());
                        queue.advance(whole);
                        encrypted.map(|()| whole)
                    }
                    None => {
                        let taken = queue.take_front(&mut scratch[..whole], &mut file_budget);
                        let taken = taken.inspect_err(|_| self.closed = true)?;
                        let encrypted = self
                            .session
                            .encrypt(&mut self.partial, &scratch[..taken], outgoing.buffer());
                        encrypted.map(|()| taken)
                    }
                };
                let taken = encrypted
                    .inspect_err(|_| self.closed = true)
                    .map_err(session::to_io_error)?;
                self.record_size.sent(taken);
            }
            if !self.send_records(context, outgoing)? {
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.send_close_notify()?;
        self.link.shut_down()?;
        // What has not left now never will: kept, it would fail every later receive and count as in flight for ever.
        self.is_shut_down = true;
        self.backlog = None;
        Ok(())
    }

    fn reset(&mut self) {
        self.closed = true;
        self.backlog = None;
        self.link.reset();
    }

    fn finish(&mut self) {
        // Whether the peer hears of it or not, this was all.
        let _ = self.send_close_notify();
        self.link.finish();
    }

    fn keep_alive(&mut self) {
        self.link.keep_alive();
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        self.batch = bytes.map_or(BATCH, |bytes| BATCH.min(bytes as usize));
        self.link.limit_unsent(bytes);
    }

    fn in_flight(&self) -> u64 {
        self.link.in_flight() + self.backlog.as_ref().map_or(0, |backlog| backlog.len())
    }

    fn sends_files(&self) -> bool {
        false
    }
}
