//! Answering: from one request to its answer in the send queue, or to its place among those under way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::Refusal;
use rocknet_proto::h2::{EncodeError, ErrorCode, Head, SendError, StreamId};
use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

use super::answer::{Answer, Incoming, Page, State};
use super::connection::Connection;
use super::reply::{H2Reply, RequestBody, Written};
use super::supply::Supply;
use crate::exchange::ContentError;
use crate::pipeline::{self, Begun, Incoming as IncomingRequest, Pending, RequestContext, Step, access_log, refusals};
use crate::preload;
use crate::protocol::deadlines::Deadlines;
use crate::protocol::record;
use crate::response::{Body, Response};
use crate::worker::{View, Worker};

/// A request on its stream, while its answer is being found.
pub(super) struct Asked {
    pub id: StreamId,
    pub head_only: bool,
    pub request_context: Rc<RequestContext>,
    pub content: Option<Incoming>,
    pub page: Option<Box<Page>>,
    /// Ticks that its handler may take; `None`: as long as all others.
    pub patience: Option<u32>,
}

impl Asked {
    pub(super) fn new(id: StreamId, head_only: bool, request_context: Rc<RequestContext>) -> Asked {
        Asked {
            id,
            head_only,
            request_context,
            content: None,
            page: None,
            patience: None,
        }
    }
}

impl<L: Link> Connection<L> {
    #[inline]
    pub(super) fn answer(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        head: &Head,
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
        view: &Rc<View>,
        request: &Request<'_>,
        owned: impl Fn() -> Rc<OwnedRequest>,
        id: StreamId,
        body: RequestBody,
        incoming: Option<Incoming>,
        output: &mut SendQueue,
    ) {
        let head_only = request.method == Method::Head;
        let scheme = self.scheme();
        let bound = self.ahead.round(false);
        let request_of = IncomingRequest {
            request,
            owned,
            has_body: match &body {
                RequestBody::None => false,
                RequestBody::Stream { .. } | RequestBody::Tunnel => true,
                RequestBody::Held(content) => content.is_some(),
            },
            peer: self.client,
            secure: self.secure.as_ref(),
            local: self.local.as_deref().copied(),
        };
        let mut reply = H2Reply::new(
            &mut self.engine,
            &mut self.pushes,
            scheme,
            output,
            worker,
            id,
            head_only,
            bound,
            body,
        );
        let begun = catch_unwind(AssertUnwindSafe(|| {
            pipeline::begin(worker, view, &request_of, &mut reply)
        }));
        let mut written = reply.written;
        match begun {
            Ok(Begun::Sent { status, site }) if written.supply.is_none() && written.promised.is_empty() => {
                let sent = written.content_bytes;
                self.answered(worker, access_log(view, Some(site)), Some(request), status, sent);
            }
            Ok(Begun::Sent { status, site }) => {
                let IncomingRequest { local, owned, .. } = request_of;
                let request_context = Rc::new(RequestContext::new(view, Some(site), None, local, owned));
                let asked = Asked::new(id, head_only, request_context);
                self.step(worker, Step::Sent(status), written, asked, output);
            }
            Ok(Begun::Going(going)) => {
                let mut asked = Asked::new(id, head_only, going.context);
                asked.content = written.incoming.take().or(incoming);
                if let Step::Wait(pending) = &going.step {
                    self.prepare_page(pending, request, &mut asked, output);
                }
                self.step(worker, going.step, written, asked, output);
            }
            Err(_) => {
                let request_context = pipeline::context_of(view, &request_of);
                self.give_up_promised(written.promised, output);
                self.panicked(worker, Asked::new(id, head_only, request_context), output);
            }
        }
    }

    /// Keeps what is to be pushed with a page that is waited for, or announces it now to a client that takes no pushes.
    fn prepare_page(&mut self, pending: &Pending, request: &Request<'_>, asked: &mut Asked, output: &mut SendQueue) {
        let preloads = &pending.preloads;
        if self.engine.may_push(asked.id) && preload::is_first_look(request) {
            let request = asked.request_context.request.clone();
            asked.page = request.map(|request| {
                let preloads = preloads.clone();
                Box::new(Page { request, preloads })
            });
        } else if let Some(preloads) = preloads.as_ref().filter(|_| !asked.id.is_promised()) {
            // The handler takes its time, in which the client can ask for what it will need.
            self.pushes
                .hint(&mut self.engine, asked.id, request, preloads, output.buffer());
        }
    }

    /// Goes on with a response that was sent, is here, or is waited for.
    pub(super) fn step(
        &mut self,
        worker: &Rc<Worker>,
        step: Step,
        written: Written,
        mut asked: Asked,
        output: &mut SendQueue,
    ) {
        match step {
            Step::Sent(status) => match written.supply {
                Some(supply) => self.keep(
                    worker,
                    asked,
                    State::Feeding {
                        supply,
                        status,
                        sent: 0,
                    },
                ),
                None => self.answered_asked(worker, &asked, status, written.content_bytes),
            },
            Step::Respond(response) => self.respond(worker, *response, asked, output),
            Step::Wait(pending) => {
                asked.patience = pending.patience;
                self.keep(worker, asked, State::Waiting(pending));
            }
        }
        if !written.promised.is_empty() {
            self.answer_promised(worker, written.promised, output);
        }
    }

    pub(super) fn keep(&mut self, worker: &Worker, asked: Asked, state: State) {
        let Asked {
            id,
            head_only,
            request_context,
            content,
            page,
            patience,
        } = asked;
        let mut deadlines = Deadlines::new(&worker.wheel);
        deadlines.set_patience(patience);
        self.answers.insert(Box::new(Answer {
            id,
            state,
            deadlines,
            request_context,
            head_only,
            content,
            page,
        }));
    }

    /// Writes an answer that was not prepared.
    pub(super) fn respond(&mut self, worker: &Rc<Worker>, response: Response, asked: Asked, output: &mut SendQueue) {
        if asked.id.is_promised() && !self.pushes.takes(response.status, response.body.length()) {
            self.engine.reset(asked.id, ErrorCode::Cancel, output.buffer());
            return self.answered_asked(worker, &asked, response.status, 0);
        }
        let mut promised = Vec::new();
        if let Some(page) = &asked.page
            && preload::is_page(response.status)
        {
            self.promise_with(page, asked.id, &response, &mut promised, output);
        }
        self.respond_alone(worker, response, asked, output);
        if !promised.is_empty() {
            self.answer_promised(worker, promised, output);
        }
    }

    fn respond_alone(&mut self, worker: &Rc<Worker>, response: Response, asked: Asked, output: &mut SendQueue) {
        let Response {
            status, fields, body, ..
        } = response;
        if let Body::Tunnel(switch) = body {
            return self.begin_tunnel(worker, &fields, switch, asked, output);
        }
        let length = body.length().filter(|_| status.allows_content());
        let end = asked.head_only || !status.allows_content() || length == Some(0);
        let date = worker.clock.date();
        let all = std::iter::once((&b"date"[..], &date[..]))
            .chain(fields.bytes().filter(|(name, _)| !is_of_connection(name)));
        match self.engine.respond(asked.id, status, length, all, end, output.buffer()) {
            Ok(()) => {}
            Err(SendError::Field(error)) => return self.respond_broken(worker, &error, &asked, output),
            // The client does not want it any more.
            Err(_) => return,
        }
        if end {
            return self.answered_asked(worker, &asked, status, 0);
        }
        let supply = Supply::new(body);
        if supply.ready() > 0 {
            let _ = self
                .engine
                .offer(asked.id, supply.ready(), supply.is_last(), output.buffer());
        }
        self.keep(
            worker,
            asked,
            State::Feeding {
                supply,
                status,
                sent: 0,
            },
        );
    }

    /// An answer turned out to be unspeakable.
    #[cold]
    pub(super) fn respond_broken(
        &mut self,
        worker: &Worker,
        error: &EncodeError,
        asked: &Asked,
        output: &mut SendQueue,
    ) {
        tracing::error!("an answer was not sent: {error}");
        let status = Status::INTERNAL_SERVER_ERROR;
        let _ = self
            .engine
            .respond(asked.id, status, Some(0), [], true, output.buffer());
        self.answered_asked(worker, asked, status, 0);
    }

    fn answered_asked(&mut self, worker: &Worker, asked: &Asked, status: Status, sent: u64) {
        let request = asked.request_context.request.clone();
        let view = request.as_ref().map(|request| request.view());
        self.answered(worker, asked.request_context.access, view.as_ref(), status, sent);
    }

    #[inline]
    pub(super) fn answered(
        &mut self,
        worker: &Worker,
        access: Option<crate::log::SinkId>,
        request: Option<&Request<'_>>,
        status: Status,
        sent: u64,
    ) {
        worker.counters.answered(status);
        record::write(
            worker,
            access,
            self.client,
            &mut self.client_text,
            request,
            status,
            sent,
        );
    }

    /// A request that is not accepted, or a body that is not.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        worker: &Rc<Worker>,
        view: &Rc<View>,
        id: StreamId,
        refusal: Refusal,
        output: &mut SendQueue,
    ) {
        let request_context = match self.answers.take(id) {
            Some(answer) => {
                if let Some(content) = &answer.content {
                    content.fail(ContentError::TooLarge);
                }
                answer.request_context
            }
            None => RequestContext::unparsed(view, self.local.as_deref().copied()),
        };
        let asked = Asked::new(id, false, request_context);
        self.respond_refusal(worker, refusal, asked, output);
    }

    pub(super) fn respond_refusal(
        &mut self,
        worker: &Rc<Worker>,
        refusal: Refusal,
        asked: Asked,
        output: &mut SendQueue,
    ) {
        let step = pipeline::refused(worker, &asked.request_context, self.client, b"", refusal);
        self.step(worker, step, Written::default(), asked, output);
    }

    #[cold]
    pub(super) fn panicked(&mut self, worker: &Rc<Worker>, asked: Asked, output: &mut SendQueue) {
        worker.counters.panics.add(1);
        refusals::log_panic(&asked.request_context);
        if !self.engine.owes_answer(asked.id) {
            return;
        }
        let id = asked.id;
        let step = pipeline::error(worker, &asked.request_context, Status::INTERNAL_SERVER_ERROR);
        self.step(worker, step, Written::default(), asked, output);
        if self.engine.owes_answer(id) && self.answers.get_mut(id).is_none() {
            // Its head had been written.
            self.engine.reset(id, ErrorCode::InternalError, output.buffer());
        }
    }
}

/// Fields that rule a connection in HTTP/1 have no place here (RFC 9113 §8.2.2), and the length is told by the engine.
pub(super) fn is_of_connection(name: &[u8]) -> bool {
    [
        &b"connection"[..],
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
        b"content-length",
    ]
    .iter()
    .any(|known| name.eq_ignore_ascii_case(known))
}
