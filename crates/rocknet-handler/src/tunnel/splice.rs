//! Joins two links: bytes received from one are sent to the other, in both directions.
//!
//! ```text
//! client ──▶ up ──▶ peer          each direction: receive, send; unsent bytes are kept, and nothing more is received
//! client ◀── down ◀── peer        until they are sent. An end is passed on once all bytes before it are sent.
//! ```
//! Small amounts are copied through the worker's buffer. The kernel moves bulk data from socket to socket through a
//! pipe, which the worker lends while the pipe contains data.

use std::io;
use std::task::{Context, Poll, ready};

use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;

use super::flow::FlowMeter;
use super::{Scratch, Tunnel};

/// Maximum number of pieces moved in one direction before the tunnel yields. A copied piece has at most 64 KiB, so a
/// busy tunnel occupies the worker for half a megabyte.
const MAX_PIECES_PER_POLL: u32 = 8;
/// Maximum number of bytes moved in one direction before the tunnel yields. Pieces that the kernel moves are larger
/// than 64 KiB, so a limit on their number is not enough.
const MAX_BYTES_PER_POLL: usize = 512 * 1024;

/// Joins a client with a peer, such as an upstream.
pub struct Splice<P> {
    peer: P,
    up: Direction,
    down: Direction,
}

/// One direction.
#[derive(Default)]
struct Direction {
    /// Bytes that were received and not yet sent. Kept until the link has sent all of them.
    waiting: Option<Box<SendQueue>>,
    stage: Stage,
    flow: FlowMeter,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The source has ended. The end is passed on when all bytes are sent.
    Ending,
    Over,
}

impl<P: Link> Splice<P> {
    /// Joins the client with `peer`. `early` contains the bytes that were already received from the peer.
    pub fn new(mut peer: P, early: Vec<u8>) -> Splice<P> {
        // Without TCP keep-alive, a peer that has vanished would go unnoticed.
        peer.enable_tcp_keepalive();
        let mut down = Direction::default();
        if !early.is_empty() {
            let mut waiting = SendQueue::default();
            waiting.push_owned(early.into());
            down.waiting = Some(Box::new(waiting));
        }
        // Bytes that were queued for the peer earlier may still be unsent.
        peer.flush();
        let mut up = Direction::default();
        if let Some(unsent) = peer.take_unsent() {
            let mut waiting = SendQueue::default();
            waiting.put_back(unsent);
            up.waiting = Some(Box::new(waiting));
        }
        Splice { peer, up, down }
    }
}

impl<P: Link> Tunnel for Splice<P> {
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        client: &mut dyn Link,
        mut scratch: Scratch<'_>,
    ) -> Poll<io::Result<()>> {
        let up = self.up.pump(context, client, &mut self.peer, &mut scratch);
        let down = self.down.pump(context, &mut self.peer, client, &mut scratch);
        match (up, down) {
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => {
                client.finish();
                self.peer.finish();
                Poll::Ready(Ok(()))
            }
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => {
                // A reset prevents the peer from mistaking a part of the data for all of it.
                self.peer.reset();
                Poll::Ready(Err(error))
            }
            _ => Poll::Pending,
        }
    }
}

impl Direction {
    /// Moves bytes from `from` to `to`. Ready once the end of `from` has been passed on.
    fn pump(
        &mut self,
        context: &mut Context<'_>,
        from: &mut dyn Link,
        to: &mut dyn Link,
        scratch: &mut Scratch<'_>,
    ) -> Poll<io::Result<()>> {
        let mut received_bytes = 0;
        for _ in 0..MAX_PIECES_PER_POLL {
            if let Some(waiting) = &mut self.waiting {
                ready!(to.poll_send(context, waiting))?;
                self.waiting = None;
            }
            match self.stage {
                Stage::Open => {}
                Stage::Ending => {
                    to.shut_down()?;
                    self.stage = Stage::Over;
                    return Poll::Ready(Ok(()));
                }
                Stage::Over => return Poll::Ready(Ok(())),
            }
            match ready!(self.receive(context, from, to, scratch))? {
                0 => {
                    self.stage = Stage::Ending;
                    continue;
                }
                size => received_bytes += size,
            }
            match to.poll_send(context, scratch.queue) {
                Poll::Ready(sent) => {
                    scratch.queue.clear();
                    sent?;
                }
                Poll::Pending => self.waiting = Some(Box::new(scratch.queue.take_rest())),
            }
            if received_bytes >= MAX_BYTES_PER_POLL {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Receives from the source into the queue, and returns the number of bytes; 0 if the source has ended.
    fn receive(
        &mut self,
        context: &mut Context<'_>,
        from: &mut dyn Link,
        to: &dyn Link,
        scratch: &mut Scratch<'_>,
    ) -> Poll<io::Result<usize>> {
        let Scratch { input, queue, pipes } = scratch;
        // A pipe can be used only if neither link passes its bytes through memory of this process, as TLS does.
        if self.flow.is_bulk() && from.is_zero_copy() && to.is_zero_copy() {
            let mut pipe = pipes.pipe();
            let moved = from.fill_pipe(context, &mut pipe)?;
            if moved > 0 {
                self.flow.moved(moved);
                queue.push_pipe(pipe);
                return Poll::Ready(Ok(moved));
            }
            // 0: `poll_recv` receives the rest, the end or an error, or waits.
        }
        let received = ready!(from.poll_recv(context, input))?;
        let size = received.len();
        self.flow.received(size);
        match received {
            Received::Borrowed(bytes) => queue.buffer().extend_from_slice(bytes),
            Received::Owned(bytes) => queue.push_owned(bytes),
        }
        Poll::Ready(Ok(size))
    }
}

#[cfg(test)]
mod tests;
