//! Answering: from one request to its response in the send queue, and what becomes of the connection after it.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{AfterResponse, BodyFraming, Refusal};
use rocknet_proto::request::{OwnedRequest, RequestIndex};

use super::connection::{Connection, Serving, State};
use super::reply::{H1Reply, Written};
use crate::lifecycle::deadlines::Wait;
use crate::lifecycle::exchange::Stage;
use crate::lifecycle::flow::{self, Flow};
use crate::pipeline::{self, RequestContext};
use crate::worker::{Worker, WorkerConfig};

impl<L: Link> Connection<L> {
    #[inline]
    pub(super) fn answer(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
        head: &[u8],
        index: &RequestIndex,
        content: BodyFraming,
        output: &mut SendQueue,
    ) {
        let close = self.core.is_old(worker, view);
        let mut reply = H1Reply::new(&mut self.engine, output, worker, close);
        let flow = flow::begin(
            worker,
            view,
            &mut self.core.peer,
            &index.view(head),
            || Rc::new(OwnedRequest::copy(head, index)),
            content != BodyFraming::None,
            &mut reply,
        );
        let written = reply.written;
        self.go_on(view, flow, written);
    }

    /// Goes on as far as an exchange has come.
    #[inline]
    pub(super) fn go_on(&mut self, view: &WorkerConfig, flow: Flow, written: Written) {
        match flow {
            Flow::Done => self.done(&written),
            Flow::Active(exchange) => {
                self.core.open_ended |= written.is_open_ended;
                self.keep(
                    view,
                    Serving {
                        exchange,
                        pipe: written.pipe,
                        has_begun: false,
                    },
                );
            }
        }
    }

    #[inline(never)]
    fn keep(&mut self, view: &WorkerConfig, serving: Serving) {
        match &serving.exchange.stage {
            Stage::Waiting(pending) => {
                self.core.deadlines.set_handler_timeout(pending.patience);
                self.core.deadlines.begin(Wait::Handler, self.answer_ticks(view));
            }
            Stage::Sending { .. } | Stage::Tunnelling(_) => {
                self.core.deadlines.set_handler_timeout(None);
                self.core.deadlines.leave_handler();
            }
        }
        self.state = State::Serving(Box::new(serving));
    }

    /// An exchange is over.
    #[inline]
    pub(super) fn done(&mut self, written: &Written) {
        self.core.deadlines.leave_handler();
        self.state = State::Reading;
        self.core.stalled = !self.core.unread.is_empty();
        match written.next.unwrap_or(AfterResponse::Close) {
            _ if written.is_last => self.state = State::Closing { linger: true },
            // Whatever is waited for next, its time begins anew.
            AfterResponse::KeepAlive => self.core.deadlines.leave(),
            AfterResponse::Drain => {
                self.core.deadlines.leave();
                self.core.dropped = 0;
            }
            AfterResponse::Close => {
                self.state = State::Closing {
                    linger: !self.core.unread.is_empty(),
                }
            }
            AfterResponse::Linger | AfterResponse::Upgrade => self.state = State::Closing { linger: true },
        }
    }

    /// Answers what is no acceptable request, and closes.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
        refusal: Refusal,
        context: Rc<RequestContext>,
        output: &mut SendQueue,
    ) {
        let is_preface = view.h2c && refusal.may_be_preface();
        if !refusal.may_respond() || is_preface || !self.engine.may_respond() {
            // It is logged all the same.
            drop(pipeline::refused(worker, &context, self.core.peer.client, b"", refusal));
            self.state = State::Closing { linger: true };
            return;
        }
        let mut reply = H1Reply::new(&mut self.engine, output, worker, true);
        let flow = flow::refuse(worker, &mut self.core.peer, context, refusal, &mut reply);
        let written = reply.written;
        self.go_on(view, flow, written);
    }
}
