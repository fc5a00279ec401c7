//! Starts exchanges: passes a request to the pipeline, then queues its response or stores its exchange.

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
    /// Starts the exchange of a request whose head was parsed.
    #[inline]
    pub(super) fn handle_request(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        head: &[u8],
        index: &RequestIndex,
        framing: BodyFraming,
        output: &mut SendQueue,
    ) {
        let close = self.core.should_close(worker, config);
        let mut responder = H1Responder::new(&mut self.engine, output, worker, close);
        let flow = flow::begin(
            worker,
            config,
            &mut self.core.info,
            &index.view(head),
            || Rc::new(OwnedRequest::copy(head, index)),
            framing != BodyFraming::None,
            &mut responder,
        );
        let written = responder.written;
        self.advance(config, flow, written);
    }

    /// Continues after a step of an exchange: stores the exchange if it is not complete, and otherwise finishes it.
    #[inline]
    pub(super) fn advance(&mut self, config: &WorkerConfig, flow: Flow, written: Written) {
        match flow {
            Flow::Done => self.finish_exchange(&written),
            Flow::Active(exchange) => {
                self.core.ends_with_connection |= written.is_open_ended;
                self.store_exchange(
                    config,
                    CurrentExchange {
                        exchange,
                        channel: written.channel,
                        tunnel_has_begun: false,
                    },
                );
            }
        }
    }

    /// Stores an exchange that is not complete, and sets its deadline if it waits for a handler. At other stages, the
    /// deadline is set when the exchange is polled.
    #[inline(never)]
    fn store_exchange(&mut self, config: &WorkerConfig, serving: CurrentExchange) {
        let timeout = serving.exchange.handler_timeout();
        self.core.deadlines.set_handler_timeout(timeout);
        match &serving.exchange.stage {
            Stage::Waiting(_) => self.core.deadlines.begin(Wait::Handler, self.response_ticks(config)),
            Stage::Sending { .. } | Stage::Tunnel(_) => self.core.deadlines.end_handler_wait(),
        }
        self.state = State::Serving(Box::new(serving));
    }

    /// Ends an exchange, and prepares the connection for the next request or its end.
    #[inline]
    pub(super) fn finish_exchange(&mut self, written: &Written) {
        self.core.deadlines.end_handler_wait();
        self.state = State::Reading;
        // `unread` may already contain the next request, which is handled before more bytes are received.
        self.core.stalled = !self.core.unread.is_empty();
        // Without `next`, the response was not ended, so the connection cannot continue.
        match written.next.unwrap_or(AfterResponse::Close) {
            _ if written.is_last => self.state = State::Closing { linger: true },
            // Ends the current wait, such as the wait for the head, so that the next wait gets its full time.
            AfterResponse::KeepAlive => self.core.deadlines.end_wait(),
            AfterResponse::Drain => {
                self.core.deadlines.end_wait();
                // Counts the bytes of the rest of the request body, which is discarded.
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

    /// Responds to a rejected request if a response can be sent, logs the rejection, and closes the connection.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        refusal: Refusal,
        context: Rc<RequestContext>,
        output: &mut SendQueue,
    ) {
        // The client may speak HTTP/2, and would not understand a response of HTTP/1.
        let is_preface = config.h2c && refusal.may_be_preface();
        if !refusal.may_respond() || is_preface || !self.engine.may_respond() {
            // Logs the rejection, and drops the response, because it cannot be sent. No path (`b""`) is passed, because
            // `context` contains it if it is known.
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
        let close = true;
        let mut responder = H1Responder::new(&mut self.engine, output, worker, close);
        let flow = flow::refuse(worker, &mut self.core.info, context, refusal, &mut responder);
        let written = responder.written;
        self.advance(config, flow, written);
    }
}
