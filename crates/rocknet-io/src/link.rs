//! Trait for a connected byte transport to one peer: TCP, a Unix socket, TLS over either, or a stream of HTTP/2 or
//! HTTP/3.
//!
//! The trait suits back ends of both kinds: readiness (epoll) and completion (io_uring). A receive fills the caller's
//! buffer or returns a buffer of the link. A send is passed the whole queue and removes the sent bytes from its front.

use std::io;
use std::ops::Deref;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::pipe::Pipe;
use crate::queue::SendQueue;

/// Received bytes: in the caller's buffer, or in a buffer of the link.
pub enum Received<'b> {
    /// Bytes at the front of the caller's buffer.
    Borrowed(&'b [u8]),
    /// Buffer of the link, which is released when this value is dropped. It may be longer than the caller's buffer.
    Owned(Bytes),
}

impl Deref for Received<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Received::Borrowed(bytes) => bytes,
            Received::Owned(bytes) => bytes,
        }
    }
}

/// Connected byte transport to one peer.
///
/// All methods are called by the task that owns the connection, on the thread that created the link.
pub trait Link {
    /// Receives the available bytes. Empty bytes mean that the peer has shut down its sending side; no later call
    /// returns data. `buffer` must not be empty, because an empty receive would look like that end.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection, for example `ConnectionReset`.
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>>;

    /// Returns true if neither data, nor the end of the stream, nor an error has arrived. Arrivals that the event loop
    /// has not delivered yet may be missed. Data that has arrived may be discarded, so this method is meant for pooled
    /// connections, which are useless once anything has arrived. The task is not woken when data arrives later.
    fn is_idle(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.poll_recv(&mut context, &mut [0]).is_pending()
    }

    /// Sends from the front of the queue. Ready when the queue is empty. Part of the queue may have been sent while the
    /// result is pending.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection, for example `BrokenPipe`. Unsent data remains in the queue.
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>>;

    /// Moves the available bytes into an empty pipe, so that they never enter the memory of this process. Returns their
    /// number, or 0 if nothing was moved. After 0 the caller calls `poll_recv`, which receives data, the end of the
    /// stream or an error, or waits for one of them. Links for which [`Link::is_zero_copy`] returns false always return
    /// 0.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection.
    fn fill_pipe(&mut self, _: &mut Context<'_>, _: &mut Pipe) -> io::Result<usize> {
        Ok(0)
    }

    /// Moves the whole queue into the write batch of this thread, which is sent together with the writes of other
    /// connections in this iteration of the event loop. Returns `false` if nothing was moved.
    ///
    /// The socket may have no room when the batch is sent. A caller of this method therefore calls
    /// [`Link::take_unsent`] before every other operation on the link, and [`Link::flush`] before it drops the link.
    fn send_batched(&mut self, _: &mut Context<'_>, _: &mut SendQueue) -> bool {
        false
    }

    /// Removes and returns the part of a batched write that the socket did not accept. The task is woken when there is
    /// such a part; with io_uring, only if the task also waits to receive or to send. Until the part has been taken,
    /// the link sends nothing more, and receiving may remain pending. The caller must send the part before all other
    /// output.
    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Sends the batched writes immediately. Bytes that the socket does not accept are returned by
    /// [`Link::take_unsent`].
    fn flush(&mut self) {}

    /// Shuts down the sending side; receiving continues. The caller flushes batched writes first.
    ///
    /// # Errors
    ///
    /// Returns the error of `shutdown(2)`, or of sending close_notify.
    fn shut_down(&mut self) -> io::Result<()>;

    /// Ends the link with a reset, so that the peer does not mistake a truncated stream for a complete one. Unsent
    /// bytes are discarded. TCP sends RST when the link is dropped; a stream of HTTP/2 or HTTP/3 is reset immediately
    /// (RST_STREAM, RESET_STREAM). A Unix socket has no reset.
    fn reset(&mut self);

    /// Ends the stream as its protocol requires, before the link is dropped: TLS sends close_notify, unless
    /// [`Link::shut_down`] has sent it. Without a call of `finish` or `shut_down`, the peer of a TLS link has to
    /// treat the stream as truncated.
    fn finish(&mut self) {}

    /// Turns on TCP keepalive if the transport supports it. Called when the peer may be silent for any length of time
    /// from now on.
    fn enable_tcp_keepalive(&mut self) {}

    /// Limits the bytes that the kernel accepts but cannot send yet (`TCP_NOTSENT_LOWAT`); beyond the limit the link
    /// counts as full. Bytes that were accepted earlier are not affected. `None` restores the system's default. Links
    /// without such a limit ignore the call.
    fn limit_unsent(&mut self, _: Option<u32>) {}

    /// Returns the number of bytes passed to the kernel that the peer has not acknowledged; 0 where the number is
    /// unknown. TLS adds the records that its inner link has not accepted, and a stream of HTTP/2 or HTTP/3 counts only
    /// the bytes that wait in its connection. The number shows the progress of a slow peer long before the socket has
    /// room again.
    fn in_flight(&self) -> u64;

    /// Returns true if `sendfile` and `splice` work on this link. [`Link::fill_pipe`] can then move data, and files and
    /// pipes in the queue are sent without passing through memory of this process.
    fn is_zero_copy(&self) -> bool;
}

/// A link whose type is known only at run time.
impl<L: Link + ?Sized> Link for Box<L> {
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        (**self).poll_recv(context, buffer)
    }

    fn is_idle(&mut self) -> bool {
        (**self).is_idle()
    }

    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        (**self).poll_send(context, queue)
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        (**self).fill_pipe(context, pipe)
    }

    fn send_batched(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        (**self).send_batched(context, queue)
    }

    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        (**self).take_unsent()
    }

    fn flush(&mut self) {
        (**self).flush();
    }

    fn shut_down(&mut self) -> io::Result<()> {
        (**self).shut_down()
    }

    fn reset(&mut self) {
        (**self).reset();
    }

    fn finish(&mut self) {
        (**self).finish();
    }

    fn enable_tcp_keepalive(&mut self) {
        (**self).enable_tcp_keepalive();
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        (**self).limit_unsent(bytes);
    }

    fn in_flight(&self) -> u64 {
        (**self).in_flight()
    }

    fn is_zero_copy(&self) -> bool {
        (**self).is_zero_copy()
    }
}
