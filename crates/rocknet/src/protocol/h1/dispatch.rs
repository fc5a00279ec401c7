//! Answering: from one request to its response in the send queue, and what becomes of the connection after it.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{AfterResponse, BodyFraming, Refusal};
use rocknet_proto::request::{OwnedRequest, RequestIndex};

use super::connection::{Connection, CurrentExchange, State};
use super::responder::{H1Responder, Written};
use crate::lifecycle::deadlines::Wait;
use crate::lifecycle::exchange::Stage;
use crate::lifecycle::flow::{self, Flow};
use crate::pipeline::{self, RequestContext};
use crate::worker::{Worker, WorkerConfig};

impl<L: Link> Connection<L> {
    #[inline]
    pub(super) fn handle_request(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
        head: &[u8],
        index: &RequestIndex,
        content: BodyFraming,
        output: &mut SendQueue,
    ) {
        let close = self.core.is_old(worker, view);
        let mut responder = H1Responder::new(&mut self.engine, output, worker, close);
        let flow = flow::begin(
            worker,
            view,
            &mut self.core.info,
            &index.view(head),
            || Rc::new(OwnedRequest::copy(head, index)),
            content != BodyFraming::None,
            &mut responder,
        );
        let written = responder.written;
        self.advance(view, flow, written);
    }

    /// Goes on as far as an exchange has come.
    #[inline]
    pub(super) fn advance(&mut self, view: &WorkerConfig, flow: Flow, written: Written) {
        match flow {
            Flow::Done => self.finish_exchange(&written),
            Flow::Active(exchange) => {
                self.core.open_ended |= written.is_open_ended;
                self.store_exchange(
                    view,
                    CurrentExchange {
                        exchange,
                        channel: written.channel,
                        has_begun: false,
                    },
                );
            }
        }
    }

    #[inline(never)]
    fn store_exchange(&mut self, view: &WorkerConfig, serving: CurrentExchange) {
        match &serving.exchange.stage {
            Stage::Waiting(pending) => {
                self.core.deadlines.set_handler_timeout(pending.timeout_ticks);
                self.core.deadlines.begin(Wait::Handler, self.response_ticks(view));
            }
            Stage::Sending { .. } | Stage::Tunnel(_) => {
                self.core.deadlines.set_handler_timeout(None);
                self.core.deadlines.leave_handler();
            }
        }
        self.state = State::Serving(Box::new(serving));
    }

    /// An exchange is over.
    #[inline]
    pub(super) fn finish_exchange(&mut self, written: &Written) {
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
            drop(pipeline::refusal_response(
                worker,
                &context,
                self.core.info.client,
                b"",
                refusal,
            ));
            self.state = State::Closing { linger: true };
            return;
        }
        let mut responder = H1Responder::new(&mut self.engine, output, worker, true);
        let flow = flow::refuse(worker, &mut self.core.info, context, refusal, &mut responder);
        let written = responder.written;
        self.advance(view, flow, written);
    }
}
