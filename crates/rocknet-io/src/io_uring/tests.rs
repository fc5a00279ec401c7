//! Tests of links on a ring, over real sockets.

mod children;
mod ending;
mod failure;
mod path_prefetch;
mod read_ahead;
mod receiving;
mod sending;
mod turns;

use std::future::{Future, poll_fn};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use rocknet_testing::{Need, skip};

use super::{Driver, UringStream, current};
use crate::link::Link;
use crate::queue::SendQueue;
use crate::runtime::{Runtime, io_uring_unavailable};

/// Timeout of all reads and writes of a peer: far more than they need on a busy machine.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of events that the runtime reads in one poll. Any value serves in these tests.
const MAX_EVENTS: usize = 64;

/// Runs a test on a ring; skips it where io_uring is unavailable.
fn on_ring<F: Future>(test: impl FnOnce(Rc<Driver>) -> F) {
    if let Some(reason) = io_uring_unavailable() {
        skip(Need::IoUring, &reason);
        return;
    }
    let runtime = Runtime::with_io_uring(MAX_EVENTS).expect("a ring");
    runtime.block_on(async { test(current().expect("a driver")).await });
}

/// Returns a link on the ring and its peer, whose reads and writes time out.
fn pair(driver: &Rc<Driver>) -> (UringStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    ours.set_nonblocking(true).expect("an option");
    theirs.set_read_timeout(Some(PEER_TIMEOUT)).expect("an option");
    theirs.set_write_timeout(Some(PEER_TIMEOUT)).expect("an option");
    (UringStream::new(Rc::clone(driver), ours.into()), theirs)
}

/// Returns bytes that reveal their position.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// Receives once, into a buffer of `offered` bytes.
async fn receive(link: &mut impl Link, offered: usize) -> std::io::Result<Vec<u8>> {
    let mut buffer = vec![0; offered];
    poll_fn(|context| {
        link.poll_recv(context, &mut buffer)
            .map_ok(|received| received.to_vec())
    })
    .await
}

/// Receives until the end of the stream, each time into a buffer of `offered` bytes.
async fn receive_all(link: &mut impl Link, offered: usize) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match receive(link, offered).await.expect("bytes") {
            some if some.is_empty() => return all,
            some => all.extend(some),
        }
    }
}

/// Sends as a connection does: returned unsent bytes are sent before all others.
async fn send(link: &mut impl Link, queue: &mut SendQueue) -> std::io::Result<()> {
    poll_fn(|context| {
        loop {
            if let Some(unsent) = link.take_unsent() {
                queue.put_back(unsent);
            }
            if !link.send_batched(context, queue) && link.poll_send(context, queue)?.is_pending() {
                return Poll::Pending;
            }
            link.flush();
            match link.take_unsent() {
                Some(unsent) => queue.put_back(unsent),
                None => return Poll::Ready(Ok(())),
            }
        }
    })
    .await
}

/// Polls once and returns the result.
async fn once<T>(mut poll: impl FnMut(&mut Context<'_>) -> T) -> T {
    poll_fn(|context| Poll::Ready(poll(context))).await
}

/// Returns a queue that contains a copy of `bytes`.
fn queue_of(bytes: &[u8]) -> SendQueue {
    let mut queue = SendQueue::default();
    queue.buffer().extend_from_slice(bytes);
    queue
}
