//! Starts exchanges: passes a request to the pipeline, then queues its response or stores its exchange in the stream
//! table.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{DecodedHead, StreamId};
use rocknet_proto::method::Method;
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::{OwnedRequest, Request};

use super::connection::Connection;
use super::push_state::PromisedStream;
use super::responder::{H2Responder, RequestBody};
use super::streams::{ExchangeState, RequestStream, StreamExchange};
use crate::exchange::BodyError;
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::connection_info::ConnectionInfo;
use crate::lifecycle::deadlines::Deadlines;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::lifecycle::flow::{self, Flow};
use crate::pipeline::RequestContext;
use crate::worker::{Worker, WorkerConfig};

impl<L: Link> Connection<L> {
    /// Starts the exchange of a request whose head was decoded. `end`: true if the client has ended the stream with the
    /// head. `expects_continue`: true if the client waits for 100 (Continue) before it sends the body.
    #[inline]
    pub(super) fn handle_request(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        head: &DecodedHead,
        id: StreamId,
        end: bool,
        expects_continue: bool,
        output: &mut SendQueue,
    ) {
        let request = head.request();
        let body = match (end, request.upgrade.is_some()) {
            (true, _) => RequestBody::None,
            (false, true) => RequestBody::Tunnel,
            (false, false) => RequestBody::Stream { expects_continue },
        };
        self.pushes.record_request(&request);
        let owned = || Rc::new(OwnedRequest::copy(head.bytes(), head.index()));
        self.begin_exchange(worker, config, &request, owned, id, body, None, output);
    }

    /// Starts the exchange of a request. `owned` returns a copy of the request that outlives the receive buffer.
    /// `receiver`: the receiver of its body, if the request was held.
    #[inline]
    pub(super) fn begin_exchange(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        request: &Request<'_>,
        owned: impl Fn() -> Rc<OwnedRequest>,
        id: StreamId,
        body: RequestBody,
        receiver: Option<BodyReceiver>,
        output: &mut SendQueue,
    ) {
        let mut stream = RequestStream::new(id, request.method == Method::Head);
        let has_body = match &body {
            RequestBody::None => false,
            RequestBody::Stream { .. } | RequestBody::Tunnel => true,
            RequestBody::Held(body) => body.is_some(),
        };
        let (mut responder, info) = self.responder(worker, &stream, body, output);
        let flow = flow::begin(worker, config, info, request, owned, has_body, &mut responder);
        let written = responder.written;
        // `Done` is checked first and by reference, so that a response from the cache does not move a `Flow`, which is
        // as large as an `ActiveExchange`.
        if matches!(flow, Flow::Done) {
            if !written.promised.is_empty() {
                self.begin_promised(worker, written.promised, output);
            }
            return;
        }
        if let Flow::Active(exchange) = &flow {
            stream.body = written.receiver.or(receiver);
            // A part of the body of a held request was received before.
            exchange.received(stream.body.as_ref().map_or(0, BodyReceiver::held));
            if let Stage::Waiting(pending) = &exchange.stage {
                self.prepare_page_push(pending, request, &exchange.context, &mut stream, output);
            }
        }
        self.advance(worker, flow, written.promised, stream, output);
    }

    /// Returns the writer of the response on a stream, and the connection info with which the response is recorded.
    #[inline]
    pub(super) fn responder<'a>(
        &'a mut self,
        worker: &Worker,
        stream: &'a RequestStream,
        body: RequestBody,
        output: &'a mut SendQueue,
    ) -> (H2Responder<'a>, &'a mut ConnectionInfo) {
        // A more urgent response that is pending is considered later, when `write_frames` writes the queued bodies.
        let urgent_pending = false;
        let (scheme, bound) = (self.scheme(), self.send_budget.round_bytes(urgent_pending));
        let (engine, pushes) = (&mut self.engine, &mut self.pushes);
        let responder = H2Responder::new(engine, pushes, scheme, output, worker, stream, bound, body);
        (responder, &mut self.core.info)
    }

    /// Stores an exchange that is not complete, and starts the exchanges promised with it.
    #[inline(never)]
    pub(super) fn advance(
        &mut self,
        worker: &Rc<Worker>,
        flow: Flow,
        promised: Vec<PromisedStream>,
        stream: RequestStream,
        output: &mut SendQueue,
    ) {
        if let Flow::Active(exchange) = flow {
            self.insert_exchange(worker, exchange, stream);
        }
        if !promised.is_empty() {
            self.begin_promised(worker, promised, output);
        }
    }

    /// Stores an exchange in the stream table.
    #[inline(never)]
    fn insert_exchange(&mut self, worker: &Worker, exchange: ActiveExchange, stream: RequestStream) {
        let mut deadlines = Deadlines::new(&worker.wheel);
        deadlines.set_handler_timeout(exchange.handler_timeout());
        if exchange.is_tunnel() {
            // A tunnel may be silent for any length of time.
            self.core.link.enable_tcp_keepalive();
        }
        self.streams.insert(Box::new(StreamExchange {
            stream,
            state: ExchangeState::Active(exchange),
            deadlines,
        }));
    }

    /// Responds to a rejected request, or to a request with a rejected body. If its exchange is in progress, its
    /// request body fails, and the response on `stream` replaces the exchange.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        stream: RequestStream,
        refusal: Refusal,
        output: &mut SendQueue,
    ) {
        let mut context = None;
        if let Some(entry) = self.streams.take(stream.id) {
            // A request in progress is rejected only if its body is too large.
            entry.stream.fail(BodyError::TooLarge);
            if let ExchangeState::Active(exchange) = entry.state {
                context = Some(exchange.context);
            }
        }
        let context = context.unwrap_or_else(|| RequestContext::unparsed(config, self.core.info.local()));
        self.respond_refusal(worker, refusal, context, stream, output);
    }

    /// Responds to a rejected request on `stream`. `context`: the context with which the response is recorded.
    pub(super) fn respond_refusal(
        &mut self,
        worker: &Rc<Worker>,
        refusal: Refusal,
        context: Rc<RequestContext>,
        stream: RequestStream,
        output: &mut SendQueue,
    ) {
        let (mut responder, info) = self.responder(worker, &stream, RequestBody::None, output);
        let flow = flow::refuse(worker, info, context, refusal, &mut responder);
        let promised = responder.written.promised;
        self.advance(worker, flow, promised, stream, output);
    }
}
