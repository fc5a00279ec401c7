//! Tunnels on HTTP/2 streams after an accepted extended CONNECT. The data is not a request body: the handler moves it
//! in both directions, as the flow-control windows of both sides allow.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{ErrorCode, ServerConnection, StreamId};

use super::connection::Connection;
use super::poll_exchange::ExchangePoll;
use super::streams::{ExchangeState, StreamExchange};
use crate::lifecycle::body::BodySource;
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::worker::{Buffers, Worker, WorkerConfig};

/// Maximum number of tunnel bytes framed for one stream in one round, which is a pass over all exchanges of the
/// connection. The limit lets other streams be served too.
const PIECE: u64 = 64 * 1024;

impl<L: Link> Connection<L> {
    /// Polls the handler of the tunnel, which moves the bytes. `room`: bytes that all exchanges together may still make
    /// ready in this round.
    pub(super) fn poll_tunnel(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &WorkerConfig,
        mut entry: Box<StreamExchange>,
        room: &mut u64,
    ) -> ExchangePoll {
        let Buffers {
            input,
            output,
            tunnel_output,
            ..
        } = &mut *worker.buffers.borrow_mut();
        let StreamExchange {
            stream,
            state: ExchangeState::Active(exchange),
            deadlines,
        } = &mut *entry
        else {
            return ExchangePoll::Waiting(entry);
        };
        let id = stream.id;
        let Stage::Tunnel(tunnel) = &mut exchange.stage else {
            return ExchangePoll::Waiting(entry);
        };
        // The link uses the ready bytes while the tunnel is polled, so they are taken out of the tunnel.
        let mut ready = std::mem::replace(&mut tunnel.ready, BodySource::empty());
        let mut link = StreamLink {
            id,
            engine: &mut self.engine,
            receiver: stream.body.as_mut(),
            ready: &mut ready,
            output,
            room,
        };
        let polled = tunnel.poll(
            context,
            worker,
            &config.ticks,
            deadlines,
            &mut link,
            // No counter of sent bytes: they are counted when they are framed.
            None,
            input,
            tunnel_output,
        );
        let has_ended = tunnel.ends.sent;
        let status = tunnel.status();
        if polled.is_ready() && ready.ready() > 0 && matches!(polled, Poll::Ready(Ok(()))) {
            if !has_ended {
                // The handler has not ended its direction, so the stream is ended after the remaining bytes.
                let _ = self.engine.queue_body(id, 0, true, output.buffer());
            }
            // The remaining bytes are sent like those of any response. Data that the client still sends is discarded.
            self.engine.discard_body(id, output.buffer());
            exchange.stage = Stage::Sending { body: ready, status };
            stream.body = None;
            // The next poll sends the bytes.
            return ExchangePoll::Waiting(entry);
        }
        tunnel.ready = ready;
        match polled {
            Poll::Pending => return ExchangePoll::Waiting(entry),
            Poll::Ready(Ok(())) => self.close_tunnel(worker, id, exchange, output),
            Poll::Ready(Err(error)) => {
                tracing::debug!(client = %self.core.info.client, "a tunnel was cut: {error}");
                self.engine.reset(id, ErrorCode::ConnectError, output.buffer());
                // Bytes count as sent once they are framed. Those of earlier rounds have left the server, because a
                // round begins without a backlog. So no bytes (`0`) are deducted as unsent.
                exchange.record_cut(worker, &mut self.core.info, 0);
            }
        }
        ExchangePoll::Progressed
    }

    /// Closes both directions in an orderly way. All bytes for the client must have been framed.
    pub(super) fn close_tunnel(
        &mut self,
        worker: &Worker,
        id: StreamId,
        exchange: &ActiveExchange,
        output: &mut SendQueue,
    ) {
        // No further bytes (`0`), and the end of the stream (`true`). If the stream is gone, the failure does not
        // matter.
        let _ = self.engine.queue_body(id, 0, true, output.buffer());
        if self.engine.receives_body(id) {
            // Nothing reads the data that the client still sends.
            self.engine.reset(id, ErrorCode::NoError, output.buffer());
        }
        exchange.record(worker, &mut self.core.info);
    }
}

/// Link over an HTTP/2 stream.
struct StreamLink<'a> {
    id: StreamId,
    engine: &'a mut ServerConnection,
    /// `None` if the client has ended the stream with its request.
    receiver: Option<&'a mut BodyReceiver>,
    /// Bytes to frame.
    ready: &'a mut BodySource,
    output: &'a mut SendQueue,
    /// Bytes that all streams may still send in this round.
    room: &'a mut u64,
}

impl StreamLink<'_> {
    /// Takes from the queue as many bytes as the windows and this round allow. Takes no bytes while earlier bytes wait
    /// to be framed. Ready if the queue is then empty.
    fn take(&mut self, queue: &mut SendQueue) -> io::Result<Poll<()>> {
        if queue.is_empty() {
            return Ok(Poll::Ready(()));
        }
        if self.ready.ready() > 0 {
            return Ok(Poll::Pending);
        }
        let max_bytes = self
            .engine
            .send_capacity(self.id, queue.len())
            .min(*self.room)
            .min(PIECE);
        if max_bytes > 0 {
            let piece = queue.take(max_bytes as usize);
            let size = piece.len() as u64;
            *self.room -= size;
            // `false`: the stream continues after these bytes.
            self.engine
                .queue_body(self.id, size, false, self.output.buffer())
                .map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.ready.fill(piece);
        }
        Ok(if queue.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        })
    }
}

impl Link for StreamLink<'_> {
    fn poll_recv<'b>(&mut self, _: &mut Context<'_>, _: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        let chunk = match &mut self.receiver {
            None => bytes::Bytes::new(),
            Some(receiver) => match receiver.take() {
                Some(chunk) => chunk,
                None if receiver.has_ended() => bytes::Bytes::new(),
                None => return Poll::Pending,
            },
        };
        if !chunk.is_empty() {
            self.engine.release(self.id, chunk.len() as u32, self.output.buffer());
        }
        Poll::Ready(Ok(Received::Owned(chunk)))
    }

    fn poll_send(&mut self, _: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        // The connection's task polls the tunnel again when the windows grow, or when its ready bytes have been framed.
        self.take(queue)?.map(Ok)
    }

    fn shut_down(&mut self) -> io::Result<()> {
        // No further bytes (`0`), and the end of the stream (`true`). If the stream is gone, the failure does not
        // matter.
        let _ = self.engine.queue_body(self.id, 0, true, self.output.buffer());
        Ok(())
    }

    fn reset(&mut self) {
        self.engine
            .reset(self.id, ErrorCode::ConnectError, self.output.buffer());
    }

    fn in_flight(&self) -> u64 {
        self.ready.ready()
    }

    fn is_zero_copy(&self) -> bool {
        false
    }
}
