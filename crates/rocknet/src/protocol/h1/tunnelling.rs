//! Tunnelling: what becomes of a connection after 101. Nothing on it is HTTP any more; the handler moves the bytes.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};

use rocknet_io::link::{Link, Received};
use rocknet_io::pipe::Pipe;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{self, Length};
use rocknet_proto::status::Status;

use super::answering::BROKEN_ANSWER;
use super::connection::{Connection, State};
use crate::pipeline::{self, RequestContext};
use crate::protocol::deadlines::{Deadlines, Phase};
use crate::protocol::record;
use crate::response::{FieldList, Switch};
use crate::tunnel::{Ends, Scratch, Tunnel};
use crate::worker::{Buffers, OpenTunnel, View, Worker};

/// A tunnel on its connection.
pub(super) struct Tunnelling {
    tunnel: Box<dyn Tunnel>,
    request_context: Rc<RequestContext>,
    ends: Ends,
    sent: u64,
    /// The head that agreed to it has left.
    has_begun: bool,
    _open: OpenTunnel,
}

impl<L: Link> Connection<L> {
    /// Agrees to another protocol.
    pub(super) fn begin_tunnel(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        mut fields: FieldList,
        switch: Switch,
        request_context: Rc<RequestContext>,
        output: &mut SendQueue,
    ) {
        if !self.engine.may_upgrade() {
            tracing::error!("a handler has switched protocols where that cannot be done");
            let response = pipeline::plain_error(&request_context, Status::INTERNAL_SERVER_ERROR);
            return self.respond(worker, view, *response, false, request_context, output);
        }
        let Switch { protocol, tunnel } = switch;
        fields.set("Upgrade", protocol);
        let status = Status::SWITCHING_PROTOCOLS;
        let framing = self.engine.respond(status, Length::None, false);
        let date = worker.clock.date();
        if let Err(error) = h1::encode_dated_head(output.buffer(), framing, status, &date, &fields) {
            tracing::error!("an answer could not be written: {error}");
            output.buffer().extend_from_slice(BROKEN_ANSWER);
            self.engine.abort();
            self.answered(
                worker,
                Status::INTERNAL_SERVER_ERROR,
                0,
                &request_context,
                h1::Next::Linger,
            );
            return;
        }
        self.engine.finish(output.buffer());
        self.state = State::Tunnelling(Box::new(Tunnelling {
            tunnel,
            request_context,
            ends: Ends::default(),
            sent: 0,
            has_begun: false,
            _open: OpenTunnel::new(worker),
        }));
    }

    /// Lets the handler move what can be moved.
    pub(super) fn tunnel(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let State::Tunnelling(tunnelling) = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        if !std::mem::replace(&mut tunnelling.has_begun, true) {
            self.link.keep_alive();
            self.open_ended = true;
            // What comes next may not overtake the head.
            return match self.has_sent_all() {
                true => self.tunnel(context),
                false => Poll::Ready(Ok(())),
            };
        }
        let worker = Rc::clone(self.open.worker());
        let view = worker.view();
        let Buffers { input, onward, .. } = &mut *worker.buffers.borrow_mut();
        onward.clear();
        let Tunnelling { tunnel, ends, sent, .. } = &mut **tunnelling;
        let mut client = Client {
            link: &mut self.link,
            early: &mut self.unread,
            deadlines: &mut self.deadlines,
            worker: &worker,
            send_ticks: view.ticks.send,
            ends,
            sent,
        };
        let scratch = Scratch {
            input,
            queue: onward,
            pipes: &worker.pipes,
        };
        match catch_unwind(AssertUnwindSafe(|| tunnel.poll(context, &mut client, scratch))) {
            Ok(Poll::Pending) => {
                self.deadlines
                    .enter_tunnel(ends.is_half(), worker.is_stopping(), &view.ticks);
                Poll::Pending
            }
            Ok(Poll::Ready(Ok(()))) => {
                let linger = !ends.received;
                self.record_tunnel();
                // The tunnel sent by itself.
                self.sent = u32::MAX;
                self.state = State::Closing { linger };
                Poll::Ready(Ok(()))
            }
            Ok(Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
            Err(_) => {
                worker.counters.panics.add(1);
                tracing::error!("a tunnel was ended by a panic");
                Poll::Ready(Err(io::ErrorKind::Other.into()))
            }
        }
    }

    /// The time of a tunnel is over: it is closed in an orderly way, unless the client has not taken all it was sent.
    #[cold]
    pub(super) fn expire_tunnel(&mut self, phase: Phase) {
        self.record_tunnel();
        self.state = match phase {
            Phase::Send => {
                self.link.reset();
                State::Closed
            }
            _ => State::Closing { linger: true },
        };
    }

    /// A tunnel has ended: its line in the log.
    pub(super) fn record_tunnel(&mut self) {
        let State::Tunnelling(tunnelling) = std::mem::replace(&mut self.state, State::Closed) else {
            return;
        };
        let Tunnelling {
            request_context, sent, ..
        } = *tunnelling;
        let (worker, status) = (self.open.worker(), Status::SWITCHING_PROTOCOLS);
        worker.counters.answered(status);
        let request = request_context.request.as_ref().map(|request| request.view());
        let text = &mut self.client_text;
        record::write(
            worker,
            request_context.access,
            self.client,
            text,
            request.as_ref(),
            status,
            sent,
        );
    }
}

/// The link as a tunnel sees it.
struct Client<'a, L> {
    link: &'a mut L,
    /// What came before the handler had agreed.
    early: &'a mut Vec<u8>,
    deadlines: &'a mut Deadlines,
    worker: &'a Worker,
    send_ticks: u32,
    ends: &'a mut Ends,
    sent: &'a mut u64,
}

impl<L: Link> Link for Client<'_, L> {
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        if !self.early.is_empty() {
            return Poll::Ready(Ok(Received::Held(std::mem::take(self.early).into())));
        }
        let polled = self.link.poll_recv(context, buffer);
        if let Poll::Ready(Ok(received)) = &polled {
            self.ends.received |= received.is_empty();
            self.deadlines.moved_in_tunnel(received.len() as u64);
        }
        polled
    }

    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        let before = queue.len();
        let polled = self.link.poll_send(context, queue);
        let moved = before - queue.len();
        *self.sent += moved;
        self.worker.counters.bytes_sent.add(moved);
        match polled {
            Poll::Pending => self
                .deadlines
                .stall_tunnel(moved, self.send_ticks, || self.link.in_flight()),
            Poll::Ready(_) => self.deadlines.flow_on(moved),
        }
        polled
    }

    fn fill(&mut self, context: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        if !self.early.is_empty() {
            return Ok(0);
        }
        let moved = self.link.fill(context, pipe)?;
        self.deadlines.moved_in_tunnel(moved as u64);
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

    fn sends_files(&self) -> bool {
        self.link.sends_files()
    }
}
