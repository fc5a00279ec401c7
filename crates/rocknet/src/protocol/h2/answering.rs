//! Answering: from one request to its response in the send queue, or to its place among those under way.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h2::{DecodedHead, StreamId};
use rocknet_proto::method::Method;
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::{OwnedRequest, Request};

use super::answer::{Answer, Asked, Incoming, State};
use super::connection::Connection;
use super::pushes::Promised;
use super::reply::{H2Reply, RequestBody};
use crate::exchange::BodyError;
use crate::lifecycle::deadlines::Deadlines;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::lifecycle::flow::{self, Flow};
use crate::lifecycle::peer::Peer;
use crate::pipeline::RequestContext;
use crate::worker::{Worker, WorkerConfig};

impl<L: Link> Connection<L> {
    #[inline]
    pub(super) fn answer(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
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
        self.pushes.note(&request);
        let owned = || Rc::new(OwnedRequest::copy(head.bytes(), head.index()));
        self.answer_request(worker, view, &request, owned, id, body, None, output);
    }

    /// Answers a request. `incoming`: its body, if that is received already.
    #[inline]
    pub(super) fn answer_request(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
        request: &Request<'_>,
        owned: impl Fn() -> Rc<OwnedRequest>,
        id: StreamId,
        body: RequestBody,
        incoming: Option<Incoming>,
        output: &mut SendQueue,
    ) {
        let mut asked = Asked::new(id, request.method == Method::Head);
        let has_body = match &body {
            RequestBody::None => false,
            RequestBody::Stream { .. } | RequestBody::Tunnel => true,
            RequestBody::Held(content) => content.is_some(),
        };
        let (mut reply, peer) = self.reply(worker, &asked, body, output);
        let flow = flow::begin(worker, view, peer, request, owned, has_body, &mut reply);
        let written = reply.written;
        // By reference and first: moving what a ready request does not have would cost it a copy.
        if matches!(flow, Flow::Done) {
            if !written.promised.is_empty() {
                self.answer_promised(worker, written.promised, output);
            }
            return;
        }
        if let Flow::Active(exchange) = &flow {
            asked.content = written.incoming.or(incoming);
            // Of a request that was held, some of the body has come before.
            exchange.received(asked.content.as_ref().map_or(0, Incoming::held));
            if let Stage::Waiting(pending) = &exchange.stage {
                self.prepare_page(pending, request, &exchange.context, &mut asked, output);
            }
        }
        self.go_on(worker, flow, written.promised, asked, output);
    }

    /// What writes the response on a stream, and the client that it is recorded for.
    #[inline]
    pub(super) fn reply<'a>(
        &'a mut self,
        worker: &Worker,
        asked: &'a Asked,
        body: RequestBody,
        output: &'a mut SendQueue,
    ) -> (H2Reply<'a>, &'a mut Peer) {
        let (scheme, bound) = (self.scheme(), self.ahead.round(false));
        let (engine, pushes) = (&mut self.engine, &mut self.pushes);
        let reply = H2Reply::new(engine, pushes, scheme, output, worker, asked, bound, body);
        (reply, &mut self.core.peer)
    }

    /// Goes on as far as an exchange has come, and answers what was promised with it.
    #[inline(never)]
    pub(super) fn go_on(
        &mut self,
        worker: &Rc<Worker>,
        flow: Flow,
        promised: Vec<Promised>,
        asked: Asked,
        output: &mut SendQueue,
    ) {
        if let Flow::Active(exchange) = flow {
            self.keep(worker, exchange, asked);
        }
        if !promised.is_empty() {
            self.answer_promised(worker, promised, output);
        }
    }

    #[inline(never)]
    fn keep(&mut self, worker: &Worker, exchange: ActiveExchange, asked: Asked) {
        let mut deadlines = Deadlines::new(&worker.wheel);
        match &exchange.stage {
            Stage::Waiting(pending) => deadlines.set_handler_timeout(pending.patience),
            Stage::Sending { .. } => {}
            Stage::Tunnelling(_) => self.core.link.keep_alive(),
        }
        self.answers.insert(Box::new(Answer {
            asked,
            state: State::Active(exchange),
            deadlines,
        }));
    }

    /// A request that is not accepted, or a body that is not.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<WorkerConfig>,
        id: StreamId,
        refusal: Refusal,
        output: &mut SendQueue,
    ) {
        let mut context = None;
        if let Some(answer) = self.answers.take(id) {
            answer.asked.fail(BodyError::TooLarge);
            if let State::Active(exchange) = answer.state {
                context = Some(exchange.context);
            }
        }
        let context = context.unwrap_or_else(|| RequestContext::unparsed(view, self.core.peer.local()));
        self.respond_refusal(worker, refusal, context, Asked::new(id, false), output);
    }

    pub(super) fn respond_refusal(
        &mut self,
        worker: &Rc<Worker>,
        refusal: Refusal,
        context: Rc<RequestContext>,
        asked: Asked,
        output: &mut SendQueue,
    ) {
        let (mut reply, peer) = self.reply(worker, &asked, RequestBody::None, output);
        let flow = flow::refuse(worker, peer, context, refusal, &mut reply);
        let promised = reply.written.promised;
        self.go_on(worker, flow, promised, asked, output);
    }
}
