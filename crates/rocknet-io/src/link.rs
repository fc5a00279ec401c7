//! A Link is a pipe of bytes to one peer, whatever carries it: TCP, a Unix socket, a ring, TLS over any of them.
//!
//! It is shaped for completion as well as readiness: a receive is offered the worker's buffer and may use it, or bring
//! bytes of its own; a send is given the whole queue and takes from its front what has truly left.

use std::io;
use std::ops::Deref;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::pipe::Pipe;
use crate::queue::SendQueue;

/// Bytes that have come in: in the buffer that was offered, or in one that the link owns.
pub enum Received<'b> {
    /// The front of the offered buffer.
    Borrowed(&'b [u8]),
    /// A buffer of the link's own; it goes back to the link when dropped.
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

pub trait Link {
    /// Receives what is there. Empty: the peer has ended its side, and every later receive says so again.
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>>;

    /// Whether nothing has come, not even the end. What has come is lost: this is for links on which nothing is awaited,
    /// and which are of no use if something came. Nobody is woken when it does.
    fn is_idle(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.poll_recv(&mut context, &mut [0]).is_pending()
    }

    /// Sends from the front of the queue. Ready when the queue is empty; while pending, some of it may have left.
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>>;

    /// Moves what is there into an empty pipe, so that it passes through no memory of this process. 0: nothing was moved, and
    /// receiving tells why. For links that send files so, too.
    fn fill_pipe(&mut self, _: &mut Context<'_>, _: &mut Pipe) -> io::Result<usize> {
        Ok(0)
    }

    /// Takes the whole queue, to be sent with what others send in this turn; or nothing of it, and `false`.
    ///
    /// Whether there is room is not known yet: whoever sends like this asks [`Link::take_unsent`] each time before it does
    /// anything else, and calls [`Link::flush`] before it lets the link go.
    fn send_batched(&mut self, _: &mut Context<'_>, _: &mut SendQueue) -> bool {
        false
    }

    /// What `send_batched` took and there was no room for. The task is woken when there is such; nothing is received or
    /// sent before it was taken. It is the front of all that is still to be sent.
    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Has all that `send_batched` took leave now, or come back.
    fn flush(&mut self) {}

    /// Tells the peer that nothing more will come; receiving goes on.
    fn shut_down(&mut self) -> io::Result<()>;

    /// Lets the peer see, when the link is dropped, that something is missing: what has not left is thrown away, and the
    /// end is no polite one.
    fn reset(&mut self);

    /// All that was to be said has been said, and the link will be dropped: a link that tells its peer of such an end, as
    /// TLS does, tells it now. Without this call a peer takes the end for a cut.
    fn finish(&mut self) {}

    /// From now on the peer may be silent for as long as it likes: it is asked from time to time whether it is still there,
    /// where that can be asked.
    fn keep_alive(&mut self) {}

    /// Limits the bytes that the kernel accepts and cannot send yet: beyond it the link counts as full. What was accepted
    /// stays accepted. `None` restores the system's default; links without such a limit ignore the call.
    fn limit_unsent(&mut self, _: Option<u32>) {}

    /// Bytes handed to the kernel that the peer has not acknowledged, where that can be told. A slow peer is seen to
    /// take these long before the socket has room again.
    fn in_flight(&self) -> u64;

    /// Whether files and pipes in the queue leave without passing through memory of this process (`sendfile`, `splice`).
    fn sends_files(&self) -> bool;
}

/// A link whose kind is not known to its user.
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

    fn keep_alive(&mut self) {
        (**self).keep_alive();
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        (**self).limit_unsent(bytes);
    }

    fn in_flight(&self) -> u64 {
        (**self).in_flight()
    }

    fn sends_files(&self) -> bool {
        (**self).sends_files()
    }
}
