//! Write timeout for the upstream end of a tunnel: sending fails if the upstream accepts nothing for too long.
//!
//! At the client end, the connection enforces the timeout.

use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::{Link, Received};
use rocknet_io::pipe::Pipe;
use rocknet_io::queue::SendQueue;
use rocknet_io::wheel::{Deadline, Wheel};

/// Link whose sends fail with `TimedOut` if the peer accepts nothing for too long.
pub struct WriteTimeout<L> {
    link: L,
    wheel: Rc<Wheel>,
    /// Number of ticks within which the peer must accept or acknowledge bytes.
    ticks: u32,
    /// `None` unless bytes wait to be sent, so that an idle tunnel has no deadline.
    stalled: Option<Box<StalledWrite>>,
}

/// Write that the peer has not accepted completely.
struct StalledWrite {
    deadline: Deadline,
    /// Bytes that the peer had not acknowledged when the deadline was set.
    in_flight: u64,
}

impl<L: Link> WriteTimeout<L> {
    /// Wraps a link. `ticks` is the timeout in ticks of `wheel`.
    pub fn new(link: L, wheel: &Rc<Wheel>, ticks: u32) -> WriteTimeout<L> {
        WriteTimeout {
            link,
            wheel: Rc::clone(wheel),
            ticks,
            stalled: None,
        }
    }

    /// Called when bytes remain unsent. Returns true if the peer made no progress within the timeout. `has_moved`: true
    /// if the link has just accepted bytes.
    fn is_timed_out(&mut self, context: &Context<'_>, has_moved: bool) -> bool {
        let (link, wheel, ticks) = (&self.link, &self.wheel, self.ticks);
        let restart = |deadline: &Deadline| {
            deadline.set(ticks);
            link.in_flight()
        };
        let stalled = self.stalled.get_or_insert_with(|| {
            let deadline = wheel.deadline();
            let in_flight = restart(&deadline);
            Box::new(StalledWrite { deadline, in_flight })
        });
        if has_moved {
            stalled.in_flight = restart(&stalled.deadline);
        }
        if !stalled.deadline.poll_past(context.waker()) {
            return false;
        }
        // A slow peer may acknowledge bytes in the kernel's send buffer long before the socket accepts more.
        let before = stalled.in_flight;
        stalled.in_flight = restart(&stalled.deadline);
        // Polling the restarted deadline registers the waker again.
        stalled.in_flight >= before || stalled.deadline.poll_past(context.waker())
    }
}

impl<L: Link> Link for WriteTimeout<L> {
    #[inline]
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        self.link.poll_recv(context, buffer)
    }

    #[inline]
    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        let before = queue.len();
        let sent = self.link.poll_send(context, queue);
        if sent.is_ready() {
            self.stalled = None;
            return sent;
        }
        match self.is_timed_out(context, queue.len() < before) {
            true => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            false => Poll::Pending,
        }
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        self.link.fill_pipe(context, pipe)
    }

    fn send_batched(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> bool {
        self.link.send_batched(context, queue)
    }

    fn take_unsent(&mut self) -> Option<Vec<u8>> {
        self.link.take_unsent()
    }

    fn flush(&mut self) {
        self.link.flush();
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.link.shut_down()
    }

    fn reset(&mut self) {
        self.link.reset();
    }

    fn finish(&mut self) {
        self.link.finish();
    }

    fn enable_tcp_keepalive(&mut self) {
        self.link.enable_tcp_keepalive();
    }

    fn in_flight(&self) -> u64 {
        self.link.in_flight()
    }

    fn is_zero_copy(&self) -> bool {
        self.link.is_zero_copy()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::time::Duration;

    use rocknet_io::sim;

    use super::*;

    #[test]
    fn a_peer_that_reads_nothing_times_out_and_a_slow_reader_does_not() {
        let wheel = Wheel::new(Duration::from_millis(10), 4);
        let (link, peer) = sim::pair();
        let mut watched = WriteTimeout::new(link, &wheel, 3);
        let mut context = Context::from_waker(Waker::noop());
        let mut queue = SendQueue::default();
        queue.push_owned(vec![b'x'; 100_000].into());
        peer.accept(10);
        for _ in 0..5 {
            // The peer reads just before the timeout.
            assert!(watched.poll_send(&mut context, &mut queue).is_pending());
            wheel.advance();
            wheel.advance();
            peer.accept(10);
        }
        assert!(watched.poll_send(&mut context, &mut queue).is_pending());
        let given_up = (0..5).find_map(|ticks| {
            wheel.advance();
            let polled = watched.poll_send(&mut context, &mut queue);
            polled.is_ready().then_some((ticks, polled))
        });
        let Some((ticks, Poll::Ready(Err(error)))) = given_up else {
            panic!("no timeout");
        };
        // The timeout of three ticks ends with the third tick, number 2.
        assert_eq!((ticks, error.kind()), (2, ErrorKind::TimedOut));
        // A complete write resets the timeout.
        peer.accept_all();
        assert!(matches!(
            watched.poll_send(&mut context, &mut queue),
            Poll::Ready(Ok(()))
        ));
        assert!(watched.stalled.is_none());
    }
}
