//! Connection core: the part of a client connection that is the same for HTTP/1 and HTTP/2. The core consists of the
//! link, deadlines, unparsed input, unsent output, and the end of the connection. The link is the byte transport: a
//! socket, or TLS over one. An HTTP/3 connection consists of QUIC streams and has a state of its own
//! (`protocol/h3/connection.rs`).

use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::wheel::Tick;

use super::connection_info::ConnectionInfo;
use super::deadlines::{Deadlines, FIN_ONLY, MAX_UNACKNOWLEDGED, Wait};
use crate::exchange::Client;
use crate::handshake::Handshake;
use crate::worker::{OpenConnection, Ticks, Worker, WorkerConfig};

/// Maximum number of bytes that are read and discarded after the last response. Closing a socket with unread input
/// would send a reset, which could destroy the part of the response that is still in flight. The bound keeps a client
/// that never stops sending from occupying the worker.
const LINGER_BOUND: u32 = 1 << 20;

/// State that client connections of HTTP/1 and HTTP/2 have in common. The connection of each version owns one.
pub struct ConnectionCore<L: Link> {
    pub link: L,
    /// Counts the connection as open at its worker until the connection is dropped.
    pub open: OpenConnection,
    /// Deadline of the connection itself; each exchange of HTTP/2 has a further one.
    pub deadlines: Deadlines,
    /// Client, TLS handshake and local address.
    pub info: ConnectionInfo,
    /// Tick of the wheel at which the connection was accepted.
    born: Tick,
    /// Received bytes that are not parsed yet; empty for an idle connection.
    pub unread: Vec<u8>,
    /// True if `unread` can contain complete requests or frames, because parsing stopped early. They are handled before
    /// more bytes are received.
    pub stalled: bool,
    /// Bytes that the link has not taken. Boxed, because most connections have none.
    pub backlog: Option<Box<SendQueue>>,
    /// Number of discarded bytes, either of a request body or received while lingering.
    pub dropped: u32,
    /// True if the end of the connection marks the end of the response in progress (RFC 9112 §6.3), or of a tunnel.
    /// Until the whole response has been sent, the connection must end by a reset. After an orderly close, the client
    /// would mistake a part of the response for the whole.
    pub ends_with_connection: bool,
    pub end: End,
}

/// Treatment of the output of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batching {
    /// The link may send the output in one batch with the output of other connections.
    Permitted,
    /// The link sends the output by itself.
    Alone,
}

/// Progress of a connection's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The connection serves exchanges.
    Open,
    /// The server's side was shut down; input is discarded until the client closes.
    Lingering,
    /// Both sides have ended, or the link has failed, but the client has not acknowledged all sent bytes. `waited`:
    /// ticks from the beginning of this state to the next check.
    AwaitingAck { waited: u32 },
    /// The link may be dropped.
    Closed,
}

impl<L: Link> ConnectionCore<L> {
    /// Takes over a link, and starts the deadline of the first head. `local`: local IP address of the connection, given
    /// only if sites are selected by it.
    pub fn new(open: OpenConnection, link: L, client: Client, local: Option<IpAddr>) -> ConnectionCore<L> {
        let worker = Rc::clone(open.worker());
        let mut deadlines = Deadlines::new(&worker.wheel);
        deadlines.begin(Wait::FirstByte, worker.config().ticks.header);
        ConnectionCore {
            link,
            deadlines,
            info: ConnectionInfo::new(client, local.map(Box::new)),
            born: worker.wheel.now(),
            open,
            unread: Vec::new(),
            stalled: false,
            backlog: None,
            dropped: 0,
            ends_with_connection: false,
            end: End::Open,
        }
    }

    /// Adds the bytes that were received before the HTTP version was known.
    pub fn with_unread(mut self, unread: Vec<u8>) -> ConnectionCore<L> {
        self.stalled = !unread.is_empty();
        self.unread = unread;
        self
    }

    /// Sets the deadline of the first head to `left` ticks, the rest of its timeout.
    pub fn with_header_ticks(mut self, left: u32) -> ConnectionCore<L> {
        self.deadlines.begin(Wait::FirstByte, left);
        self
    }

    /// Adds the properties of the TLS handshake.
    pub fn with_handshake(mut self, handshake: Rc<Handshake>) -> ConnectionCore<L> {
        self.info.secure = Some(handshake);
        self
    }

    /// Returns the worker that serves the connection.
    pub fn worker(&self) -> Rc<Worker> {
        Rc::clone(self.open.worker())
    }

    /// Returns true until the connection begins to end.
    pub fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// Returns true if the connection must end after its next response, because it has reached its maximum age, the
    /// server stops, or its client is banned.
    #[inline]
    pub fn should_close(&self, worker: &Worker, config: &WorkerConfig) -> bool {
        worker.is_stopping() || worker.is_old(self.born, config) || worker.is_banned(self.info.client)
    }

    /// Stores `bytes`, except for the first `used` bytes, as unread input.
    pub fn keep_unread(&mut self, mut bytes: Vec<u8>, used: usize) {
        if used < bytes.len() {
            bytes.drain(..used);
            self.unread = bytes;
        }
    }

    /// Sets the deadline for the next request. `is_partial`: true if a part of its head was received. Received bytes do
    /// not extend the deadline of a head. The deadline of the first head runs from the start of the connection.
    pub fn await_request(&mut self, is_partial: bool, ticks: &Ticks) {
        let is_first = self.deadlines.wait() == Wait::FirstByte;
        if is_partial {
            if is_first {
                self.deadlines.continue_as(Wait::Header);
            }
            self.deadlines.enter(Wait::Header, ticks.header);
        } else if !is_first {
            self.deadlines.enter(Wait::KeepAlive, ticks.keep_alive);
        }
    }

    /// Returns true if the deadline has passed. If the wait has a rate window, the client must in addition have moved
    /// too few bytes in that window.
    #[inline]
    pub fn poll_past(&mut self, context: &mut Context<'_>) -> bool {
        let (worker, link) = (self.open.worker(), &self.link);
        let rate = |wait| rate_window(&worker.config(), wait);
        self.deadlines.poll_rate(context.waker(), rate, || link.in_flight())
    }

    /// Sends the backlog, including bytes that the link had taken but could not send. Ready once the backlog is empty;
    /// the result is true if there was a backlog. Calls `moved` with the number of bytes sent, unless there was no
    /// backlog.
    #[inline]
    pub fn poll_backlog(&mut self, context: &mut Context<'_>, moved: impl FnOnce(u64)) -> Poll<io::Result<bool>> {
        self.take_back();
        let Some(queue) = &mut self.backlog else {
            return Poll::Ready(Ok(false));
        };
        let before = queue.len();
        let sent = self.link.poll_send(context, queue);
        let count = before - queue.len();
        self.open.worker().counters.bytes_sent.add(count);
        self.deadlines.moved(count);
        moved(count);
        ready!(sent)?;
        self.backlog = None;
        Poll::Ready(Ok(true))
    }

    /// Sends `output`. Bytes that the link does not take now become the backlog, and a send window starts. After an
    /// error, the rest of `output` is dropped. Returns the number of bytes that the link took, and true if these were
    /// all bytes.
    #[inline]
    pub fn send(
        &mut self,
        context: &mut Context<'_>,
        output: &mut SendQueue,
        batching: Batching,
    ) -> (u64, io::Result<bool>) {
        let before = output.len();
        let sent = if batching == Batching::Permitted && self.link.send_batched(context, output) {
            Poll::Ready(Ok(()))
        } else {
            self.link.poll_send(context, output)
        };
        let moved = before - output.len();
        self.open.worker().counters.bytes_sent.add(moved);
        let is_whole = match sent {
            Poll::Ready(result) => {
                output.clear();
                result.map(|()| true)
            }
            Poll::Pending => {
                self.begin_send();
                self.backlog = Some(Box::new(output.take_rest()));
                Ok(false)
            }
        };
        (moved, is_whole)
    }

    /// Starts a window in which the client must take the sent bytes.
    pub fn begin_send(&mut self) {
        let ticks = self.open.worker().config().ticks.send;
        self.deadlines.begin_send(ticks, self.link.in_flight());
    }

    /// Puts the bytes that the link had taken but could not send at the front of the backlog. Returns true if there
    /// were such bytes.
    #[inline(always)]
    fn take_back(&mut self) -> bool {
        let Some(unsent) = self.link.take_unsent() else {
            return false;
        };
        self.open.worker().counters.bytes_sent.subtract(unsent.len() as u64);
        self.begin_send();
        self.backlog.get_or_insert_default().put_back(unsent);
        true
    }

    /// Flushes the link. Returns true if the link has sent all bytes and may be closed.
    pub fn has_sent_all(&mut self) -> bool {
        self.link.flush();
        !self.take_back()
    }

    /// Ends the connection after its last response: shuts down the server's side, and discards input until the client
    /// closes.
    ///
    /// # Errors
    ///
    /// Fails if the link cannot be shut down.
    pub fn begin_linger(&mut self) -> io::Result<()> {
        self.unread = Vec::new();
        self.link.shut_down()?;
        let ticks = self.open.worker().config().ticks.linger;
        self.deadlines.begin(Wait::Linger, ticks);
        self.dropped = 0;
        self.end = End::Lingering;
        Ok(())
    }

    /// Closes a connection whose client has ended its side or whose link has failed, if at most `left` bytes are
    /// unacknowledged. With more bytes, the connection stays open until the client has taken all bytes or is too slow.
    /// After an immediate close, the kernel would keep the bytes without a time limit. If the client has reset the
    /// connection, the server's side cannot be shut down, and the connection is closed immediately.
    pub fn close_or_await_ack(&mut self, left: u64) {
        self.end = if self.link.in_flight() <= left || self.link.shut_down().is_err() {
            End::Closed
        } else {
            End::AwaitingAck {
                waited: self.deadlines.begin_ack_wait(),
            }
        };
    }

    /// Reads and discards input after the last response. At the end of the input, the connection begins to close. After
    /// more than `LINGER_BOUND` bytes, it is closed, and reset if the client has not acknowledged all sent bytes.
    pub fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = self.worker();
        let input = &mut worker.buffers.borrow_mut().input;
        let received = ready!(self.link.poll_recv(context, input))?;
        self.dropped = self.dropped.saturating_add(received.len() as u32);
        if received.is_empty() {
            self.close_or_await_ack(MAX_UNACKNOWLEDGED);
        } else if self.dropped > LINGER_BOUND {
            self.reset_if_untaken();
            self.end = End::Closed;
        }
        Poll::Ready(Ok(()))
    }

    /// Acts on the passed deadline of a connection that has ended: the client has not yet closed, or has not yet taken
    /// all bytes.
    pub fn expire_end(&mut self) {
        let (in_flight, worker) = (self.link.in_flight(), self.worker());
        let is_lingering = self.deadlines.wait() == Wait::Linger;
        // Nothing is left to wait for once the client has acknowledged all bytes. A stopping server leaves
        // unacknowledged bytes to the kernel, which neither cuts a response nor delays the stop.
        if in_flight <= FIN_ONLY || is_lingering && worker.is_stopping() {
            self.abandon();
        } else if is_lingering {
            let ticks = worker.config().ticks;
            if let End::AwaitingAck { waited } = &mut self.end
                && let Some(next) = self.deadlines.extend_ack_wait(*waited, ticks.linger)
            {
                *waited = next;
            } else {
                // The linger timeout is over. From now on the client must take the rest at the minimum rate.
                self.deadlines.begin_send(ticks.send, in_flight);
            }
        } else {
            // The client was slower than the minimum rate.
            self.link.reset();
            self.abandon();
        }
    }

    /// Closes the connection without sending the backlog.
    pub fn abandon(&mut self) {
        self.backlog = None;
        self.end = End::Closed;
    }

    /// Resets the connection if the client has not acknowledged all sent bytes, because after an orderly close the
    /// kernel would keep them without a time limit.
    fn reset_if_untaken(&mut self) {
        if self.link.in_flight() > FIN_ONLY {
            self.link.reset();
        }
    }
}

/// Returns the minimum number of bytes that a client must move in each rate window of a wait, and the length of the
/// window in ticks. The result is unused for waits without a rate window.
pub fn rate_window(config: &WorkerConfig, wait: Wait) -> (u64, u32) {
    match wait {
        Wait::RequestBody => config.receive_rate_window(),
        _ => config.send_rate_window(),
    }
}

impl<L: Link> Drop for ConnectionCore<L> {
    fn drop(&mut self) {
        // The response is incomplete, or unsent bytes are lost. The reset shows this to the client. The kernel then
        // also discards its own unsent bytes, which the client may never take.
        if self.ends_with_connection || self.backlog.is_some() {
            self.link.reset();
        }
    }
}
