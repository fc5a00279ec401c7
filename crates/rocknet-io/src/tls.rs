//! TLS as a [`Link`] over any [`Link`]: the caller exchanges plaintext, and records pass over the inner link.
//!
//! ```text
//! ClientHelloAcceptor ──whole ClientHello──▶ (the server chooses a configuration) ──▶ Tls: handshake ──▶ Tls: a Link
//!     └──first byte is not TLS──▶ FirstBytes::NotTls: the inner link and the bytes received
//! Tls::connect ──own ClientHello──▶ Tls: handshake ──▶ Tls: a Link
//! ```
//! An idle connection stores only its keys, because records are received, decrypted and written in the worker's
//! [`TlsBuffers`]. Otherwise a connection also stores incomplete records, plaintext that the caller has not received,
//! and records that the inner link has not accepted.

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

use buffers::{BATCH_BYTES, MAX_PARTIAL_HANDSHAKE};
use record_size::RecordSize;
use session::Session;
use side::Side;

/// The server side of a session.
pub type ServerSide = UnbufferedServerConnection;
/// The client side of a session.
pub type ClientSide = UnbufferedClientConnection;

/// Maximum number of file bytes encrypted in one poll, after which other connections are served. It is the same as on a
/// socket without TLS.
const FILE_BYTES_PER_POLL: u64 = 512 << 10;
/// Maximum size in bytes of incomplete data after the handshake: a record (18 KiB in TLS 1.2), or a handshake message
/// spread over several records. There is room for two records of the maximum size.
const MAX_PARTIAL: usize = 40 * 1024;
/// Error text for a connection that ends without close_notify.
const TRUNCATED: &str = "the connection closed without close_notify";

/// A TLS session over the link `L`, in the role `S`.
pub struct Tls<L, S = ServerSide> {
    link: L,
    session: Session<S>,
    buffers: Rc<TlsBuffers>,
    /// Incomplete records; empty for an idle connection.
    partial: Vec<u8>,
    /// Plaintext that did not fit into the caller's buffer.
    unread: Vec<u8>,
    /// Records that the inner link has not accepted.
    backlog: Option<Box<SendQueue>>,
    record_size: RecordSize,
    /// Number of bytes of records that are collected before they are passed to the inner link. A limit on unsent bytes
    /// lowers it, because more urgent data can no longer overtake data that is already encrypted.
    batch_bytes: usize,
    /// True if nothing more must be sent, because close_notify or a fatal alert was sent, an error occurred, or the
    /// link was reset.
    closed: bool,
    /// True if the sending direction of the inner link is shut down.
    is_shut_down: bool,
}

impl<L: Link> Tls<L> {
    /// Starts a session with a client. `partial` contains the bytes received so far.
    fn accept(link: L, config: Arc<ServerConfig>, buffers: Rc<TlsBuffers>, partial: Vec<u8>) -> io::Result<Tls<L>> {
        let connection = UnbufferedServerConnection::new(config).map_err(session::to_io_error)?;
        Ok(Tls::new(link, connection, buffers, partial))
    }
}

impl<L: Link> Tls<L, ClientSide> {
    /// Starts a session with the server `name` over a link that has not been used. The first poll of the handshake
    /// sends the ClientHello.
    ///
    /// # Errors
    ///
    /// Fails if rustls rejects the configuration.
    pub fn connect(
        link: L,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        buffers: &Rc<TlsBuffers>,
    ) -> io::Result<Tls<L, ClientSide>> {
        let connection = UnbufferedClientConnection::new(config, name).map_err(session::to_io_error)?;
        let mut tls = Tls::new(link, connection, Rc::clone(buffers), Vec::new());
        let mut hello = SendQueue::default();
        // Without received bytes, this call only writes the ClientHello.
        tls.session
            .decrypt(&mut [], hello.buffer(), |_| ())
            .map_err(session::to_io_error)?;
        tls.backlog = Some(Box::new(hello));
        Ok(tls)
    }
}

impl<L: Link, S: Side> Tls<L, S> {
    /// Creates a session before its handshake. `partial` contains the bytes received so far.
    fn new(link: L, connection: S, buffers: Rc<TlsBuffers>, partial: Vec<u8>) -> Tls<L, S> {
        Tls {
            link,
            session: Session::new(connection),
            buffers,
            partial,
            unread: Vec::new(),
            backlog: None,
            record_size: RecordSize::default(),
            batch_bytes: BATCH_BYTES,
            closed: false,
            is_shut_down: false,
        }
    }

    /// Drives the handshake until it is complete. After a failure that is neither an error of the link nor an alert of
    /// the peer, a fatal alert is sent to the peer.
    ///
    /// # Errors
    ///
    /// `ConnectionAborted` if the peer closes the connection; `InvalidData` with the rustls error for a protocol error;
    /// otherwise the error of the link.
    pub fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            // Processes stored bytes first, because they may contain the whole ClientHello or the rest of the
            // handshake.
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

    /// Aborts a handshake, for example after its timeout, by sending a fatal alert as far as possible without waiting.
    /// Does nothing if an alert was sent already or the link has failed.
    pub fn abort_handshake(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let buffers = Rc::clone(&self.buffers);
        let outgoing = &mut *buffers.outgoing.borrow_mut();
        outgoing.clear();
        let room = &mut buffers.incoming.borrow_mut()[..self.partial.len() + buffers::SPARE];
        if self.session.write_fatal_alert(room, outgoing.buffer()).is_ok() {
            // Errors are ignored, because the session ends in any case.
            let _ = self.send_records(&mut Context::from_waker(Waker::noop()), outgoing);
        }
    }

    /// Returns the inner link after a failed handshake, so that the connection can be closed without TLS.
    pub fn into_link(self) -> L {
        self.link
    }

    /// Returns the results of the handshake; valid once it is complete.
    pub fn negotiated(&self) -> Negotiated<'_> {
        self.session.negotiated()
    }

    /// Receives once and decrypts the bytes. Returns `None` at the end of the inner link, otherwise the number of bytes
    /// written to `plain`. Plaintext that does not fit is kept in `unread`.
    fn receive(&mut self, context: &mut Context<'_>, plain: &mut [u8]) -> Poll<io::Result<Option<usize>>> {
        let buffers = Rc::clone(&self.buffers);
        let incoming = &mut buffers.incoming.borrow_mut()[..];
        let at = self.partial.len();
        let end = incoming.len() - buffers::SPARE;
        let got = match ready!(self.link.poll_recv(context, &mut incoming[at..end]))? {
            Received::Borrowed(bytes) => bytes.len(),
            Received::Owned(bytes) => {
                let room = end - at;
                // The inner link returned more bytes than the shared buffer can take.
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
        // Stored bytes are copied only after the receive, because the buffer is shared: while this connection waits,
        // other connections overwrite it.
        incoming[..at].copy_from_slice(&self.partial);
        self.partial = Vec::new();
        Poll::Ready(self.decrypt(context, incoming, at + got, plain).map(Some))
    }

    /// Decrypts the records in `incoming[..filled]`, stores incomplete records in `partial`, and sends the records
    /// that are due in response. Returns the number of bytes written to `plain`; plaintext that does not fit is stored
    /// in `unread`. `incoming` must have [`buffers::SPARE`] more bytes than `filled`.
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
        let (mut written, unread) = (0, &mut self.unread);
        let decrypted = self
            .session
            .decrypt(&mut incoming[..filled], outgoing.buffer(), |bytes| {
                let room = bytes.len().min(plain.len() - written);
                plain[written..written + room].copy_from_slice(&bytes[..room]);
                written += room;
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
                    "an incomplete message is longer than {bound} bytes"
                )));
            }
            Ok(used)
        });
        // Sends an alert for each error for which rustls creates no alert. An alert of the peer gets no alert in
        // response (RFC 8446 §6.2).
        if let Err(error) = &decrypted
            && !matches!(error, rustls::Error::AlertReceived(_))
            && !self.closed
        {
            let room = &mut incoming[..filled + buffers::SPARE];
            // A failure is ignored, because records that were created before the error have to be sent in any case.
            let _ = self.session.write_fatal_alert(room, outgoing.buffer());
        }
        let sent = self.send_records(context, outgoing);
        let used = decrypted
            .inspect_err(|_| self.closed = true)
            .map_err(session::to_io_error)?;
        sent?;
        self.partial = incoming[used..filled].to_vec();
        Ok(written)
    }

    /// Sends the records in the backlog. Ready once the inner link has accepted all of them.
    fn send_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(backlog) = &mut self.backlog {
            let sent = ready!(self.link.poll_send(context, backlog));
            self.closed |= sent.is_err();
            sent?;
            self.backlog = None;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends `records` after those in the backlog. Returns true if all records, including the backlog, have been sent.
    fn send_records(&mut self, context: &mut Context<'_>, records: &mut SendQueue) -> io::Result<bool> {
        if self.is_shut_down {
            // Discards, for example, the response to a key update that arrives while the last bytes of the peer are
            // read.
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

    /// Sends close_notify as far as possible without waiting. Sends nothing during the handshake, or if the session is
    /// already closed.
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
            return Poll::Ready(Ok(Received::Borrowed(&buffer[..room])));
        }
        // Sends pending session tickets, or the response to a key update, because the caller may not send anything
        // soon.
        if self.backlog.is_some()
            && let Poll::Ready(Err(error)) = self.send_backlog(context)
        {
            return Poll::Ready(Err(error));
        }
        loop {
            if self.session.peer_has_closed() {
                return Poll::Ready(Ok(Received::Borrowed(&buffer[..0])));
            }
            let Some(got) = ready!(self.receive(context, buffer))? else {
                return Poll::Ready(if S::NEEDS_CLOSE_NOTIFY {
                    Err(io::Error::new(io::ErrorKind::UnexpectedEof, TRUNCATED))
                } else {
                    Ok(Received::Borrowed(&buffer[..0]))
                });
            };
            if got > 0 {
                return Poll::Ready(Ok(Received::Borrowed(&buffer[..got])));
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
            let kept = queue.take_kept();
            self.record_size.begin(buffers.now());
            while !queue.is_empty() && outgoing.buffer().len() < self.batch_bytes && file_budget > 0 {
                let size = self.record_size.next(queue.len());
                let whole = size.min(usize::try_from(queue.len()).unwrap_or(size));
                // Encrypts directly from the queue, without a copy, if the plaintext of a whole record is contiguous.
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
                self.record_size.count_sent(taken);
            }
            let are_sent = self.send_records(context, outgoing)?;
            // Values that the queue keeps stay until the last record of its data has been sent.
            match &mut self.backlog {
                Some(backlog) if queue.is_empty() => backlog.keep_all(kept),
                _ => queue.keep_all(kept),
            }
            if !are_sent {
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.send_close_notify()?;
        self.link.shut_down()?;
        // The backlog can never be sent now. If kept, it would make every later receive fail, and count as in flight
        // forever.
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
        // Errors are ignored, because the session ends in any case.
        let _ = self.send_close_notify();
        self.link.finish();
    }

    fn enable_tcp_keepalive(&mut self) {
        self.link.enable_tcp_keepalive();
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        // A batch of 0 bytes would never empty the queue.
        self.batch_bytes = bytes.map_or(BATCH_BYTES, |bytes| (bytes as usize).clamp(1, BATCH_BYTES));
        self.link.limit_unsent(bytes);
    }

    fn in_flight(&self) -> u64 {
        self.link.in_flight() + self.backlog.as_ref().map_or(0, |backlog| backlog.len())
    }

    fn is_zero_copy(&self) -> bool {
        false
    }
}
