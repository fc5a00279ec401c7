//! The link of a connection, as every version uses it: bytes that it has not taken, and the end of the connection.

use std::io;
use std::task::{Context, Poll, ready};

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;

use super::deadlines::Deadlines;
use crate::worker::Worker;

/// Most bytes that are read and dropped after the last response, so that closing does not reset what is still on its way.
const LINGER_BOUND: u32 = 1 << 20;

/// Bytes that a link has not taken. Boxed: most connections have none.
pub type Backlog = Option<Box<SendQueue>>;

/// State of a lingering connection, which reads and discards input until the client closes or has sent too much.
pub enum Lingering {
    GoesOn,
    /// The client has ended its side.
    Ended,
    /// The client has sent more than is read.
    TooMuch,
}

/// Takes back the bytes that the link accepted and could not send. Returns whether there were any.
#[inline]
pub fn take_back<L: Link>(link: &mut L, backlog: &mut Backlog, worker: &Worker, deadlines: &mut Deadlines) -> bool {
    let Some(unsent) = link.take_unsent() else {
        return false;
    };
    worker.counters.bytes_sent.take_back(unsent.len() as u64);
    deadlines.begin_send(worker.view().ticks.send, link.in_flight());
    backlog.get_or_insert_default().put_back(unsent);
    true
}

/// Returns whether all bytes have left, so that the link may be let go.
pub fn has_sent_all<L: Link>(link: &mut L, backlog: &mut Backlog, worker: &Worker, deadlines: &mut Deadlines) -> bool {
    link.flush();
    !take_back(link, backlog, worker, deadlines)
}

/// Sends the backlog; ready once there is none, with whether there was one. `moved` is called with the bytes that have left.
#[inline]
pub fn poll_send<L: Link>(
    link: &mut L,
    backlog: &mut Backlog,
    (worker, deadlines): (&Worker, &mut Deadlines),
    context: &mut Context<'_>,
    moved: impl FnOnce(u64),
) -> Poll<io::Result<bool>> {
    take_back(link, backlog, worker, deadlines);
    let Some(queue) = backlog else {
        return Poll::Ready(Ok(false));
    };
    let before = queue.len();
    let sent = link.poll_send(context, queue);
    let left = before - queue.len();
    worker.counters.bytes_sent.add(left);
    deadlines.moved(left);
    moved(left);
    ready!(sent)?;
    *backlog = None;
    Poll::Ready(Ok(true))
}

/// Keeps the rest of `output` as the backlog: the link is full.
pub fn keep<L: Link>(
    link: &L,
    backlog: &mut Backlog,
    output: &mut SendQueue,
    (worker, deadlines): (&Worker, &mut Deadlines),
) {
    deadlines.begin_send(worker.view().ticks.send, link.in_flight());
    *backlog = Some(Box::new(output.take_rest()));
}

/// Reads and drops what the client still sends after the last response. `dropped`: bytes so far.
pub fn linger<L: Link>(
    link: &mut L,
    worker: &Worker,
    dropped: &mut u32,
    context: &mut Context<'_>,
) -> Poll<io::Result<Lingering>> {
    let input = &mut worker.buffers.borrow_mut().input;
    let received = ready!(link.poll_recv(context, input))?;
    *dropped = dropped.saturating_add(received.len() as u32);
    Poll::Ready(Ok(if received.is_empty() {
        Lingering::Ended
    } else if *dropped > LINGER_BOUND {
        Lingering::TooMuch
    } else {
        Lingering::GoesOn
    }))
}
