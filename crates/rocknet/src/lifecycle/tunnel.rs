//! Connection or stream that a handler has taken over: the handler moves the bytes in both directions.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::{Link, Received};
use rocknet_io::pipe::Pipe;
use rocknet_io::queue::SendQueue;
use rocknet_proto::status::Status;

use super::body::BodySource;
use super::deadlines::Deadlines;
use crate::tunnel::{CloseState, Scratch, Tunnel};
use crate::worker::{OpenTunnel, Ticks, Worker};

/// Open tunnel of a connection or stream.
pub struct ActiveTunnel {
    tunnel: Box<dyn Tunnel>,
    /// Bytes for the client that are not framed yet. Always empty over HTTP/1, where the tunnel is the whole
    /// connection, and over HTTP/3, where the link frames bytes as it takes them.
    pub ready: BodySource,
    /// Directions that have ended.
    pub ends: CloseState,
    status: Status,
    /// Counts the tunnel as open until it is dropped.
    _open: OpenTunnel,
}

impl ActiveTunnel {
    /// Creates a tunnel. `status`: status of the response that accepted the tunnel.
    pub fn new(worker: &Rc<Worker>, tunnel: Box<dyn Tunnel>, status: Status) -> ActiveTunnel {
        ActiveTunnel {
            tunnel,
            ready: BodySource::empty(),
            ends: CloseState::default(),
            status,
            _open: OpenTunnel::new(worker),
        }
    }

    /// Returns the status of the response that accepted the tunnel.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Polls the handler, which moves bytes over `link`, the client's side. Ready when both directions have ended.
    /// `sent`: counter of the bytes written to the link; `None` over HTTP/2 and HTTP/3, where the bytes are counted
    /// when they are framed. `input` and `tunnel_output` are buffers of the worker.
    ///
    /// # Errors
    ///
    /// Fails if the handler fails or panics. The tunnel must then be reset, so that the client notices the failure.
    pub fn poll(
        &mut self,
        task: &mut Context<'_>,
        worker: &Worker,
        ticks: &Ticks,
        deadlines: &mut Deadlines,
        link: &mut impl Link,
        sent: Option<&mut u64>,
        input: &mut [u8],
        tunnel_output: &mut SendQueue,
    ) -> Poll<io::Result<()>> {
        tunnel_output.clear();
        let mut client = ClientLink {
            link,
            deadlines,
            worker,
            send_ticks: ticks.send,
            ends: &mut self.ends,
            sent,
        };
        let scratch = Scratch {
            input,
            queue: tunnel_output,
            pipes: &worker.pipes,
        };
        let tunnel = &mut self.tunnel;
        match catch_unwind(AssertUnwindSafe(|| tunnel.poll(task, &mut client, scratch))) {
            Ok(Poll::Pending) => {
                deadlines.enter_tunnel(self.ends.is_half_closed(), worker.tunnel_close_grace(), ticks);
                Poll::Pending
            }
            Ok(ready) => ready,
            Err(_) => {
                worker.counters.panics.add(1);
                tracing::error!("a tunnel handler panicked; the tunnel was closed");
                Poll::Ready(Err(io::ErrorKind::Other.into()))
            }
        }
    }
}

/// Wraps the link to the client for the tunnel handler: counts the bytes and maintains the deadlines.
struct ClientLink<'a, L> {
    link: &'a mut L,
    deadlines: &'a mut Deadlines,
    worker: &'a Worker,
    /// Period in ticks of the timer wheel. While the link takes no more bytes, the client has to take a minimum number
    /// of bytes in each period; otherwise the tunnel is cut.
    send_ticks: u32,
    ends: &'a mut CloseState,
    /// Counter of the bytes written to the link; `None` if the bytes are counted when they are framed.
    sent: Option<&'a mut u64>,
}

impl<L: Link> Link for ClientLink<'_, L> {
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        let polled = self.link.poll_recv(context, buffer);
        if let Poll::Ready(Ok(received)) = &polled {
            self.ends.received |= received.is_empty();
            self.deadlines.received(received.len() as u64);
        }
        polled
    }

    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        let before = queue.len();
        let polled = self.link.poll_send(context, queue);
        let is_direct = self.sent.is_some();
        let mut moved = 0;
        if let Some(sent) = &mut self.sent {
            moved = before - queue.len();
            **sent += moved;
            self.worker.counters.bytes_sent.add(moved);
        }
        match polled {
            // Bytes that have to be framed do not count as unacknowledged. They count as moved once they are framed.
            Poll::Pending => self.deadlines.stall_tunnel(moved, self.send_ticks, || {
                if is_direct { self.link.in_flight() } else { 0 }
            }),
            Poll::Ready(_) => self.deadlines.tunnel_sent(moved),
        }
        polled
    }

    fn fill_pipe(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        let moved = self.link.fill_pipe(context, pipe)?;
        self.deadlines.received(moved as u64);
        Ok(moved)
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.ends.sent = true;
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
