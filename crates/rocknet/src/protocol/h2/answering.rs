//! Answering: from one request to its answer in the send queue, or to its place among those under way.

use std::cell::OnceCell;
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
use super::reply::{H2Reply, Written};
use super::supply::Supply;
use crate::dispatch::{self, Arrival, Asker, Dispatched, Later};
use crate::exchange::{ContentError, RequestContent};
use crate::filter;
use crate::guard;
use crate::handler::fixed;
use crate::preload;
use crate::protocol::deadlines::Deadlines;
use crate::protocol::facts::{Facts, access};
use crate::protocol::record;
use crate::protocol::refused;
use crate::response::{Body, Response};
use crate::worker::{View, Worker};

/// A request on its stream, while its answer is being found.
pub(super) struct Asked {
    pub id: StreamId,
    pub head_only: bool,
    pub facts: Facts,
    pub content: Option<Incoming>,
    pub page: Option<Box<Page>>,
    /// Ticks that its handler may take; `None`: as long as all others.
    pub patience: Option<u32>,
}

impl Asked {
    pub(super) fn new(id: StreamId, head_only: bool, facts: Facts) -> Asked {
        Asked {
            id,
            head_only,
            facts,
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
        view: &View,
        head: &Head,
        id: StreamId,
        end: bool,
        expects_continue: bool,
        output: &mut SendQueue,
    ) {
        let request = head.request();
        let site = view.site(self.local.as_deref().copied(), request.authority);
        let owned = || Rc::new(OwnedRequest::copy(head.bytes(), head.index()));
        if view.is_guarded
            && let Some(response) = guard::stop(worker, view, self.secure.as_deref(), site, &request)
        {
            let asked = Asked::new(id, request.method == Method::Head, Facts::new(view, site, owned));
            return self.answer_stopped(worker, view, &request, site, end, response, asked, output);
        }
        self.pushes.note(&request);
        if end && self.answer_ready(worker, view, &request, owned, id, site, output) {
            return;
        }
        let asked = Asked::new(id, request.method == Method::Head, Facts::new(view, site, owned));
        self.answer_slowly(worker, view, head, asked, site, end, expects_continue, output);
    }

    /// Answers a request without content from what is known of its path; false if that is nothing, or not enough.
    #[inline]
    pub(super) fn answer_ready(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        request: &Request<'_>,
        owned: impl Fn() -> Rc<OwnedRequest>,
        id: StreamId,
        site: Option<u32>,
        output: &mut SendQueue,
    ) -> bool {
        let Some(number) = site else { return false };
        let head_only = request.method == Method::Head;
        let scheme = self.scheme();
        let asker = Asker {
            peer: self.client,
            secure: self.secure.as_deref(),
        };
        let bound = self.ahead.round(false);
        let mut reply = H2Reply::new(
            &mut self.engine,
            &mut self.pushes,
            scheme,
            output,
            worker,
            id,
            head_only,
            bound,
        );
        let dispatched = catch_unwind(AssertUnwindSafe(|| {
            dispatch::ready(worker, number, request, asker, &owned, &mut reply)
        }));
        let written = reply.written;
        match dispatched {
            Ok(Some(Dispatched::Sent(status))) if written.supply.is_none() && written.promised.is_empty() => {
                let sent = written.content_bytes;
                self.answered(worker, access(view, site), Some(request), status, sent);
            }
            Ok(None) => return false,
            Ok(Some(dispatched)) => {
                let asked = Asked::new(id, head_only, Facts::new(view, site, owned));
                self.dispatched(worker, dispatched, written, asked, output);
            }
            Err(_) => {
                self.give_up_promised(written.promised, output);
                let asked = Asked::new(id, head_only, Facts::new(view, site, owned));
                self.panicked(worker, asked, output);
            }
        }
        true
    }

    /// Answers a request that came the wrong way.
    #[inline(never)]
    fn answer_stopped(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        request: &Request<'_>,
        site: Option<u32>,
        end: bool,
        response: Response,
        asked: Asked,
        output: &mut SendQueue,
    ) {
        if let Err(refusal) = self.limit_content(view, asked.id, site, request, end) {
            return self.respond_refusal(worker, refusal, request.path, asked, output);
        }
        let dispatched = Dispatched::Respond(Box::new(response));
        self.dispatched(worker, dispatched, Written::default(), asked, output);
    }

    fn limit_content(
        &mut self,
        view: &View,
        id: StreamId,
        site: Option<u32>,
        request: &Request<'_>,
        end: bool,
    ) -> Result<(), Refusal> {
        if end {
            return Ok(());
        }
        let limit = dispatch::content_limit(view, site, request, self.secure.is_some());
        self.engine.set_content_limit(id, limit)
    }

    #[inline(never)]
    fn answer_slowly(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        head: &Head,
        mut asked: Asked,
        site: Option<u32>,
        end: bool,
        expects_continue: bool,
        output: &mut SendQueue,
    ) {
        let request = head.request();
        let is_connect = request.upgrade.is_some();
        if !is_connect && let Err(refusal) = self.limit_content(view, asked.id, site, &request, end) {
            return self.respond_refusal(worker, refusal, request.path, asked, output);
        }
        let content = match end {
            true => RequestContent::none(),
            false => {
                let (content, pipe) = RequestContent::piped();
                if is_connect {
                    pipe.end(Ok(()));
                }
                asked.content = Some(Incoming::new(pipe, expects_continue && !is_connect));
                content
            }
        };
        let kept = asked.facts.request.clone();
        let owned = || kept.unwrap_or_else(|| Rc::new(OwnedRequest::copy(head.bytes(), head.index())));
        self.answer_by_handler(worker, &head.request(), owned, content, asked, site, output);
    }

    /// Answers what nobody knows the answer of.
    pub(super) fn answer_by_handler(
        &mut self,
        worker: &Rc<Worker>,
        request: &Request<'_>,
        owned: impl FnOnce() -> Rc<OwnedRequest>,
        content: RequestContent,
        mut asked: Asked,
        site: Option<u32>,
        output: &mut SendQueue,
    ) {
        let kept = OnceCell::new();
        let owned = || Rc::clone(kept.get_or_init(owned));
        let dispatched = catch_unwind(AssertUnwindSafe(|| {
            let arrival = Arrival {
                request,
                owned,
                content,
                peer: self.client,
                secure: self.secure.as_ref(),
            };
            dispatch::slow(worker, site, arrival)
        }));
        match dispatched {
            Ok(Dispatched::Later(Later {
                answer,
                preloads,
                patience,
            })) => {
                asked.patience = patience;
                if self.engine.may_push(asked.id) && preload::is_first_look(request) {
                    asked.page = kept.into_inner().map(|request| Box::new(Page { request, preloads }));
                } else if let Some(preloads) = preloads.filter(|_| !asked.id.is_promised()) {
                    // The handler takes its time, in which the client can ask for what it will need.
                    self.pushes
                        .hint(&mut self.engine, asked.id, request, &preloads, output.buffer());
                }
                self.keep(worker, asked, State::Waiting(answer));
            }
            Ok(dispatched) => self.dispatched(worker, dispatched, Written::default(), asked, output),
            Err(_) => self.panicked(worker, asked, output),
        }
    }

    pub(super) fn dispatched(
        &mut self,
        worker: &Rc<Worker>,
        dispatched: Dispatched,
        written: Written,
        mut asked: Asked,
        output: &mut SendQueue,
    ) {
        match dispatched {
            Dispatched::Sent(status) => match written.supply {
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
            Dispatched::Respond(response) => self.respond(worker, *response, asked, output),
            Dispatched::Later(Later { answer, patience, .. }) => {
                asked.patience = patience;
                self.keep(worker, asked, State::Waiting(answer));
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
            facts,
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
            facts,
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
        let Response { status, fields, body } = response;
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
        let request = asked.facts.request.clone();
        let view = request.as_ref().map(|request| request.view());
        self.answered(worker, asked.facts.access, view.as_ref(), status, sent);
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

    /// A request that is not taken, or content that is not.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        worker: &Rc<Worker>,
        view: &View,
        id: StreamId,
        refusal: Refusal,
        output: &mut SendQueue,
    ) {
        let facts = match self.answers.take(id) {
            Some(answer) => {
                if let Some(content) = &answer.content {
                    content.fail(ContentError::TooLarge);
                }
                answer.facts
            }
            None => Facts::of_nothing(view, self.local.as_deref().copied()),
        };
        let asked = Asked::new(id, false, facts);
        self.respond_refusal(worker, refusal, b"", asked, output);
    }

    pub(super) fn respond_refusal(
        &mut self,
        worker: &Rc<Worker>,
        refusal: Refusal,
        path: &[u8],
        asked: Asked,
        output: &mut SendQueue,
    ) {
        let (status, reason) = (refusal.status(), refusal.reason());
        refused::log(&worker.view(), &self.client, &asked.facts, path, status, reason);
        let mut response = fixed::refused(refusal);
        filter::headers::apply_server(&mut response.fields);
        self.respond(worker, response, asked, output);
    }

    #[cold]
    pub(super) fn panicked(&mut self, worker: &Rc<Worker>, asked: Asked, output: &mut SendQueue) {
        worker.counters.panics.add(1);
        tracing::error!("a request was ended by a panic");
        if !self.engine.owes_answer(asked.id) {
            return;
        }
        let id = asked.id;
        let mut response = fixed::error(Status::INTERNAL_SERVER_ERROR);
        filter::headers::apply_server(&mut response.fields);
        self.respond(worker, response, asked, output);
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
