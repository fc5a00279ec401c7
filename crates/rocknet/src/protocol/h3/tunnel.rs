//! Tunnels on HTTP/3 streams after an accepted extended CONNECT (RFC 9220). The handler moves the bytes in both
//! directions, as the flow control of QUIC allows.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;
use rocknet_proto::h3::{ErrorCode, ServerConnection, StreamId};

use super::connection::Connection;
use super::output::{StreamOutput, WriteProgress, quic_id};
use super::poll_exchange::ExchangePoll;
use super::streams::StreamExchange;
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::exchange::Stage;
use crate::worker::{Buffers, Worker, WorkerConfig};

/// Maximum payload in bytes of a DATA frame with tunnel bytes.
const PIECE: usize = 64 * 1024;

/// Maximum number of tunnel bytes that one stream takes in one round, which is a pass over all exchanges of the
/// connection. The limit lets other streams be served too.
const ROUND: usize = 2 * PIECE;

impl Connection {
    /// Polls the handler of a tunnel, which moves the bytes.
    pub(super) fn poll_tunnel(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        config: &WorkerConfig,
        mut entry: Box<StreamExchange>,
    ) -> ExchangePoll {
        let StreamExchange {
            stream,
            exchange: Some(exchange),
            deadlines,
            awaits_turn,
        } = &mut *entry
        else {
            return ExchangePoll::Waiting(entry);
        };
        let Stage::Tunnel(tunnel) = &mut exchange.stage else {
            return ExchangePoll::Waiting(entry);
        };
        let id = stream.id;
        let mut link = StreamLink {
            id,
            engine: &mut self.engine,
            quic: &mut self.quic,
            receiver: stream.body.as_mut(),
            output: &mut stream.output,
            room: ROUND,
            taken: 0,
            written: 0,
        };
        // The bytes that were left after the last round are written first.
        let polled = match link.write() {
            Err(error) => Poll::Ready(Err(error)),
            Ok(_) => {
                let Buffers {
                    input, tunnel_output, ..
                } = &mut *worker.buffers.borrow_mut();
                let ticks = &config.ticks;
                // `None`: the link counts the sent bytes itself.
                tunnel.poll(context, worker, ticks, deadlines, &mut link, None, input, tunnel_output)
            }
        };
        let (taken, written) = (link.taken, link.written);
        exchange.sent += taken;
        worker.counters.bytes_sent.add(written);
        self.round_bytes += written;
        deadlines.moved(written);
        *awaits_turn &= written == 0;
        match polled {
            Poll::Pending if written > 0 => ExchangePoll::Progressed(entry),
            Poll::Pending => ExchangePoll::Waiting(entry),
            Poll::Ready(Ok(())) => {
                exchange.record(worker, &mut self.info);
                self.end_tunnel(&mut entry);
                ExchangePoll::Progressed(entry)
            }
            Poll::Ready(Err(error)) => {
                tracing::debug!(client = %self.info.client, "a tunnel was cut: {error}");
                exchange.record_cut(worker, &mut self.info, stream.output.length());
                self.abandon_stream(id, ErrorCode::ConnectError);
                ExchangePoll::Over
            }
        }
    }

    /// Ends both directions of a tunnel in an orderly way. The caller puts the entry back into the table, and it is
    /// removed once the transport has taken all bytes.
    pub(super) fn end_tunnel(&mut self, entry: &mut StreamExchange) {
        let id = entry.stream.id;
        entry.stream.output.end();
        self.engine.end_response(id);
        if self.engine.is_open(id) {
            // Nothing reads the data that the client still sends.
            self.engine.abandon(id);
            self.quic.stop_receiving(quic_id(id), ErrorCode::NoError.number());
        }
        entry.exchange = None;
        entry.stream.body = None;
        entry.deadlines.end_wait();
    }
}

/// Link over an HTTP/3 stream.
struct StreamLink<'a> {
    id: StreamId,
    engine: &'a mut ServerConnection,
    quic: &'a mut rocknet_quic::Connection,
    /// `None` if the client has ended the stream with its request.
    receiver: Option<&'a mut BodyReceiver>,
    output: &'a mut StreamOutput,
    /// Bytes that the stream may still take in this round.
    room: usize,
    /// Tunnel bytes that were framed.
    taken: u64,
    /// Bytes that were passed to the transport, frame headers included.
    written: u64,
}

impl StreamLink<'_> {
    /// Passes framed bytes to the transport. Returns true if none are left.
    fn write(&mut self) -> io::Result<bool> {
        let (progress, bytes) = self.output.write(self.quic, self.id);
        self.written += bytes;
        match progress {
            WriteProgress::All => Ok(true),
            WriteProgress::Blocked => Ok(false),
            WriteProgress::Gone => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Takes bytes from the queue until it is empty, the transport is full, or `room` is used up. Ready if the queue is
    /// then empty.
    fn take(&mut self, queue: &mut SendQueue) -> io::Result<Poll<()>> {
        while !queue.is_empty() {
            if self.output.has_bytes() || self.room == 0 {
                return Ok(Poll::Pending);
            }
            let piece = queue.take(self.room.min(PIECE));
            let mut header = Vec::new();
            self.engine
                .begin_data(self.id, piece.len() as u64, &mut header)
                .map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.room = self.room.saturating_sub(piece.len());
            self.taken += piece.len() as u64;
            self.output.push(header.into());
            self.output.push(piece);
            self.write()?;
        }
        Ok(Poll::Ready(()))
    }
}

impl Link for StreamLink<'_> {
    fn poll_recv<'b>(&mut self, _: &mut Context<'_>, _: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        let chunk = match &mut self.receiver {
            None => Bytes::new(),
            Some(receiver) => match receiver.take() {
                Some(chunk) => chunk,
                None if receiver.has_ended() => Bytes::new(),
                None => return Poll::Pending,
            },
        };
        Poll::Ready(Ok(Received::Owned(chunk)))
    }

    fn poll_send(&mut self, _: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        // The task of the connection polls the tunnel again when the transport takes more bytes, or in its next round.
        self.take(queue)?.map(Ok)
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.output.end();
        // If the stream is gone, the failure to end it does not matter.
        let _ = self.write();
        Ok(())
    }

    fn reset(&mut self) {
        self.quic.reset(quic_id(self.id), ErrorCode::ConnectError.number());
    }

    fn in_flight(&self) -> u64 {
        self.output.length()
    }

    fn is_zero_copy(&self) -> bool {
        false
    }
}
