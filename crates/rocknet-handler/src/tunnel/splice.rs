//! A splice: two links, each of which is sent what the other one brings.
//!
//! ```text
//! client ──▶ up ──▶ peer          each way: receive, send; what does not leave waits, and nothing more is received
//! client ◀── down ◀── peer        until it has left. An end is passed on once all before it has left.
//! ```
//! Little is copied through the worker's buffer. What is much is moved by the kernel from socket to socket, through a pipe
//! that the worker lends for as long as something is in it.

use std::io;
use std::task::{Context, Poll, ready};

use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;

use super::flow::FlowMeter;
use super::{Scratch, Tunnel};

/// Pieces received in one direction before others get their turn: at most 64 KiB each, so a tunnel that is never empty has
/// the worker for half a megabyte.
const MAX_PIECES_PER_POLL: u32 = 8;
/// The same for pieces that the kernel moves, which are larger: nothing more is asked for behind so much.
const MAX_BYTES_PER_POLL: usize = 512 * 1024;

/// A client joined with a peer.
pub struct Splice<P> {
    peer: P,
    up: Direction,
    down: Direction,
}

/// One direction.
#[derive(Default)]
struct Direction {
    /// What was received and has not left; there until the link says that it has.
    waiting: Option<Box<SendQueue>>,
    stage: Stage,
    flow: FlowMeter,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The source has ended; the other side is told when it has all.
    Ending,
    Over,
}

impl<P: Link> Splice<P> {
    /// `early`: what the peer said already.
    pub fn new(mut peer: P, early: Vec<u8>) -> Splice<P> {
        // Nobody else would ever notice that it has vanished.
        peer.keep_alive();
        let mut down = Direction::default();
        if !early.is_empty() {
            let mut waiting = SendQueue::default();
            waiting.push_owned(early.into());
            down.waiting = Some(Box::new(waiting));
        }
        // What was said to it before may still be on its way.
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
                // Neither side is to take a part for the whole.
                self.peer.reset();
                Poll::Ready(Err(error))
            }
            _ => Poll::Pending,
        }
    }
}

impl Direction {
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

    /// Puts what the source has into the queue, and tells how much that is. 0: it has ended.
    fn receive(
        &mut self,
        context: &mut Context<'_>,
        from: &mut dyn Link,
        to: &dyn Link,
        scratch: &mut Scratch<'_>,
    ) -> Poll<io::Result<usize>> {
        let Scratch { input, queue, pipes } = scratch;
        if self.flow.is_bulk() && from.sends_files() && to.sends_files() {
            let mut pipe = pipes.pipe();
            let moved = from.fill_pipe(context, &mut pipe)?;
            if moved > 0 {
                self.flow.moved(moved);
                queue.push_pipe(pipe);
                return Poll::Ready(Ok(moved));
            }
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
