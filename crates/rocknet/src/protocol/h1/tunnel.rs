//! Tunnels on HTTP/1 connections after a 101 response. The bytes are no longer HTTP, and the handler moves them.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::{Link, Received};
use rocknet_io::pipe::Pipe;
use rocknet_io::queue::SendQueue;

use super::connection::{Connection, State};
use crate::lifecycle::drive::Version;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::worker::Buffers;

impl<L: Link> Connection<L> {
    /// Polls the handler of the tunnel, which moves the bytes.
    pub(super) fn poll_tunnel(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let State::Serving(serving) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        if !std::mem::replace(&mut serving.tunnel_has_begun, true) {
            // Turns on TCP keepalive, because a tunnel may be silent for any length of time.
            self.core.link.enable_tcp_keepalive();
            self.core.ends_with_connection = true;
            // The response head must be sent before any tunnel data. If some of it is unsent, `has_sent_all` has moved
            // it to the backlog, and `drive` sends the backlog before it calls this function again.
            return match self.core.has_sent_all() {
                true => self.poll_tunnel(context),
                false => Poll::Ready(Ok(())),
            };
        }
        let ActiveExchange {
            stage: Stage::Tunnel(tunnel),
            sent,
            ..
        } = &mut serving.exchange
        else {
            return Poll::Ready(Ok(()));
        };
        let worker = Rc::clone(self.core.open.worker());
        let config = worker.config();
        let Buffers {
            input, tunnel_output, ..
        } = &mut *worker.buffers.borrow_mut();
        let mut link = EarlyLink {
            link: &mut self.core.link,
            early: &mut self.core.unread,
        };
        let polled = tunnel.poll(
            context,
            &worker,
            &config.ticks,
            &mut self.core.deadlines,
            &mut link,
            Some(sent),
            input,
            tunnel_output,
        );
        // The client may still send if it has not ended its direction.
        let linger = !tunnel.ends.received;
        if let Poll::Ready(Ok(())) = polled {
            // The record of a tunnel is the same whether it was cut or ended by itself.
            self.record_cut();
            // The exchange has counted the bytes of the tunnel for the access log, but `self.sent` does not include
            // them. As its value is unknown, `Connection::end` queries the kernel for unacknowledged bytes.
            self.sent = u32::MAX;
            self.state = State::Closing { linger };
        }
        polled
    }
}

/// Link that first returns the bytes that were received before the tunnel was accepted.
struct EarlyLink<'a, L> {
    link: &'a mut L,
    early: &'a mut Vec<u8>,
}

impl<L: Link> Link for EarlyLink<'_, L> {
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        if !self.early.is_empty() {
            return Poll::Ready(Ok(Received::Owned(std::mem::take(self.early).into())));
        }
        self.link.poll_recv(context, buffer)
    }

    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        self.link.poll_send(context, queue)
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        match self.early.is_empty() {
            true => self.link.fill_pipe(context, pipe),
            // The early bytes are in memory, so the handler has to receive them first.
            false => Ok(0),
        }
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

    fn in_flight(&self) -> u64 {
        self.link.in_flight()
    }

    fn is_zero_copy(&self) -> bool {
        self.link.is_zero_copy()
    }
}
