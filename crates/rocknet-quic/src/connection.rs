//! Connection: a handle that one task owns and polls.
//!
//! A poll of the task has three steps. [`Connection::begin`] handles received datagrams and passed timers.
//! [`Connection::next_event`] returns what has changed, and the task reads from and writes to streams.
//! [`Connection::flush`] sends the datagrams and sets the timer.

use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{ConnectionHandle, Dir, EndpointEvent, Event, StreamId, VarInt};
use rocknet_io::udp::{MAX_SEGMENTS, MAX_TRANSMIT_BYTES, Transmit};

use crate::config::SEND_WINDOW;
use crate::congestion::permit_close;
use crate::shared::{Mailbox, Shared, to_transmit};
use crate::stream::{ReadOutcome, read, write};
use crate::tls::HandshakeInfo;

/// Maximum number of sends in one poll, before other tasks run. One send has up to 64 datagrams.
const SENDS_PER_POLL: u32 = 16;

/// QUIC connection of a client.
pub struct Connection {
    shared: Rc<Shared>,
    mailbox: Rc<Mailbox>,
    handle: ConnectionHandle,
    inner: Box<quinn_proto::Connection>,
    /// Datagrams that the socket has not taken.
    unsent: Option<Box<Unsent>>,
    /// True while the connection counts as a handshake in progress.
    is_handshaking: bool,
    /// True once CONNECTION_CLOSE may be sent although the congestion window is full.
    is_close_permitted: bool,
    /// True if the client has proven its address before the handshake, by a token.
    is_address_validated: bool,
}

/// Datagrams that wait for the socket.
struct Unsent {
    bytes: Vec<u8>,
    /// Number of bytes at the start that were sent.
    sent: usize,
    transmit: quinn_proto::Transmit,
}

impl Connection {
    pub(crate) fn new(
        shared: Rc<Shared>,
        mailbox: Rc<Mailbox>,
        handle: ConnectionHandle,
        inner: Box<quinn_proto::Connection>,
        is_address_validated: bool,
    ) -> Connection {
        shared.handshakes.set(shared.handshakes.get() + 1);
        Connection {
            shared,
            mailbox,
            handle,
            inner,
            unsent: None,
            is_handshaking: true,
            is_close_permitted: false,
            is_address_validated,
        }
    }

    /// Handles the datagrams that the endpoint has received for the connection, and timers that have passed. The task
    /// is woken when there is more to handle.
    pub fn begin(&mut self, context: &Context<'_>) {
        {
            let mut waker = self.mailbox.waker.borrow_mut();
            if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
        }
        let events = mem::take(&mut *self.mailbox.events.borrow_mut());
        for event in events {
            self.inner.handle_event(event);
        }
        if let Some(timeout) = self.inner.poll_timeout() {
            let now = Instant::now();
            if timeout <= now {
                self.inner.handle_timeout(now);
            }
        }
        self.update_send_window();
    }

    /// Limits the stream data that `quinn-proto` keeps because it is unsent or not acknowledged, so that the order of
    /// writing decides the order of sending (compare `TCP_NOTSENT_LOWAT`).
    fn update_send_window(&mut self) {
        let window = send_window(self.inner.congestion_state().window());
        self.inner.set_send_window(window);
    }

    /// Returns the next event of the connection; `None` if nothing else has changed.
    pub fn next_event(&mut self) -> Option<Event> {
        let event = self.inner.poll();
        if self.is_handshaking && !self.inner.is_handshaking() {
            self.handshake_ended();
        }
        event
    }

    /// Subtracts the connection from the number of handshakes in progress, unless this was done before.
    fn handshake_ended(&mut self) {
        if mem::take(&mut self.is_handshaking) {
            self.shared.handshakes.set(self.shared.handshakes.get() - 1);
        }
    }

    /// Sends datagrams, and sets the timer. Returns false if the socket is full, or if other tasks have to run first;
    /// the task is woken in both cases.
    pub fn flush(&mut self, context: &Context<'_>) -> bool {
        // Replies of the endpoint, such as new connection IDs, are in the datagrams that are sent next.
        self.pass_endpoint_events();
        let is_flushed = self.send(context.waker());
        // `quinn-proto` recommends polling for these events after sending.
        self.pass_endpoint_events();
        if !self.inner.is_drained()
            && let Some(timeout) = self.inner.poll_timeout()
        {
            let armed = self.mailbox.armed.get();
            // Replaces the armed timeout only if the new one is earlier. When the armed timeout passes, the task is
            // woken and arms the timeout that is then current.
            if armed.is_none_or(|armed| timeout < armed) {
                let timers = &mut self.shared.core.borrow_mut().timers;
                timers.replace(self.handle.0, armed, timeout, Instant::now());
                self.mailbox.armed.set(Some(timeout));
            }
        }
        is_flushed
    }

    /// Sends datagrams. Returns false if the socket is full, or if other tasks have to run first; `waker` is woken in
    /// both cases.
    fn send(&mut self, waker: &Waker) -> bool {
        if !self.send_unsent(waker) {
            return false;
        }
        if self.inner.is_closed() && !mem::replace(&mut self.is_close_permitted, true) {
            permit_close(self.inner.congestion_state());
        }
        let shared = Rc::clone(&self.shared);
        let buffer = &mut *shared.transmit.borrow_mut();
        let now = Instant::now();
        for _ in 0..SENDS_PER_POLL {
            buffer.clear();
            let max_datagrams = MAX_TRANSMIT_BYTES / usize::from(self.inner.current_mtu()).max(1);
            let max_datagrams = max_datagrams.clamp(1, MAX_SEGMENTS);
            let Some(transmit) = self.inner.poll_transmit(now, max_datagrams, buffer) else {
                return true;
            };
            // The socket removes the datagrams that it accepts.
            let mut left = to_transmit(&transmit, buffer);
            if !shared.send(waker, &mut left) {
                let sent = transmit.size - left.bytes.len();
                self.unsent = Some(Box::new(Unsent {
                    bytes: buffer[..transmit.size].to_vec(),
                    sent,
                    transmit,
                }));
                return false;
            }
        }
        waker.wake_by_ref();
        false
    }

    /// Sends the datagrams that the socket has not taken. Returns false if some of them are still unsent; `waker` is
    /// then woken when the socket may accept more.
    fn send_unsent(&mut self, waker: &Waker) -> bool {
        let Some(unsent) = &mut self.unsent else {
            return true;
        };
        let whole = to_transmit(&unsent.transmit, &unsent.bytes);
        let mut left = Transmit {
            bytes: &whole.bytes[unsent.sent..],
            ..whole
        };
        if self.shared.send(waker, &mut left) {
            self.unsent = None;
            return true;
        }
        unsent.sent = unsent.transmit.size - left.bytes.len();
        false
    }

    /// Passes the events of the connection to the endpoint, and handles the events in reply.
    fn pass_endpoint_events(&mut self) {
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(reply) = self.shared.handle_event(self.handle, event) {
                self.inner.handle_event(reply);
            }
        }
    }

    /// Returns true once the connection has ended and the handle can be dropped. Until then, the connection still
    /// responds to datagrams of the client (RFC 9000 §10.2).
    pub fn is_drained(&self) -> bool {
        self.inner.is_drained()
    }

    /// Returns true if the connection is closed by either side, or lost.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Closes the connection with an application error code (RFC 9000 §10.2). Streams can no longer be used.
    pub fn close(&mut self, code: u64, reason: &'static str) {
        if !self.inner.is_closed() {
            let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
            self.inner
                .close(Instant::now(), code, Bytes::from_static(reason.as_bytes()));
        }
    }

    /// Returns true while the handshake is in progress and early data of the client is accepted (RFC 9001 §4.6).
    pub fn is_early(&self) -> bool {
        self.inner.is_handshaking() && self.inner.has_0rtt()
    }

    /// Returns true if the client receives datagrams at its address. Until the handshake is complete, only a token
    /// proves it (RFC 9000 §8.1).
    pub fn is_address_validated(&self) -> bool {
        self.is_address_validated || !self.inner.is_handshaking()
    }

    /// Sends PING with the next datagram, so that both sides restart their idle timers.
    pub fn ping(&mut self) {
        self.inner.ping();
    }

    /// Returns the address of the client. It changes when the client migrates (RFC 9000 §9).
    pub fn remote_address(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// Returns the local address that the client sends to, if known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    /// Returns the properties of the handshake; `None` before the TLS configuration has been chosen.
    pub fn handshake_info(&self) -> Option<Box<HandshakeInfo>> {
        self.inner.crypto_session().handshake_data()?.downcast().ok()
    }

    /// Returns the number of ACK frames that were received. It grows as long as the client receives the data that is
    /// sent.
    pub fn received_acknowledgements(&self) -> u64 {
        self.inner.stats().frame_rx.acks
    }

    /// Returns the estimated round-trip time.
    pub fn round_trip_time(&self) -> std::time::Duration {
        self.inner.rtt()
    }

    /// Opens a unidirectional stream; `None` if the client permits no more.
    pub fn open_unidirectional(&mut self) -> Option<StreamId> {
        self.inner.streams().open(Dir::Uni)
    }

    /// Returns the next stream that the client has opened; `None` once all were returned.
    pub fn accept(&mut self, direction: Dir) -> Option<StreamId> {
        self.inner.streams().accept(direction)
    }

    /// Reads the next bytes of a stream in order, and releases the space that they occupied in the receive windows.
    pub fn read(&mut self, stream: StreamId) -> ReadOutcome {
        read(&mut self.inner, stream)
    }

    /// Writes bytes to a stream, and removes the written bytes from `chunks`. Returns the number of written bytes, or
    /// `None` if the client has stopped the stream or the stream is gone.
    pub fn write(&mut self, stream: StreamId, chunks: &mut [Bytes]) -> Option<usize> {
        write(&mut self.inner, stream, chunks)
    }

    /// Writes bytes as [`write`](Self::write) does, but with the largest limit for the data of all streams together.
    /// Intended for the few bytes of control streams, which must not wait until the client has received a response.
    pub fn write_control(&mut self, stream: StreamId, chunks: &mut [Bytes]) -> Option<usize> {
        self.inner.set_send_window(*SEND_WINDOW.end());
        let written = write(&mut self.inner, stream, chunks);
        self.update_send_window();
        written
    }

    /// Ends a stream after the bytes that were written.
    pub fn finish(&mut self, stream: StreamId) {
        // Errors are ignored here and in the next functions: the stream is gone, or the client has stopped it.
        let _ = self.inner.send_stream(stream).finish();
    }

    /// Abandons the sending side of a stream (RESET_STREAM).
    pub fn reset(&mut self, stream: StreamId, code: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        let _ = self.inner.send_stream(stream).reset(code);
    }

    /// Requests that the client stop sending on a stream (STOP_SENDING), and discards the data that still arrives.
    pub fn stop_receiving(&mut self, stream: StreamId, code: u64) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        let _ = self.inner.recv_stream(stream).stop(code);
    }

    /// Sets the priority of a stream. Streams with a higher value are sent first; streams with the same value take
    /// turns. A stream with unsent bytes keeps its place in the send order until some of them are sent.
    pub fn set_priority(&mut self, stream: StreamId, priority: i32) {
        let _ = self.inner.send_stream(stream).set_priority(priority);
    }
}

/// Maximum number of bytes that are kept, as a multiple of the congestion window: one window in flight, one to be sent,
/// and one that the client has received after a lost datagram. `quinn-proto` keeps the last one until the datagram has
/// been sent again and acknowledged.
const WINDOWS_KEPT: u64 = 3;

/// Returns the limit for bytes that are kept, by the congestion window.
pub(crate) fn send_window(congestion_window: u64) -> u64 {
    congestion_window
        .saturating_mul(WINDOWS_KEPT)
        .clamp(*SEND_WINDOW.start(), *SEND_WINDOW.end())
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.handshake_ended();
        if self.inner.is_drained() {
            return;
        }
        // The task ends early, because the server has stopped. One attempt is made to notify the client. HTTP/3 does
        // not define the code 0, so the client treats it as H3_NO_ERROR (RFC 9114 §8).
        self.close(0, "");
        self.send(Waker::noop());
        self.pass_endpoint_events();
        if !self.inner.is_drained() {
            self.shared.handle_event(self.handle, EndpointEvent::drained());
        }
    }
}
