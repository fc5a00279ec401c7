//! Tunnelling: a stream whose extended CONNECT was agreed to. Its data is no content; the handler moves it, both ways, as
//! the windows of both sides allow.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{ErrorCode, SendError, ServerConnection, StreamId};
use rocknet_proto::status::Status;

use super::answer::{Answer, Incoming, State};
use super::answering::{Asked, is_of_connection};
use super::connection::Connection;
use super::supply::Supply;
use super::waiting::Look;
use crate::protocol::deadlines::{Deadlines, Phase};
use crate::response::{FieldList, Switch};
use crate::tunnel::{Ends, Scratch, Tunnel};
use crate::worker::{Buffers, OpenTunnel, View, Worker};

/// Most bytes of one stream that are framed in a turn: what a tunnel is sent at once, so that others get theirs.
const PIECE: u64 = 64 * 1024;

/// A tunnel on its stream.
pub struct Tunnelling {
    tunnel: Box<dyn Tunnel>,
    /// What is to be framed.
    pub supply: Supply,
    pub sent: u64,
    ends: Ends,
    _open: OpenTunnel,
}

/// What stands for 101 here (RFC 8441 §5).
pub const STATUS: Status = Status::OK;

impl<L: Link> Connection<L> {
    /// Agrees to another protocol.
    pub(super) fn begin_tunnel(
        &mut self,
        worker: &Rc<Worker>,
        fields: &FieldList,
        switch: Switch,
        asked: Asked,
        output: &mut SendQueue,
    ) {
        let date = worker.clock.date();
        let all = std::iter::once((&b"date"[..], &date[..])).chain(
            fields
                .iter()
                .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
                .filter(|(name, _)| !is_of_connection(name)),
        );
        match self.engine.respond(asked.id, STATUS, None, all, false, output.buffer()) {
            Ok(()) => {}
            Err(SendError::Field(error)) => return self.respond_broken(worker, &error, &asked, output),
            // The client does not want it any more.
            Err(_) => return,
        }
        self.engine.begin_tunnel(asked.id);
        self.link.keep_alive();
        let tunnelling = Tunnelling {
            tunnel: switch.tunnel,
            supply: Supply::empty(),
            sent: 0,
            ends: Ends::default(),
            _open: OpenTunnel::new(worker),
        };
        self.keep(worker, asked, State::Tunnelling(Box::new(tunnelling)));
    }

    /// Lets the handler move what can be moved.
    pub(super) fn look_at_tunnel(
        &mut self,
        context: &mut Context<'_>,
        worker: &Rc<Worker>,
        view: &View,
        mut answer: Box<Answer>,
        room: &mut u64,
    ) -> Look {
        let Buffers {
            input, output, onward, ..
        } = &mut *worker.buffers.borrow_mut();
        onward.clear();
        let Answer {
            id,
            state,
            deadlines,
            content,
            ..
        } = &mut *answer;
        let State::Tunnelling(tunnelling) = state else {
            return Look::Same(answer);
        };
        let Tunnelling {
            tunnel,
            supply,
            sent,
            ends,
            ..
        } = &mut **tunnelling;
        let mut client = Client {
            id: *id,
            engine: &mut self.engine,
            incoming: content.as_mut(),
            supply,
            output,
            deadlines,
            send_ticks: view.ticks.send,
            ends,
            room,
        };
        let scratch = Scratch {
            input,
            queue: onward,
            pipes: &worker.pipes,
        };
        let failed = match catch_unwind(AssertUnwindSafe(|| tunnel.poll(context, &mut client, scratch))) {
            Ok(Poll::Pending) => {
                deadlines.enter_tunnel(ends.is_half(), worker.is_stopping(), &view.ticks);
                return Look::Same(answer);
            }
            Ok(Poll::Ready(result)) => result.err(),
            Err(_) => {
                worker.counters.panics.add(1);
                tracing::error!("a tunnel was ended by a panic");
                Some(io::ErrorKind::Other.into())
            }
        };
        if let Some(error) = failed {
            tracing::debug!(client = %self.client, "a tunnel was cut: {error}");
            self.engine.reset(*id, ErrorCode::ConnectError, output.buffer());
            self.record_cut(worker, &answer);
            return Look::Moved;
        }
        if supply.ready() > 0 {
            let (supply, sent) = (std::mem::replace(supply, Supply::empty()), *sent);
            if !ends.sent {
                let _ = self.engine.offer(*id, 0, true, output.buffer());
            }
            // What is left to do is what is left of any answer.
            self.engine.ignore_content(*id, output.buffer());
            (answer.state, answer.content) = (
                State::Feeding {
                    supply,
                    status: STATUS,
                    sent,
                },
                None,
            );
            return Look::Same(answer);
        }
        self.close_tunnel(worker, &answer, output);
        Look::Moved
    }

    /// Ends both directions in an orderly way. All that was sent must have been framed.
    pub(super) fn close_tunnel(&mut self, worker: &Worker, answer: &Answer, output: &mut SendQueue) {
        let _ = self.engine.offer(answer.id, 0, true, output.buffer());
        if self.engine.receives_content(answer.id) {
            // Whatever the client still has to say, nobody hears it.
            self.engine.reset(answer.id, ErrorCode::NoError, output.buffer());
        }
        self.record_cut(worker, answer);
    }
}

impl Answer {
    /// A tunnel whose time is over for another reason than a client that takes nothing.
    pub(super) fn is_quiet_tunnel(&self) -> bool {
        let State::Tunnelling(tunnelling) = &self.state else {
            return false;
        };
        tunnelling.supply.ready() == 0 && self.deadlines.phase() != Phase::Send
    }
}

/// The stream as a tunnel sees it.
struct Client<'a> {
    id: StreamId,
    engine: &'a mut ServerConnection,
    /// `None`: the client had nothing to say from the beginning.
    incoming: Option<&'a mut Incoming>,
    supply: &'a mut Supply,
    output: &'a mut SendQueue,
    deadlines: &'a mut Deadlines,
    send_ticks: u32,
    ends: &'a mut Ends,
    /// Bytes that all streams may still send in this round.
    room: &'a mut u64,
}

impl Client<'_> {
    /// Takes from the queue what the windows let go.
    fn take(&mut self, queue: &mut SendQueue) -> io::Result<Poll<()>> {
        if queue.is_empty() {
            return Ok(Poll::Ready(()));
        }
        if self.supply.ready() > 0 {
            return Ok(Poll::Pending);
        }
        let most = self.engine.allowance(self.id, queue.len()).min(*self.room).min(PIECE);
        if most > 0 {
            let piece = queue.take(most as usize);
            let size = piece.len() as u64;
            *self.room -= size;
            self.engine
                .offer(self.id, size, false, self.output.buffer())
                .map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.supply.fill(piece);
        }
        Ok(if queue.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        })
    }
}

impl Link for Client<'_> {
    fn poll_recv<'b>(&mut self, _: &mut Context<'_>, _: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        let chunk = match &mut self.incoming {
            None => bytes::Bytes::new(),
            Some(incoming) => match incoming.take() {
                Some(chunk) => chunk,
                None if incoming.has_ended() => bytes::Bytes::new(),
                None => return Poll::Pending,
            },
        };
        if chunk.is_empty() {
            self.ends.received = true;
        } else {
            self.deadlines.moved_in_tunnel(chunk.len() as u64);
            self.engine.release(self.id, chunk.len() as u32, self.output.buffer());
        }
        Poll::Ready(Ok(Received::Held(chunk)))
    }

    fn poll_send(&mut self, _: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        // Woken when the windows move, and looked at again when what it has is framed: the connection's task is this one's.
        let taken = self.take(queue)?;
        if taken.is_ready() {
            self.deadlines.flow_on(0);
        } else {
            self.deadlines.stall_tunnel(0, self.send_ticks, || 0);
        }
        taken.map(Ok)
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.ends.sent = true;
        // On a stream that has gone nobody waits for it.
        let _ = self.engine.offer(self.id, 0, true, self.output.buffer());
        Ok(())
    }

    fn reset(&mut self) {
        self.engine
            .reset(self.id, ErrorCode::ConnectError, self.output.buffer());
    }

    fn in_flight(&self) -> u64 {
        self.supply.ready()
    }

    fn sends_files(&self) -> bool {
        false
    }
}
