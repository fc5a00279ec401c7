//! Starts exchanges: passes a request to the pipeline, then writes its response or stores its exchange in the stream
//! table.

use std::rc::Rc;

use rocknet_proto::DecodedHead;
use rocknet_proto::h3::StreamId;
use rocknet_proto::method::Method;
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::OwnedRequest;

use super::connection::Connection;
use super::output::{StreamOutput, WriteProgress, quic_id};
use super::responder::{H3Responder, RequestBody};
use super::send_order::transport_priority;
use super::streams::{RequestStream, StreamExchange};
use crate::exchange::BodyError;
use crate::lifecycle::connection_info::ConnectionInfo;
use crate::lifecycle::deadlines::{Deadlines, Wait};
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::lifecycle::flow::{self, Flow};
use crate::pipeline::{PipelineIo, RequestContext};
use crate::worker::{Worker, WorkerConfig};

impl Connection {
    /// Starts the exchange of a request whose head was decoded. `end`: true if the client has ended the stream with the
    /// head. `expects_continue`: true if the client waits for 100 (Continue) before it sends the body.
    pub(super) fn handle_request(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        head: &DecodedHead,
        id: StreamId,
        end: bool,
        expects_continue: bool,
    ) {
        let request = head.request();
        if let Some(seen) = &mut self.seen {
            // `is_new` also adds the target. The result does not matter here.
            seen.is_new(request.authority, request.target);
        }
        let body = match (end, request.upgrade.is_some()) {
            (true, _) => RequestBody::None,
            (false, true) => RequestBody::Tunnel,
            (false, false) => RequestBody::Stream { expects_continue },
        };
        let owned = || Rc::new(OwnedRequest::copy(head.bytes(), head.index()));
        let mut stream = self.request_stream(id, request.method == Method::Head);
        let (mut responder, info) = self.responder(worker, &mut stream, body);
        let flow = flow::begin(worker, config, info, &request, owned, !end, &mut responder);
        let receiver = responder.written.receiver.take();
        stream.body = receiver;
        if let Flow::Active(exchange) = &flow
            && let Stage::Waiting(pending) = &exchange.stage
            && let Some(preloads) = &pending.preloads
        {
            // While the handler works, the client can already request these files.
            let (mut responder, _) = self.responder(worker, &mut stream, RequestBody::None);
            responder.announce_preloads(&request, preloads);
        }
        self.advance(worker, flow, stream);
    }

    /// Returns the state of a request stream. `head_only`: true if the request was HEAD.
    fn request_stream(&mut self, id: StreamId, head_only: bool) -> RequestStream {
        let mut stream = RequestStream::new(id, head_only);
        stream.priority = self.engine.priority(id);
        // A stream of the transport has priority 0 by default.
        let value = transport_priority(stream.priority);
        if value != 0 {
            self.quic.set_priority(quic_id(id), value);
        }
        if self.hq.is_some() {
            // Over `hq-interop`, only the payload of the DATA frames is sent.
            stream.output = StreamOutput::of_content();
        }
        stream
    }

    /// Returns the writer of the response on a stream, and the connection info that the response is recorded with.
    pub(super) fn responder<'a>(
        &'a mut self,
        worker: &Worker,
        stream: &'a mut RequestStream,
        body: RequestBody,
    ) -> (H3Responder<'a>, &'a mut ConnectionInfo) {
        let responder = H3Responder::new(&mut self.engine, &mut self.quic, worker, stream, body, &mut self.seen);
        (responder, &mut self.info)
    }

    /// Applies the priorities that the client has changed.
    pub(super) fn apply_priorities(&mut self) {
        while let Some((id, priority)) = self.engine.take_reprioritized() {
            if let Some(entry) = self.streams.get_mut(id) {
                entry.stream.priority = priority;
            }
            self.quic.set_priority(quic_id(id), transport_priority(priority));
        }
    }

    /// Writes the output of a response, and stores the exchange if it is not complete.
    pub(super) fn advance(&mut self, worker: &Rc<Worker>, flow: Flow, mut stream: RequestStream) {
        let exchange = match flow {
            Flow::Active(exchange) => Some(exchange),
            Flow::Done => None,
        };
        let (written, bytes) = stream.output.write(&mut self.quic, stream.id);
        worker.counters.bytes_sent.add(bytes);
        if exchange.is_none() && written != WriteProgress::Blocked {
            // An output that does not end belongs to an aborted response, which gets no acknowledgement.
            if written == WriteProgress::All && stream.output.is_ended() {
                self.unacknowledged.push(stream.id);
            }
            return;
        }
        let mut deadlines = Deadlines::new(&worker.wheel);
        deadlines.set_handler_timeout(exchange.as_ref().and_then(ActiveExchange::handler_timeout));
        self.streams.insert(Box::new(StreamExchange {
            stream,
            exchange,
            deadlines,
            awaits_turn: false,
        }));
    }

    /// Responds to a rejected request, or to a request with a rejected body. `head_only`: true if the request was HEAD.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        worker: &Rc<Worker>,
        config: &Rc<WorkerConfig>,
        id: StreamId,
        head_only: bool,
        refusal: Refusal,
    ) {
        let mut context = None;
        let mut stream = self.request_stream(id, head_only);
        if let Some(entry) = self.streams.take(id) {
            // A request in progress is rejected only if its body is too large.
            entry.stream.fail(BodyError::TooLarge);
            context = entry.exchange.map(|exchange| exchange.context);
            // The stream is kept, because its output may contain the rest of an interim response.
            stream = entry.stream;
            stream.body = None;
        }
        let context = context.unwrap_or_else(|| RequestContext::unparsed(config, self.info.local()));
        let (mut responder, info) = self.responder(worker, &mut stream, RequestBody::None);
        let flow = flow::refuse(worker, info, context, refusal, &mut responder);
        self.advance(worker, flow, stream);
    }

    /// Responds to a request whose deadline has passed before its response began.
    #[cold]
    pub(super) fn respond_timeout(
        &mut self,
        worker: &Rc<Worker>,
        exchange: ActiveExchange,
        mut stream: RequestStream,
        wait: Wait,
    ) {
        let ActiveExchange { context, stage, .. } = exchange;
        // The request body has no reader any more.
        stream.body = None;
        let (mut responder, info) = self.responder(worker, &mut stream, RequestBody::None);
        let flow = flow::respond_timeout(worker, info, context, Some(&stage), wait, &mut responder);
        self.advance(worker, flow, stream);
    }
}
